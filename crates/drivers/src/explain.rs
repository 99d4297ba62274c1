//! How a server would execute a statement, in its own words.

use crate::{AnySession, Cells, Class, DbError, Session};

/// The words that ask for a plan, the first that the server understands, and what the rows of the answer are called.
fn question(session: &AnySession) -> (&'static [&'static str], &'static str) {
    match session {
        // MySQL 9 draws a tree by default; before 5.6 that cannot be changed.
        AnySession::Mysql(_) => (&["EXPLAIN FORMAT=TRADITIONAL", "EXPLAIN"], "mysql"),
        AnySession::Postgres(_) => (&["EXPLAIN (COSTS OFF)"], "postgres"),
        AnySession::Sqlite(_) => (&["EXPLAIN QUERY PLAN"], "sqlite"),
        AnySession::Null(_) => (&[], "null"),
    }
}

/// What the server says of `sql`, which it does not execute: the form of the answer (`mysql`, `postgres`, `sqlite`), and its
/// rows or why there are none. `None` for a database that has no plans.
pub async fn explain(session: &mut AnySession, sql: &str) -> Option<(&'static str, Result<Cells, DbError>)> {
    let (questions, form) = question(session);
    let mut last = None;
    for words in questions {
        match session.rows(&format!("{words} {sql}")).await {
            Err(error) if error.class != Class::Lost => last = Some(Err(error)),
            answer => return Some((form, answer)),
        }
    }
    last.map(|answer| (form, answer))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Endpoint, Target, null, sqlite};

    async fn answer(target: Target, sql: &str) -> Option<(&'static str, Result<Cells, DbError>)> {
        let endpoint = Endpoint { target, capabilities: sqlite::capabilities() };
        let mut session = endpoint.connect().await.unwrap();
        explain(&mut session, sql).await
    }

    #[tokio::test]
    async fn sqlite_tells_its_plan_or_why_it_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let options = sqlite::Options { path, pragmas: Vec::new(), busy_timeout: Duration::from_secs(1) };
        let target = || Target::Sqlite(options.clone());
        let (form, rows) = answer(target(), "SELECT name FROM sqlite_master").await.unwrap();
        assert_eq!(form, "sqlite");
        assert!(rows.unwrap()[0].last().unwrap().as_deref().unwrap().contains("sqlite_master"));
        let (_, refused) = answer(target(), "SELECT x FROM nowhere").await.unwrap();
        assert!(refused.unwrap_err().message.contains("nowhere"));
    }

    #[tokio::test]
    async fn a_database_that_stores_nothing_has_no_plans() {
        assert!(answer(Target::Null(null::Options::default()), "SELECT 1").await.is_none());
    }
}
