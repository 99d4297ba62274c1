//! SQLite, the embedded default database. It runs in this process and blocks, so each connection
//! needs its own thread.
//!
//! | file | contents |
//! |---|---|
//! | `product.rs` | SQLite as a product, and how dbdyno queries its state |
//! | `session.rs` | one connection: it executes statements and counts rows |
//! | `pragma.rs` | sets pragmas and checks that SQLite accepted them |
//! | `wait.rs` | how a statement waits for another connection's lock |
//! | `error.rs` | turns result codes into [`crate::Class`]es and sentences |
//! | `server.rs` | SQLite as a product without servers, and its file for a plan's cell |
//! | `mark.rs` | which database files are dbdyno's, and how they are made and removed |

mod error;
mod mark;
mod pragma;
mod product;
pub(crate) mod server;
mod session;
mod wait;

use std::path::PathBuf;
use std::time::Duration;

use crate::{Capabilities, DeleteForm, IndexDdl, IndexHint, KeySource, RowStream};

pub use self::SqliteFile as Options;
pub use mark::{APPLICATION_ID, database_files, is_marked, wipe};
pub use session::{SqliteSession, create_marked};

#[derive(Debug)]
pub(crate) struct Sqlite;

/// A database file, and how each connection to it is configured.
#[derive(Debug, Clone)]
pub struct SqliteFile {
    pub path: PathBuf,
    /// `PRAGMA name = value` on every connection, in this order. The exceptions are pragmas that
    /// SQLite accepts only before the first page is written (`page_size`, `auto_vacuum`,
    /// `encoding`): they are set before all others.
    pub pragmas: Vec<(String, String)>,
    /// How long a statement waits for another connection's lock before it fails as
    /// [`crate::Class::Retry`].
    pub busy_timeout: Duration,
}

pub fn capabilities() -> Capabilities {
    Capabilities {
        auto_key: "integer primary key",
        int_key: "INTEGER NOT NULL",
        // Only the type INTEGER, with up to 64 bits, makes a primary key the row's own number.
        big_key: "INTEGER NOT NULL",
        big_int: "INTEGER",
        unsigned: false,
        begin_write: "BEGIN IMMEDIATE",
        datetime: "text",
        engine: None,
        table_suffix: String::new(),
        index_hint: IndexHint::IndexedBy,
        delete_form: DeleteForm::InSubquery,
        index_ddl: IndexDdl::CreateEach,
        int_param: "?",
        text_writes_by_default: false,
        text_queries_by_default: false,
        blocking: true,
        row_stream: RowStream::PreparedRows,
        parallel_writers: false,
        keeps_arrival_order: false,
        drops_binlog: false,
        key_source: KeySource::Table,
        contiguous_keys: true,
        gather_statistics: "ANALYZE",
        typed_values: false,
        foreign_keys: false,
        ordered_join: (" CROSS JOIN ", ""),
        stores_data: true,
        foreign: None,
    }
}

#[cfg(test)]
mod tests;

/// Test helpers: real files on a real disk.
#[cfg(test)]
pub(crate) mod testing {
    use std::path::Path;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::SqliteFile;

    /// A folder next to the test binary. It is on the build's disk, while `/tmp` may be in memory.
    pub(crate) fn folder() -> TempDir {
        let binary = std::env::current_exe().unwrap();
        tempfile::tempdir_in(binary.parent().unwrap()).unwrap()
    }

    /// Options for `bench.db` in `folder`.
    pub(crate) fn options(folder: &Path, pragmas: &[(&str, &str)]) -> SqliteFile {
        SqliteFile {
            path: folder.join("bench.db"),
            pragmas: pragmas.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
            busy_timeout: Duration::from_secs(5),
        }
    }
}
