//! An advisory lock on a database. A separate connection owns it as long as a run uses the
//! database.

use std::time::{Duration, Instant};

use crate::product::{Answering, Locks, Product, answering, first_value};
use crate::products::{each_address, each_session};
use crate::{AnySession, Class, DatabaseServer, Result, Session, first_i64};

/// Interval between two attempts to take the lock.
const POLL: Duration = Duration::from_millis(100);

/// Time limit for an answer about the lock. A server that does not answer in time still has the
/// connection, so the lock counts as kept.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A lock that was taken. It ends with its connection.
#[derive(Debug)]
pub struct AdvisoryLock {
    session: AnySession,
    locks: Locks,
    owner: LockOwner,
}

/// The connection that has a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockOwner {
    /// A text that identifies the server and its start. It is the same through each of the server's
    /// addresses.
    server: String,
    /// The server's number for the connection.
    connection: i64,
    /// The connection's origin, such as `bench@10.0.0.7:41002`, as far as the server reports it.
    from: Option<String>,
}

/// The result of trying to lock a database.
#[derive(Debug)]
pub enum LockAttempt {
    Taken(Box<AdvisoryLock>),
    /// The lock belongs to another connection, which may be one of dbdyno's own.
    OwnedBy(LockOwner),
    /// The server has no lock that lasts as long as its connection. The text says why. There is no
    /// text for a database without such locks, and for a server that answers no SQL.
    Impossible(Option<String>),
}

impl LockOwner {
    /// Whether `self` and `other` are the same connection to the same server.
    pub fn is_same_connection(&self, other: &Self) -> bool {
        (&self.server, self.connection) == (&other.server, other.connection)
    }
}

impl std::fmt::Display for LockOwner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "connection {}", self.connection)?;
        self.from.iter().try_for_each(|from| write!(formatter, " of {from}"))
    }
}

impl DatabaseServer {
    /// Takes the lock on the database that the address names, with a connection that the server
    /// does not close for being idle. It waits for the lock up to `patience`.
    pub async fn take_advisory_lock(&self, patience: Duration) -> Result<LockAttempt> {
        let locks = each_address!(&self.address, options, P => {
            P::login(options).and_then(|login| P::locks(login.database.as_deref().unwrap_or_default()))
        });
        let Some(locks) = locks else { return Ok(LockAttempt::Impossible(None)) };
        let session = self.connect_as("conductor").await?;
        match attempt(session, locks, patience).await {
            // A server that speaks the protocol may still lack some of these statements.
            Err(error) if error.class != Class::Lost => Ok(LockAttempt::Impossible(Some(error.to_string()))),
            attempt => attempt,
        }
    }
}

async fn attempt(mut session: AnySession, locks: Locks, patience: Duration) -> Result<LockAttempt> {
    if let Some(why) = obstacle(&mut session).await {
        session.close().await;
        return Ok(LockAttempt::Impossible(why));
    }
    session.stay_while_idle().await?;
    let server = first_value(&mut session, locks.server).await?.unwrap_or_default();
    if !take(&mut session, &locks, patience).await? {
        let rows = session.rows(&locks.owner).await?;
        let from = rows.first().and_then(|row| row.get(1)?.clone());
        let connection = first_i64(&rows).unwrap_or(0);
        session.close().await;
        return Ok(LockAttempt::OwnedBy(LockOwner { server, connection, from }));
    }
    let connection = own_number(&session);
    let mut advisory_lock =
        AdvisoryLock { session, locks, owner: LockOwner { server, connection, from: None } };
    if advisory_lock.is_kept().await {
        return Ok(LockAttempt::Taken(Box::new(advisory_lock)));
    }
    Ok(LockAttempt::Impossible(Some("the server granted the lock but does not list it".to_owned())))
}

impl AdvisoryLock {
    pub fn owner(&self) -> &LockOwner {
        &self.owner
    }

    /// Whether the lock still exists. A server that does not answer has not released it.
    pub async fn is_kept(&mut self) -> bool {
        match tokio::time::timeout(ANSWER_LIMIT, self.session.rows(&self.locks.is_kept)).await {
            Ok(Ok(rows)) => first_i64(&rows) == Some(1),
            Ok(Err(_)) => false,
            Err(_) => true,
        }
    }

    /// Other connections' statements that have been running in the database for a second or longer,
    /// as far as the server shows them.
    pub async fn other_running_statements(&mut self) -> Vec<String> {
        let answer = tokio::time::timeout(ANSWER_LIMIT, self.session.rows(self.locks.others)).await;
        answer.ok().and_then(Result::ok).unwrap_or_default().into_iter().flatten().flatten().collect()
    }

    /// Releases the lock. The next caller that asks for it gets it.
    pub async fn release(mut self) {
        // The lock ends with the connection at the latest.
        let _ = tokio::time::timeout(ANSWER_LIMIT, self.session.query(self.locks.release.as_bytes())).await;
        self.session.close().await;
    }
}

/// Returns why a lock would not last on this connection, in the form of
/// [`LockAttempt::Impossible`]. The result is `None` when a lock would last.
async fn obstacle(session: &mut AnySession) -> Option<Option<String>> {
    let expression = each_session!(&*session, _session, P => P::OWN_NUMBER)?;
    let number = session.number().unwrap_or(0);
    match answering(session, expression, number).await {
        Answering::Itself => None,
        Answering::Another => {
            Some(Some("a proxy or pooler is in between, so a connection's lock may not last".to_owned()))
        }
        Answering::Nothing => Some(None),
    }
}

fn own_number(session: &AnySession) -> i64 {
    session.number().unwrap_or(0).into()
}

async fn take(session: &mut AnySession, locks: &Locks, patience: Duration) -> Result<bool> {
    let began = Instant::now();
    loop {
        if first_i64(&session.rows(&locks.take).await?) == Some(1) {
            return Ok(true);
        }
        if began.elapsed() >= patience {
            return Ok(false);
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_reported_as_far_as_it_is_known() {
        let known =
            LockOwner { server: String::new(), connection: 7, from: Some("bench@10.0.0.7:41002".into()) };
        insta::assert_snapshot!(known, @"connection 7 of bench@10.0.0.7:41002");
        insta::assert_snapshot!(LockOwner { from: None, ..known }, @"connection 7");
    }
}
