//! Reads a server's deferred work (purge, compaction, dirty pages) before and after a step, outside
//! of the measured window.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dbdyno_db::{AnySession, Capabilities};
use dbdyno_record::{CounterHeader, StepWriter};
use serde_json::Map;

use crate::exit::ExitError;

const SOURCE: &str = "deferred_work";
/// dbdyno waits no longer than this for a query that should take milliseconds.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(crate) struct Reading {
    at: Instant,
    levels: BTreeMap<String, i64>,
}

/// Asks the server for its deferred work. It is `None` when the server has nothing to report, as
/// the null database.
pub(crate) async fn read(
    session: &mut AnySession,
    capabilities: &Capabilities,
) -> Result<Option<Reading>, String> {
    let asked = tokio::time::timeout(ANSWER_MAX, dbdyno_db::deferred_work(session, capabilities)).await;
    let deferred_work = asked
        .map_err(|_| format!("no answer within {} s", ANSWER_MAX.as_secs()))?
        .map_err(|error| error.to_string())?;
    Ok((!deferred_work.levels.is_empty())
        .then(|| Reading { at: Instant::now(), levels: deferred_work.levels }))
}

/// Writes both readings, with their times relative to the barrier. It writes nothing for a step
/// that never came to its barrier, nor when one reading is missing, because one reading alone shows
/// no change.
pub(crate) fn write(
    writer: &StepWriter,
    barrier: Option<Instant>,
    readings: [Option<Reading>; 2],
) -> Result<(), ExitError> {
    let (Some(barrier), [Some(before), Some(after)]) = (barrier, readings) else { return Ok(()) };
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let header = CounterHeader { source: SOURCE.to_owned(), about: Map::new() };
    let mut lines = writer.counters(header)?;
    lines.line(-micros(barrier.saturating_duration_since(before.at)), &before.levels)?;
    lines.line(micros(after.at.saturating_duration_since(barrier)), &after.levels)?;
    lines.sync()?;
    Ok(())
}
