//! The work for MyRocks: background work awaited, the memtable flushed, level 0 compacted.

use std::time::{Duration, Instant};

use crate::mysql::status::{counters, variables};
use crate::mysql::{Mysql, deferred_work};
use crate::product::{LimitedSession, Work, numbers};
use crate::{Capabilities, Result, Session};

/// Time between two looks at the server.
const PERIOD: Duration = Duration::from_secs(1);
/// Compactions that have not ended by then never will; the original would wait for ever. Its
/// longest W.
const LONGEST: Duration = Duration::from_secs(1200);
/// Looks without a byte written after which pending work is taken for work that the server will not
/// do.
const STUCK: u32 = 10;
/// Bytes that flushes and compactions have written so far.
const WRITTEN: [&str; 2] = ["Rocksdb_flush_write_bytes", "Rocksdb_compact_write_bytes"];

impl Work<'_, Mysql> {
    /// The original waits for running compactions where the server reports them, else 30 s; it
    /// flushes, waits 20 s, and compacts. Here nothing is waited for but what the server says of
    /// itself.
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
                Rest::There => break,
                Rest::Stuck => {
                    self.note("compactions are pending that the server does not begin");
                    break;
                }
                Rest::Unreported => {
                    self.note("this version does not report its compactions: none was awaited");
                    break;
                }
                Rest::NotYet if start.elapsed() >= LONGEST => {
                    self.note(format!("compactions still ran after {LONGEST:?}"));
                    break;
                }
                Rest::NotYet => before = Some(now.written),
            }
            tokio::time::sleep(PERIOD).await;
        }
        self.ended(part, start);
        Ok(())
    }

    /// Sets a variable that is a command (`..._now`), if this version has it. It is done when it
    /// returns.
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

/// What a server reports of its background work. `None` = this version does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Background {
    /// Flushes and compactions that have not begun, in the column families.
    pending: Option<i64>,
    running: Option<i64>,
    written: Option<i64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Rest {
    There,
    NotYet,
    /// Work is pending, and none of it is done.
    Stuck,
    /// The server reports nothing to go by.
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

    /// `idle`: looks in a row, [`PERIOD`] apart, since which nothing was written. A compaction that
    /// runs is no longer pending; where a version does not list those that run, they show in what
    /// they write.
    fn rest(&self, idle: u32) -> Rest {
        if self.running.is_some_and(|running| running > 0) {
            return Rest::NotYet;
        }
        match (self.pending, self.running, self.written) {
            (Some(pending), _, _) if pending > 0 && idle >= STUCK => Rest::Stuck,
            (Some(pending), _, _) if pending > 0 => Rest::NotYet,
            (_, Some(_), _) => Rest::There,
            (_, None, Some(_)) if idle > 0 => Rest::There,
            (_, None, Some(_)) => Rest::NotYet,
            (_, None, None) => Rest::Unreported,
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
        assert_eq!(seen(Some(0), Some(0), Some(9)).rest(0), Rest::There);
        assert_eq!(seen(Some(0), Some(2), Some(9)).rest(99), Rest::NotYet);
        assert_eq!(seen(Some(1), Some(0), Some(9)).rest(0), Rest::NotYet);
    }

    #[test]
    fn a_server_that_does_not_is_at_rest_when_it_wrote_nothing_between_two_looks() {
        let look = |pending| seen(Some(pending), None, Some(9));
        assert_eq!(look(0).rest(0), Rest::NotYet, "one look shows nothing");
        assert_eq!(look(0).rest(1), Rest::There);
        assert_eq!(look(1).rest(STUCK - 1), Rest::NotYet);
        assert_eq!(look(1).rest(STUCK), Rest::Stuck);
    }

    #[test]
    fn what_no_version_tells_is_not_waited_for() {
        assert_eq!(seen(None, None, None).rest(0), Rest::Unreported);
        assert_eq!(seen(Some(0), None, None).rest(0), Rest::Unreported);
    }
}
