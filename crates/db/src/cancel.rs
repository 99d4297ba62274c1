//! Ends statements on a server that no one waits for any more.

use std::time::Duration;

use crate::product::{Limited, Product};
use crate::products::{each_session, each_target};
use crate::open_connections::Ticket;
use crate::{AnySession, Endpoint, Result, Session};

/// Between two looks at whether they have ended.
const POLL: Duration = Duration::from_millis(50);

impl Endpoint {
    /// Ends what the server still does for connections of this variant that were dropped before
    /// their answers came, over a new connection. Returns when none of it goes on. Without such
    /// connections nothing is done.
    pub async fn cancel_abandoned(&self, limit: Duration) -> Result<(), String> {
        self.cancel(false, limit).await
    }

    /// The same for all connections that are open: their owners are about to end.
    pub async fn cancel_all(&self, limit: Duration) -> Result<(), String> {
        self.cancel(true, limit).await
    }

    async fn cancel(&self, all: bool, limit: Duration) -> Result<(), String> {
        let Some(options) = self.target.login() else { return Ok(()) };
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

    /// Cancels until none of them is at work.
    async fn ended(&self, tickets: &[Ticket]) -> Result<()> {
        // First without a login, which a server without a free connection would refuse.
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
            each_target!(&self.target, options, P => P::request_cancel(options, *ticket).await)?;
        }
        Ok(())
    }

    /// Those of our connections that the server works for: same number, user and database, since
    /// behind a proxy a number may be that of another's connection.
    async fn busy(&self, session: &mut AnySession, tickets: &[Ticket]) -> Result<Vec<Ticket>> {
        let Some(login) = self.target.login() else { return Ok(Vec::new()) };
        let ids = each_session!(session, session, P => P::at_work(&mut Limited(session), login).await)?;
        let busy: Vec<u32> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        Ok(tickets.iter().copied().filter(|ticket| busy.contains(&ticket.id)).collect())
    }
}
