//! How a server would execute a statement, in its own words.

use crate::{AnySession, Cells, DbError, Session};

/// The words that ask for a plan, and what the rows of the answer are called; `None` for a database that has no plans.
fn question(session: &AnySession) -> Option<(&'static str, &'static str)> {
    match session {
        AnySession::Mysql(_) => Some(("EXPLAIN", "mysql")),
        AnySession::Postgres(_) => Some(("EXPLAIN (COSTS OFF)", "postgres")),
        AnySession::Sqlite(_) => Some(("EXPLAIN QUERY PLAN", "sqlite")),
        AnySession::Null(_) => None,
    }
}

/// What the server says of `sql`, which it does not execute: the form of the answer (`mysql`, `postgres`, `sqlite`), and its
/// rows or why there are none. `None` for a database that has no plans.
pub async fn explain(session: &mut AnySession, sql: &str) -> Option<(&'static str, Result<Cells, DbError>)> {
    let (words, form) = question(session)?;
    Some((form, session.rows(&format!("{words} {sql}")).await))
}
