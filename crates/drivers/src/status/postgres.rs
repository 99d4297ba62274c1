//! PostgreSQL's own counters, and who it says it is.

use std::collections::BTreeMap;

use super::{Description, name_value_pairs, session, version_numbers};
use crate::{AnySession, Class, DbError};

/// Settings that may hold a password; their values are never kept.
const SECRET_SETTINGS: &[&str] = &["primary_conninfo"];

/// Views of one row, with the first major version that has each and the condition that picks the row. Each column that is
/// a number becomes a counter `view.column`.
const VIEWS: &[(&str, u32, &str)] = &[
    ("pg_stat_database", 9, "WHERE datname = current_database()"),
    ("pg_stat_bgwriter", 9, ""),
    ("pg_stat_checkpointer", 17, ""),
    ("pg_stat_wal", 14, ""),
];

/// `pg_stat_io` has a row for each kind of process, object and purpose. Here are its sums; `op_bytes` is no counter.
const IO_SINCE: u32 = 16;
const IO_SUMS: &str = "SELECT 'pg_stat_io.' || key, sum(value::numeric)::text \
     FROM pg_stat_io AS view, json_each_text(row_to_json(view)) \
     WHERE value ~ '^[0-9.]+$' AND key <> 'op_bytes' GROUP BY key";

/// The version in which the write-ahead log's functions lost their `xlog`.
const WAL_NAMES_SINCE: u32 = 10;

/// The counters of the session's database and of the whole server, as the server keeps them: a session's own work is
/// counted with up to a second's delay.
pub(super) async fn counters(session: &mut AnySession) -> Result<BTreeMap<String, String>, DbError> {
    let sql = counters_query(major(session));
    name_value_pairs(session, &sql).await
}

/// One statement for all counters: pairs of name and value.
fn counters_query(major: u32) -> String {
    let mut parts: Vec<String> = VIEWS
        .iter()
        .filter(|(_, since, _)| major >= *since)
        .map(|(view, _, condition)| {
            format!(
                "SELECT '{view}.' || key, value FROM (SELECT * FROM {view} {condition}) AS view, \
                 json_each_text(row_to_json(view)) WHERE key <> 'datid'"
            )
        })
        .collect();
    if major >= IO_SINCE {
        parts.push(IO_SUMS.to_owned());
    }
    let position = if major >= WAL_NAMES_SINCE {
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
pub(super) async fn describe(session: &mut AnySession) -> Result<Description, DbError> {
    let mut settings = name_value_pairs(session, "SHOW ALL").await?;
    for secret in SECRET_SETTINGS {
        if let Some(value) = settings.get_mut(*secret).filter(|value| !value.is_empty()) {
            "***".clone_into(value);
        }
    }
    let version_text = match (settings.get("server_version"), &*session) {
        (Some(version), _) => version.clone(),
        // What only speaks the protocol has no settings, but reported its version at login.
        (None, AnySession::Postgres(session)) => session.server_version().to_owned(),
        (None, _) => String::new(),
    };
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
        session: session::postgres_session(session).await,
        sources: session::postgres_sources(session).await,
    })
}

/// The server's major version: 9 for 9.6.
pub(crate) fn major(session: &AnySession) -> u32 {
    match session {
        AnySession::Postgres(session) => version_numbers(session.server_version())[0],
        _ => 0,
    }
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
