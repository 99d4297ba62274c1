//! A server's own counters, and who it says it is.

mod postgres;
mod session;
mod untold;

use std::collections::BTreeMap;

pub(crate) use postgres::major as postgres_major;
pub use untold::{Untold, untold};

use crate::{AnySession, Class, DbError, Session};

/// SQLite's counters that cost no scan: pages in the file and unused ones, page size in bytes, and a number that
/// moves when another connection commits.
const SQLITE_COUNTERS: &[&str] = &["page_count", "freelist_count", "page_size", "data_version"];

/// SQLite's settings that change what a benchmark measures.
const SQLITE_SETTINGS: &[&str] = &[
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

/// A counter of MySQL from 5.6 on, whose performance schema counts what is done with files, and one of MariaDB, which counts
/// the groups that it writes to its binary log.
const HAS_FILE_COUNTS: &str = "Performance_schema_accounts_lost";
const HAS_GROUP_COUNTS: &str = "Binlog_group_commits";
/// Operations on binary logs that neither read nor write: syncs, and a few for each file that is opened or closed.
const BINLOG_OPERATIONS: &str = "SELECT 'binlog.COUNT_MISC', COUNT_MISC FROM performance_schema.file_summary_by_event_name \
     WHERE EVENT_NAME = 'wait/io/file/sql/binlog'";

/// Server variables that hold a password in some versions; their values are never kept.
const SECRET_VARIABLES: &[&str] = &["report_password", "wsrep_sst_auth", "wsrep_sst_receive_auth"];

/// Who a server says it is and how it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite` or `null`.
    pub product: String,
    /// The first three numbers of the version: `[10, 11, 19]`.
    pub version: [u32; 3],
    /// The version as the server writes it: `10.11.19-MariaDB-0+deb12u1`.
    pub version_text: String,
    /// The default engine, with the InnoDB's or XtraDB's own version where it has one: `XtraDB 5.6.35-80.0`. PostgreSQL:
    /// the default table access method, `heap`.
    pub engine: String,
    /// Every effective global setting by name. SQLite: its pragmas and `compile_options`, of this session.
    pub settings: BTreeMap<String, String>,
    /// Values of this session that may differ from the server's: isolation, autocommit, character set, SQL mode.
    pub session: BTreeMap<String, String>,
    /// Where settings that are no defaults come from, by name, as far as the server reports.
    pub sources: BTreeMap<String, String>,
}

/// The server's counters now, under its own names: numbers as they are, fractions rounded, anything above the range
/// of `i64` as its maximum, words left out. Empty for the null driver. PostgreSQL: the columns of its statistics views for
/// the session's database and the server, as `pg_stat_wal.wal_sync`, and `wal_position_bytes`.
///
/// MySQL from 5.6 on: `binlog.COUNT_MISC` of its performance schema too, where that is on and may be read.
///
/// Costs the server about a millisecond for the MySQL family (`SHOW GLOBAL STATUS`) and PostgreSQL, SQLite a short read
/// lock.
///
/// # Errors
/// As [`Session::rows`].
pub async fn status(session: &mut AnySession) -> Result<BTreeMap<String, i64>, DbError> {
    match session {
        AnySession::Null(_) => Ok(BTreeMap::new()),
        AnySession::Sqlite(_) => Ok(numbers(pragmas(session, SQLITE_COUNTERS).await?)),
        AnySession::Mysql(_) => Ok(numbers(mysql_counters(session).await?)),
        AnySession::Postgres(_) => Ok(numbers(postgres::counters(session).await?)),
    }
}

async fn mysql_counters(session: &mut AnySession) -> Result<BTreeMap<String, String>, DbError> {
    let mut counters = name_value_pairs(session, "SHOW GLOBAL STATUS").await?;
    if counters.contains_key(HAS_FILE_COUNTS) && !counters.contains_key(HAS_GROUP_COUNTS) {
        match name_value_pairs(session, BINLOG_OPERATIONS).await {
            Ok(operations) => counters.extend(operations),
            Err(error) if error.class == Class::Lost => return Err(error),
            // The session has not the right to ask.
            Err(_) => {}
        }
    }
    Ok(counters)
}

/// Who the server is: product, version, engine, and all its settings as they are in force.
///
/// # Errors
/// As [`Session::rows`]; Fatal if a server does not report its version.
pub async fn describe(session: &mut AnySession) -> Result<Description, DbError> {
    match session {
        AnySession::Null(_) => Ok(Description {
            product: "null".to_owned(),
            version: [0; 3],
            version_text: String::new(),
            engine: "null".to_owned(),
            settings: BTreeMap::new(),
            session: BTreeMap::new(),
            sources: BTreeMap::new(),
        }),
        AnySession::Sqlite(_) => describe_sqlite(session).await,
        AnySession::Mysql(_) => describe_mysql(session).await,
        AnySession::Postgres(_) => postgres::describe(session).await,
    }
}

async fn describe_sqlite(session: &mut AnySession) -> Result<Description, DbError> {
    let version_text = cell(session, "SELECT sqlite_version()").await?.unwrap_or_default();
    let mut settings = pragmas(session, SQLITE_SETTINGS).await?;
    let options = session.rows("PRAGMA compile_options").await?;
    let options: Vec<String> = options.into_iter().flatten().flatten().collect();
    settings.insert("compile_options".to_owned(), options.join(" "));
    Ok(Description {
        product: "SQLite".to_owned(),
        version: version_numbers(&version_text),
        version_text,
        engine: "SQLite".to_owned(),
        settings,
        session: BTreeMap::new(),
        sources: BTreeMap::new(),
    })
}

async fn describe_mysql(session: &mut AnySession) -> Result<Description, DbError> {
    let version_text = cell(session, "SELECT VERSION()").await?.unwrap_or_default();
    if version_text.is_empty() {
        return Err(DbError::new(
            Class::Fatal,
            "",
            "the server does not report its version: SELECT VERSION() is empty",
        ));
    }
    let mut settings = variables(session, "%").await?;
    for secret in SECRET_VARIABLES {
        if let Some(value) = settings.get_mut(*secret) {
            "***".clone_into(value);
        }
    }
    let engines = session.rows("SHOW ENGINES").await?;
    let setting = |name: &str| settings.get(name).map_or("", String::as_str);
    let is_xtradb = engines.iter().flatten().flatten().any(|text| text.contains("Percona-XtraDB"));
    Ok(Description {
        product: product(&version_text, setting("version_comment")).to_owned(),
        version: version_numbers(&version_text),
        engine: engine(setting("default_storage_engine"), is_xtradb, setting("innodb_version")),
        version_text,
        settings,
        session: session::mysql_session(session).await?,
        sources: session::mysql_sources(session).await,
    })
}

/// Which of the three products of the family it is.
fn product(version_text: &str, version_comment: &str) -> &'static str {
    if version_text.contains("MariaDB") {
        "MariaDB"
    } else if version_comment.contains("Percona") {
        "Percona Server"
    } else {
        "MySQL"
    }
}

/// The default engine's name; an InnoDB is called by its own name and version.
fn engine(default: &str, is_xtradb: bool, innodb_version: &str) -> String {
    if !default.eq_ignore_ascii_case("innodb") {
        return default.to_owned();
    }
    let name = if is_xtradb { "XtraDB" } else { "InnoDB" };
    format!("{name} {innodb_version}").trim_end().to_owned()
}

/// The first three numbers of a version, 0 for one that is missing. MariaDB behind some proxies writes `5.5.5-`
/// before its version, for old replication clients.
pub(crate) fn version_numbers(text: &str) -> [u32; 3] {
    let text = if text.contains("MariaDB") { text.strip_prefix("5.5.5-").unwrap_or(text) } else { text };
    let numbers =
        text.split(|separator: char| !separator.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut version = [0; 3];
    version.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    version
}

/// Global variables of the MySQL family whose names match `pattern`, as text. A variable that the version does not
/// have is absent, not an error.
pub(crate) async fn variables(
    session: &mut AnySession,
    pattern: &str,
) -> Result<BTreeMap<String, String>, DbError> {
    name_value_pairs(session, &format!("SHOW GLOBAL VARIABLES LIKE '{pattern}'")).await
}

/// The only value of a statement's first row.
pub(crate) async fn cell(session: &mut AnySession, sql: &str) -> Result<Option<String>, DbError> {
    Ok(session.rows(sql).await?.into_iter().flatten().next().flatten())
}

pub(crate) async fn name_value_pairs(
    session: &mut AnySession,
    sql: &str,
) -> Result<BTreeMap<String, String>, DbError> {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()?.unwrap_or_default()))
    };
    Ok(session.rows(sql).await?.into_iter().filter_map(pair).collect())
}

async fn pragmas(session: &mut AnySession, names: &[&str]) -> Result<BTreeMap<String, String>, DbError> {
    let mut values = BTreeMap::new();
    for &name in names {
        if let Some(value) = cell(session, &format!("PRAGMA {name}")).await? {
            values.insert(name.to_owned(), value);
        }
    }
    Ok(values)
}

fn numbers(texts: BTreeMap<String, String>) -> BTreeMap<String, i64> {
    texts.into_iter().filter_map(|(name, text)| Some((name, number(&text)?))).collect()
}

/// A counter's value: `None` for a word. Conversion from `f64` saturates at the ends of `i64`.
fn number(text: &str) -> Option<i64> {
    let fraction =
        || text.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value.round() as i64);
    text.parse().ok().or_else(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::testing;
    use crate::{Endpoint, Target, null, sqlite};

    #[test]
    fn counters_are_numbers_and_words_are_left_out() {
        assert_eq!(number("42"), Some(42));
        assert_eq!(number("-1"), Some(-1));
        assert_eq!(number("0.7"), Some(1));
        assert_eq!(number("18446744073709551615"), Some(i64::MAX));
        for word in ["ON", "", "0 rows", "nan", "inf", "2026-01-01"] {
            assert_eq!(number(word), None, "{word}");
        }
    }

    #[test]
    fn versions_are_three_numbers() {
        for (text, version) in [
            ("10.11.19-MariaDB-0+deb12u1", [10, 11, 19]),
            ("5.5.5-10.1.23-MariaDB", [10, 1, 23]),
            ("8.0.31", [8, 0, 31]),
            ("5.6.24-log", [5, 6, 24]),
            ("8.0.36-28", [8, 0, 36]),
            ("19rc1", [19, 0, 1]),
            ("", [0, 0, 0]),
        ] {
            assert_eq!(version_numbers(text), version, "{text}");
        }
    }

    #[test]
    fn products_and_engines_have_their_names() {
        assert_eq!(product("10.1.23-MariaDB", "MariaDB Server"), "MariaDB");
        assert_eq!(product("8.0.36-28", "Percona Server (GPL), Release 28"), "Percona Server");
        assert_eq!(product("8.0.31", "MySQL Community Server - GPL"), "MySQL");
        assert_eq!(engine("InnoDB", true, "5.6.35-80.0"), "XtraDB 5.6.35-80.0");
        assert_eq!(engine("InnoDB", false, "8.0.31"), "InnoDB 8.0.31");
        assert_eq!(engine("InnoDB", false, ""), "InnoDB");
        assert_eq!(engine("ROCKSDB", true, "8.0.31"), "ROCKSDB");
    }

    #[tokio::test]
    async fn sqlite_tells_its_pages_and_settings() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "wal"), ("page_size", "8192")]);
        let endpoint = Endpoint { target: Target::Sqlite(options), capabilities: sqlite::capabilities() };
        let mut session = endpoint.connect().await.unwrap();
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
        for setting in SQLITE_SETTINGS {
            assert!(description.settings.contains_key(*setting), "{setting}");
        }
    }

    #[tokio::test]
    async fn the_null_database_has_no_counters() {
        let target = Target::Null(null::Options::default());
        let mut session = Endpoint { target, capabilities: null::capabilities() }.connect().await.unwrap();
        assert!(status(&mut session).await.unwrap().is_empty());
        assert_eq!(describe(&mut session).await.unwrap().product, "null");
    }
}
