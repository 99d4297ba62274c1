//! Defines a session, which is one connection, and the operations that a workload may use on it.
//! [`AnySession`] is a session on any product's server.

use std::future::Future;
use std::time::Duration;

use crate::exchange::Exchange;
use crate::product::{Connection, Limited, Product, permitted};
use crate::products::each_session;
use crate::{AnySession, Encryption, Result};

/// The result of one statement. Rows are counted, not decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answer {
    pub rows: u64,
    /// Rows changed, as the server counts them.
    pub affected: u64,
    /// Bytes received, with packet headers.
    pub bytes: u64,
    /// Warnings that the server reports for the statement.
    pub warnings: u16,
    /// Whether rows came from a COPY to the client.
    pub copied_out: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Param {
    Int(i64),
    Text(Vec<u8>),
    Null,
}

impl Param {
    /// Replaces this parameter with the text that `write` produces, and reuses the memory of its
    /// previous text.
    pub fn set_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut text = match std::mem::replace(self, Self::Int(0)) {
            Self::Text(text) => text,
            Self::Int(_) | Self::Null => Vec::new(),
        };
        text.clear();
        write(&mut text);
        *self = Self::Text(text);
    }
}

/// A prepared statement. Only the session that prepared it can execute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The session's own number for the statement.
    pub id: u32,
    pub params: u16,
    /// Number of columns in the statement's result; 0 for no result.
    pub columns: u16,
}

/// Rows as text, for everything outside the load path. `None` is NULL.
pub type Cells = Vec<Vec<Option<String>>>;

/// Rows as text under the names of their columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub cells: Cells,
}

/// A statement in one of the forms in which it can be sent.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    Text(&'a str),
    /// The statement is parsed, bound and executed at once. Parameters are `$1`, `$2`, ...
    Parsed(&'a str, &'a [Param]),
    Prepared(Statement, &'a [Param]),
}

/// One connection to one database. It runs one statement at a time. The load path allocates nothing
/// once it is warm.
pub trait Session {
    /// Sends `sql` and reads the whole answer, counting rows.
    fn query(&mut self, sql: &[u8]) -> impl Future<Output = Result<Answer>>;

    /// Prepares `sql`, with parameters written as `?`.
    fn prepare(&mut self, sql: &str) -> impl Future<Output = Result<Statement>>;

    /// Executes a prepared statement and reads the whole answer, counting rows.
    fn execute(&mut self, statement: Statement, params: &[Param]) -> impl Future<Output = Result<Answer>>;

    /// Lets the server free the resources of a prepared statement, which must not be executed
    /// again. For an embedded database only the text is kept, so this does nothing there.
    fn forget(&mut self, _statement: Statement) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Sends `sql` and returns its rows as text. It is not for the load path.
    fn rows(&mut self, sql: &str) -> impl Future<Output = Result<Cells>>;

    /// Ends the session with the protocol's goodbye. The connection is closed even if that fails.
    fn close(self) -> impl Future<Output = ()>;
}

/// The only number in an answer with one row and one column; `None` for no row or NULL.
pub fn first_i64(cells: &Cells) -> Option<i64> {
    cells.first()?.first()?.as_deref()?.parse().ok()
}

impl AnySession {
    /// The encryption that the connection agreed on; `None` for plaintext.
    pub fn encryption(&self) -> Option<Encryption> {
        each_session!(self, session, P => Connection::encryption(session))
    }

    /// The server's process, if the session uses a unix socket. For PostgreSQL it is the first one.
    /// The result is `None` over TCP, when this process cannot see the server's namespace, and when
    /// a service manager listens for the server.
    pub fn server_pid(&self) -> Option<u32> {
        /// The init process, which only listens for other services.
        const INIT: u32 = 1;
        each_session!(self, session, P => Connection::peer_pid(session)).filter(|pid| *pid > INIT)
    }

    /// Whether the session is in an open transaction, according to the database's last answer. This
    /// costs nothing.
    pub fn in_transaction(&self) -> bool {
        each_session!(self, session, P => Connection::in_transaction(session))
    }

    /// The server's number for the connection; `None` without a server.
    pub(crate) fn number(&self) -> Option<u32> {
        let exchange = each_session!(self, session, P => Connection::exchange(session));
        exchange.and_then(Exchange::ticket).map(|ticket| ticket.id)
    }

    /// Runs the bulk statement `sql`, which is a `LOAD DATA LOCAL INFILE`
    /// ([`crate::RowStream::LocalInfile`]) or a `COPY` ([`crate::RowStream::CopyIn`]). Its input is
    /// `rows`, which are lines with tabs between columns. The answer's `affected` is the number of
    /// rows.
    pub async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        each_session!(self, session, P => Connection::load_rows(session, sql, rows).await)
    }

    /// Sends `statements` without waiting in between, then waits for all answers and adds up their
    /// counts. No statement may be [`Sent::Text`]. After a statement that fails, the server skips
    /// the rest.
    pub async fn pipeline(&mut self, statements: &[Sent<'_>]) -> Result<Answer> {
        each_session!(self, session, P => Connection::pipeline(session, statements).await)
    }

    /// Sends `statement` and returns the rows of all its results. A text may have several results.
    /// It is not for the load path.
    pub async fn results(&mut self, statement: Sent<'_>) -> Result<Vec<Rows>> {
        each_session!(self, session, P => Connection::results(session, statement).await)
    }

    /// Sets a time limit for this session's statements. A statement without an answer after `limit`
    /// fails, and the session is then unusable. Sessions begin with a limit of one minute, which is
    /// enough for statements whose time does not depend on the number of rows. An embedded database
    /// works in this process, so its statements have no limit.
    pub fn limit_statements(&mut self, limit: Option<Duration>) {
        if let Some(exchange) = each_session!(self, session, P => Connection::exchange_mut(session)) {
            exchange.limit = limit;
        }
    }

    /// Removes the time limits that the server's own settings put on this session's statements.
    /// This is for sessions that make checks outside the measurement.
    pub async fn lift_own_limits(&mut self) -> Result<()> {
        for sql in each_session!(self, _session, P => P::LIFT_OWN_LIMITS) {
            permitted(self.query(sql.as_bytes()).await)?;
        }
        Ok(())
    }

    /// Keeps the server from closing this session while it is idle, because a step may take longer
    /// than the server's limit. A server without such a limit needs no change.
    pub async fn stay_while_idle(&mut self) -> Result<()> {
        let sql = each_session!(self, _session, P => P::STAY_WHILE_IDLE);
        match sql {
            Some(sql) => permitted(self.query(sql.as_bytes()).await).map(drop),
            None => Ok(()),
        }
    }
}

impl Session for AnySession {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        each_session!(self, session, P => Limited(session).query(sql).await)
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        each_session!(self, session, P => Limited(session).prepare(sql).await)
    }

    async fn forget(&mut self, statement: Statement) -> Result<()> {
        each_session!(self, session, P => Limited(session).forget(statement).await)
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        each_session!(self, session, P => Limited(session).execute(statement, params).await)
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        each_session!(self, session, P => Limited(session).rows(sql).await)
    }

    async fn close(self) {
        each_session!(self, session, P => session.close().await)
    }
}
