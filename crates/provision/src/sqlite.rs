//! SQLite as an [`Embedded`] product.

use std::path::Path;
use std::time::Duration;

use dbdyno_drivers::{DbError, Endpoint, Target, sqlite};

use crate::product::Embedded;
use crate::release::{ConfigProduct, ProductFacts};

impl ConfigProduct {
    pub const SQLITE: Self = Self(&ProductFacts {
        word: "sqlite",
        name: "SQLite",
        prefixes: &[],
        base: None,
        file_form: ("", "PRAGMA "),
    });
}

pub(crate) const SQLITE: Embedded = Embedded {
    name: "sqlite",
    product: ConfigProduct::SQLITE,
    options: include_str!("../data/options-sqlite.toml"),
    open,
};

const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

fn open(folder: &Path, pragmas: &[(String, String)], is_fresh: bool) -> Result<Endpoint, DbError> {
    let path = folder.join("ib.db");
    let options = sqlite::Options { path, pragmas: pragmas.to_vec(), busy_timeout: BUSY_TIMEOUT };
    if is_fresh {
        sqlite::create_marked(&options)?;
    }
    Ok(Endpoint { target: Target::Sqlite(options), capabilities: sqlite::capabilities() })
}
