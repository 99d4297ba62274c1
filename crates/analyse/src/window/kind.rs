//! Sums up the operations, rows and times of one kind of operation in the common window.

use std::collections::BTreeMap;

use dbdyno_record::{ErrorCounts, Interval, KindSpec, OperationClass, StepRecord, Unit, WindowRule};

use crate::window::counters::{SECOND_US, Span};

/// Scans that take longer than this are too few per second for their count to be a rate.
const LONG_SCAN_US: f64 = 100_000.0;

/// The sums of one kind of operation, made once from its intervals.
pub(crate) struct KindSummary<'a> {
    pub(crate) spec: &'a KindSpec,
    /// Whether the kind's figures count rows (writers) or operations (queries).
    pub(crate) unit: Unit,
    /// Number of connections of all clients together.
    pub(crate) connections: u32,
    pub(crate) intervals: Intervals<'a>,
    /// The operations that were answered in the window.
    pub(crate) answered: Tally,
    /// The operations done in the window, each counted by the share of its cycle that lies in the
    /// window.
    ///
    /// A count of answers is a whole number, which is too coarse. A window of 5 s holds three
    /// operations of 1.45 s, and three of 1.65 s. With answers counted, a connection that is a
    /// tenth slower would have the same rate.
    pub(crate) done: Tally,
    /// One entry per whole second of the window, including seconds in which nothing was done. The
    /// number of a second is counted from the step's barrier.
    pub(crate) seconds: Vec<(u64, Second)>,
    /// Whether the kind repeats table scans for a set time and the scans of one client are so long
    /// that their number per second means nothing.
    pub(crate) has_long_scans: bool,
    window: Span,
}

impl<'a> KindSummary<'a> {
    pub(super) fn of(step: &'a StepRecord, spec: &'a KindSpec, window: Span) -> Self {
        let intervals = Intervals::of(&step.intervals, &spec.kind);
        let answered = intervals.sum(window);
        let mut done = answered;
        if window.seconds() > 0.0 {
            for interval in &intervals.0 {
                done.operations += interval.cut.operations;
                done.rows += interval.cut.rows;
                done.cycle_sum_us += interval.cut.cycle_us;
            }
        }
        let repeats_scans = spec.class == OperationClass::Scan && step.spec.window == WindowRule::FirstEnded;
        Self {
            spec,
            unit: match spec.class {
                _ if spec.kind == step.spec.headline.kind => step.spec.headline.unit,
                OperationClass::Query => Unit::Operations,
                _ => Unit::Rows,
            },
            connections: spec.connections_per_client * step.spec.clients,
            answered,
            done,
            seconds: intervals.by_second(None, window),
            has_long_scans: repeats_scans && intervals.have_long_scans(window),
            intervals,
            window,
        }
    }

    /// Operations that failed or were dropped in the window. For a step without a common window the
    /// tally covers the whole step, so that the report can show why it failed.
    pub(crate) fn failed_or_dropped(&self) -> Tally {
        if self.window.seconds() > 0.0 { self.answered } else { self.intervals.sum(Span::ALWAYS) }
    }

    /// Units (rows or operations) done per second in the window.
    pub(crate) fn rate(&self) -> f64 {
        self.window.rate_of(self.amount(&self.done))
    }

    /// The tally's operations or rows, whichever the kind's figures count.
    pub(crate) fn amount(&self, tally: &Tally) -> f64 {
        amount(self.unit, (tally.operations, tally.rows))
    }
}

/// Operations or rows, whichever a figure in `unit` counts.
pub(crate) fn amount(unit: Unit, (operations, rows): (f64, f64)) -> f64 {
    match unit {
        Unit::Operations | Unit::Seconds | Unit::Elapsed => operations,
        Unit::Rows => rows,
    }
}

/// The intervals of one kind, in the order of their file.
pub(crate) struct Intervals<'a>(pub(crate) Vec<&'a Interval>);

impl<'a> Intervals<'a> {
    fn of(all: &'a [Interval], kind: &str) -> Self {
        Self(all.iter().filter(|interval| interval.kind == kind).collect())
    }

    pub(crate) fn sum(&self, span: Span) -> Tally {
        let mut sum = Tally::default();
        for interval in &self.0 {
            sum.add(interval, span);
        }
        sum
    }

    /// The sum for each client by its number, including one that did nothing in `span`.
    pub(crate) fn by_client(&self, span: Span) -> BTreeMap<u32, Tally> {
        let mut sums: BTreeMap<u32, Tally> = BTreeMap::new();
        for interval in &self.0 {
            sums.entry(interval.client).or_default().add(interval, span);
        }
        sums
    }

    /// One entry per whole second of `window`, including seconds in which nothing was done.
    /// `client` picks one client; `None` sums over all. An interval longer than a second is spread
    /// over the seconds that it covers.
    pub(crate) fn by_second(&self, client: Option<u32>, window: Span) -> Vec<(u64, Second)> {
        let whole = window.whole_seconds();
        let mut seconds: Vec<_> = whole.clone().map(|second| (second, Second::default())).collect();
        let wanted = |interval: &&&Interval| client.is_none_or(|client| client == interval.client);
        for interval in self.0.iter().filter(wanted) {
            let first = (interval.from_us / SECOND_US).max(whole.start);
            let end = interval.to_us.div_ceil(SECOND_US).min(whole.end);
            for second in first..end {
                let span = Span::new(second * SECOND_US, (second + 1) * SECOND_US);
                let share = span.share_of(interval.from_us, interval.to_us);
                let sum = &mut seconds[(second - whole.start) as usize].1;
                sum.operations += interval.done as f64 * share;
                sum.rows += interval.rows as f64 * share;
                if interval.done > 0 {
                    sum.service_max_us = sum.service_max_us.max(Some(interval.service_max_us));
                    sum.response_max_us = sum.response_max_us.max(Some(interval.response_max_us));
                }
            }
        }
        seconds
    }

    /// Whether one client's scans are too long for a rate. The sum goes past the window's end,
    /// because the engine waits for the scans that are under way then.
    fn have_long_scans(&self, window: Span) -> bool {
        let clients = self.by_client(Span { to_us: i64::MAX, ..window });
        let mut clients = clients.values();
        clients.any(|scans| scans.service_sum_us > LONG_SCAN_US * scans.operations || scans.operations == 0.0)
    }
}

/// Sums over the operations of one kind in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Operations done, prorated where an interval straddles the span's edge.
    pub(crate) operations: f64,
    /// Operations that came due, prorated in the same way.
    pub(crate) due: f64,
    /// Rows of the operations done, prorated in the same way.
    pub(crate) rows: f64,
    /// Failed operations. The count of every interval that touches the span is whole, so that a
    /// failure is never rounded away.
    pub(crate) failed: u64,
    pub(crate) dropped: u64,
    pub(crate) errors: ErrorCounts,
    pub(crate) service_max_us: u64,
    /// Sum of service times, prorated like `operations`.
    pub(crate) service_sum_us: f64,
    /// Sum of the recorded cycle times, prorated in the same way.
    pub(crate) cycle_sum_us: f64,
    /// How long connections were lost, summed over all of them and prorated.
    pub(crate) down_us: f64,
}

impl Tally {
    fn add(&mut self, interval: &Interval, span: Span) {
        let share = span.share_of(interval.from_us, interval.to_us);
        if share == 0.0 {
            return;
        }
        self.operations += interval.done as f64 * share;
        self.due += interval.due as f64 * share;
        self.rows += interval.rows as f64 * share;
        self.service_sum_us += interval.service_sum_us as f64 * share;
        self.cycle_sum_us += interval.cycle_sum_us as f64 * share;
        self.down_us += interval.down_us as f64 * share;
        self.failed += interval.failed;
        self.dropped += interval.dropped;
        self.errors += interval.errors;
        self.service_max_us = self.service_max_us.max(interval.service_max_us);
    }
}

/// One whole second of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Second {
    pub(crate) operations: f64,
    pub(crate) rows: f64,
    /// Longest service time of the operations answered; `None` where none was, which differs from a
    /// time of 0.
    pub(crate) service_max_us: Option<u64>,
    pub(crate) response_max_us: Option<u64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval(from_us: u64, to_us: u64, client: u32, done: u64) -> Interval {
        let kind = "insert".to_owned();
        Interval { from_us, to_us, client, kind, due: done, done, rows: done * 50, ..Interval::default() }
    }

    fn sum_of(intervals: &[Interval], span: Span) -> Tally {
        Intervals::of(intervals, "insert").sum(span)
    }

    #[test]
    fn an_interval_that_straddles_the_windows_end_is_prorated_by_time() {
        // One second has 40 operations, and the window has its first 0.25 s: 10 operations, 500
        // rows.
        let intervals = [interval(0, 1_000_000, 1, 20), interval(1_000_000, 2_000_000, 1, 40)];
        let sum = sum_of(&intervals, Span::new(0, 1_250_000));
        assert_eq!((sum.operations, sum.rows), (20.0 + 10.0, 1000.0 + 500.0));
    }

    #[test]
    fn intervals_and_kinds_outside_the_span_do_not_count() {
        let mut other = interval(0, 1_000_000, 1, 7);
        other.kind = "query".to_owned();
        let intervals = [other, interval(2_000_000, 3_000_000, 1, 9)];
        assert_eq!(sum_of(&intervals, Span::new(0, 2_000_000)), Tally::default());
    }

    #[test]
    fn a_failure_in_a_straddling_interval_counts_whole() {
        let mut last = interval(0, 1_000_000, 1, 0);
        last.failed = 1;
        last.errors.refused = 1;
        let sum = sum_of(&[last], Span::new(0, 100_000));
        assert_eq!((sum.failed, sum.errors.refused), (1, 1));
    }

    #[test]
    fn seconds_sum_the_clients_and_keep_idle_seconds() {
        let intervals = [
            interval(0, 1_000_000, 1, 3),
            interval(0, 1_000_000, 2, 4),
            interval(2_000_000, 3_000_000, 2, 5),
            interval(3_000_000, 3_400_000, 2, 9),
        ];
        let window = Span::new(0, 3_400_000);
        let all: Vec<_> = Intervals::of(&intervals, "insert")
            .by_second(None, window)
            .into_iter()
            .map(|(second, sum)| (second, sum.operations))
            .collect();
        assert_eq!(all, [(0, 7.0), (1, 0.0), (2, 5.0)]);
        let first: Vec<_> = Intervals::of(&intervals, "insert")
            .by_second(Some(1), window)
            .into_iter()
            .map(|(_, sum)| sum.rows)
            .collect();
        assert_eq!(first, [150.0, 0.0, 0.0]);
    }

    #[test]
    fn a_second_without_an_answer_has_no_longest_time() {
        let timed = |second: u64, client, done, max_us| Interval {
            service_max_us: max_us,
            response_max_us: max_us + 5,
            ..interval(second * 1_000_000, (second + 1) * 1_000_000, client, done)
        };
        let intervals = [timed(0, 1, 3, 70), timed(0, 2, 1, 90), timed(1, 1, 0, 0), timed(2, 1, 1, 0)];
        let seconds = Intervals::of(&intervals, "insert").by_second(None, Span::new(0, 3_000_000));
        let times: Vec<_> =
            seconds.iter().map(|(_, sum)| (sum.service_max_us, sum.response_max_us)).collect();
        assert_eq!(times, [(Some(90), Some(95)), (None, None), (Some(0), Some(5))]);
    }

    #[test]
    fn an_interval_of_two_seconds_is_spread_over_both() {
        let intervals = [interval(0, 2_000_000, 1, 10)];
        let seconds = Intervals::of(&intervals, "insert").by_second(None, Span::new(0, 2_000_000));
        assert_eq!(seconds.iter().map(|(_, sum)| sum.operations).collect::<Vec<_>>(), [5.0, 5.0]);
    }

    proptest! {
        #[test]
        fn cutting_a_span_in_two_loses_and_invents_nothing(
            lengths in prop::collection::vec((1..2_000_000_u64, 0..500_u64), 1..20),
            cut_us in 0..40_000_000_u64,
        ) {
            let mut from_us = 0;
            let mut intervals = Vec::new();
            for (length_us, done) in &lengths {
                intervals.push(interval(from_us, from_us + length_us, 1, *done));
                from_us += length_us;
            }
            let cut_us = cut_us.min(from_us);
            let first = sum_of(&intervals, Span::new(0, cut_us)).operations;
            let second = sum_of(&intervals, Span::new(cut_us, from_us)).operations;
            let all: u64 = lengths.iter().map(|(_, done)| done).sum();
            prop_assert!((first + second - all as f64).abs() < 1e-6);
        }
    }
}
