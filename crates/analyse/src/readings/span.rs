//! A stretch of a step's time, and what operations did in it.

use std::collections::BTreeMap;
use std::ops::Range;

use dbdyno_record::{ErrorCounts, Interval};

const SECOND_US: u64 = 1_000_000;

/// From one moment to another, in microseconds since the step's barrier. Counter samples may lie
/// before the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from_us: i64,
    pub(crate) to_us: i64,
}

impl Span {
    /// All of a step, whether it came to a window or not.
    pub(crate) const ALWAYS: Self = Self { from_us: 0, to_us: i64::MAX };

    pub(crate) fn new(from_us: u64, to_us: u64) -> Self {
        Self { from_us: signed(from_us), to_us: signed(to_us) }
    }

    pub(crate) fn seconds(self) -> f64 {
        (self.to_us - self.from_us).max(0) as f64 / SECOND_US as f64
    }

    /// What two spans have in common; of length zero when they do not meet.
    pub(crate) fn overlap(self, other: Self) -> Self {
        let from_us = self.from_us.max(other.from_us);
        Self { from_us, to_us: self.to_us.min(other.to_us).max(from_us) }
    }

    /// Fraction of `[from_us, to_us)` that lies in this span: 1 for one wholly inside, 0 for one
    /// outside.
    ///
    /// An interval that straddles an edge is thereby prorated, as if its work were spread evenly
    /// over it.
    pub(crate) fn share_of(self, from_us: u64, to_us: u64) -> f64 {
        let part = Self::new(from_us, to_us);
        if part.from_us >= part.to_us {
            let inside = self.from_us <= part.from_us && part.to_us <= self.to_us;
            return if inside { 1.0 } else { 0.0 };
        }
        self.overlap(part).seconds() / part.seconds()
    }

    /// Numbers of the whole seconds that lie inside: second 3 is `[3 s, 4 s)`.
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

/// Length of what spans of this begin and end cover together.
pub(crate) fn covered_us(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (from, to) in spans {
        covered += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    covered
}

/// What the operations of one kind did in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Done, prorated where an interval straddles the span's edge.
    pub(crate) operations: f64,
    /// Operations that came due, prorated in the same way.
    pub(crate) due: f64,
    /// Rows of the operations done, prorated in the same way.
    pub(crate) rows: f64,
    /// Whole counts of every interval that touches the span: a failure is never rounded away.
    pub(crate) failed: u64,
    pub(crate) dropped: u64,
    pub(crate) errors: ErrorCounts,
    pub(crate) service_max_us: u64,
    /// Prorated, as are the two counts.
    pub(crate) service_sum_us: f64,
    /// As the record has it, prorated.
    pub(crate) cycle_sum_us: f64,
    /// How long connections were lost, the sum over all of them; prorated.
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

/// Adds up the intervals of `kind` in `span`.
pub(crate) fn tally(intervals: &[Interval], kind: &str, span: Span) -> Tally {
    let mut sum = Tally::default();
    for interval in intervals.iter().filter(|interval| interval.kind == kind) {
        sum.add(interval, span);
    }
    sum
}

/// The same for each client apart, by its number; of one that did nothing in `span` too.
pub(crate) fn tally_by_client(intervals: &[Interval], kind: &str, span: Span) -> BTreeMap<u32, Tally> {
    let mut sums: BTreeMap<u32, Tally> = BTreeMap::new();
    for interval in intervals.iter().filter(|interval| interval.kind == kind) {
        sums.entry(interval.client).or_default().add(interval, span);
    }
    sums
}

/// One whole second of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Second {
    pub(crate) operations: f64,
    pub(crate) rows: f64,
    /// Greatest times of the operations answered; `None` where none was, which is not a time of 0.
    pub(crate) service_max_us: Option<u64>,
    pub(crate) response_max_us: Option<u64>,
}

/// What `kind` did in each whole second of `window`: one entry a second, also where nothing was
/// done.
///
/// `client` picks one client; `None` sums all. An interval longer than a second is spread over the
/// seconds it covers.
pub(crate) fn by_second(
    intervals: &[Interval],
    kind: &str,
    client: Option<u32>,
    window: Span,
) -> Vec<(u64, Second)> {
    let whole = window.whole_seconds();
    let mut seconds: Vec<_> = whole.clone().map(|second| (second, Second::default())).collect();
    let wanted = |i: &&Interval| i.kind == kind && client.is_none_or(|client| client == i.client);
    for interval in intervals.iter().filter(wanted) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval(from_us: u64, to_us: u64, client: u32, done: u64) -> Interval {
        let kind = "insert".to_owned();
        Interval { from_us, to_us, client, kind, due: done, done, rows: done * 50, ..Interval::default() }
    }

    #[test]
    fn time_that_spans_share_counts_once() {
        assert_eq!(covered_us(vec![(10, 20), (0, 5), (12, 25), (25, 26)]), 5 + 16);
    }

    #[test]
    fn an_interval_that_straddles_the_windows_end_is_prorated_by_time() {
        // 1 s of 40 operations, of which the window has the first 0.25 s: 10 operations, 500 rows.
        let intervals = [interval(0, 1_000_000, 1, 20), interval(1_000_000, 2_000_000, 1, 40)];
        let sum = tally(&intervals, "insert", Span::new(0, 1_250_000));
        assert_eq!((sum.operations, sum.rows), (20.0 + 10.0, 1000.0 + 500.0));
    }

    #[test]
    fn intervals_and_kinds_outside_the_span_do_not_count() {
        let mut other = interval(0, 1_000_000, 1, 7);
        other.kind = "query".to_owned();
        let intervals = [other, interval(2_000_000, 3_000_000, 1, 9)];
        assert_eq!(tally(&intervals, "insert", Span::new(0, 2_000_000)), Tally::default());
    }

    #[test]
    fn a_failure_in_a_straddling_interval_counts_whole() {
        let mut last = interval(0, 1_000_000, 1, 0);
        last.failed = 1;
        last.errors.refused = 1;
        let sum = tally(&[last], "insert", Span::new(0, 100_000));
        assert_eq!((sum.failed, sum.errors.refused), (1, 1));
    }

    #[test]
    fn only_seconds_wholly_inside_the_window_are_whole_seconds() {
        assert_eq!(Span::new(0, 3_999_999).whole_seconds(), 0..3);
        assert_eq!(Span::new(250_000, 4_000_000).whole_seconds(), 1..4);
        assert_eq!(Span::new(250_000, 900_000).whole_seconds().count(), 0);
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
        let all: Vec<_> = by_second(&intervals, "insert", None, window)
            .into_iter()
            .map(|(second, sum)| (second, sum.operations))
            .collect();
        assert_eq!(all, [(0, 7.0), (1, 0.0), (2, 5.0)]);
        let first: Vec<_> =
            by_second(&intervals, "insert", Some(1), window).into_iter().map(|(_, sum)| sum.rows).collect();
        assert_eq!(first, [150.0, 0.0, 0.0]);
    }

    #[test]
    fn a_second_without_an_answer_has_no_greatest_time() {
        let timed = |second: u64, client, done, max_us| Interval {
            service_max_us: max_us,
            response_max_us: max_us + 5,
            ..interval(second * 1_000_000, (second + 1) * 1_000_000, client, done)
        };
        let intervals = [timed(0, 1, 3, 70), timed(0, 2, 1, 90), timed(1, 1, 0, 0), timed(2, 1, 1, 0)];
        let seconds = by_second(&intervals, "insert", None, Span::new(0, 3_000_000));
        let times: Vec<_> =
            seconds.iter().map(|(_, sum)| (sum.service_max_us, sum.response_max_us)).collect();
        assert_eq!(times, [(Some(90), Some(95)), (None, None), (Some(0), Some(5))]);
    }

    #[test]
    fn an_interval_of_two_seconds_is_spread_over_both() {
        let seconds = by_second(&[interval(0, 2_000_000, 1, 10)], "insert", None, Span::new(0, 2_000_000));
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
            let first = tally(&intervals, "insert", Span::new(0, cut_us)).operations;
            let second = tally(&intervals, "insert", Span::new(cut_us, from_us)).operations;
            let all: u64 = lengths.iter().map(|(_, done)| done).sum();
            prop_assert!((first + second - all as f64).abs() < 1e-6);
        }
    }
}
