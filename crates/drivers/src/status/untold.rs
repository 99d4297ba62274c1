//! Counters that a server's sessions keep to themselves for a while: who still has some to report, and how old a reading may be.

use std::time::Duration;

use super::{cell, postgres_major};
use crate::{AnySession, DbError};

/// The first version whose own counters have anything that a session reports late and that is used: the log's fsyncs.
const POSTGRES_SINCE: u32 = 14;
/// From here on counters lie in shared memory. Before, a process of its own collects them and writes them to a file, which a
/// reader takes as long as it is not older than this (`PGSTAT_STAT_INTERVAL`).
const IN_MEMORY_SINCE: u32 = 15;
const FILE_AGE: Duration = Duration::from_millis(500);

/// Sessions of dbdyno in the session's database, this one included.
const SESSIONS: &str = "SELECT count(*)::text FROM pg_stat_activity \
     WHERE application_name = 'dbdyno' AND datname = current_database()";

/// What is missing in the counters of a server whose sessions report theirs late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untold {
    /// Open sessions of dbdyno in the session's database, this one included. One that is gone has reported everything: it does so
    /// before it leaves the list.
    pub sessions: i64,
    /// How old [`status`](super::status) may be.
    pub age: Duration,
}

/// What [`status`](super::status) does not hold yet; `None` of servers that count at once. PostgreSQL's sessions report what
/// they did at most once a second, and when they end (`pgstat_report_stat`).
///
/// # Errors
/// As [`Session::rows`](crate::Session::rows).
pub async fn untold(session: &mut AnySession) -> Result<Option<Untold>, DbError> {
    let major = match session {
        AnySession::Postgres(_) => postgres_major(session),
        _ => return Ok(None),
    };
    if major < POSTGRES_SINCE {
        return Ok(None);
    }
    let sessions = cell(session, SESSIONS).await?.and_then(|count| count.parse().ok());
    let age = if major < IN_MEMORY_SINCE { FILE_AGE } else { Duration::ZERO };
    Ok(sessions.map(|sessions| Untold { sessions, age }))
}
