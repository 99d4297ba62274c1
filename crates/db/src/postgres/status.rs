//! PostgreSQL's own counters, and who it says it is.

use std::time::Duration;

use super::{Postgres, PostgresSession};
use crate::Result;
use crate::foreign::{Evidence, Identity, identify, telling_names};
use crate::product::{
    Answering, Description, LimitedSession, Product, Texts, Unreported, answering, cell, column,
    name_value_pairs, permitted, version_numbers,
};

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
/// session's own work is counted with up to a second's delay. A view that the server does not have
/// is left out, here and in later questions of the session.
pub(super) async fn counters(session: &mut LimitedSession<'_, Postgres>) -> Result<Texts> {
    let parts = match session.counted.take() {
        Some(parts) => parts,
        None => counters_queries(major(session)),
    };
    if parts.is_empty() {
        session.counted = Some(parts);
        return Ok(Texts::new());
    }
    if let Some(counters) = permitted(name_value_pairs(session, &parts.join(" UNION ALL ")).await)? {
        session.counted = Some(parts);
        return Ok(counters);
    }
    let (mut counters, mut there) = (Texts::new(), Vec::new());
    for part in parts {
        if let Some(found) = permitted(name_value_pairs(session, &part).await)? {
            counters.extend(found);
            there.push(part);
        }
    }
    session.counted = Some(there);
    Ok(counters)
}

/// A question for each view with counters: pairs of name and value.
fn counters_queries(major: u32) -> Vec<String> {
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
    parts
}

/// Product, version and all settings, with the units that `SHOW` gives them.
pub(super) async fn describe(session: &mut LimitedSession<'_, Postgres>) -> Result<Description> {
    let mut settings = permitted(name_value_pairs(session, "SHOW ALL").await)?.unwrap_or_default();
    for secret in SECRET_SETTINGS {
        if let Some(value) = settings.get_mut(*secret).filter(|value| !value.is_empty()) {
            "***".clone_into(value);
        }
    }
    let identity = identity(session, &settings).await?;
    let is_product = identity.foreign.as_ref().is_none_or(|foreign| foreign.is_proxy);
    // Before 12 there was only one.
    let only = if is_product { "heap" } else { "" };
    Ok(Description {
        engine: settings.get("default_table_access_method").map_or(only, String::as_str).to_owned(),
        settings,
        // A server that only speaks the protocol has no such views.
        session: name_value_pairs(session, SESSION).await.unwrap_or_default(),
        sources: name_value_pairs(session, SOURCES).await.unwrap_or_default(),
        ..Description::of(identity)
    })
}

/// Settings that every build of the product shows, and those who only speak the protocol seldom.
const OWN_SETTINGS: &[&str] = &["block_size", "server_version_num", "shared_buffers", "wal_segment_size"];

/// Which server it is. One with the product's own words for its version may still have functions
/// that only another one has: they are looked for in its catalogue, because a call of one that is
/// not there would leave an error in the server's log.
async fn identity(session: &mut LimitedSession<'_, Postgres>, settings: &Texts) -> Result<Identity> {
    let at_login = session.server_version().to_owned();
    let said = permitted(cell(session, "SELECT version()").await)?.flatten().unwrap_or_default();
    let mut has = settings.clone();
    let names: Vec<String> = telling_names(Postgres::NAME).map(|name| format!("'{name}'")).collect();
    let there =
        format!("SELECT proname FROM pg_proc WHERE pronargs = 0 AND proname IN ({})", names.join(", "));
    for name in permitted(column(session, &there).await)?.unwrap_or_default() {
        // Named by our own list: what a server calls its functions is in no statement.
        let Some(name) = telling_names(Postgres::NAME).find(|known| *known == name) else { continue };
        let version = permitted(cell(session, &format!("SELECT {name}()")).await)?.flatten();
        has.insert(name.to_owned(), version.unwrap_or_default());
    }
    let version = settings.get("server_version").map_or(at_login.as_str(), String::as_str);
    let is_own = names_itself(&said) && OWN_SETTINGS.iter().all(|name| settings.contains_key(*name));
    let number = session.connection_id();
    let evidence = Evidence {
        driver: Postgres::NAME,
        protocol: Postgres::PROTOCOL,
        said: &[&said, &at_login],
        has: &has,
        own: is_own.then(|| ("PostgreSQL", version, version_numbers(version))),
        through_another: answering(session, "pg_backend_pid()", number).await == Answering::Another,
    };
    Ok(identify(&evidence))
}

/// Whether a version is in the product's own words: `PostgreSQL 15.19 on x86_64-pc-linux-gnu, compiled
/// by gcc (GCC) 12.2.0, 64-bit`. Behind its number there may be words of who built it.
fn names_itself(version: &str) -> bool {
    let number = version.strip_prefix("PostgreSQL ").and_then(|rest| rest.split([' ', ',']).next());
    number.is_some_and(|number| number.starts_with(|sign: char| sign.is_ascii_digit()))
        && version.contains("compiled by ")
        && version.ends_with("-bit")
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
    let sessions = permitted(cell(session, SESSIONS).await)?.flatten().and_then(|count| count.parse().ok());
    let age = if major < IN_MEMORY_SINCE { FILE_AGE } else { Duration::ZERO };
    Ok(sessions.map(|sessions| Unreported { sessions, age }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_asked_only_for_what_it_has() {
        let views = |major| {
            let sql = counters_queries(major).concat();
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
