//! Reads counters and settings from MariaDB, MySQL and Percona Server, and the session settings
//! that the load's connections get.

use super::Mysql;
use crate::foreign::{Identification, Identity, identify};
use crate::product::{
    self, Answering, Description, LimitedSession, Product, Texts, answering, cell, name_value_pairs,
    permitted,
};
use crate::{Result, Session, first_i64};

/// Counters that show which counts a server has. The first exists in MySQL from 5.6 on, whose
/// performance schema counts file operations. The second is MariaDB's, which counts the groups that
/// it writes to its binary log.
const HAS_FILE_COUNTS: &str = "Performance_schema_accounts_lost";
const HAS_GROUP_COUNTS: &str = "Binlog_group_commits";
/// Operations on binary logs that neither read nor write. They are syncs, and a few for each file
/// that is opened or closed.
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

/// Queries for where each setting comes from, for MariaDB and for MySQL from 8.0. Older servers
/// have neither.
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
    let said = permitted(cell(session, "SELECT VERSION()").await)?.flatten().unwrap_or_default();
    let comment = permitted(cell(session, VERSION_COMMENT).await)?.flatten().unwrap_or_default();
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
        through_another: answering(session, "CONNECTION_ID()", number).await == Answering::Another,
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
    product::version_numbers(text)
}

/// Which of the family's three products it is.
fn product(version_text: &str, version_comment: &str) -> &'static str {
    if version_text.contains("MariaDB") {
        "MariaDB"
    } else if version_comment.contains("Percona") {
        "Percona Server"
    } else {
        "MySQL"
    }
}

/// The default engine's name. InnoDB variants are reported under their own name and version.
fn engine(default: &str, is_xtradb: bool, innodb_version: &str) -> String {
    if !default.eq_ignore_ascii_case("innodb") {
        return default.to_owned();
    }
    let name = if is_xtradb { "XtraDB" } else { "InnoDB" };
    format!("{name} {innodb_version}").trim_end().to_owned()
}

/// The MySQL family's global variables whose names match `pattern`, as text. A variable that the
/// version does not have is absent, not an error.
pub(super) async fn variables(session: &mut impl Session, pattern: &str) -> Result<Texts> {
    name_value_pairs(session, &format!("SHOW GLOBAL VARIABLES LIKE '{pattern}'")).await
}

/// This session's values, as far as the version has them.
async fn own_values(session: &mut LimitedSession<'_, Mysql>) -> Result<Texts> {
    let mut all = permitted(name_value_pairs(session, "SHOW SESSION VARIABLES").await)?.unwrap_or_default();
    all.retain(|name, _| SESSION.contains(&name.as_str()));
    let definitions = if session.defines_columns_once() { "once" } else { "always" };
    all.insert(COLUMN_DEFINITIONS.to_owned(), definitions.to_owned());
    all.insert(PROTOCOL_OPTIONS.to_owned(), session.protocol_options().to_owned());
    Ok(all)
}

/// Where each setting comes from. The result is empty where the server does not report it, because
/// nothing depends on it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_for_old_clients_is_no_version() {
        assert_eq!(version_numbers("5.5.5-10.1.23-MariaDB"), [10, 1, 23]);
        assert_eq!(version_numbers("5.5.5"), [5, 5, 5]);
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
}
