//! A session wrapper that gives each statement the session's time limit.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::Connection;
use crate::excerpt::excerpt;
use crate::{Answer, Cells, Class, DbError, Param, Result, Session, Statement};

/// Runs the session's statements, and fails one that has no answer within the session's limit.
/// Without a limit, as in steps, it returns the session's own futures with nothing around them.
pub(crate) struct Limited<'a, S>(pub(crate) &'a mut S);

/// Runs `$done` within the limit that `$session` has.
macro_rules! within_limit {
    ($session:expr, $what:expr, $inner:ident => $done:expr) => {
        match limit($session) {
            None => {
                let $inner = &mut *$session;
                $done
            }
            Some(limit) => {
                let $inner = &mut *$session;
                let work = Box::pin(async { $done });
                match tokio::time::timeout(limit, work).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(silent(&*$session, limit, $what)),
                }
            }
        }
    };
}

#[inline]
fn limit(session: &impl Connection) -> Option<Duration> {
    session.exchange()?.limit
}

/// The error for a statement that had no answer within `limit`.
fn silent(session: &impl Connection, limit: Duration, what: &[u8]) -> DbError {
    let place = session.exchange().map_or("", |exchange| exchange.place.as_str());
    let what = excerpt(what);
    let advice = "see what the server does, or raise statement_timeout in [host]";
    DbError::new(Class::Lost, "io", format!("{what} on {place}: no answer within {limit:?}; {advice}"))
}

impl<S: Connection> Session for Limited<'_, S> {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        within_limit!(self.0, sql, session => session.query(sql).await)
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        within_limit!(self.0, sql.as_bytes(), session => session.prepare(sql).await)
    }

    async fn forget(&mut self, statement: Statement) -> Result<()> {
        within_limit!(self.0, b"closing a statement", session => session.forget(statement).await)
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        within_limit!(self.0, b"a prepared statement", session => session.execute(statement, params).await)
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        within_limit!(self.0, sql.as_bytes(), session => session.rows(sql).await)
    }

    async fn close(self) {}
}

impl<S> Deref for Limited<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.0
    }
}

impl<S> DerefMut for Limited<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.0
    }
}
