//! Reads from MariaDB, MySQL and Percona Server: counters, settings, the session settings that the
//! load's connections get, and the work that the server has deferred.

use std::collections::BTreeMap;

use super::Mysql;
use crate::foreign::{Identification, Identity, identify};
use crate::product::{
    Answering, DeferredWork, Description, LimitedSession, MIN_BOUND_COUNT, Product, Texts, answering,
    first_value, name_value_pairs, numbers, permitted,
};
use crate::{Bounds, Capabilities, Result, Session, first_i64};

/// Counters whose presence shows which other counts a server has. The first exists in MySQL from
/// 5.6 on, whose performance schema counts file operations. The second is MariaDB's, which counts
/// the groups that it writes to its binary log.
const HAS_FILE_COUNTS: &str = "Performance_schema_accounts_lost";
const HAS_GROUP_COUNTS: &str = "Binlog_group_commits";
/// Query for the operations on binary logs that neither read nor write. Nearly all are syncs. A few
/// more come with each file that is opened or closed.
const BINLOG_OPERATIONS: &str = "SELECT 'binlog.COUNT_MISC', COUNT_MISC FROM performance_schema.file_summary_by_event_name \
     WHERE EVENT_NAME = 'wait/io/file/sql/binlog'";

/// Server variables that hold a password in some versions. Their values are never kept.
const SECRET_VARIABLES: &[&str] = &["report_password", "wsrep_sst_auth", "wsrep_sst_receive_auth"];

/// MySQL-family variables that a session may set differently from the server, and that change what
/// a load measures.
const SESSION: &[&str] = &[
    "autocommit",
    "binlog_format",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_results",
    "collation_connection",
    "collation_database",
    "foreign_key_checks",
    "sql_log_bin",
    "sql_mode",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "unique_checks",
];

/// Pseudo-variable of this client: whether the server sends a prepared statement's column
/// definitions `once` or `always`.
const COLUMN_DEFINITIONS: &str = "column_definitions";

/// Pseudo-variable of this client: see [`crate::mysql::MysqlSession::protocol_options`].
const PROTOCOL_OPTIONS: &str = "protocol_options";

/// Queries for each setting's source, for MariaDB and for MySQL from 8.0 on. Older servers have
/// neither view.
const SOURCES: [&str; 2] = [
    "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES \
     WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', '')",
    "SELECT VARIABLE_NAME, VARIABLE_SOURCE FROM performance_schema.variables_info WHERE VARIABLE_SOURCE <> 'COMPILED'",
];

pub(super) async fn counters(session: &mut LimitedSession<'_, Mysql>) -> Result<Texts> {
    let mut counters = permitted(name_value_pairs(session, "SHOW GLOBAL STATUS").await)?.unwrap_or_default();
    if counters.contains_key(HAS_FILE_COUNTS) && !counters.contains_key(HAS_GROUP_COUNTS) {
        let operations = permitted(name_value_pairs(session, BINLOG_OPERATIONS).await)?;
        counters.extend(operations.unwrap_or_default());
    }
    Ok(counters)
}

pub(super) async fn describe(session: &mut LimitedSession<'_, Mysql>) -> Result<Description> {
    let mut settings = permitted(variables(session, "%").await)?.unwrap_or_default();
    for secret in SECRET_VARIABLES {
        if let Some(value) = settings.get_mut(*secret) {
            "***".clone_into(value);
        }
    }
    let identity = identity(session, &settings).await?;
    let engine = match identity.foreign.as_ref().is_some_and(|foreign| !foreign.is_proxy) {
        true => String::new(),
        false => default_engine(session, &settings).await?,
    };
    Ok(Description {
        engine,
        session: own_values(session).await?,
        sources: sources(session).await,
        settings,
        ..Description::of(identity)
    })
}

/// Settings that every version of these products has, and that other servers with the same protocol
/// rarely have.
const OWN_SETTINGS: &[&str] = &["datadir", "plugin_dir", "version_compile_machine", "version_compile_os"];

/// Query for a storage engine that every build of these products has. Other servers have no such
/// plugin, even where they have all the settings.
const OWN_ENGINE: &str = "SELECT COUNT(*) FROM information_schema.PLUGINS \
                          WHERE PLUGIN_NAME = 'MEMORY' AND PLUGIN_TYPE = 'STORAGE ENGINE'";

/// The query that command line clients send, which some proxies answer themselves.
const VERSION_COMMENT: &str = "select @@version_comment limit 1";

async fn identity(session: &mut LimitedSession<'_, Mysql>, settings: &Texts) -> Result<Identity> {
    let at_login = session.server_version().to_owned();
    let said = permitted(first_value(session, "SELECT VERSION()").await)?.flatten().unwrap_or_default();
    let comment = permitted(first_value(session, VERSION_COMMENT).await)?.flatten().unwrap_or_default();
    let setting = |name: &str| settings.get(name).map_or("", String::as_str);
    let is_own = said.starts_with(|sign: char| sign.is_ascii_digit())
        && OWN_SETTINGS.iter().all(|name| !setting(name).is_empty())
        && permitted(session.rows(OWN_ENGINE).await)?.as_ref().and_then(first_i64) == Some(1);
    let own = (product(&said, setting("version_comment")), said.as_str(), version_numbers(&said));
    let number = session.connection_id();
    let identification = Identification {
        driver: Mysql::NAME,
        protocol: Mysql::PROTOCOL,
        said: &[&said, &at_login, &comment, setting("version_comment")],
        has: settings,
        own: is_own.then_some(own),
        through_proxy: answering(session, "CONNECTION_ID()", number).await == Answering::Another,
    };
    Ok(identify(&identification))
}

async fn default_engine(session: &mut LimitedSession<'_, Mysql>, settings: &Texts) -> Result<String> {
    let setting = |name: &str| settings.get(name).map_or("", String::as_str);
    let engines = permitted(session.rows("SHOW ENGINES").await)?.unwrap_or_default();
    let is_xtradb = engines.iter().flatten().flatten().any(|text| text.contains("Percona-XtraDB"));
    Ok(engine(setting("default_storage_engine"), is_xtradb, setting("innodb_version")))
}

/// A version's first three numbers. Through some proxies, MariaDB puts `5.5.5-` before its version
/// for old replication clients.
pub(super) fn version_numbers(text: &str) -> [u32; 3] {
    let text = if text.contains("MariaDB") { text.strip_prefix("5.5.5-").unwrap_or(text) } else { text };
    crate::product::version_numbers(text)
}

/// Returns which of the family's three products the server is.
fn product(version_text: &str, version_comment: &str) -> &'static str {
    if version_text.contains("MariaDB") {
        "MariaDB"
    } else if version_comment.contains("Percona") {
        "Percona Server"
    } else {
        "MySQL"
    }
}

/// Returns the default engine's name. InnoDB variants are reported with their own name and version.
fn engine(default: &str, is_xtradb: bool, innodb_version: &str) -> String {
    if !default.eq_ignore_ascii_case("innodb") {
        return default.to_owned();
    }
    let name = if is_xtradb { "XtraDB" } else { "InnoDB" };
    format!("{name} {innodb_version}").trim_end().to_owned()
}

/// Reads the global variables whose names match `pattern`, as text. A variable that the version
/// does not have is absent, not an error.
pub(super) async fn variables(session: &mut impl Session, pattern: &str) -> Result<Texts> {
    name_value_pairs(session, &format!("SHOW GLOBAL VARIABLES LIKE '{pattern}'")).await
}

/// Reads this session's values of the variables in [`SESSION`], as far as the version has them.
async fn own_values(session: &mut LimitedSession<'_, Mysql>) -> Result<Texts> {
    let mut all = permitted(name_value_pairs(session, "SHOW SESSION VARIABLES").await)?.unwrap_or_default();
    all.retain(|name, _| SESSION.contains(&name.as_str()));
    let definitions = if session.defines_columns_once() { "once" } else { "always" };
    all.insert(COLUMN_DEFINITIONS.to_owned(), definitions.to_owned());
    all.insert(PROTOCOL_OPTIONS.to_owned(), session.protocol_options().to_owned());
    Ok(all)
}

/// Reads where each setting comes from. The result is empty where the server does not report that,
/// which is no error because nothing depends on it.
async fn sources(session: &mut LimitedSession<'_, Mysql>) -> Texts {
    for sql in SOURCES {
        if let Ok(found) = name_value_pairs(session, sql).await
            && !found.is_empty()
        {
            return found;
        }
    }
    Texts::new()
}

/// The first MariaDB version that merges the change buffer only when a page is read. From this
/// version on, waiting for the merge is useless.
const MARIADB_MERGES_ON_READ_SINCE: [u32; 3] = [10, 5, 0];

/// MyRocks' `stat_type`, and the name of the level that it becomes. The values are sums over all
/// column families.
const COLUMN_FAMILIES: &[(&str, &str)] = &[
    ("CUR_SIZE_ALL_MEM_TABLES", "memtable_bytes"),
    ("MEM_TABLE_FLUSH_PENDING", "flushes_pending"),
    ("COMPACTION_PENDING", "compactions_pending"),
];

/// Reads the deferred work. MyRocks' part is read only where the benchmark's tables are in that
/// engine.
pub(super) async fn read(
    session: &mut LimitedSession<'_, Mysql>,
    capabilities: &Capabilities,
) -> Result<DeferredWork> {
    let mut deferred_work = DeferredWork::default();
    innodb(session, &mut deferred_work).await?;
    if capabilities.engine.as_ref().is_some_and(|engine| engine.eq_ignore_ascii_case("rocksdb")) {
        myrocks(session, &mut deferred_work).await?;
    }
    Ok(deferred_work)
}

/// The highest value that a level has on a quiet server.
pub(super) fn quiet_at(level: &str, deferred_work: &DeferredWork, bounds: &Bounds) -> Option<i64> {
    match level {
        "dirty_bytes" => deferred_work.share_bytes(bounds.dirty_share, "buffer_pool_bytes"),
        "checkpoint_age_bytes" => deferred_work.share_bytes(bounds.redo_share, "redo_capacity_bytes"),
        "history_list_length" => Some(bounds.history_length),
        "change_buffer_pages" => {
            let merges_by_itself = deferred_work.capacities.get("merges_by_itself") == Some(&1);
            merges_by_itself.then_some(MIN_BOUND_COUNT)
        }
        "flushes_pending" | "compactions_pending" | "compactions_running" => Some(0),
        _ => None,
    }
}

async fn innodb(session: &mut LimitedSession<'_, Mysql>, deferred_work: &mut DeferredWork) -> Result<()> {
    let Some(counters) = permitted(counters(session).await)?.map(numbers) else { return Ok(()) };
    let counter = |name: &str| counters.get(name).copied();
    let page_bytes = counter("Innodb_page_size");
    let pages = |name: &str| Some(counter(name)?.saturating_mul(page_bytes?));
    // Compressed pages are smaller than the page size, so the product of page count and page size
    // may be too large. The server's own sum comes first.
    let dirty = counter("Innodb_buffer_pool_bytes_dirty").or_else(|| pages("Innodb_buffer_pool_pages_dirty"));
    deferred_work.level("dirty_bytes", dirty);
    deferred_work.capacity("buffer_pool_bytes", pages("Innodb_buffer_pool_pages_total"));
    if let Some(settings) = permitted(variables(session, "innodb%log%").await)? {
        deferred_work.capacity("redo_capacity_bytes", redo_capacity(&counters, &settings));
    }
    let text = permitted(innodb_report(session).await)?.unwrap_or_default();
    deferred_work
        .level("checkpoint_age_bytes", counter("Innodb_checkpoint_age").or_else(|| checkpoint_age(&text)));
    deferred_work
        .level("history_list_length", counted_history(&counters).or_else(|| reported_history(&text)));
    // The change buffer's tree has one root page even when it is empty.
    deferred_work.level("change_buffer_pages", number_after(&text, "Ibuf: size ").map(|pages| pages - 1));
    if !text.is_empty() {
        let version =
            permitted(first_value(session, "SELECT VERSION()").await)?.flatten().unwrap_or_default();
        deferred_work.capacity("merges_by_itself", Some(i64::from(merges_by_itself(&version))));
    }
    Ok(())
}

/// Reads InnoDB's own report. The answer is one row with type, name and text.
pub(super) async fn innodb_report(session: &mut LimitedSession<'_, Mysql>) -> Result<String> {
    let rows = session.rows("SHOW ENGINE INNODB STATUS").await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(2)?).unwrap_or_default())
}

/// Returns how many transactions' old rows InnoDB has still to purge, as MariaDB and Percona Server
/// count them.
pub(super) fn counted_history(counters: &BTreeMap<String, i64>) -> Option<i64> {
    counters.get("Innodb_history_list_length").copied()
}

/// Returns the same number from InnoDB's report. It is `None` where the report lacks it.
pub(super) fn reported_history(report: &str) -> Option<i64> {
    number_after(report, "History list length ")
}

/// Reads the levels from MyRocks' tables in `information_schema`.
async fn myrocks(session: &mut LimitedSession<'_, Mysql>, deferred_work: &mut DeferredWork) -> Result<()> {
    let sql = "SELECT stat_type, sum(value) FROM information_schema.ROCKSDB_CFSTATS GROUP BY stat_type";
    for row in permitted(session.rows(sql).await)?.unwrap_or_default() {
        let mut cells = row.into_iter().flatten();
        let (Some(kind), Some(value)) = (cells.next(), cells.next()) else { continue };
        if let Some((_, name)) = COLUMN_FAMILIES.iter().find(|(known, _)| *known == kind) {
            deferred_work.level(name, value.parse().ok());
        }
    }
    let sql = "SELECT count(*) FROM information_schema.ROCKSDB_ACTIVE_COMPACTION_STATS";
    let running = permitted(session.rows(sql).await)?.and_then(|rows| first_i64(&rows));
    deferred_work.level("compactions_running", running);
    Ok(())
}

fn merges_by_itself(version: &str) -> bool {
    !version.contains("MariaDB") || version_numbers(version) < MARIADB_MERGES_ON_READ_SINCE
}

/// Returns the size of all redo files together, in bytes. MySQL has one setting for that since
/// 8.0.30. Before that it has settings for the number of files and for each file's size.
fn redo_capacity(counters: &BTreeMap<String, i64>, settings: &BTreeMap<String, String>) -> Option<i64> {
    let setting = |name: &str| settings.get(name)?.parse::<i64>().ok();
    let in_force = counters.get("Innodb_redo_log_capacity_resized").copied();
    in_force.or_else(|| setting("innodb_redo_log_capacity")).or_else(|| {
        let files = setting("innodb_log_files_in_group").unwrap_or(1);
        Some(setting("innodb_log_file_size")?.saturating_mul(files))
    })
}

fn checkpoint_age(report: &str) -> Option<i64> {
    let now = number_after(report, "Log sequence number")?;
    Some(now - number_after(report, "Last checkpoint at")?)
}

/// Returns the number after `label`, which is at the start of a line.
fn number_after(report: &str, label: &str) -> Option<i64> {
    let rest = report.lines().find_map(|line| line.strip_prefix(label))?.trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::TEST_BOUNDS;

    #[test]
    fn a_prefix_for_old_clients_is_no_version() {
        assert_eq!(version_numbers("5.5.5-10.1.23-MariaDB"), [10, 1, 23]);
        assert_eq!(version_numbers("5.5.5"), [5, 5, 5]);
    }

    #[test]
    fn products_and_engines_get_their_own_names() {
        assert_eq!(product("10.1.23-MariaDB", "MariaDB Server"), "MariaDB");
        assert_eq!(product("8.0.36-28", "Percona Server (GPL), Release 28"), "Percona Server");
        assert_eq!(product("8.0.31", "MySQL Community Server - GPL"), "MySQL");
        assert_eq!(engine("InnoDB", true, "5.6.35-80.0"), "XtraDB 5.6.35-80.0");
        assert_eq!(engine("InnoDB", false, "8.0.31"), "InnoDB 8.0.31");
        assert_eq!(engine("InnoDB", false, ""), "InnoDB");
        assert_eq!(engine("ROCKSDB", true, "8.0.31"), "ROCKSDB");
    }

    const REPORT: &str = "History list length 17\n---\nIbuf: size 3, free list len 0, seg size 5, 9 merges\n---\nLOG\n---\n\
                          Log sequence number          19643184\nLog flushed up to 19643184\n\
                          Last checkpoint at           19000000\n";

    #[test]
    fn the_innodb_report_has_age_history_and_change_buffer() {
        assert_eq!(checkpoint_age(REPORT), Some(643_184));
        assert_eq!(number_after(REPORT, "History list length "), Some(17));
        assert_eq!(number_after(REPORT, "Ibuf: size "), Some(3));
        assert_eq!((checkpoint_age(""), number_after("Ibuf: size x", "Ibuf: size ")), (None, None));
    }

    #[test]
    fn limits_are_shares_of_capacities_and_never_below_the_lowest_limit() {
        let capacities = |pairs: &[(&str, i64)]| DeferredWork {
            capacities: pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..DeferredWork::default()
        };
        let of = |deferred_work: &DeferredWork| {
            ["dirty_bytes", "checkpoint_age_bytes", "change_buffer_pages", "memtable_bytes"]
                .map(|level| quiet_at(level, deferred_work, &TEST_BOUNDS))
        };
        let big = [("buffer_pool_bytes", 1 << 30), ("redo_capacity_bytes", 1 << 30), ("merges_by_itself", 1)];
        assert_eq!(of(&capacities(&big)), [Some(21_474_836), Some(107_374_182), Some(1000), None]);
        let small = [("buffer_pool_bytes", 1 << 20), ("redo_capacity_bytes", 1 << 20)];
        assert_eq!(of(&capacities(&small)), [Some(1 << 20), Some(1 << 20), None, None]);
        assert_eq!(of(&capacities(&[])), [None; 4], "without the whole there is no share");
    }

    #[test]
    fn redo_capacity_is_one_setting_or_the_sum_of_equal_files() {
        let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let old = settings(&[("innodb_log_file_size", "1000"), ("innodb_log_files_in_group", "4")]);
        assert_eq!(redo_capacity(&BTreeMap::new(), &old), Some(4000));
        let mariadb = settings(&[("innodb_log_file_size", "1000")]);
        assert_eq!(redo_capacity(&BTreeMap::new(), &mariadb), Some(1000));
        let new = settings(&[("innodb_log_file_size", "1000"), ("innodb_redo_log_capacity", "5000")]);
        assert_eq!(redo_capacity(&BTreeMap::new(), &new), Some(5000));
        let resized = BTreeMap::from([("Innodb_redo_log_capacity_resized".to_owned(), 7000)]);
        assert_eq!(redo_capacity(&resized, &new), Some(7000));
        assert_eq!(redo_capacity(&BTreeMap::new(), &settings(&[])), None);
    }

    #[test]
    fn mariadb_stopped_merging_in_the_background() {
        let of = |versions: &[&str]| versions.iter().map(|text| merges_by_itself(text)).collect::<Vec<_>>();
        assert_eq!(
            of(&["5.6.24-log", "9.7.4", "10.2.11-MariaDB", "10.5.23-MariaDB"]),
            [true, true, true, false]
        );
    }
}
