//! What a connection of the load gets, and where a server's settings come from.

use std::collections::BTreeMap;

use super::name_value_pairs;
use crate::{AnySession, DbError};

/// Variables of MySQL's family that a session may have otherwise than the server, and that change what a load measures.
const MYSQL_SESSION: &[&str] = &[
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

/// No variable of the server: whether it sends the column definitions of a prepared statement `once` or `always`.
const COLUMN_DEFINITIONS: &str = "column_definitions";

/// No variable of the server: see [`crate::mysql::MysqlSession::protocol_options`].
const PROTOCOL_OPTIONS: &str = "protocol_options";

/// The same of PostgreSQL, with the database's own encoding and rules for text.
const POSTGRES_SESSION: &str = "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ('client_encoding', 'synchronous_commit', \
     'transaction_isolation', 'search_path', 'work_mem', 'jit', 'plan_cache_mode') UNION ALL \
     SELECT 'lc_collate', datcollate::text FROM pg_database WHERE datname = current_database()";

/// Settings that were set, by where, and those that wait for a restart.
const POSTGRES_SOURCES: &str = "SELECT name, CASE WHEN pending_restart THEN source || ', waits for a restart' ELSE source END \
     FROM pg_settings WHERE pending_restart OR source NOT IN ('default', 'override', 'client')";

/// MariaDB's account of it, then that of MySQL from 8.0. Older servers have neither.
const MYSQL_SOURCES: [&str; 2] = [
    "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES \
     WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', '')",
    "SELECT VARIABLE_NAME, VARIABLE_SOURCE FROM performance_schema.variables_info WHERE VARIABLE_SOURCE <> 'COMPILED'",
];

/// Values of this session, as far as the version has them.
///
/// # Errors
/// As [`crate::Session::rows`].
pub(super) async fn mysql_session(session: &mut AnySession) -> Result<BTreeMap<String, String>, DbError> {
    let mut all = name_value_pairs(session, "SHOW SESSION VARIABLES").await?;
    all.retain(|name, _| MYSQL_SESSION.contains(&name.as_str()));
    if let AnySession::Mysql(mysql) = session {
        let told = if mysql.defines_columns_once() { "once" } else { "always" };
        all.insert(COLUMN_DEFINITIONS.to_owned(), told.to_owned());
        all.insert(PROTOCOL_OPTIONS.to_owned(), mysql.protocol_options().to_owned());
    }
    Ok(all)
}

/// Empty where the server does not report: it is of use, and nothing depends on it.
pub(super) async fn mysql_sources(session: &mut AnySession) -> BTreeMap<String, String> {
    for sql in MYSQL_SOURCES {
        if let Ok(found) = name_value_pairs(session, sql).await
            && !found.is_empty()
        {
            return found;
        }
    }
    BTreeMap::new()
}

/// Empty where there is no such view: a server that only speaks the protocol has none.
pub(super) async fn postgres_session(session: &mut AnySession) -> BTreeMap<String, String> {
    name_value_pairs(session, POSTGRES_SESSION).await.unwrap_or_default()
}

/// As [`postgres_session`].
pub(super) async fn postgres_sources(session: &mut AnySession) -> BTreeMap<String, String> {
    name_value_pairs(session, POSTGRES_SOURCES).await.unwrap_or_default()
}
