//! Implements [`Product`] for PostgreSQL.

use std::path::{Path, PathBuf};

use dbdyno_products::FamilyFacts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fault::PostgresFault;
use super::secure::connected;
use super::{LoginOptions, Postgres, PostgresSession, capabilities, deferred_work, server, status};
use crate::open_connections::Ticket;
use crate::product::{
    DeferredWork, Description, LimitedSession, Locks, Product, Texts, Unreported, Work, column,
};
use crate::server::{
    Abilities, Base, Data, Error, FileLogin, OwnConfig, Ownership, RuntimeDir, Server, ServerProbe,
    ServerSpec,
};
use crate::{AnySession, Bounds, Capabilities, DatabaseAddress, Result, Session, first_i64};

const AT_WORK: &str = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND usename = current_user \
                       AND datname = current_database()";

/// Keeps idle sessions open: 0 means for ever. The setting came with 14.
const STAY_WHILE_IDLE: &str =
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// The lock's key. PostgreSQL locks are numbers, and each database has its own. These are the upper
/// and lower half of `dbdyno` in ASCII.
const KEY: [u32; 2] = [0x6462, 0x6479_6e6f];

/// The number that a cancel request has in place of the protocol version.
const CANCEL: u32 = 1234 << 16 | 5678;

impl Product for Postgres {
    const PROTOCOL: &'static str = "PostgreSQL";
    const ABOUT: &'static str = "PostgreSQL 9.6 to 19, over unix socket or TCP";
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
    const WRITTEN_WHEN_ASKED: &'static [&'static str] = &["wal_since_checkpoint_bytes"];

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
        deferred_work::read(session).await
    }

    fn quiet_at(level: &str, deferred_work: &DeferredWork, bounds: &Bounds) -> Option<i64> {
        deferred_work::quiet_at(level, deferred_work, bounds)
    }

    async fn upkeep(work: &mut Work<'_, Self>, tables: &[String]) -> Result<()> {
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
        sent.map_err(|fault| fault.into_error(&format!("asking {} to cancel", options.place())))
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

    fn looked_for() -> String {
        server::looked_for()
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
