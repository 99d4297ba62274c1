//! Counters that a server's sessions report late: their change over a whole step, where all of it
//! was reported.

use crate::readings::counters::{Change, STATUS, change as change_between};
use crate::readings::measured::Measured;
use crate::readings::span::Span;

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
pub(crate) fn change(step: &Measured<'_>, keys: &[&str]) -> Option<Change> {
    let series = step.counters.get(STATUS)?;
    let (to_us, left) = series.values(LOAD_SESSIONS).last()?;
    let (from_us, _) = series.values(keys.first()?).next()?;
    (left == 0).then(|| change_between(step.counters, STATUS, keys, Span { from_us, to_us }))?
}

#[cfg(test)]
mod tests {
    use dbdyno_record::StepRecord;

    use super::*;
    use crate::fixtures::{interval, read_write_step, series};
    use crate::metrics::fsyncs::{self, Binlog};
    use crate::readings::measured::Hosting;

    const FSYNCS: &str = "pg_stat_io.fsyncs";

    /// 12 inserts and 12 deletes in 3 s. At the window's end (2.5 s) their sessions have reported 3
    /// of their fsyncs, when they have ended all 24.
    fn step(left: Option<i64>) -> StepRecord {
        let mut step = read_write_step();
        let last = [31].into_iter().chain(left).collect();
        let samples = [(-50_000, vec![7]), (1_000_000, vec![9]), (2_510_000, vec![10]), (3_060_000, last)];
        let status = series(STATUS, &[FSYNCS, LOAD_SESSIONS], &samples);
        step.counters.extend(status);
        step
    }

    fn per_commit(step: &StepRecord) -> Option<f64> {
        let (spec, intervals, counters) = (&step.spec, step.intervals.as_slice(), &step.counters);
        let (window, hosting) = (Span::new(0, 2_500_000), Hosting::Process);
        let measured = Measured { spec, intervals, counters, window, hosting, cpus: 4 };
        fsyncs::per_commit(&measured, Some(Binlog::NotSynced), &[])
    }

    #[test]
    fn what_sessions_tell_when_they_end_counts_for_all_that_they_did() {
        assert_eq!(per_commit(&step(Some(0))), Some(1.0));
    }

    #[test]
    fn operations_after_the_window_count_too_because_their_fsyncs_do() {
        let mut step = step(Some(0));
        step.intervals.push(interval(3_000_000, 3_050_000, 1, "insert", 24, 1_200));
        assert_eq!(per_commit(&step), Some(0.5));
    }

    #[test]
    fn sessions_that_are_left_or_were_not_counted_leave_no_figure() {
        assert_eq!((per_commit(&step(Some(1))), per_commit(&step(None))), (None, None));
    }
}
