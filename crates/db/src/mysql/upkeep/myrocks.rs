//! Brings MyRocks to rest: waits for background work, flushes the memtable, and compacts level 0.

use std::time::{Duration, Instant};

use crate::mysql::status::{counters, variables};
use crate::mysql::{Mysql, deferred_work};
use crate::product::{LimitedSession, Work, numbers};
use crate::{Capabilities, Result, Session};

/// Interval between two checks of the server's background work.
const PERIOD: Duration = Duration::from_secs(1);
/// Compactions that have not ended by then never will. The original benchmark would wait for ever.
/// The limit is its longest wait W.
const LONGEST: Duration = Duration::from_secs(1200);
/// Number of checks in a row without a byte written, after which dbdyno assumes that the server
/// will not do the pending work.
const STUCK: u32 = 10;
/// Counters for the bytes that flushes and compactions have written so far.
const WRITTEN: [&str; 2] = ["Rocksdb_flush_write_bytes", "Rocksdb_compact_write_bytes"];

impl Work<'_, Mysql> {
    /// Brings MyRocks to rest. The original benchmark waits for running compactions where the
    /// server reports them, otherwise 30 s. It then flushes, waits 20 s, and compacts. This version
    /// waits only for what the server reports.
    pub(super) async fn myrocks(&mut self, tables: &[String]) -> Result<()> {
        self.analyze(tables).await?;
        self.await_background("await compactions").await?;
        self.set_if_known("rocksdb_force_flush_memtable_now").await?;
        self.await_background("await compactions after flush").await?;
        self.set_if_known("rocksdb_compact_lzero_now").await
    }

    async fn await_background(&mut self, part: &str) -> Result<()> {
        let start = Instant::now();
        let (mut before, mut idle) = (None, 0);
        loop {
            let now = Background::look(&mut self.session, self.capabilities).await?;
            idle = if before == Some(now.written) { idle + 1 } else { 0 };
            match now.rest(idle) {
                MyrocksRest::There => break,
                MyrocksRest::Stuck => {
                    self.note("compactions are pending that the server does not begin");
                    break;
                }
                MyrocksRest::Unreported => {
                    self.note("this version does not report its compactions: none was awaited");
                    break;
                }
                MyrocksRest::NotYet if start.elapsed() >= LONGEST => {
                    self.note(format!("compactions still ran after {LONGEST:?}"));
                    break;
                }
                MyrocksRest::NotYet => before = Some(now.written),
            }
            tokio::time::sleep(PERIOD).await;
        }
        self.ended(part, start);
        Ok(())
    }

    /// Sets a variable that acts as a command (`..._now`), if this version has it. The command is
    /// complete when this returns.
    async fn set_if_known(&mut self, name: &str) -> Result<()> {
        if variables(&mut self.session, name).await?.is_empty() {
            self.note(format!("this version has no {name}"));
            return Ok(());
        }
        let part = Instant::now();
        self.session.query(format!("SET GLOBAL {name} = 1").as_bytes()).await?;
        self.ended(name, part);
        Ok(())
    }
}

/// What a server reports about its background work. `None` means that this version does not report
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Background {
    /// Flushes and compactions in the column families that have not begun.
    pending: Option<i64>,
    running: Option<i64>,
    written: Option<i64>,
}

#[derive(Debug, PartialEq, Eq)]
enum MyrocksRest {
    There,
    NotYet,
    /// Work is pending, but nothing is written.
    Stuck,
    /// The server reports no background work.
    Unreported,
}

impl Background {
    async fn look(session: &mut LimitedSession<'_, Mysql>, capabilities: &Capabilities) -> Result<Self> {
        let levels = deferred_work::read(session, capabilities).await?.levels;
        let counters = numbers(counters(session).await?);
        let sum = |found: [Option<i64>; 2]| found.into_iter().flatten().reduce(|a, b| a + b);
        Ok(Self {
            pending: sum(["flushes_pending", "compactions_pending"].map(|name| levels.get(name).copied())),
            running: levels.get("compactions_running").copied(),
            written: sum(WRITTEN.map(|name| counters.get(name).copied())),
        })
    }

    /// Judges the background work. `idle` counts the checks in a row, [`PERIOD`] apart, without a
    /// byte written. A running compaction is no longer pending. Where a version does not list
    /// running ones, they show in what they write.
    fn rest(&self, idle: u32) -> MyrocksRest {
        if self.running.is_some_and(|running| running > 0) {
            return MyrocksRest::NotYet;
        }
        match (self.pending, self.running, self.written) {
            (Some(pending), _, _) if pending > 0 && idle >= STUCK => MyrocksRest::Stuck,
            (Some(pending), _, _) if pending > 0 => MyrocksRest::NotYet,
            (_, Some(_), _) => MyrocksRest::There,
            (_, None, Some(_)) if idle > 0 => MyrocksRest::There,
            (_, None, Some(_)) => MyrocksRest::NotYet,
            (_, None, None) => MyrocksRest::Unreported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pending: Option<i64>, running: Option<i64>, written: Option<i64>) -> Background {
        Background { pending, running, written }
    }

    #[test]
    fn a_server_that_lists_its_compactions_is_at_rest_at_the_first_look_without_one() {
        assert_eq!(seen(Some(0), Some(0), Some(9)).rest(0), MyrocksRest::There);
        assert_eq!(seen(Some(0), Some(2), Some(9)).rest(99), MyrocksRest::NotYet);
        assert_eq!(seen(Some(1), Some(0), Some(9)).rest(0), MyrocksRest::NotYet);
    }

    #[test]
    fn a_server_that_does_not_is_at_rest_when_it_wrote_nothing_between_two_looks() {
        let look = |pending| seen(Some(pending), None, Some(9));
        assert_eq!(look(0).rest(0), MyrocksRest::NotYet, "one look shows nothing");
        assert_eq!(look(0).rest(1), MyrocksRest::There);
        assert_eq!(look(1).rest(STUCK - 1), MyrocksRest::NotYet);
        assert_eq!(look(1).rest(STUCK), MyrocksRest::Stuck);
    }

    #[test]
    fn what_no_version_tells_is_not_waited_for() {
        assert_eq!(seen(None, None, None).rest(0), MyrocksRest::Unreported);
        assert_eq!(seen(Some(0), None, None).rest(0), MyrocksRest::Unreported);
    }
}
