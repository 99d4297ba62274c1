//! The product family of MySQL, MariaDB and Percona Server, with a small client session that uses
//! the codecs of the crate `mysql_common`.
//!
//! A session counts its way through an answer in the input buffer and does not decode it. One
//! statement costs one write and, for an answer that fits the buffer, one read. The formats are
//! from the client/server protocol in the MySQL source documentation, and from the MariaDB
//! knowledge base where MariaDB differs.

mod auth;
mod fault;
mod login;
mod scan;
pub(crate) mod server;
mod session;
mod session_settings;
mod status;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
mod upkeep;
mod wire;

use std::path::{Path, PathBuf};

use dbdyno_model::TlsSettings;
use dbdyno_products::mysql::MysqlOptions;
use dbdyno_products::{FamilyFacts, TypedOptions};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use crate::Secret;
use crate::connections::Ticket;
use crate::exchange::Exchange;
pub use crate::options::{ConnectionSettings, LoginOptions, LoginOptions as Options, ServerKey};
use crate::product::{
    Connection, DeferredWork, Description, LimitedSession, Locks, Product, Texts, UpkeepWork,
    name_value_pairs,
};
use crate::server::{
    Abilities, Base, Data, Error, FileLogin, OwnConfig, Ownership, RuntimeDir, Server, ServerProbe,
    ServerSpec,
};
use crate::{
    Answer, AnySession, Bounds, Capabilities, DatabaseAddress, DeleteForm, Encryption, IndexDdl, IndexHint,
    KeySource, Result, RowStream, Session,
};
pub use session::MysqlSession;
use status::counters;

/// MySQL, MariaDB and Percona Server as one product.
#[derive(Debug)]
pub(crate) struct Mysql;

/// What a server can do with `engine` tables (`InnoDB`, `ROCKSDB`, ...; case does not matter).
/// `owned` says that dbdyno started the server and may drop its binary logs.
pub fn capabilities(engine: &str, owned: bool) -> Capabilities {
    let rocksdb = engine.eq_ignore_ascii_case("rocksdb");
    Capabilities {
        auto_key: "bigint not null auto_increment primary key",
        int_key: "INTEGER NOT NULL AUTO_INCREMENT",
        big_key: "BIGINT NOT NULL AUTO_INCREMENT",
        big_int: "BIGINT",
        unsigned: true,
        begin_write: "BEGIN",
        datetime: "datetime",
        engine: Some(engine.to_owned()),
        table_suffix: format!(" ENGINE={engine}"),
        index_hint: IndexHint::Force,
        delete_form: DeleteForm::OrderLimit,
        index_ddl: if rocksdb { IndexDdl::AlterEach } else { IndexDdl::OneAlter },
        int_param: "?",
        text_writes_by_default: true,
        text_queries_by_default: true,
        blocking: false,
        row_stream: RowStream::LocalInfile,
        parallel_writers: true,
        keeps_arrival_order: ["myisam", "aria"].iter().any(|heap| engine.eq_ignore_ascii_case(heap)),
        vacuumed_tables: false,
        drops_binlog: owned,
        key_source: KeySource::TableCounter,
        contiguous_keys: true,
        gather_statistics: "ANALYZE TABLE",
        typed_values: true,
        foreign_keys: engine.eq_ignore_ascii_case("innodb"),
        ordered_join: (" STRAIGHT_JOIN ", ""),
        stores_data: true,
        foreign: None,
    }
}

impl Connection for MysqlSession {
    fn exchange(&self) -> Option<&Exchange> {
        Some(&self.exchange)
    }

    fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        Some(&mut self.exchange)
    }

    fn encryption(&self) -> Option<Encryption> {
        self.encryption()
    }

    fn peer_pid(&self) -> Option<u32> {
        self.peer_pid()
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction()
    }

    async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        self.load_rows(sql, rows).await
    }
}

/// Engines that MariaDB and MySQL builds contain. Only MariaDB has the last ones, which
/// [`MARIADB_ONLY`] counts.
const BUILT_IN: &[&str] =
    &["innodb", "myisam", "memory", "heap", "csv", "archive", "mrg_myisam", "aria", "sequence"];
const MARIADB_ONLY: usize = 2;

impl Product for Mysql {
    const PROTOCOL: &'static str = "MySQL";
    const ABOUT: &'static str =
        "MySQL 5.5 to 9.7, MariaDB 10.1 to 11.8, Percona Server, over unix socket or TCP";
    const WAITS: &'static str = "SELECT STATE, COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE COMMAND IN ('Query', 'Execute') AND STATE LIKE 'Waiting%' GROUP BY STATE";
    const TABLES: &'static str = "SELECT table_name FROM information_schema.tables \
                                  WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name";
    // MySQL 9 prints a tree by default. Versions before 5.6 have no format to choose.
    const EXPLAIN: &'static [(&'static str, &'static str)] =
        &[("EXPLAIN FORMAT=TRADITIONAL", Self::NAME), ("EXPLAIN", Self::NAME)];
    const ANALYZE: &'static [(&'static str, &'static str)] =
        &[("ANALYZE FORMAT=JSON", "executed-json"), ("EXPLAIN ANALYZE", "executed-tree")];
    const STAY_WHILE_IDLE: Option<&'static str> = Some(STAY_WHILE_IDLE);
    const LIFT_OWN_LIMITS: &'static [&'static str] =
        &["SET SESSION max_execution_time = 0", "SET SESSION max_statement_time = 0"];
    const OWN_NUMBER: Option<&'static str> = Some("CONNECTION_ID()");
    const COMMITS_EACH: Option<&'static str> = Some("SELECT @@SESSION.autocommit");
    const ROOM: Option<(&'static str, &'static str)> = Some(("SELECT @@max_connections", "max_connections"));
    const PREPARED_ROOM: Option<(&'static str, &'static str)> =
        Some(("SELECT @@max_prepared_stmt_count", "max_prepared_stmt_count"));
    const LOWERED_ONLY_BY_FLUSH: &'static [&'static str] = &["dirty_bytes", "checkpoint_age_bytes"];

    const FACTS: &'static FamilyFacts = &dbdyno_products::mysql::FACTS;

    type Options = LoginOptions;
    type Session = MysqlSession;

    fn capabilities(engine: &str, owned: bool) -> Capabilities {
        capabilities(engine, owned)
    }

    async fn connect(options: &LoginOptions) -> Result<MysqlSession> {
        MysqlSession::connect(options).await
    }

    fn login(options: &LoginOptions) -> Option<&LoginOptions> {
        Some(options)
    }

    fn login_mut(options: &mut LoginOptions) -> Option<&mut LoginOptions> {
        Some(options)
    }

    async fn begin_to_insert(session: &mut MysqlSession) -> Result<()> {
        session_settings::use_consecutive_keys(session).await
    }

    async fn begin_to_load(session: &mut MysqlSession, table: &str) -> Result<()> {
        session_settings::use_table_charset(session, table).await
    }

    async fn describe(session: &mut LimitedSession<'_, Self>) -> Result<Description> {
        status::describe(session).await
    }

    async fn counters(session: &mut LimitedSession<'_, Self>) -> Result<Texts> {
        counters(session).await
    }

    async fn deferred_work(
        session: &mut LimitedSession<'_, Self>,
        capabilities: &Capabilities,
    ) -> Result<DeferredWork> {
        status::read(session, capabilities).await
    }

    fn quiet_at(level: &str, deferred_work: &DeferredWork, bounds: &Bounds) -> Option<i64> {
        status::quiet_at(level, deferred_work, bounds)
    }

    async fn upkeep(work: &mut UpkeepWork<'_, Self>, tables: &[String]) -> Result<()> {
        upkeep::run(work, tables).await
    }

    async fn drop_binlog(session: &mut LimitedSession<'_, Self>) -> Result<bool> {
        upkeep::drop_binlog(session).await
    }

    async fn table_engines(session: &mut LimitedSession<'_, Self>, tables: &[String]) -> Result<Texts> {
        let names: Vec<String> = tables.iter().map(|table| format!("'{table}'")).collect();
        let sql = format!(
            "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})",
            names.join(", ")
        );
        let mut engines = name_value_pairs(session, &sql).await?;
        engines.retain(|table, _| tables.contains(table));
        Ok(engines)
    }

    fn is_engine(asked: &str, found: &str) -> bool {
        // CREATE TABLE takes each of these words for another engine name.
        let word = match asked.to_ascii_lowercase().as_str() {
            "heap" => "memory",
            "innobase" => "innodb",
            "merge" => "mrg_myisam",
            "ndb" => "ndbcluster",
            _ => asked,
        };
        word.eq_ignore_ascii_case(found)
    }

    fn locks(database: &str) -> Option<Locks> {
        Some(locks_of(database))
    }

    async fn kill(session: &mut LimitedSession<'_, Self>, ticket: Ticket) {
        // The statement may have ended meanwhile, so an error does not matter.
        let _ = session.query(format!("KILL QUERY {}", ticket.id).as_bytes()).await;
    }

    async fn at_work(session: &mut LimitedSession<'_, Self>, login: &LoginOptions) -> Result<Vec<String>> {
        // Unlike a SELECT from the same list, this needs no temporary table.
        let rows = session.rows("SHOW PROCESSLIST").await?;
        let ours = rows.into_iter().filter(|row| is_ours(row, login));
        Ok(ours.filter_map(|row| row.into_iter().next()?).collect())
    }

    fn connection_settings(options: &Map<String, Value>) -> Result<ConnectionSettings, String> {
        let options = MysqlOptions::read(options);
        let server_key = match &options.server_public_key {
            Some(path) => ServerKey::load(path)?,
            None if options.allow_public_key_retrieval => ServerKey::Retrieved,
            None => ServerKey::Unknown,
        };
        Ok(ConnectionSettings {
            column_definitions: options.column_definitions,
            deprecate_eof: options.deprecate_eof,
            session_track: options.session_track,
            client_charset: options.client_charset,
            server_key,
            ..ConnectionSettings::default()
        })
    }

    fn login_of_file(path: &Path, _options: &LoginOptions) -> Result<FileLogin, Error> {
        server::login_of_file(path)
    }

    fn tls_of_file(path: &Path) -> Result<Option<TlsSettings>, Error> {
        server::tls_of_file(path)
    }

    fn address(login: LoginOptions) -> DatabaseAddress {
        DatabaseAddress::Mysql(login)
    }

    async fn take_ownership(options: &LoginOptions, database: &str) -> Result<Ownership, Error> {
        server::take_ownership(options, database).await
    }

    fn expected_programs() -> String {
        server::expected_programs()
    }

    fn program_in(path: &Path) -> Option<PathBuf> {
        server::find_program(path).map(|(_, program)| program)
    }

    fn open(path: &Path) -> Result<Option<Base>, Error> {
        server::open(path)
    }

    fn built_in_engines(base: &Base) -> Option<&'static [&'static str]> {
        let others = if base.is_mariadb() { 0 } else { MARIADB_ONLY };
        Some(&BUILT_IN[..BUILT_IN.len() - others])
    }

    fn engine_plugin(engine: &str) -> String {
        server::engine_plugin(engine)
    }

    fn own_config(base: &Base, path: &Path) -> Result<OwnConfig, Error> {
        server::own_config(base, path)
    }

    fn start(runtime_dir: RuntimeDir, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        server::start(runtime_dir, spec, data)
    }

    async fn folder_of(session: &mut AnySession, database: &str, engine: &str) -> Result<Option<PathBuf>> {
        // MyRocks keeps the rows from all databases in one folder. The databases' own folders hold
        // only the definitions.
        let folder = match engine {
            "rocksdb" => {
                session.rows("SELECT @@rocksdb_datadir").await?.into_iter().flatten().flatten().next()
            }
            _ => None,
        };
        let folder = folder.unwrap_or_else(|| database.to_owned());
        Ok(Some(PathBuf::from(folder.trim_start_matches("./"))))
    }

    async fn abilities(probe: ServerProbe<'_>) -> Result<Abilities> {
        server::abilities(probe).await
    }

    fn clients(base: &Base) -> (PathBuf, &'static [&'static str]) {
        let names = if base.is_mariadb() { &["mariadb", "mysql"] } else { &["mysql", "mariadb"] };
        (base.prefix.join("bin"), names)
    }

    fn client_arguments(socket: &Path, version: &str) -> Vec<String> {
        let mut words = ["--no-defaults", "--user=root"].map(str::to_owned).to_vec();
        words.push(format!("--socket={}", socket.display()));
        if version.contains("MariaDB") {
            // From version 11.4 on, the client insists on TLS, which is off in this server.
            words.push("--skip-ssl".to_owned());
        }
        words
    }
}

/// Whether a row in the server's process list is an active connection with this login. The columns
/// are number, user, host, database and command.
fn is_ours(row: &[Option<String>], login: &LoginOptions) -> bool {
    let column = |number: usize| row.get(number).and_then(Option::as_deref).unwrap_or_default();
    let database = login.database.as_deref().unwrap_or_default();
    column(1) == login.user && column(3).eq_ignore_ascii_case(database) && column(4) != "Sleep"
}

/// Statement that keeps idle sessions open for one year (in seconds), the highest `wait_timeout`
/// that every server in the family accepts.
pub(super) const STAY_WHILE_IDLE: &str = "SET SESSION wait_timeout = 31536000";

/// Longest name for a lock in MySQL from 5.7 on, in characters.
const LONGEST_NAME: usize = 64;

fn locks_of(database: &str) -> Locks {
    let name = lock_name(database);
    Locks {
        server: "SELECT CONCAT_WS('|', @@hostname, @@port, @@datadir, @@socket)",
        take: format!("SELECT GET_LOCK({name}, 0)"),
        is_kept: format!("SELECT IS_USED_LOCK({name}) = CONNECTION_ID()"),
        owner: format!(
            "SELECT IS_USED_LOCK({name}), (SELECT CONCAT(USER, '@', HOST) FROM information_schema.PROCESSLIST \
             WHERE ID = IS_USED_LOCK({name}))"
        ),
        release: format!("SELECT RELEASE_LOCK({name})"),
        others: "SELECT CONCAT('connection ', ID, ' of ', USER, ': ', LEFT(INFO, 80)) FROM information_schema.PROCESSLIST \
                 WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND IN ('Query', 'Execute') AND TIME >= 1",
    }
}

/// Builds the lock's name, which is `dbdyno:` and the database's name, as a literal that means the
/// same in every SQL mode. Part of its hash replaces a name that would be too long.
fn lock_name(database: &str) -> String {
    let mut name = format!("dbdyno:{database}");
    if name.chars().count() > LONGEST_NAME {
        name = format!("dbdyno:{}", &hex(&Sha256::digest(database))[..32]);
    }
    format!("CONVERT(X'{}' USING utf8)", hex(name.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_the_engine() {
        let innodb = capabilities("InnoDB", true);
        assert_eq!(innodb.table_suffix, " ENGINE=InnoDB");
        assert_eq!(innodb.index_ddl, IndexDdl::OneAlter);
        assert!(innodb.drops_binlog);
        assert!(!innodb.keeps_arrival_order && capabilities("MyISAM", true).keeps_arrival_order);
        let rocksdb = capabilities("ROCKSDB", false);
        assert_eq!(rocksdb.index_ddl, IndexDdl::AlterEach);
        assert!(!rocksdb.drops_binlog);
    }

    #[test]
    fn engines_are_the_same_under_each_of_their_names() {
        for (asked, found) in [("rocksdb", "ROCKSDB"), ("innodb", "InnoDB"), ("heap", "MEMORY")] {
            assert!(Mysql::is_engine(asked, found), "{asked}");
        }
        assert!(!Mysql::is_engine("rocksdb", "InnoDB"));
    }

    #[test]
    fn lock_names_fit_and_distinguish_databases() {
        insta::assert_snapshot!(lock_name("ib"), @"CONVERT(X'646264796e6f3a6962' USING utf8)");
        let [one, other] = ["a", "b"].map(|end| lock_name(&("x".repeat(63) + end)));
        assert_ne!(one, other);
        assert!(one.len() < "CONVERT(X'' USING utf8)".len() + 2 * LONGEST_NAME, "{one}");
    }
}
