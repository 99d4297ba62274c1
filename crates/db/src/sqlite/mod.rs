//! The embedded product SQLite, which is the default database. SQLite runs in this process and its
//! calls block, so each connection needs its own thread.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | SQLite as a product without servers: its file, and how dbdyno queries its state |
//! | `session.rs` | one connection: it executes statements, counts rows and waits for locks |
//! | `pragma.rs` | sets pragmas and checks that SQLite accepted them |
//! | `error.rs` | turns result codes into [`crate::Class`]es and messages |
//! | `marker.rs` | which database files are dbdyno's, and how they are made and removed |

mod error;
mod marker;
mod pragma;
mod session;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dbdyno_products::sqlite::SqliteOptions;
use dbdyno_products::{FamilyFacts, TypedOptions};
use serde_json::{Map, Value};

pub use self::SqliteFile as Options;
use crate::product::{
    Connection, DeferredWork, Description, LimitedSession, Product, Texts, UpkeepWork, first_value,
    permitted, version_numbers,
};
use crate::{
    Bounds, Capabilities, DatabaseAddress, DatabaseServer, DeleteForm, Family, IndexDdl, IndexHint,
    KeySource, Result, RowStream, Session,
};
pub use marker::{APPLICATION_ID, database_files, is_marked, wipe};
pub use session::{SqliteSession, create_marked};

#[derive(Debug)]
pub(crate) struct Sqlite;

/// A database file, and how each connection to it is configured.
#[derive(Debug, Clone)]
pub struct SqliteFile {
    pub path: PathBuf,
    /// Names and values of the pragmas that every connection sets, in this order. Pragmas that
    /// SQLite accepts only before the first page is written (`page_size`, `auto_vacuum`,
    /// `encoding`) are set before all others.
    pub pragmas: Vec<(String, String)>,
    /// How long a statement waits for another connection's lock before it fails as
    /// [`crate::Class::Retry`].
    pub busy_timeout: Duration,
}

pub fn capabilities() -> Capabilities {
    Capabilities {
        auto_key: "integer primary key",
        int_key: "INTEGER NOT NULL",
        // A primary key is the rowid only if its type is INTEGER. It has up to 64 bits.
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
        vacuumed_tables: false,
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

/// Test helpers: real files on a real disk.
#[cfg(test)]
pub(crate) mod testing {
    use std::path::Path;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::SqliteFile;

    /// A folder next to the test binary. That folder is on the build's disk, while `/tmp` may be in
    /// memory.
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

/// SQLite's counters that need no scan: pages in the file and unused ones, page size in bytes, and
/// a number that changes when another connection commits.
const COUNTERS: &[&str] = &["page_count", "freelist_count", "page_size", "data_version"];

/// SQLite's settings that change what a benchmark measures.
const SETTINGS: &[&str] = &[
    "auto_vacuum",
    "cache_size",
    "cache_spill",
    "encoding",
    "foreign_keys",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "mmap_size",
    "page_size",
    "secure_delete",
    "synchronous",
    "temp_store",
    "wal_autocheckpoint",
];

impl Connection for SqliteSession {
    fn in_transaction(&self) -> bool {
        self.in_transaction()
    }

    fn interrupt(&self) -> Option<Box<dyn Fn() + Send>> {
        let handle = self.interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }
}

impl Product for Sqlite {
    const ABOUT: &'static str = "SQLite, embedded; no server needed";
    const TABLES: &'static str =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY name";
    const EXPLAIN: &'static [(&'static str, &'static str)] = &[("EXPLAIN QUERY PLAN", Self::NAME)];

    const FACTS: &'static FamilyFacts = &dbdyno_products::sqlite::FACTS;

    type Options = SqliteFile;
    type Session = SqliteSession;

    fn capabilities(_engine: &str, _owned: bool) -> Capabilities {
        capabilities()
    }

    async fn connect(options: &SqliteFile) -> Result<SqliteSession> {
        SqliteSession::open(options)
    }

    fn own_settings(options: &Map<String, Value>) -> Vec<(String, String)> {
        SqliteOptions::read(options).pragmas.into_iter().collect()
    }

    fn open_file(folder: &Path, settings: &[(String, String)], is_fresh: bool) -> Result<DatabaseServer> {
        open_file(folder, settings, is_fresh)
    }

    async fn describe(session: &mut LimitedSession<'_, Self>) -> Result<Description> {
        let version_text = first_value(session, "SELECT sqlite_version()").await?.unwrap_or_default();
        let mut settings = pragmas(session, SETTINGS).await?;
        let options = session.rows("PRAGMA compile_options").await?;
        let options: Vec<String> = options.into_iter().flatten().flatten().collect();
        settings.insert("compile_options".to_owned(), options.join(" "));
        Ok(Description {
            product: "SQLite".to_owned(),
            version: version_numbers(&version_text),
            version_text,
            engine: "SQLite".to_owned(),
            settings,
            ..Description::default()
        })
    }

    async fn counters(session: &mut LimitedSession<'_, Self>) -> Result<Texts> {
        pragmas(session, COUNTERS).await
    }

    async fn deferred_work(
        session: &mut LimitedSession<'_, Self>,
        _capabilities: &Capabilities,
    ) -> Result<DeferredWork> {
        let mut deferred_work = DeferredWork::default();
        let page_bytes = number(permitted(first_value(session, "PRAGMA page_size").await)?.flatten());
        let every = number(permitted(first_value(session, "PRAGMA wal_autocheckpoint").await)?.flatten());
        deferred_work
            .capacity("autocheckpoint_bytes", every.zip(page_bytes).map(|(pages, bytes)| pages * bytes));
        // NOOP only reads the state; it exists from SQLite 3.51 on. The columns are busy, frames in
        // the log, and frames written back. The numbers are -1 without a log.
        let answer = permitted(session.rows("PRAGMA wal_checkpoint(NOOP)").await)?.unwrap_or_default();
        let column = |index: usize| number(answer.first()?.get(index)?.clone());
        if let (Some(frames @ 0..), Some(done @ 0..), Some(bytes)) = (column(1), column(2), page_bytes) {
            deferred_work.level("wal_bytes", Some((frames - done) * bytes));
        }
        Ok(deferred_work)
    }

    fn quiet_at(level: &str, deferred_work: &DeferredWork, _bounds: &Bounds) -> Option<i64> {
        if level == "wal_bytes" {
            deferred_work.capacities.get("autocheckpoint_bytes").copied()
        } else {
            None
        }
    }

    async fn upkeep(work: &mut UpkeepWork<'_, Self>, tables: &[String]) -> Result<()> {
        // This gathers statistics, then writes a checkpoint where there is a write-ahead log.
        for table in tables {
            let part_start = Instant::now();
            let sql = format!("ANALYZE \"{}\"", table.replace('"', "\"\""));
            work.session.query(sql.as_bytes()).await?;
            work.ended(&format!("analyze {table}"), part_start);
        }
        if first_value(&mut work.session, "PRAGMA journal_mode").await?.as_deref() != Some("wal") {
            return Ok(());
        }
        let part_start = Instant::now();
        // The columns are busy (0 or 1), frames in the log, and frames written back. An emptied log
        // has 0 frames.
        let answer = work.session.rows("PRAGMA wal_checkpoint(TRUNCATE)").await?;
        work.ended("checkpoint", part_start);
        let number = |column: usize| answer.first()?.get(column)?.as_deref()?.parse::<i64>().ok();
        work.fact("wal_frames_left", number(1));
        if number(0) != Some(0) {
            work.note("the checkpoint was not complete: another connection was reading");
        }
        Ok(())
    }
}

async fn pragmas(session: &mut LimitedSession<'_, Sqlite>, names: &[&str]) -> Result<Texts> {
    let mut values = Texts::new();
    for &name in names {
        if let Some(value) = first_value(session, &format!("PRAGMA {name}")).await? {
            values.insert(name.to_owned(), value);
        }
    }
    Ok(values)
}

fn number(text: Option<String>) -> Option<i64> {
    text?.parse().ok()
}

impl Family {
    /// The family whose database runs inside dbdyno's process.
    pub const EMBEDDED: Self = Self::Sqlite;
}

/// How long a statement waits for another connection's lock.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{deferred_work, describe, status};

    #[tokio::test]
    async fn sqlite_reports_its_pages_and_settings() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "wal"), ("page_size", "8192")]);
        let database_server =
            DatabaseServer { address: DatabaseAddress::Sqlite(options), capabilities: capabilities() };
        let mut session = database_server.connect().await.unwrap();
        session.query(b"CREATE TABLE t (a)").await.unwrap();
        let counters = status(&mut session).await.unwrap();
        assert_eq!((counters["page_count"], counters["page_size"]), (2, 8192));
        assert_eq!(counters["freelist_count"], 0);
        assert!(counters.contains_key("data_version"));

        let description = describe(&mut session).await.unwrap();
        assert_eq!((description.product.as_str(), description.version[0]), ("SQLite", 3));
        assert_eq!(description.settings["journal_mode"], "wal");
        assert_eq!(description.settings["page_size"], "8192");
        assert!(description.settings["compile_options"].contains("THREADSAFE"), "{description:?}");
        for setting in SETTINGS {
            assert!(description.settings.contains_key(*setting), "{setting}");
        }
    }

    #[tokio::test]
    async fn frames_in_the_log_are_deferred_work_until_a_checkpoint() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "wal")]);
        let capabilities = capabilities();
        let database_server =
            DatabaseServer { address: DatabaseAddress::Sqlite(options), capabilities: capabilities.clone() };
        let mut session = database_server.connect().await.unwrap();
        for sql in ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"] {
            session.query(sql.as_bytes()).await.unwrap();
        }
        let work = deferred_work(&mut session, &capabilities).await.unwrap();
        // The log has at least four frames of 4096 bytes: the first page, the table's page, and the
        // table's page again for each INSERT.
        assert!(work.levels["wal_bytes"] >= 4 * 4096, "{work:?}");
        assert_eq!(
            deferred_work(&mut session, &capabilities).await.unwrap(),
            work,
            "looking changes nothing"
        );
        session.rows("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
        assert_eq!(deferred_work(&mut session, &capabilities).await.unwrap().levels["wal_bytes"], 0);
    }

    #[tokio::test]
    async fn without_a_log_there_is_no_deferred_work() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "delete")]);
        let capabilities = capabilities();
        let database_server =
            DatabaseServer { address: DatabaseAddress::Sqlite(options), capabilities: capabilities.clone() };
        let mut session = database_server.connect().await.unwrap();
        session.query(b"CREATE TABLE t (a)").await.unwrap();
        assert!(deferred_work(&mut session, &capabilities).await.unwrap().levels.is_empty());
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod sqlite_tests;
