//! Source `status`: the server's own counters, under the server's own names.
//!
//! Read over a connection of its own, which is opened before the barrier. A query that is not answered in time is
//! given up with its connection, and the next sample opens another one. The time of a sample is the middle between
//! sending the query and having its answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dbdyno_drivers::{AnySession, DbError, Endpoint, Session, Target, status};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::{Moment, Source, Values, about};
use crate::Error;

/// How long a server may take to say its status.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// The connection for status queries.
pub(crate) struct Status {
    endpoint: Endpoint,
    runtime: Runtime,
    session: Option<AnySession>,
}

impl Status {
    /// Sets up the event loop; the first reading connects.
    pub(crate) fn new(endpoint: Endpoint) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        Ok(Self { endpoint, runtime, session: None })
    }
}

/// One status query on `session`, which is connected first when there is none and lost when anything goes wrong.
async fn ask(
    endpoint: &Endpoint,
    session: &mut Option<AnySession>,
) -> Result<(Instant, BTreeMap<String, i64>), DbError> {
    let mut open = match session.take() {
        Some(open) => open,
        None => endpoint.connect_as("status").await?,
    };
    let sent = Instant::now();
    let values = status(&mut open).await?;
    *session = Some(open);
    Ok((sent + sent.elapsed() / 2, values))
}

impl Source for Status {
    fn name(&self) -> &'static str {
        "status"
    }

    fn about(&self) -> Map<String, Value> {
        let driver = match self.endpoint.target {
            Target::Mysql(_) => "mysql",
            Target::Postgres(_) => "postgres",
            Target::Sqlite(_) => "sqlite",
            Target::Null(_) => "null",
        };
        about([("driver", driver.into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let Self { endpoint, runtime, session } = self;
        let answer = runtime.block_on(async { timeout(ANSWER_LIMIT, ask(endpoint, session)).await });
        let (at, counters) = answer.map_err(|_| Error::StatusSlow { limit: ANSWER_LIMIT })??;
        values.replace(counters);
        Ok(Some(at))
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            // A server that does not say goodbye is left without.
            let _ = self.runtime.block_on(async { timeout(ANSWER_LIMIT, session.close()).await });
        }
    }
}
