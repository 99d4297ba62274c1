//! SQLite as a [`Product`].

use std::collections::BTreeMap;

use super::{Options, Sqlite, SqliteSession, capabilities, debt, status, upkeep};
use crate::product::{Asked, Connection, Debt, Description, Product, Work};
use crate::{Capabilities, DbError};

impl Connection for SqliteSession {
    fn interrupt(&self) -> Option<Box<dyn Fn() + Send>> {
        let handle = self.interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }
}

impl Product for Sqlite {
    const NAME: &'static str = "sqlite";
    const ABOUT: &'static str = "SQLite, embedded; no server needed";
    const TABLES: &'static str =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY name";
    const EXPLAIN: &'static [&'static str] = &["EXPLAIN QUERY PLAN"];

    type Options = Options;
    type Session = SqliteSession;

    fn capabilities(_engine: &str, _owned: bool) -> Capabilities {
        capabilities()
    }

    async fn connect(options: &Options) -> Result<SqliteSession, DbError> {
        SqliteSession::open(options)
    }

    async fn describe(session: &mut Asked<'_, Self>) -> Result<Description, DbError> {
        status::describe(session).await
    }

    async fn counters(session: &mut Asked<'_, Self>) -> Result<BTreeMap<String, String>, DbError> {
        status::counters(session).await
    }

    async fn debt(
        session: &mut Asked<'_, Self>,
        _capabilities: &Capabilities,
        debt: &mut Debt,
    ) -> Result<(), DbError> {
        debt::read(session, debt).await
    }

    async fn upkeep(work: &mut Work<'_, Self>, tables: &[String]) -> Result<(), DbError> {
        upkeep::run(work, tables).await
    }
}
