//! What a session of any product does.

use std::time::Duration;

use crate::exchange::Exchange;
use crate::product::{Connection, Limited, Product, permitted};
use crate::products::each_session;
use crate::{Answer, AnySession, Cells, Encryption, Param, Result, Rows, Sent, Session, Statement};

impl AnySession {
    /// What the connection agreed on; `None` in clear.
    pub fn encryption(&self) -> Option<Encryption> {
        each_session!(self, session, P => Connection::encryption(session))
    }

    /// The server's process, if the session came to it through a unix socket: of PostgreSQL the
    /// first one. `None` over TCP, when the process is in a process namespace that is hidden from
    /// us, and when a service manager holds the socket for the server.
    pub fn server_pid(&self) -> Option<u32> {
        /// The first process: it only holds sockets for others.
        const INIT: u32 = 1;
        each_session!(self, session, P => Connection::peer_pid(session)).filter(|pid| *pid > INIT)
    }

    /// Whether the session is in a transaction that no one has ended yet, by what the database said
    /// with the last answer. Costs nothing.
    pub fn in_transaction(&self) -> bool {
        each_session!(self, session, P => Connection::in_transaction(session))
    }

    /// The server's number for the connection; `None` without a server.
    pub(crate) fn number(&self) -> Option<u32> {
        let exchange = each_session!(self, session, P => Connection::exchange(session));
        exchange.and_then(Exchange::ticket).map(|ticket| ticket.id)
    }

    /// Runs `sql`, a bulk statement in the words of [`crate::RowStream::LocalInfile`] or
    /// [`crate::RowStream::CopyIn`], with `rows` as what it reads: lines whose columns are
    /// separated by tabs. The answer's `affected` is the number of rows.
    pub async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        each_session!(self, session, P => Connection::load_rows(session, sql, rows).await)
    }

    /// Sends `statements`, none of them a text, without waiting in between, and then waits for all
    /// answers; what they counted is summed up. After one that fails the others are passed over.
    pub async fn pipeline(&mut self, statements: &[Sent<'_>]) -> Result<Answer> {
        each_session!(self, session, P => Connection::pipeline(session, statements).await)
    }

    /// Sends `statement` and returns the rows of all its results, of which a text may have several.
    /// Not for the hot path.
    pub async fn results(&mut self, statement: Sent<'_>) -> Result<Vec<Rows>> {
        each_session!(self, session, P => Connection::results(session, statement).await)
    }

    /// From now on a statement of this session that has no answer after `limit` fails, and the
    /// session is of no use any more. Sessions begin with a minute, which is enough for statements
    /// whose time does not depend on how many rows there are. Those of an embedded database have
    /// none: it works in this process.
    pub fn limit_statements(&mut self, limit: Option<Duration>) {
        if let Some(exchange) = each_session!(self, session, P => Connection::exchange_mut(session)) {
            exchange.limit = limit;
        }
    }

    /// From now on no setting of the server ends statements of this session: its checks are no part
    /// of what is measured.
    pub async fn lift_own_limits(&mut self) -> Result<()> {
        for sql in each_session!(self, _session, P => P::LIFT_OWN_LIMITS) {
            permitted(self.query(sql.as_bytes()).await)?;
        }
        Ok(())
    }

    /// From now on the server does not close this session for having nothing to do: a step
    /// meanwhile may take longer than the server would leave it alone. A server that has no such
    /// setting is left as it is.
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
