//! Source `status`: the server's own counters, under the server's own names.
//!
//! They are read over a connection of its own, which is opened before the barrier. A query that is not
//! answered in time is given up with its connection, and the next sample opens another one. The time of
//! a sample is the middle between sending the query and having its answer.
//!
//! Some servers' sessions report their counters only when they end (PostgreSQL). With such a server
//! the last sample waits for the load's sessions to end, and says in `load_sessions` how many of
//! them had not ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dbdyno_db::{AnySession, DatabaseServer, DbError, Session, status, unreported};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use super::{Moment, Source, Values, about};
use crate::Error;

/// How long a server may take to answer a status query.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// How long sessions may take to end when their connections are closed, and how often that is checked.
const ENDING_LIMIT: Duration = Duration::from_secs(5);
const ENDING_POLL: Duration = Duration::from_millis(5);

/// Key in the last sample for sessions of the load that had not ended, and so had not reported all they
/// did. It exists only for servers whose sessions report late.
const LOAD_SESSIONS: &str = "load_sessions";

/// Prefix for the names of counters of a server that is not a product that dbdyno knows. They are
/// recorded, but no figure is computed from them.
const FOREIGN: &str = "foreign.";

/// The connection for status queries.
pub(crate) struct Status {
    database_server: DatabaseServer,
    runtime: Runtime,
    session: Option<AnySession>,
    /// Number of dbdyno's sessions before the load's were opened. It is `None` before the first
    /// reading, and for servers whose counters are never behind.
    before: Option<i64>,
    was_read: bool,
}

impl Status {
    /// Sets up the event loop. The first reading connects.
    pub(crate) fn new(database_server: DatabaseServer) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        Ok(Self { database_server, runtime, session: None, before: None, was_read: false })
    }

    /// Counts the sessions that are there before the load's, at the first reading.
    fn count_before(&mut self) {
        let Some(session) = self.session.as_mut() else { return };
        match self.runtime.block_on(async { timeout(ANSWER_LIMIT, unreported(session)).await }) {
            Ok(Ok(found)) => self.before = found.map(|found| found.sessions),
            // A server that only speaks the protocol may not know this query. A session whose answer
            // was not awaited cannot be used any more.
            Ok(Err(_)) | Err(_) => self.session = None,
        }
    }

    /// Waits until the load's sessions have ended. The result is how many are left, or `None` where
    /// that is not needed or cannot be known.
    fn await_sessions(&mut self) -> Option<i64> {
        let (before, session) = (self.before?, self.session.as_mut()?);
        let limit = ENDING_LIMIT + ANSWER_LIMIT;
        match self.runtime.block_on(async { timeout(limit, ended(session, before)).await }) {
            Ok(Ok(left)) => left,
            Ok(Err(_)) | Err(_) => {
                self.session = None;
                None
            }
        }
    }
}

/// Waits until there are no more sessions than `before`, and then for the time by which the
/// server's counters may be old. The result is how many more sessions are left.
async fn ended(session: &mut AnySession, before: i64) -> Result<Option<i64>, DbError> {
    let started = Instant::now();
    loop {
        let Some(found) = unreported(session).await? else { return Ok(None) };
        let left = (found.sessions - before).max(0);
        if left == 0 {
            sleep(found.age).await;
        }
        if left == 0 || started.elapsed() > ENDING_LIMIT {
            return Ok(Some(left));
        }
        sleep(ENDING_POLL).await;
    }
}

/// Sends one status query on `session`. The session is connected first when there is none, and dropped
/// when anything goes wrong.
async fn query_status(
    database_server: &DatabaseServer,
    session: &mut Option<AnySession>,
) -> Result<(Instant, BTreeMap<String, i64>), DbError> {
    let mut open = match session.take() {
        Some(open) => open,
        None => database_server.connect_as("status").await?,
    };
    let sent = Instant::now();
    let values = status(&mut open).await?;
    *session = Some(open);
    Ok((sent + sent.elapsed() / 2, values))
}

impl Source for Status {
    fn about(&self) -> Map<String, Value> {
        about([("driver", self.database_server.address.name().into())])
    }

    fn read(&mut self, moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let left = if moment == Moment::Last { self.await_sessions() } else { None };
        let Self { database_server, runtime, session, .. } = self;
        let answer =
            runtime.block_on(async { timeout(ANSWER_LIMIT, query_status(database_server, session)).await });
        let (at, counters) = answer.map_err(|_| Error::StatusSlow { limit: ANSWER_LIMIT })??;
        values.replace(match database_server.capabilities.counts_as_the_product() {
            true => counters,
            false => counters.into_iter().map(|(name, value)| (format!("{FOREIGN}{name}"), value)).collect(),
        });
        values.set_known(LOAD_SESSIONS, left);
        if !std::mem::replace(&mut self.was_read, true) {
            self.count_before();
        }
        Ok(Some(at))
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            // A server that does not end the connection in time is left alone.
            let _ = self.runtime.block_on(async { timeout(ANSWER_LIMIT, session.close()).await });
        }
    }
}
