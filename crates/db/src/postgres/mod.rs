//! The PostgreSQL product, with a small client session that speaks version 3 of PostgreSQL's wire
//! protocol.
//!
//! A session counts its way through an answer in the input buffer and does not decode it. One
//! statement costs one write and, for an answer that fits the buffer, one read. The formats are
//! from the chapter "Frontend/Backend Protocol" in PostgreSQL's documentation, and are the same
//! from PostgreSQL 9.6 to 19. Password hashing is from the crate `postgres-protocol`.

mod fault;
mod login;
mod scan;
pub(crate) mod server;
mod session;
mod statement;
mod status;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
mod wire;

use std::path::{Path, PathBuf};

use dbdyno_products::FamilyFacts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use crate::Secret;
use crate::connections::Ticket;
pub use crate::options::{LoginOptions, LoginOptions as Options};
use crate::product::{
    DeferredWork, Description, LimitedSession, Locks, Product, Texts, Unreported, UpkeepWork, column,
};
use crate::server::{
    Abilities, Base, Data, Error, FileLogin, OwnConfig, Ownership, RuntimeDir, Server, ServerProbe,
    ServerSpec,
};
use crate::{
    AnySession, Bounds, Capabilities, DatabaseAddress, DeleteForm, IndexDdl, IndexHint, KeySource, Result,
    RowStream, Session, first_i64,
};
use fault::PostgresFault;
use login::connected;
pub use session::PostgresSession;

/// The PostgreSQL product.
#[derive(Debug)]
pub(crate) struct Postgres;

/// The socket that a server on `port` makes in the folder `unix_socket_directories`.
/// [`Address::Socket`](crate::Address::Socket) holds this path.
pub fn socket_path(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// What PostgreSQL can do, and the SQL that it needs for it. It has no index hints, and no binary
/// log apart from its write-ahead log. Its DELETE has no LIMIT.
pub fn capabilities() -> Capabilities {
    Capabilities {
        auto_key: "bigserial primary key",
        int_key: "SERIAL",
        big_key: "BIGSERIAL",
        big_int: "BIGINT",
        unsigned: false,
        begin_write: "BEGIN",
        datetime: "timestamp without time zone",
        engine: None,
        table_suffix: String::new(),
        index_hint: IndexHint::None,
        delete_form: DeleteForm::InSubquery,
        index_ddl: IndexDdl::CreateEach,
        int_param: "?::int",
        text_writes_by_default: true,
        text_queries_by_default: false,
        blocking: false,
        row_stream: RowStream::CopyIn,
        parallel_writers: true,
        keeps_arrival_order: true,
        vacuumed_tables: true,
        drops_binlog: false,
        key_source: KeySource::Sequence,
        contiguous_keys: false,
        gather_statistics: "VACUUM (ANALYZE)",
        typed_values: true,
        foreign_keys: true,
        ordered_join: (" CROSS JOIN ", "SET join_collapse_limit = 1"),
        stores_data: true,
        foreign: None,
    }
}

/// Query for the connections with this login on which the server is working.
const AT_WORK: &str = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND usename = current_user \
                       AND datname = current_database()";

/// Query that removes the limit for idle sessions, because 0 means for ever. The setting came with
/// version 14. Before that, the query changes nothing.
const STAY_WHILE_IDLE: &str =
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// The advisory lock's key, as its upper and lower half: `dbdyno` in ASCII. PostgreSQL names locks
/// by numbers, and each database has its own locks.
const KEY: [u32; 2] = [0x6462, 0x6479_6e6f];

/// The number that a cancel request has in place of the protocol version.
const CANCEL: u32 = 1234 << 16 | 5678;

impl Product for Postgres {
    const PROTOCOL: &'static str = "PostgreSQL";
    const ABOUT: &'static str = "PostgreSQL 9.6 to 19, over unix socket or TCP";
    const WAITS: &'static str = "SELECT wait_event_type || ': ' || wait_event, count(*)::text FROM pg_stat_activity \
         WHERE state = 'active' AND wait_event_type NOT IN ('Client', 'Activity') AND pid <> pg_backend_pid() \
         GROUP BY 1";
    const TABLES: &'static str =
        "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) ORDER BY tablename";
    const EXPLAIN: &'static [(&'static str, &'static str)] = &[("EXPLAIN (COSTS OFF)", Self::NAME)];
    const ANALYZE: &'static [(&'static str, &'static str)] = &[("EXPLAIN (ANALYZE)", "executed-tree")];
    const IS_PROCESS_TREE: bool = true;
    const STAY_WHILE_IDLE: Option<&'static str> = Some(STAY_WHILE_IDLE);
    const LIFT_OWN_LIMITS: &'static [&'static str] = &["SET statement_timeout = 0"];
    const OWN_NUMBER: Option<&'static str> = Some("pg_backend_pid()");
    const ROOM: Option<(&'static str, &'static str)> = Some((
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int",
        "max_connections without superuser_reserved_connections",
    ));
    const LOWERED_ONLY_BY_FLUSH: &'static [&'static str] = &["wal_since_checkpoint_bytes"];

    const FACTS: &'static FamilyFacts = &dbdyno_products::postgres::FACTS;

    type Options = LoginOptions;
    type Session = PostgresSession;

    fn capabilities(_engine: &str, _owned: bool) -> Capabilities {
        capabilities()
    }

    async fn connect(options: &LoginOptions) -> Result<PostgresSession> {
        PostgresSession::connect(options).await
    }

    fn login(options: &LoginOptions) -> Option<&LoginOptions> {
        Some(options)
    }

    fn login_mut(options: &mut LoginOptions) -> Option<&mut LoginOptions> {
        Some(options)
    }

    async fn describe(session: &mut LimitedSession<'_, Self>) -> Result<Description> {
        status::describe(session).await
    }

    async fn counters(session: &mut LimitedSession<'_, Self>) -> Result<Texts> {
        status::counters(session).await
    }

    async fn unreported(session: &mut LimitedSession<'_, Self>) -> Result<Option<Unreported>> {
        status::unreported(session).await
    }

    async fn deferred_work(
        session: &mut LimitedSession<'_, Self>,
        _capabilities: &Capabilities,
    ) -> Result<DeferredWork> {
        status::read(session).await
    }

    fn quiet_at(level: &str, deferred_work: &DeferredWork, bounds: &Bounds) -> Option<i64> {
        status::quiet_at(level, deferred_work, bounds)
    }

    async fn upkeep(work: &mut UpkeepWork<'_, Self>, tables: &[String]) -> Result<()> {
        work.vacuum(tables).await
    }

    fn locks(_database: &str) -> Option<Locks> {
        let [upper, lower] = KEY;
        let key = u64::from(upper) << 32 | u64::from(lower);
        let of_database = format!(
            "locktype = 'advisory' AND classid = {upper} AND objid = {lower} AND objsubid = 1 AND granted \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        );
        Some(Locks {
            server: "SELECT concat_ws('|', current_setting('port'), pg_postmaster_start_time(), current_database())",
            take: format!("SELECT pg_try_advisory_lock({key})::int"),
            is_kept: format!("SELECT COUNT(*) FROM pg_locks WHERE {of_database} AND pid = pg_backend_pid()"),
            owner: format!(
                "SELECT pid, usename || '@' || coalesce(host(client_addr) || ':' || client_port, 'localhost') \
                 FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE {of_database}"
            ),
            release: format!("SELECT pg_advisory_unlock({key})"),
            others: "SELECT 'connection ' || pid || ' of ' || usename || ': ' || left(query, 80) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' \
                     AND query NOT LIKE 'autovacuum:%' AND clock_timestamp() - query_start >= interval '1 s'",
        })
    }

    async fn request_cancel(options: &LoginOptions, ticket: Ticket) -> Result<()> {
        let sent = send_cancel(options, ticket).await;
        sent.map_err(|fault| fault.into_error(&format!("asking {} to cancel", options.login_text())))
    }

    async fn at_work(session: &mut LimitedSession<'_, Self>, _login: &LoginOptions) -> Result<Vec<String>> {
        column(session, AT_WORK).await
    }

    fn login_of_file(path: &Path, options: &LoginOptions) -> Result<FileLogin, Error> {
        server::login_of_file(path, options)
    }

    fn address(login: LoginOptions) -> DatabaseAddress {
        DatabaseAddress::Postgres(login)
    }

    async fn take_ownership(options: &LoginOptions, database: &str) -> Result<Ownership, Error> {
        server::take_ownership(options, database).await
    }

    fn expected_programs() -> String {
        server::expected_programs()
    }

    fn program_in(path: &Path) -> Option<PathBuf> {
        server::find_programs(path).map(|folder| folder.join("postgres"))
    }

    fn open(path: &Path) -> Result<Option<Base>, Error> {
        server::open(path)
    }

    fn own_config(_base: &Base, path: &Path) -> Result<OwnConfig, Error> {
        server::own_config(path)
    }

    fn start(runtime_dir: RuntimeDir, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        server::start(runtime_dir, spec, data)
    }

    async fn folder_of(session: &mut AnySession, database: &str, _engine: &str) -> Result<Option<PathBuf>> {
        let oid = format!("SELECT oid FROM pg_database WHERE datname = '{database}'");
        let oid = first_i64(&session.rows(&oid).await?);
        Ok(oid.map(|oid| PathBuf::from(format!("base/{oid}"))))
    }

    async fn abilities(probe: ServerProbe<'_>) -> Result<Abilities> {
        server::abilities(probe).await
    }

    fn clients(base: &Base) -> (PathBuf, &'static [&'static str]) {
        (base.program.parent().unwrap_or(&base.path).to_path_buf(), &["psql"])
    }

    fn client_arguments(socket: &Path, _version: &str) -> Vec<String> {
        let folder = Self::socket_in_address(socket).display().to_string();
        ["-h", &folder, "-U", server::SUPERUSER, server::MAINTENANCE].map(str::to_owned).to_vec()
    }

    fn socket_in_address(socket: &Path) -> &Path {
        socket.parent().unwrap_or(socket)
    }
}

/// Sends the cancel request over a separate connection, and waits until the server has received it.
/// The server does not report whether anything was cancelled.
async fn send_cancel(options: &LoginOptions, ticket: Ticket) -> Result<(), PostgresFault> {
    let mut stream = connected(options).await?.stream;
    let words = [16, CANCEL, ticket.id, ticket.key];
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    // The server closes the connection without an answer. TLS may treat that as an error.
    let _ = stream.read(&mut [0]).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_by_its_folder_and_port() {
        assert_eq!(socket_path(Path::new("/run/pg"), 5433), Path::new("/run/pg/.s.PGSQL.5433"));
    }
}
