//! How far a counter went between the two samples that lie nearest to a window's edges.

use std::collections::BTreeMap;

use dbdyno_record::CounterSeries;

use crate::window::Span;

/// Counter files of one step by source.
pub(crate) type Counters = BTreeMap<String, CounterSeries>;

/// The source of a server's own counters.
pub(crate) const STATUS: &str = "status";
/// What a host's CPUs did other than nothing, waiting for IO, or work for another machine.
pub(crate) const HOST_BUSY: [&str; 5] =
    ["cpu_user_us", "cpu_nice_us", "cpu_system_us", "cpu_irq_us", "cpu_softirq_us"];

/// Sources that look at one process by its number, and have no samples after its end.
const PROCESS: [&str; 2] = ["server", "switches"];
/// How long before the window's end the last sample of a process lies at least that ended in it.
const ENDED_US: i64 = 500_000;
/// A server's own time since its start.
const UPTIME: &str = "Uptime";

/// Bytes.
pub(crate) const KIB: f64 = 1024.0;

/// The increase of one counter, or of a sum of counters, between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    pub(crate) value: f64,
    /// From the one sample to the other: the only time that `value` may be divided by.
    pub(crate) between: Span,
}

impl Change {
    pub(crate) fn per_second(self) -> f64 {
        self.value / self.between.seconds()
    }
}

/// The increase of the sum of `keys` of `source` over `window`.
///
/// `None` when the source or one of the keys was not sampled, when both edges have the same nearest
/// sample, when the server's process ended in the window, or when a counter went back (its server
/// was restarted): a server's own at any sample between, for it may have passed its old value
/// again. The kernel's may: its time of waiting for IO goes back a little now and then.
pub(crate) fn change(counters: &Counters, source: &str, keys: &[&str], window: Span) -> Option<Change> {
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
    Some(Change { value: value as f64, between: between? })
}

/// Whether there is no sample at the end of the window, as there is of a process that lives: one is
/// taken when the window ends.
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

/// The greatest value that `key` had in any sample of the step.
pub(crate) fn greatest(counters: &Counters, source: &str, key: &str) -> Option<i64> {
    counters.get(source)?.values(key).map(|(_, value)| value).max()
}

/// Sessions of the load that had not ended at the last sample. That sample alone has it, and only
/// of servers whose sessions report late.
const LOAD_SESSIONS: &str = "load_sessions";

/// What the names of all counters begin with that are reported late: PostgreSQL's.
const PREFIX: &str = "pg_stat_";

/// Whether sessions report `key` late: at most once a second, and when they end.
pub(crate) fn is_reported_late(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The increase of the sum of `keys` from the first sample, before the load, to the last, when its
/// sessions have ended.
///
/// Nothing between the two can be trusted: at the window's end sessions may owe a second of what
/// they did, which is all that a step of a second has. `None` where sessions were left at the last
/// sample, or no one looked.
pub(crate) fn change_reported_late(counters: &Counters, keys: &[&str]) -> Option<Change> {
    let series = counters.get(STATUS)?;
    let (to_us, left) = series.values(LOAD_SESSIONS).last()?;
    let (from_us, _) = series.values(keys.first()?).next()?;
    (left == 0).then(|| change(counters, STATUS, keys, Span { from_us, to_us }))?
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
    fn what_was_not_sampled_has_no_change() {
        let window = Span::new(0, 2_000_000);
        assert_eq!(change(&disk(), "disk", &["reads", "writes"], window), None);
        assert_eq!(change(&disk(), "host", &["reads"], window), None);
        assert_eq!(change(&disk(), "disk", &["reads"], Span::new(900_000, 1_100_000)), None);
    }

    #[test]
    fn a_counter_that_went_back_has_no_change() {
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
    fn a_server_that_counts_its_time_anew_was_restarted_however_much_it_counted_since() {
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
        assert_eq!(greatest(&sizes, "server", "rss_bytes"), Some(30));
        assert_eq!(greatest(&sizes, "server", "vsz_bytes"), None);
    }
}
