//! Computes how much a counter rose in a stretch of a step's time (a [`Span`]), from the two
//! samples nearest to the stretch's edges.

use std::collections::BTreeMap;
use std::ops::Range;

use dbdyno_record::CounterSeries;

/// The counter files of one step, by the source that was sampled.
pub(crate) type Counters = BTreeMap<String, CounterSeries>;

/// The source of a server's own counters.
pub(crate) const STATUS: &str = "status";
/// Names of the host's counters for CPU time that was not idle, not waiting for IO, and not taken
/// by another virtual machine.
pub(crate) const HOST_BUSY: [&str; 5] =
    ["cpu_user_us", "cpu_nice_us", "cpu_system_us", "cpu_irq_us", "cpu_softirq_us"];

/// Sources that sample one process by its process id. They have no samples after the process has
/// ended.
const PROCESS: [&str; 2] = ["server", "switches"];
/// A process ended in the window if its last sample is at least this much earlier than the window's
/// end.
const ENDED_US: i64 = 500_000;
/// The counter for the time since a server's start.
const UPTIME: &str = "Uptime";

/// Bytes per KiB.
pub(crate) const KIB: f64 = 1024.0;

/// The increase in one counter, or in a sum of counters, between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CounterChange {
    pub(crate) value: f64,
    /// Time between the two samples. A rate is `value` divided by this time, and never by the
    /// length of a window.
    pub(crate) between: Span,
}

impl CounterChange {
    pub(crate) fn per_second(self) -> f64 {
        self.value / self.between.seconds()
    }
}

/// The increase in the sum of `keys` of `source` over `window`.
///
/// It is `None` when the source or one of the keys was not sampled, when both edges have the same
/// nearest sample, or when the server's process ended in the window. It is also `None` when a
/// counter fell, because the server was then restarted. For a server's own counters every sample in
/// between is checked, because the counter may have passed its old value again. The kernel's
/// counters are checked at the edges only, because the kernel's IO wait time occasionally falls a
/// little.
pub(crate) fn change(
    counters: &Counters,
    source: &str,
    keys: &[&str],
    window: Span,
) -> Option<CounterChange> {
    let series = counters.get(source)?;
    let is_restarted = source == STATUS && falls(series, UPTIME, window.from_us, window.to_us);
    if is_restarted || (PROCESS.contains(&source) && ends_before(series, keys.first()?, window.to_us)) {
        return None;
    }
    let (mut value, mut between) = (0, None);
    for key in keys {
        let (from_us, first) = series.nearest(key, window.from_us)?;
        let (to_us, last) = series.nearest(key, window.to_us)?;
        if to_us <= from_us || last < first || (source == STATUS && falls(series, key, from_us, to_us)) {
            return None;
        }
        value += last - first;
        between = Some(Span { from_us, to_us });
    }
    Some(CounterChange { value: value as f64, between: between? })
}

/// Whether the window has no sample at its end. A process that is still alive has one, because a
/// sample is taken when the window ends.
fn ends_before(series: &CounterSeries, key: &str, end_us: i64) -> bool {
    series.values(key).last().is_some_and(|(last_us, _)| last_us < end_us - ENDED_US)
}

fn falls(series: &CounterSeries, key: &str, from_us: i64, to_us: i64) -> bool {
    let between = series.values(key).filter(|(at_us, _)| (from_us..=to_us).contains(at_us));
    !between.map(|(_, value)| value).is_sorted()
}

/// The value of `key` at the sample nearest to the window's end.
pub(crate) fn at_end(counters: &Counters, source: &str, key: &str, window: Span) -> Option<i64> {
    counters.get(source)?.nearest(key, window.to_us).map(|(_, value)| value)
}

/// The highest value that `key` had in any sample of the step.
pub(crate) fn highest(counters: &Counters, source: &str, key: &str) -> Option<i64> {
    counters.get(source)?.values(key).map(|(_, value)| value).max()
}

/// Counter of the load's sessions that had not ended at the last sample. Only that sample has it,
/// and only for servers whose sessions report late.
const LOAD_SESSIONS: &str = "load_sessions";

/// Prefix of the names of all counters that are reported late. They are PostgreSQL's.
const PREFIX: &str = "pg_stat_";

/// Whether sessions report `key` late. They do so at most once per second, and when they end.
pub(crate) fn is_reported_late(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The increase in the sum of `keys` from the first sample, which is before the load, to the last,
/// when the load's sessions have ended.
///
/// No sample between the two can be trusted: at the window's end, sessions may not have reported
/// the last second of their work, which is all that a step of one second has. `None` where sessions
/// were left at the last sample, or where their number is unknown.
pub(crate) fn change_reported_late(counters: &Counters, keys: &[&str]) -> Option<CounterChange> {
    let series = counters.get(STATUS)?;
    let (to_us, left) = series.values(LOAD_SESSIONS).last()?;
    let (from_us, _) = series.values(keys.first()?).next()?;
    (left == 0).then(|| change(counters, STATUS, keys, Span { from_us, to_us }))?
}

pub(crate) const SECOND_US: u64 = 1_000_000;

/// A stretch of a step's time. Both ends are in microseconds since the step's barrier. They may be
/// negative, because counter samples may lie before the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from_us: i64,
    pub(crate) to_us: i64,
}

impl Span {
    /// All of a step's time, for steps with and without a common window.
    pub(crate) const ALWAYS: Self = Self { from_us: 0, to_us: i64::MAX };

    pub(crate) fn new(from_us: u64, to_us: u64) -> Self {
        Self { from_us: signed(from_us), to_us: signed(to_us) }
    }

    pub(crate) fn seconds(self) -> f64 {
        (self.to_us - self.from_us).max(0) as f64 / SECOND_US as f64
    }

    /// An amount per second of the span; 0 for a span of no length.
    pub(crate) fn rate_of(self, amount: f64) -> f64 {
        if self.seconds() > 0.0 { amount / self.seconds() } else { 0.0 }
    }

    /// The time that two spans have in common. Its length is zero when they do not overlap.
    pub(crate) fn overlap(self, other: Self) -> Self {
        let from_us = self.from_us.max(other.from_us);
        Self { from_us, to_us: self.to_us.min(other.to_us).max(from_us) }
    }

    /// Fraction of `[from_us, to_us)` that lies in this span: 1 for an interval wholly inside, 0
    /// for one outside.
    ///
    /// An interval that straddles an edge is prorated by this, as if its work were spread evenly
    /// over it.
    pub(crate) fn share_of(self, from_us: u64, to_us: u64) -> f64 {
        let part = Self::new(from_us, to_us);
        if part.from_us >= part.to_us {
            let inside = self.from_us <= part.from_us && part.to_us <= self.to_us;
            return if inside { 1.0 } else { 0.0 };
        }
        self.overlap(part).seconds() / part.seconds()
    }

    /// Numbers of the whole seconds that lie inside the span. Second 3 is `[3 s, 4 s)`.
    pub(crate) fn whole_seconds(self) -> Range<u64> {
        let from = u64::try_from(self.from_us).unwrap_or(0).div_ceil(SECOND_US);
        let to = u64::try_from(self.to_us).unwrap_or(0) / SECOND_US;
        from..to.max(from)
    }
}

/// Microseconds as a signed number; a step of 292,000 years is not expected.
fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

/// Total length of the time that lies in any of the spans, each given by its start and end.
pub(crate) fn covered_us(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (from, to) in spans {
        covered += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::series;

    fn disk() -> Counters {
        let samples = [(-2_000, 100), (1_000_000, 150), (2_010_000, 400), (3_000_000, 900)];
        series("disk", &["reads"], &samples.map(|(at, reads)| (at, vec![reads])))
    }

    #[test]
    fn a_change_is_taken_between_the_samples_nearest_to_the_windows_edges() {
        let change = change(&disk(), "disk", &["reads"], Span::new(0, 2_000_000)).unwrap();
        assert_eq!(change.value, 300.0);
        assert_eq!(change.between, Span { from_us: -2_000, to_us: 2_010_000 });
        assert!((change.per_second() - 300.0 / 2.012).abs() < 1e-9);
    }

    #[test]
    fn counters_that_were_not_sampled_have_no_change() {
        let window = Span::new(0, 2_000_000);
        assert_eq!(change(&disk(), "disk", &["reads", "writes"], window), None);
        assert_eq!(change(&disk(), "host", &["reads"], window), None);
        assert_eq!(change(&disk(), "disk", &["reads"], Span::new(900_000, 1_100_000)), None);
    }

    #[test]
    fn a_counter_that_fell_has_no_change() {
        let restarted = series("status", &["Queries"], &[(0, vec![500]), (1_000_000, vec![3])]);
        assert_eq!(change(&restarted, "status", &["Queries"], Span::new(0, 1_000_000)), None);
        let samples = [(0, vec![500]), (1_000_000, vec![3]), (2_000_000, vec![900])];
        let passed = series("status", &["Queries"], &samples);
        assert_eq!(change(&passed, "status", &["Queries"], Span::new(0, 2_000_000)), None);
        let kernel = series("host", &["cpu_iowait_us"], &samples);
        assert_eq!(
            change(&kernel, "host", &["cpu_iowait_us"], Span::new(0, 2_000_000)).unwrap().value,
            400.0
        );
    }

    #[test]
    fn a_process_that_ended_in_the_window_has_no_change() {
        let samples = [(0, vec![10]), (1_000_000, vec![20]), (2_000_000, vec![30])];
        let counters = series("server", &["cpu_us"], &samples);
        let until = |to_us| change(&counters, "server", &["cpu_us"], Span::new(0, to_us));
        assert_eq!(until(2_400_000).unwrap().value, 20.0);
        assert_eq!(until(9_000_000), None, "what it used in 2 s is not what 9 s of work cost");
        let disk = series("disk", &["cpu_us"], &samples);
        assert!(change(&disk, "disk", &["cpu_us"], Span::new(0, 9_000_000)).is_some());
    }

    #[test]
    fn a_server_whose_uptime_fell_was_restarted_even_if_its_counters_rose() {
        let samples = [(0, vec![50, 100]), (1_000_000, vec![51, 200]), (2_000_000, vec![1, 900])];
        let counters = series(STATUS, &["Uptime", "Queries"], &samples);
        let until = |to_us| change(&counters, STATUS, &["Queries"], Span::new(0, to_us));
        assert_eq!((until(1_000_000).unwrap().value, until(2_000_000)), (100.0, None));
    }

    #[test]
    fn levels_are_read_at_the_end_and_at_their_peak() {
        let sizes =
            series("server", &["rss_bytes"], &[(0, vec![10]), (1_000_000, vec![30]), (2_000_000, vec![20])]);
        assert_eq!(at_end(&sizes, "server", "rss_bytes", Span::new(0, 1_900_000)), Some(20));
        assert_eq!(highest(&sizes, "server", "rss_bytes"), Some(30));
        assert_eq!(highest(&sizes, "server", "vsz_bytes"), None);
    }

    #[test]
    fn time_that_spans_share_counts_once() {
        assert_eq!(covered_us(vec![(10, 20), (0, 5), (12, 25), (25, 26)]), 5 + 16);
    }

    #[test]
    fn only_seconds_wholly_inside_the_window_are_whole_seconds() {
        assert_eq!(Span::new(0, 3_999_999).whole_seconds(), 0..3);
        assert_eq!(Span::new(250_000, 4_000_000).whole_seconds(), 1..4);
        assert_eq!(Span::new(250_000, 900_000).whole_seconds().count(), 0);
    }
}
