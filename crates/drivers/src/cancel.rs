//! Ends statements on a server that no one waits for any more.

use std::time::Duration;

use crate::roster::Ticket;
use crate::{AnySession, DbError, Endpoint, Session, Target, mysql, postgres};

/// Between two looks at whether they have ended.
const POLL: Duration = Duration::from_millis(50);

const ACTIVE: &str = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND usename = current_user \
                      AND datname = current_database()";

impl Endpoint {
    /// Ends what the server still does for connections of this variant that were dropped before their answers came, over a new
    /// connection: `KILL QUERY` of MariaDB and MySQL, PostgreSQL's cancel request. Returns when none of it goes on. Without such
    /// connections nothing is done.
    ///
    /// # Errors
    /// One sentence: what may still be at work, and why; after `limit` at the latest.
    pub async fn cancel_abandoned(&self, limit: Duration) -> Result<(), String> {
        self.cancel(false, limit).await
    }

    /// The same for all connections that are open: their owners are about to end.
    ///
    /// # Errors
    /// As [`Endpoint::cancel_abandoned`].
    pub async fn cancel_all(&self, limit: Duration) -> Result<(), String> {
        self.cancel(true, limit).await
    }

    async fn cancel(&self, all: bool, limit: Duration) -> Result<(), String> {
        let (Target::Mysql(options) | Target::Postgres(options)) = &self.target else { return Ok(()) };
        let tickets = options.manner.roster.take(all);
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
            "statements that were given up may still be at work on {} (connections {}): {why}; look at the server's list of \
             processes before you measure there again",
            options.place(),
            numbers.join(", ")
        ))
    }

    /// Cancels until none of them is at work.
    async fn ended(&self, tickets: &[Ticket]) -> Result<(), DbError> {
        // A request of PostgreSQL needs no login, which a server without a free connection would refuse.
        self.request(tickets).await?;
        let mut session = self.connect_as("conductor").await?;
        loop {
            let busy = self.busy(&mut session, tickets).await?;
            if busy.is_empty() {
                break;
            }
            for ticket in &busy {
                if let AnySession::Mysql(mysql) = &mut session {
                    // It may have ended meanwhile.
                    let _ = mysql.query(format!("KILL QUERY {}", ticket.id).as_bytes()).await;
                }
            }
            self.request(&busy).await?;
            tokio::time::sleep(POLL).await;
        }
        session.close().await;
        Ok(())
    }

    async fn request(&self, tickets: &[Ticket]) -> Result<(), DbError> {
        if let Target::Postgres(options) = &self.target {
            for ticket in tickets {
                postgres::request_cancel(options, *ticket).await?;
            }
        }
        Ok(())
    }

    /// Those of our connections that the server works for: same number, user and database, since behind a proxy a number may be
    /// that of another's connection.
    async fn busy(&self, session: &mut AnySession, tickets: &[Ticket]) -> Result<Vec<Ticket>, DbError> {
        let rows = match &self.target {
            Target::Mysql(options) => {
                let rows = session.rows("SHOW PROCESSLIST").await?;
                rows.into_iter().filter(|row| is_ours(row, options)).collect()
            }
            _ => session.rows(ACTIVE).await?,
        };
        let ids = rows.into_iter().filter_map(|row| row.into_iter().next()?);
        let busy: Vec<u32> = ids.filter_map(|id| id.parse().ok()).collect();
        Ok(tickets.iter().copied().filter(|ticket| busy.contains(&ticket.id)).collect())
    }
}

/// Whether a row of the server's list, which unlike a query needs no temporary table, is of a connection with these options
/// that does something: number, user, host, database, command.
fn is_ours(row: &[Option<String>], options: &mysql::Options) -> bool {
    let column = |number: usize| row.get(number).and_then(Option::as_deref).unwrap_or_default();
    let database = options.database.as_deref().unwrap_or_default();
    column(1) == options.user && column(3).eq_ignore_ascii_case(database) && column(4) != "Sleep"
}
