//! SQLite as a product without a server: its options, and the file that it works in.

use std::path::Path;
use std::time::Duration;

use super::{SqliteFile, capabilities, create_marked};
use crate::{DatabaseAddress, DatabaseServer, Family, Result};

impl Family {
    /// The family that works inside dbdyno.
    pub const EMBEDDED: Self = Self::Sqlite;
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Implements [`Family::open_file`].
pub(super) fn open_file(
    folder: &Path,
    pragmas: &[(String, String)],
    is_fresh: bool,
) -> Result<DatabaseServer> {
    let path = folder.join("ib.db");
    let options = SqliteFile { path, pragmas: pragmas.to_vec(), busy_timeout: BUSY_TIMEOUT };
    if is_fresh {
        create_marked(&options)?;
    }
    Ok(DatabaseServer { address: DatabaseAddress::Sqlite(options), capabilities: capabilities() })
}
