//! A database server of any product: where to connect, and what the server can do. It opens
//! sessions. It also ends statements, either after a time limit or when no one waits for them any
//! longer.

use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::connections::Ticket;
use crate::exchange::Exchange;
use crate::options::LoginOptions;
use crate::product::{Connection, Limited, Product, permitted};
use crate::products::{each_address, each_session};
use crate::{
    AnySession, Capabilities, Cells, Class, ConnectionLog, DatabaseAddress, Result, Session, Tls, first_i64,
};

/// A database to which sessions can connect. It is cheap to clone and may be sent to any thread.
#[derive(Debug, Clone)]
pub struct DatabaseServer {
    pub address: DatabaseAddress,
    pub capabilities: Capabilities,
}

impl DatabaseAddress {
    /// The family's name.
    pub fn name(&self) -> &'static str {
        each_address!(self, _options, P => P::NAME)
    }

    /// Whether a server consists of its first process and that process's children.
    pub fn is_process_tree(&self) -> bool {
        each_address!(self, _options, P => P::IS_PROCESS_TREE)
    }

    /// How to log in; `None` for an embedded database.
    pub fn login(&self) -> Option<&LoginOptions> {
        each_address!(self, options, P => P::login(options))
    }

    pub fn login_mut(&mut self) -> Option<&mut LoginOptions> {
        each_address!(self, options, P => P::login_mut(options))
    }

    /// Adds the capabilities for `engine` tables (case does not matter), where the product has
    /// several engines. `owned` says that dbdyno started the server and may drop its binary logs.
    pub fn database_server(self, engine: &str, owned: bool) -> DatabaseServer {
        let capabilities = each_address!(&self, _options, P => P::capabilities(engine, owned));
        DatabaseServer { address: self, capabilities }
    }
}

impl DatabaseServer {
    /// Opens one session. The error is [`crate::Class::Lost`] when no one answers or the server is
    /// still starting, `Fatal` when the server refuses user, password or database, and `Refused`
    /// when it has too many connections.
    pub async fn connect(&self) -> Result<AnySession> {
        self.connect_as("other").await
    }

    /// Opens one session and, where TLS was requested, counts the session's encryption under
    /// `class`. The class is a connection task's kind, or any other user of a connection.
    pub async fn connect_as(&self, class: &str) -> Result<AnySession> {
        // The state of a login is large. It is on the heap, and only while the login lasts, because
        // thousands of tasks may wait for theirs, and each keeps space for all of its states.
        let session = Box::pin(self.address.connect()).await?;
        if let Some(log) = self.connections() {
            log.note(class, session.encryption());
        }
        Ok(session)
    }

    /// Connects like [`DatabaseServer::connect_as`], for a session whose rows get keys from the
    /// server. The keys increase by 1, whatever the server's own settings say.
    pub async fn connect_to_insert(&self, class: &str) -> Result<AnySession> {
        let mut session = self.connect_as(class).await?;
        each_session!(&mut session, session, P => P::begin_to_insert(session).await)?;
        Ok(session)
    }

    /// Connects like [`DatabaseServer::connect_to_insert`], for a session that loads ASCII texts
    /// into `table` and similar tables. Where possible it uses the character set of the table's
    /// columns, so that the server converts no text.
    pub async fn connect_to_load(&self, class: &str, table: &str) -> Result<AnySession> {
        let mut session = self.connect_to_insert(class).await?;
        each_session!(&mut session, session, P => P::begin_to_load(session, table).await)?;
        Ok(session)
    }

    /// Connects like [`DatabaseServer::connect_to_insert`], for a session that may send rows with
    /// [`AnySession::load_rows`].
    pub async fn connect_to_stream(&self, class: &str) -> Result<AnySession> {
        let mut database_server = self.clone();
        if let Some(login) = database_server.address.login_mut() {
            login.local_infile = true;
        }
        database_server.connect_to_insert(class).await
    }

    /// Makes future sessions commit after each statement. It opens one session and asks it whether
    /// it does so. If not (because of the server's `autocommit` or an `init_connect`), later
    /// sessions switch autocommit on themselves. A query is needed, because most versions report at
    /// login that autocommit is on in any case.
    pub async fn commit_each_statement(&mut self) -> Result<()> {
        let Some(probe) = each_address!(&self.address, _options, P => P::COMMITS_EACH) else {
            return Ok(());
        };
        let mut session = self.connect_as("conductor").await?;
        // A server without such a setting commits after each statement.
        let answer = permitted(session.rows(probe).await)?;
        let is_off = answer.as_ref().and_then(first_i64) == Some(0);
        session.close().await;
        if let Some(login) = self.address.login_mut() {
            login.connection_settings.sets_autocommit |= is_off;
        }
        Ok(())
    }

    /// The encryption that the connections so far agreed on; `None` where TLS was not requested.
    pub fn connections(&self) -> Option<&ConnectionLog> {
        self.address.login()?.connection_settings.tls.as_ref().map(Tls::log)
    }
}

/// Pause between the first request to end a statement and the second. It is short, because a
/// request that comes before the statement has begun is lost. Each further pause is twice as long,
/// up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

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
            let mut pause = FIRST_PAUSE;
            loop {
                self.end_statement(ticket).await?;
                if let Ok(answer) = tokio::time::timeout(pause, work.as_mut()).await {
                    break answer;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        match answer {
            Err(error) if error.class == Class::Lost => Err(error),
            answer => {
                // The last request may arrive after the statement's end. It would then end the
                // session's next statement, so this harmless one comes next.
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

/// Runs `sql` in a database that works in this thread. Another thread waits for the limit and then
/// calls `interrupt`.
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
            (time, is_over) = (FIRST_PAUSE, true);
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

/// Interval between two checks whether the statements have ended.
const POLL: Duration = Duration::from_millis(50);

impl DatabaseServer {
    /// Cancels, over a new connection, the statements that still run on this variant's connections
    /// that were dropped before their answers came. It returns when nothing is running any more.
    /// Without such connections it does nothing.
    pub async fn cancel_abandoned(&self, limit: Duration) -> Result<(), String> {
        self.cancel(false, limit).await
    }

    /// Does the same as [`DatabaseServer::cancel_abandoned`] for all open connections, because
    /// their owners are about to end.
    pub async fn cancel_all(&self, limit: Duration) -> Result<(), String> {
        self.cancel(true, limit).await
    }

    async fn cancel(&self, all: bool, limit: Duration) -> Result<(), String> {
        let Some(options) = self.address.login() else { return Ok(()) };
        let tickets = options.connection_settings.open_connections.take(all);
        if tickets.is_empty() {
            return Ok(());
        }
        let why = match tokio::time::timeout(limit, self.ended(&tickets)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("they did not end within {} s", limit.as_secs_f64()),
        };
        let numbers: Vec<String> = tickets.iter().map(|ticket| ticket.id.to_string()).collect();
        Err(format!(
            "abandoned statements may still run on {} (connections {}): {why}; look at the server's list of \
             processes before you measure there again",
            options.login_text(),
            numbers.join(", ")
        ))
    }

    /// Cancels the connections' statements until none of them is running.
    async fn ended(&self, tickets: &[Ticket]) -> Result<()> {
        // The first request needs no login, which a server without a free connection would refuse.
        self.request(tickets).await?;
        let mut session = self.connect_as("conductor").await?;
        loop {
            let busy = self.busy(&mut session, tickets).await?;
            if busy.is_empty() {
                break;
            }
            for ticket in &busy {
                each_session!(&mut session, session, P => P::kill(&mut Limited(session), *ticket).await);
            }
            self.request(&busy).await?;
            tokio::time::sleep(POLL).await;
        }
        session.close().await;
        Ok(())
    }

    async fn request(&self, tickets: &[Ticket]) -> Result<()> {
        for ticket in tickets {
            each_address!(&self.address, options, P => P::request_cancel(options, *ticket).await)?;
        }
        Ok(())
    }

    /// Returns the connections for which the server is still working. User and database must match
    /// as well as the number, because behind a proxy the number may belong to someone else's
    /// connection.
    async fn busy(&self, session: &mut AnySession, tickets: &[Ticket]) -> Result<Vec<Ticket>> {
        let Some(login) = self.address.login() else { return Ok(Vec::new()) };
        let ids = each_session!(session, session, P => P::at_work(&mut Limited(session), login).await)?;
        let busy: Vec<u32> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        Ok(tickets.iter().copied().filter(|ticket| busy.contains(&ticket.id)).collect())
    }
}
