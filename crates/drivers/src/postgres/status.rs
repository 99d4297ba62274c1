//! PostgreSQL's own counters, and who it says it is.

use std::time::Duration;

use super::{Postgres, PostgresSession};
use crate::product::{
    Description, LimitedSession, Texts, Unreported, cell, name_value_pairs, version_numbers,
};
use crate::{Class, DbError, Result};

/// Settings that may hold a password; their values are never kept.
const SECRET_SETTINGS: &[&str] = &["primary_conninfo"];

/// Views of one row, with the first major version that has each and the condition that picks the
/// row. Each column that is a number becomes a counter `view.column`.
const VIEWS: &[(&str, u32, &str)] = &[
    ("pg_stat_database", 9, "WHERE datname = current_database()"),
    ("pg_stat_bgwriter", 9, ""),
    ("pg_stat_checkpointer", 17, ""),
    ("pg_stat_wal", 14, ""),
];

/// `pg_stat_io` has a row for each kind of process, object and purpose. Here are its sums;
/// `op_bytes` is no counter.
const IO_SINCE: u32 = 16;
const IO_SUMS: &str = "SELECT 'pg_stat_io.' || key, sum(value::numeric)::text \
     FROM pg_stat_io AS view, json_each_text(row_to_json(view)) \
     WHERE value ~ '^[0-9.]+$' AND key <> 'op_bytes' GROUP BY key";

/// The first version whose own counters have anything that a session reports late and that is used:
/// the log's fsyncs.
const REPORTS_LATE_SINCE: u32 = 14;
/// From here on counters lie in shared memory. Before, a process of its own collects them and
/// writes them to a file, which a reader takes as long as it is not older than this
/// (`PGSTAT_STAT_INTERVAL`).
const IN_MEMORY_SINCE: u32 = 15;
const FILE_AGE: Duration = Duration::from_millis(500);

/// Sessions of dbdyno in the session's database, this one included.
const SESSIONS: &str = "SELECT count(*)::text FROM pg_stat_activity \
     WHERE application_name = 'dbdyno' AND datname = current_database()";

/// Values of a session that change what a load measures, with the database's own encoding and rules
/// for text.
const SESSION: &str = "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ('client_encoding', 'synchronous_commit', \
     'transaction_isolation', 'search_path', 'work_mem', 'jit', 'plan_cache_mode') UNION ALL \
     SELECT 'lc_collate', datcollate::text FROM pg_database WHERE datname = current_database()";

/// Settings that were set, by where, and those that wait for a restart.
const SOURCES: &str = "SELECT name, CASE WHEN pending_restart THEN source || ', waits for a restart' ELSE source END \
     FROM pg_settings WHERE pending_restart OR source NOT IN ('default', 'override', 'client')";

/// The version in which the write-ahead log's functions lost their `xlog`, and processes got a
/// type.
pub(super) const NEW_NAMES_SINCE: u32 = 10;

/// The counters of the session's database and of the whole server, as the server keeps them: a
/// session's own work is counted with up to a second's delay.
pub(super) async fn counters(session: &mut LimitedSession<'_, Postgres>) -> Result<Texts> {
    let sql = counters_query(major(session));
    name_value_pairs(session, &sql).await
}

/// One statement for all counters: pairs of name and value.
fn counters_query(major: u32) -> String {
    let counters = |(view, _, condition): &(&str, u32, &str)| {
        format!(
            "SELECT '{view}.' || key, value FROM (SELECT * FROM {view} {condition}) AS view, \
             json_each_text(row_to_json(view)) WHERE key <> 'datid'"
        )
    };
    let views = VIEWS.iter().filter(|(_, since, _)| major >= *since);
    let mut parts: Vec<String> = views.map(counters).collect();
    if major >= IO_SINCE {
        parts.push(IO_SUMS.to_owned());
    }
    let position = if major >= NEW_NAMES_SINCE {
        "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
    } else {
        "pg_xlog_location_diff(pg_current_xlog_location(), '0/0')"
    };
    // A standby has no position of its own, and asking it is an error.
    parts.push(format!(
        "SELECT 'wal_position_bytes', CASE WHEN NOT pg_is_in_recovery() THEN {position}::text END"
    ));
    parts.join(" UNION ALL ")
}

/// Product, version and all settings, with the units that `SHOW` gives them.
pub(super) async fn describe(session: &mut LimitedSession<'_, Postgres>) -> Result<Description> {
    let mut settings = name_value_pairs(session, "SHOW ALL").await?;
    for secret in SECRET_SETTINGS {
        if let Some(value) = settings.get_mut(*secret).filter(|value| !value.is_empty()) {
            "***".clone_into(value);
        }
    }
    // What only speaks the protocol has no settings, but reported its version at login.
    let version_text =
        settings.get("server_version").map_or_else(|| session.server_version().to_owned(), Clone::clone);
    if version_text.is_empty() {
        let message = "the server does not report its version: neither at login nor in SHOW ALL is a \
             server_version";
        return Err(DbError::new(Class::Fatal, "", message));
    }
    Ok(Description {
        product: "PostgreSQL".to_owned(),
        version: version_numbers(&version_text),
        version_text,
        // Before 12 there was only one.
        engine: settings.get("default_table_access_method").map_or("heap", String::as_str).to_owned(),
        settings,
        // A server that only speaks the protocol has no such views.
        session: name_value_pairs(session, SESSION).await.unwrap_or_default(),
        sources: name_value_pairs(session, SOURCES).await.unwrap_or_default(),
    })
}

/// The server's major version: 9 for 9.6.
pub(super) fn major(session: &PostgresSession) -> u32 {
    version_numbers(session.server_version())[0]
}

/// Sessions report what they did at most once a second, and when they end (`pgstat_report_stat`).
pub(super) async fn unreported(session: &mut LimitedSession<'_, Postgres>) -> Result<Option<Unreported>> {
    let major = major(session);
    if major < REPORTS_LATE_SINCE {
        return Ok(None);
    }
    let sessions = cell(session, SESSIONS).await?.and_then(|count| count.parse().ok());
    let age = if major < IN_MEMORY_SINCE { FILE_AGE } else { Duration::ZERO };
    Ok(sessions.map(|sessions| Unreported { sessions, age }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_asked_only_for_what_it_has() {
        let views = |major| {
            let sql = counters_query(major);
            let all = ["checkpointer", "pg_stat_wal", "pg_stat_io", "xlog", "wal_lsn"];
            all.into_iter().filter(|word| sql.contains(word)).collect::<Vec<_>>()
        };
        assert_eq!(views(9), ["xlog"]);
        assert_eq!(views(10), ["wal_lsn"]);
        assert_eq!(views(15), ["pg_stat_wal", "wal_lsn"]);
        assert_eq!(views(16), ["pg_stat_wal", "pg_stat_io", "wal_lsn"]);
        assert_eq!(views(18), ["checkpointer", "pg_stat_wal", "pg_stat_io", "wal_lsn"]);
    }
}
