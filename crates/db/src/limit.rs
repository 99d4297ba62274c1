//! Runs a statement with a time limit. After the limit the server is asked to end the statement,
//! and the session continues.

use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::exchange::Exchange;
use crate::open_connections::Ticket;
use crate::product::{Connection, Limited, Product};
use crate::products::{each_address, each_session};
use crate::{AnySession, Cells, Class, DatabaseServer, Result, Session};

/// Time between the first request to end a statement and the second. It is short, because a request
/// that comes before the statement has begun is lost. Each further pause is twice as long.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_MAX: Duration = Duration::from_secs(1);

impl DatabaseServer {
    /// Returns the rows of `sql` on `session`, which is a session on this server. The result is
    /// `None` when the statement was ended after `limit`, with `KILL QUERY` in MariaDB and MySQL,
    /// PostgreSQL's cancel request, or SQLite's interrupt. The session stays usable.
    pub async fn rows_within(
        &self,
        session: &mut AnySession,
        sql: &str,
        limit: Option<Duration>,
    ) -> Result<Option<Cells>> {
        let Some(limit) = limit else { return session.rows(sql).await.map(Some) };
        if let Some(interrupt) = each_session!(&*session, session, P => Connection::interrupt(session)) {
            return interrupted_after(session, sql, limit, interrupt).await;
        }
        let ticket = each_session!(&*session, session, P => Connection::exchange(session));
        let Some(ticket) = ticket.and_then(Exchange::ticket) else {
            return session.rows(sql).await.map(Some);
        };
        let answer = {
            let mut work = pin!(session.rows(sql));
            if let Ok(answer) = tokio::time::timeout(limit, work.as_mut()).await {
                return answer.map(Some);
            }
            let mut again = AGAIN;
            loop {
                self.end_statement(ticket).await?;
                if let Ok(answer) = tokio::time::timeout(again, work.as_mut()).await {
                    break answer;
                }
                again = (again * 2).min(AGAIN_MAX);
            }
        };
        match answer {
            Err(error) if error.class == Class::Lost => Err(error),
            answer => {
                // The last request may arrive after the statement's end and would then hit the
                // session's next statement. This one takes the hit.
                let _ = session.rows("SELECT 1").await;
                Ok(answer.ok())
            }
        }
    }

    async fn end_statement(&self, ticket: Ticket) -> Result<()> {
        each_address!(&self.address, options, P => P::request_cancel(options, ticket).await)?;
        let mut session = self.connect_as("conductor").await?;
        each_session!(&mut session, session, P => P::kill(&mut Limited(session), ticket).await);
        session.close().await;
        Ok(())
    }
}

/// Interrupts a database that works in this thread. Another thread waits for the limit.
async fn interrupted_after(
    session: &mut AnySession,
    sql: &str,
    limit: Duration,
    interrupt: Box<dyn Fn() + Send>,
) -> Result<Option<Cells>> {
    let (done, wait) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let (mut time, mut is_over) = (limit, false);
        while wait.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout) {
            interrupt();
            (time, is_over) = (AGAIN, true);
        }
        is_over
    });
    let answer = session.rows(sql).await;
    drop(done);
    let was_interrupted = watch.join().unwrap_or(false);
    match answer {
        Err(_) if was_interrupted => Ok(None),
        answer => answer.map(Some),
    }
}
