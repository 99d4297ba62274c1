//! What a reader's own option file sets, for comparison with what intents set.

use std::path::Path;

use crate::my_cnf::MyCnf;
use crate::postgres::conf_settings;
use crate::{Base, Error};

/// Names (with underscores) and values in the order of the file at `path`, as a server of `base` reads it.
///
/// # Errors
/// [`Error::OptionFile`] when it cannot be read, or puts data outside the data directory.
pub fn native_settings(base: &Base, path: &Path) -> Result<Vec<(String, Option<String>)>, Error> {
    match base {
        Base::Mysql(base) => Ok(MyCnf::read(path, base)?.into_settings()),
        Base::Postgres(_) => conf_settings(path),
    }
}
