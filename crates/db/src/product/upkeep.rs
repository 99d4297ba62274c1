//! Does the upkeep between the load and the first read-write step, as the insert benchmark does,
//! and waits until the database is at rest.
//!
//! The original benchmark waits W = min(1200, 60 + loaded rows / 1,000,000) seconds, counted from
//! the start of the upkeep. The upkeep's work is part of W, and dbdyno sleeps only for the
//! remainder. If the work takes longer than W, dbdyno does not sleep. [`Rest::Quiet`] instead waits
//! until the server's state is below limits. Each product defines its work in [`Product::upkeep`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Limited, LimitedSession, Product};
use crate::product::{DeferredWork, deferred_work};
use crate::{Capabilities, Class, DbError, Result};

/// The report on an upkeep: its parts with their durations, and the settings that it changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpkeepReport {
    /// Named parts with their durations, in order. `wait` is the sleep for the remainder, and
    /// `settle` is the wait for a state. PostgreSQL's `vacuum` parts run at the same time.
    pub parts: Vec<(String, Duration)>,
    /// Numbers observed: `dirty_pages_before` and `_after`, `history_list_length_before` and
    /// `_after`, `wal_frames_left`, `dead_rows_before` and `_after`. A number that the server does
    /// not report is absent.
    pub facts: BTreeMap<String, i64>,
    /// Settings that were changed and restored: `innodb_max_dirty_pages_pct: 90.000000, for this
    /// work 1`.
    pub settings: Vec<String>,
    /// The parts that were skipped, and why.
    pub notes: Vec<String>,
    /// How the server came to rest. It is `None` after a fixed wait.
    pub settling: Option<Settling>,
}

/// Does the product's work on `tables` and waits for rest. See [`crate::settle`].
pub(crate) async fn settle<P: Product>(
    session: &mut P::Session,
    capabilities: &Capabilities,
    tables: &[String],
    rest: Rest,
    owned: bool,
) -> Result<UpkeepReport> {
    let start = Instant::now();
    let mut session = Limited(session);
    let before = state_before::<P>(&mut session, capabilities, &rest).await?;
    let report = UpkeepReport::default();
    let mut work = UpkeepWork { session, capabilities, report, start, rest, before, owned };
    if owned && capabilities.drops_binlog {
        let part_start = Instant::now();
        if P::drop_binlog(&mut work.session).await? {
            work.ended("drop binary log", part_start);
        }
    }
    P::upkeep(&mut work, tables).await?;
    work.come_to_rest().await?;
    Ok(work.report)
}

/// The upkeep in progress.
pub(crate) struct UpkeepWork<'a, P: Product> {
    pub(crate) session: LimitedSession<'a, P>,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) report: UpkeepReport,
    start: Instant,
    rest: Rest,
    /// The levels when the work began. They are read only for [`Rest::Quiet`].
    before: BTreeMap<String, i64>,
    /// Whether dbdyno started the server and may change its settings.
    pub(crate) owned: bool,
}

impl<P: Product> UpkeepWork<'_, P> {
    pub(crate) fn ended(&mut self, part: &str, since: Instant) {
        self.report.parts.push((part.to_owned(), since.elapsed()));
    }

    /// Adds a note about a skipped part and the reason, unless the report already has that note.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    pub(crate) fn fact(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.report.facts.insert(name.to_owned(), value);
        }
    }
}

/// Interval between two checks of the server's state.
const PERIOD: Duration = Duration::from_secs(1);
/// Time without an answer after which a server counts as dead.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Number of consecutive checks in which every level must be within its limit. A server whose
/// queues are empty only for a moment is not at rest.
const CALM_SAMPLES: u32 = 2;
/// Highest number of requests in flight at which a device counts as idle.
const DEVICE_REQUESTS_MAX: i64 = 4;

/// Level for requests in flight, which comes from the device and not from the server.
const DEVICE_QUEUE: &str = "device_requests_in_flight";
/// Level for the bytes that the device has written since the previous check, one [`PERIOD`] ago.
const DEVICE_WRITES: &str = "device_written_bytes";

/// How long the upkeep lasts.
#[derive(Debug, Clone)]
pub enum Rest {
    /// It lasts for this time, counted from the start of the work, as in the original benchmark.
    Wait(Duration),
    /// It lasts until the server is quiet.
    Quiet(Quiet),
}

impl From<Duration> for Rest {
    fn from(wait: Duration) -> Self {
        Self::Wait(wait)
    }
}

/// When a server counts as quiet, and how long to wait for that.
#[derive(Debug, Clone)]
pub struct Quiet {
    /// The longest wait, counted from the end of the active work.
    pub cap: Duration,
    pub bounds: Bounds,
    /// The data directory's device; `None` where it cannot be read.
    pub device: Option<DeviceGauge>,
}

/// Limits below which a server counts as quiet. Shares are fractions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Dirty pages, as a share of the buffer pool.
    pub dirty_share: f64,
    /// Redo that a restart would apply, as a share of all redo (PostgreSQL: of `max_wal_size`).
    pub redo_share: f64,
    /// Transactions that wait for purge.
    pub history_length: i64,
    /// Dead rows, as a share of the live ones.
    pub dead_rows_share: f64,
    /// Bytes that the device may write per second.
    pub device_bytes_per_second: i64,
}

#[cfg(test)]
pub(crate) const TEST_BOUNDS: Bounds = Bounds {
    dirty_share: 0.02,
    redo_share: 0.1,
    history_length: 1000,
    dead_rows_share: 0.01,
    device_bytes_per_second: 1_000_000,
};

/// Reads a block device's counters: requests in flight now, and bytes written so far.
#[derive(Clone)]
pub struct DeviceGauge(Arc<dyn Fn() -> Option<(i64, i64)> + Send + Sync>);

impl DeviceGauge {
    /// `read` returns requests in flight and bytes written, or `None` when the device cannot be
    /// read.
    pub fn new(read: impl Fn() -> Option<(i64, i64)> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for DeviceGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceGauge")
    }
}

/// Whether a server came to rest, and the samples until then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settling {
    /// Whether every level was within its limit at the end. It is `false` when the cap was reached
    /// first.
    pub is_quiet: bool,
    /// Time from the end of the active work.
    pub took: Duration,
    pub cap: Duration,
    /// For each level, the highest value that counts as quiet.
    pub bounds: BTreeMap<String, i64>,
    /// The levels before the active work.
    pub before: BTreeMap<String, i64>,
    /// One sample per second, with its time since the end of the active work. The last one is the
    /// final state.
    pub samples: Vec<(Duration, BTreeMap<String, i64>)>,
    /// Levels above their limits at the end.
    pub missed: Vec<String>,
}

impl<P: Product> UpkeepWork<'_, P> {
    /// Sleeps for the remainder of a fixed wait, or waits until the server is quiet. Once it has
    /// finished, another call does nothing.
    pub(crate) async fn come_to_rest(&mut self) -> Result<()> {
        match self.rest.clone() {
            Rest::Wait(wait) => self.sleep_rest(wait).await,
            Rest::Quiet(quiet) if self.report.settling.is_none() => {
                let part_start = Instant::now();
                let before = std::mem::take(&mut self.before);
                let Self { session, capabilities, owned, .. } = self;
                let settling = settle_down::<P>(session, capabilities, &quiet, (before, *owned)).await?;
                self.ended("settle", part_start);
                self.report.settling = Some(settling);
            }
            Rest::Quiet(_) => {}
        }
        Ok(())
    }

    /// Sleeps for the remainder of the fixed wait.
    async fn sleep_rest(&mut self, wait: Duration) {
        let rest = wait.saturating_sub(self.start.elapsed());
        if !rest.is_zero() {
            let part_start = Instant::now();
            tokio::time::sleep(rest).await;
            self.ended("wait", part_start);
        }
    }
}

/// Reads the levels before the work begins. The result is empty unless `rest` is [`Rest::Quiet`].
async fn state_before<P: Product>(
    session: &mut LimitedSession<'_, P>,
    capabilities: &Capabilities,
    rest: &Rest,
) -> Result<BTreeMap<String, i64>> {
    match rest {
        Rest::Wait(_) => Ok(BTreeMap::new()),
        Rest::Quiet(_) => Ok(read_deferred_work::<P>(session, capabilities).await?.levels),
    }
}

/// Checks the levels once per [`PERIOD`] until the server is quiet or the cap is reached. `before`
/// has the levels before the work, and `owned` says that dbdyno started the server.
async fn settle_down<P: Product>(
    session: &mut LimitedSession<'_, P>,
    capabilities: &Capabilities,
    quiet: &Quiet,
    (before, owned): (BTreeMap<String, i64>, bool),
) -> Result<Settling> {
    let began = Instant::now();
    let mut settling = Settling { cap: quiet.cap, before, ..Settling::default() };
    let mut device = DeviceWatch { gauge: quiet.device.as_ref(), last_bytes: None };
    let mut calm = 0;
    loop {
        let work = read_deferred_work::<P>(session, capabilities).await?;
        settling.bounds = bounds::<P>(&work, &quiet.bounds, quiet.device.is_some());
        // dbdyno does not make a server that others run flush its pages, so levels that only such a
        // flush lowers have no limit there.
        settling.bounds.retain(|level, _| owned || !P::LOWERED_ONLY_BY_FLUSH.contains(&level.as_str()));
        let mut levels = work.levels;
        device.read(&mut levels);
        settling.missed = missed(&levels, &settling.bounds);
        settling.took = began.elapsed();
        settling.samples.push((settling.took, levels));
        calm = if settling.missed.is_empty() { calm + 1 } else { 0 };
        settling.is_quiet = calm >= CALM_SAMPLES;
        // The first check of the device has no earlier count to compare with, so a quiet first
        // check proves nothing.
        settling.is_quiet &= settling.samples.len() > CALM_SAMPLES as usize || quiet.device.is_none();
        if settling.is_quiet || settling.took >= quiet.cap {
            return Ok(settling);
        }
        tokio::time::sleep(PERIOD.min(quiet.cap.saturating_sub(settling.took))).await;
    }
}

/// Reads the deferred work, with a time limit.
async fn read_deferred_work<P: Product>(
    session: &mut LimitedSession<'_, P>,
    capabilities: &Capabilities,
) -> Result<DeferredWork> {
    let reading = deferred_work::<P>(session, capabilities);
    tokio::time::timeout(ANSWER_MAX, reading).await.unwrap_or_else(|_| {
        let limit = ANSWER_MAX.as_secs();
        let message = format!(
            "the server did not answer for {limit} s while dbdyno waited for it to settle; see its log"
        );
        Err(DbError::new(Class::Lost, "", message))
    })
}

/// Returns the limit for each level that was read and has a limit.
fn bounds<P: Product>(
    deferred_work: &DeferredWork,
    bounds: &Bounds,
    sees_device: bool,
) -> BTreeMap<String, i64> {
    let bound = |level: &String| Some((level.clone(), P::quiet_at(level, deferred_work, bounds)?));
    let of_device = [(DEVICE_QUEUE, DEVICE_REQUESTS_MAX), (DEVICE_WRITES, bounds.device_bytes_per_second)]
        .map(|(name, bound)| (name.to_owned(), bound));
    deferred_work
        .levels
        .keys()
        .filter_map(bound)
        .chain(of_device.into_iter().filter(|_| sees_device))
        .collect()
}

/// Returns the names of the levels that are above their limits.
fn missed(levels: &BTreeMap<String, i64>, bounds: &BTreeMap<String, i64>) -> Vec<String> {
    let above = |(name, level): (&String, &i64)| bounds.get(name).is_some_and(|bound| level > bound);
    levels.iter().filter(|level| above(*level)).map(|(name, _)| name.clone()).collect()
}

/// Observes the device between two checks.
struct DeviceWatch<'a> {
    gauge: Option<&'a DeviceGauge>,
    last_bytes: Option<i64>,
}

impl DeviceWatch<'_> {
    fn read(&mut self, levels: &mut BTreeMap<String, i64>) {
        let Some((in_flight, written)) = self.gauge.and_then(|gauge| (gauge.0)()) else { return };
        levels.insert(DEVICE_QUEUE.to_owned(), in_flight);
        if let Some(before) = self.last_bytes.replace(written) {
            levels.insert(DEVICE_WRITES.to_owned(), written - before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::sqlite::testing;
    use crate::{AnySession, DatabaseAddress, DatabaseServer, Session, drop_binlog, null, settle, sqlite};

    fn part_names(report: &UpkeepReport) -> Vec<&str> {
        report.parts.iter().map(|(name, _)| name.as_str()).collect()
    }

    async fn sqlite_session(folder: &tempfile::TempDir, mode: &str) -> AnySession {
        let options = testing::options(folder.path(), &[("journal_mode", mode)]);
        let database_server = DatabaseServer {
            address: DatabaseAddress::Sqlite(options),
            capabilities: sqlite::capabilities(),
        };
        let mut session = database_server.connect().await.unwrap();
        for sql in
            ["CREATE TABLE pi1 (a)", "CREATE INDEX pi1_a ON pi1 (a)", "INSERT INTO pi1 VALUES (1), (2)"]
        {
            session.query(sql.as_bytes()).await.unwrap();
        }
        session
    }

    /// Settles within a short wait. On a slow machine the work may use up the whole wait, so that
    /// the report has no part `wait`. The function then tries again with a longer wait.
    async fn settled(session: &mut AnySession, capabilities: &Capabilities) -> UpkeepReport {
        let mut report = UpkeepReport::default();
        for wait in [400, 4_000, 40_000].map(Duration::from_millis) {
            let start = Instant::now();
            report = settle(session, capabilities, &["pi1".to_owned()], wait, true).await.unwrap();
            let took = start.elapsed();
            assert!(took >= wait, "{took:?} of {wait:?}");
            if part_names(&report).contains(&"wait") {
                break;
            }
        }
        report
    }

    #[tokio::test]
    async fn sqlite_is_analysed_and_its_log_emptied_inside_the_wait() {
        for (mode, parts) in
            [("wal", &["analyze pi1", "checkpoint", "wait"][..]), ("delete", &["analyze pi1", "wait"])]
        {
            let folder = testing::folder();
            let mut session = sqlite_session(&folder, mode).await;
            let [_, log, ..] = sqlite::database_files(&folder.path().join("bench.db"));
            assert_eq!(log.exists(), mode == "wal");
            let report = settled(&mut session, &sqlite::capabilities()).await;
            assert_eq!(part_names(&report), parts);
            assert!(report.notes.is_empty(), "{report:?}");
            let statistics = session.rows("SELECT stat FROM sqlite_stat1 WHERE idx = 'pi1_a'").await.unwrap();
            assert_eq!(statistics, [[Some("2 1".to_owned())]]);
            if mode == "wal" {
                assert_eq!(report.facts["wal_frames_left"], 0);
                // The query for statistics above wrote nothing, so the emptied log is still empty.
                assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
            }
        }
    }

    #[tokio::test]
    async fn work_that_takes_longer_than_the_wait_is_followed_by_no_sleep() {
        let folder = testing::folder();
        let mut session = sqlite_session(&folder, "delete").await;
        let (tables, wait) = (["pi1".to_owned()], Duration::from_nanos(1));
        let report = settle(&mut session, &sqlite::capabilities(), &tables, wait, true).await.unwrap();
        assert_eq!(part_names(&report), ["analyze pi1"]);
    }

    #[tokio::test]
    async fn a_table_that_is_absent_fails_the_work_on_sqlite() {
        let folder = testing::folder();
        let mut session = sqlite_session(&folder, "wal").await;
        let tables = ["absent".to_owned()];
        let error =
            settle(&mut session, &sqlite::capabilities(), &tables, Duration::ZERO, true).await.unwrap_err();
        assert!(error.message.contains("no such table: absent"), "{error}");
    }

    #[tokio::test]
    async fn the_null_database_only_waits() {
        let address = DatabaseAddress::Null(null::NullOptions::default());
        let mut session =
            DatabaseServer { address, capabilities: null::capabilities() }.connect().await.unwrap();
        let report = settled(&mut session, &null::capabilities()).await;
        assert_eq!(part_names(&report), ["wait"]);
        assert!(!drop_binlog(&mut session, &null::capabilities()).await.unwrap());
    }

    #[test]
    fn levels_above_their_limits_are_missed() {
        let map =
            |pairs: [(&str, i64); 3]| BTreeMap::from(pairs.map(|(name, value)| (name.to_owned(), value)));
        let levels = map([("dead_rows", 1001), ("vacuums_running", 1), ("other", 9)]);
        let bounds = map([("dead_rows", 1000), ("vacuums_running", 1), ("absent", 0)]);
        assert_eq!(missed(&levels, &bounds), ["dead_rows"]);
    }

    async fn settled_by_gauge(gauge: DeviceGauge, cap: Duration) -> Settling {
        let capabilities = null::capabilities();
        let address = DatabaseAddress::Null(null::NullOptions::default());
        let database_server = DatabaseServer { address, capabilities: capabilities.clone() };
        let mut session = database_server.connect().await.unwrap();
        let rest = Quiet { cap, bounds: TEST_BOUNDS, device: Some(gauge) };
        let report = settle(&mut session, &capabilities, &[], Rest::Quiet(rest), true).await.unwrap();
        report.settling.unwrap()
    }

    #[tokio::test]
    async fn the_wait_lasts_until_the_device_stops_writing() {
        let (written, looks) = (AtomicI64::new(0), AtomicI64::new(0));
        let gauge = DeviceGauge::new(move || {
            let busy = looks.fetch_add(1, Ordering::Relaxed) < 3;
            Some((0, written.fetch_add(if busy { 9_000_000 } else { 0 }, Ordering::Relaxed)))
        });
        let settling = settled_by_gauge(gauge, Duration::from_secs(60)).await;
        assert!(settling.is_quiet && settling.missed.is_empty(), "{settling:?}");
        let rates: Vec<_> =
            settling.samples.iter().map(|(_, levels)| levels.get(DEVICE_WRITES).copied()).collect();
        assert!(rates[0].is_none() && rates[1] > Some(1_000_000), "{rates:?}");
        assert!((4..=7).contains(&rates.len()), "{rates:?}");
        assert_eq!(rates.last(), Some(&Some(0)));
    }

    #[tokio::test]
    async fn the_wait_ends_at_the_cap_and_names_the_missed_levels() {
        let gauge = DeviceGauge::new(|| Some((64, 0)));
        let settling = settled_by_gauge(gauge, Duration::from_millis(1_200)).await;
        assert!(!settling.is_quiet, "{settling:?}");
        assert_eq!(settling.missed, [DEVICE_QUEUE]);
        assert!(settling.took >= settling.cap, "{settling:?}");
        assert!(settling.samples.len() <= 3, "looks go on after the cap: {settling:?}");
        assert_eq!(settling.bounds[DEVICE_QUEUE], DEVICE_REQUESTS_MAX);
    }
}
