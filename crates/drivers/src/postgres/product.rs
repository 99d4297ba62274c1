//! PostgreSQL as a [`Product`].

use std::collections::BTreeMap;

use super::{Options, Postgres, PostgresSession, cancel, capabilities, debt, locks, status};
use crate::exchange::Exchange;
use crate::product::{Asked, Connection, Debt, Description, Locks, Product, Unreported, Work, column};
use crate::roster::Ticket;
use crate::{Answer, Capabilities, DbError, Encryption, Rows, Sent};

const AT_WORK: &str = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND usename = current_user \
                       AND datname = current_database()";

impl Connection for PostgresSession {
    fn exchange(&self) -> Option<&Exchange> {
        Some(&self.exchange)
    }

    fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        Some(&mut self.exchange)
    }

    fn encryption(&self) -> Option<Encryption> {
        self.encryption()
    }

    async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer, DbError> {
        self.copy_in(sql, [rows]).await
    }

    async fn pipeline(&mut self, statements: &[Sent<'_>]) -> Result<Answer, DbError> {
        self.pipeline(statements).await
    }

    async fn results(&mut self, statement: Sent<'_>) -> Result<Vec<Rows>, DbError> {
        self.results(statement).await
    }
}

impl Product for Postgres {
    const NAME: &'static str = "postgres";
    const ABOUT: &'static str = "PostgreSQL 9.6 to 19, over unix socket or TCP";
    const TABLES: &'static str =
        "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) ORDER BY tablename";
    const EXPLAIN: &'static [&'static str] = &["EXPLAIN (COSTS OFF)"];
    const ANALYZE: &'static [(&'static str, &'static str)] = &[("EXPLAIN (ANALYZE)", "executed-tree")];
    const IS_PROCESS_TREE: bool = true;
    const STAY_WHILE_IDLE: Option<&'static str> = Some(locks::STAY_WHILE_IDLE);
    const ROOM: Option<(&'static str, &'static str)> = Some((
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int",
        "max_connections without superuser_reserved_connections",
    ));

    type Options = Options;
    type Session = PostgresSession;

    fn capabilities(_engine: &str, _owned: bool) -> Capabilities {
        capabilities()
    }

    async fn connect(options: &Options) -> Result<PostgresSession, DbError> {
        PostgresSession::connect(options).await
    }

    fn login(options: &Options) -> Option<&Options> {
        Some(options)
    }

    fn login_mut(options: &mut Options) -> Option<&mut Options> {
        Some(options)
    }

    async fn describe(session: &mut Asked<'_, Self>) -> Result<Description, DbError> {
        status::describe(session).await
    }

    async fn counters(session: &mut Asked<'_, Self>) -> Result<BTreeMap<String, String>, DbError> {
        status::counters(session).await
    }

    async fn unreported(session: &mut Asked<'_, Self>) -> Result<Option<Unreported>, DbError> {
        status::unreported(session).await
    }

    async fn debt(
        session: &mut Asked<'_, Self>,
        _capabilities: &Capabilities,
        debt: &mut Debt,
    ) -> Result<(), DbError> {
        debt::read(session, debt).await
    }

    async fn upkeep(work: &mut Work<'_, Self>, tables: &[String]) -> Result<(), DbError> {
        work.vacuum(tables).await
    }

    fn locks(_database: &str) -> Option<Locks> {
        Some(locks::of_session())
    }

    async fn request_cancel(options: &Options, ticket: Ticket) -> Result<(), DbError> {
        cancel::request_cancel(options, ticket).await
    }

    async fn at_work(session: &mut Asked<'_, Self>, _login: &Options) -> Result<Vec<String>, DbError> {
        column(session, AT_WORK).await
    }
}
