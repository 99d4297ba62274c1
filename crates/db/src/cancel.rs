//! Cancels statements for which no one waits any longer.

use std::time::Duration;

use crate::open_connections::Ticket;
use crate::product::{Limited, Product};
use crate::products::{each_address, each_session};
use crate::{AnySession, DatabaseServer, Result, Session};

/// Interval between two checks whether the statements have ended.
const POLL: Duration = Duration::from_millis(50);

impl DatabaseServer {
    /// Cancels, over a new connection, what the server still does for this variant's connections
    /// that were dropped before their answers came. Returns when nothing is running any more.
    /// Without such connections it does nothing.
    pub async fn cancel_abandoned(&self, limit: Duration) -> Result<(), String> {
        self.cancel(false, limit).await
    }

    /// Does the same for all open connections, because their owners are about to end.
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
            options.place(),
            numbers.join(", ")
        ))
    }

    /// Cancels until no statement is running.
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

    /// Those of dbdyno's connections for which the server is working. User and database must match
    /// as well as the number, because behind a proxy the number may belong to someone else's
    /// connection.
    async fn busy(&self, session: &mut AnySession, tickets: &[Ticket]) -> Result<Vec<Ticket>> {
        let Some(login) = self.address.login() else { return Ok(Vec::new()) };
        let ids = each_session!(session, session, P => P::at_work(&mut Limited(session), login).await)?;
        let busy: Vec<u32> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        Ok(tickets.iter().copied().filter(|ticket| busy.contains(&ticket.id)).collect())
    }
}
