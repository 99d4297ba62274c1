//! Steps that end when the last connection has done its share: are they one piece of work, and
//! which of their seconds had all connections at work.
//!
//! A window that ends with the first connection has neither question: until then all are at work,
//! and it is as long as it is.

use std::collections::BTreeMap;

use dbdyno_record::{Interval, StepSpec, Unit, WindowRule};

use crate::model::TooFewOperations;
use crate::readings::rates::done;
use crate::readings::span::{Span, tally};

const SECOND_US: u64 = 1_000_000;

/// Fewer operations than these are a piece of work, or a few: an index build, one scan a
/// connection.
const MIN_OPERATIONS: f64 = 10.0;
/// Where fewer are answered in a second on average, whole seconds are counts of single answers.
const MIN_PER_SECOND: f64 = 10.0;

/// Fewer operations than these in a window decide nothing. The rate of n operations of random length
/// has a standard error of up to 1 / √n, 22 % of 20, and below that so skewed a distribution that
/// the intervals over a few blocks do not hold.
const MIN_FOR_VERDICT: f64 = 20.0;

/// Why a rate that a window cut off decides nothing. `None` for steps that end by a count, whose time
/// is the figure however few operations they have, and where nothing was answered, which is no rate.
pub(crate) fn too_few(spec: &StepSpec, intervals: &[Interval], window: Span) -> Option<TooFewOperations> {
    let is_rate = matches!(spec.headline.unit, Unit::Operations | Unit::Rows);
    if !is_rate || spec.window != WindowRule::FirstEnded || window.seconds() <= 0.0 {
        return None;
    }
    let kinds = spec.kinds.iter().filter(|kind| kind.kind == spec.headline.kind);
    let connections = kinds.map(|kind| kind.connections_per_client * spec.clients).sum::<u32>();
    let least = MIN_FOR_VERDICT.max(f64::from(connections));
    let operations = done(intervals, &spec.headline.kind, window).operations;
    let enough_seconds = window.seconds() * least / operations;
    (operations > 0.0 && operations < least).then_some(TooFewOperations { operations, least, enough_seconds })
}

/// Whether the step is one piece of work, or a few, so that it has no commits to speak of.
pub(crate) fn is_one_piece(spec: &StepSpec, intervals: &[Interval], window: Span) -> bool {
    spec.window == WindowRule::LastEnded && operations(spec, intervals, window) < MIN_OPERATIONS
}

/// Whether its answers are so few that single seconds say nothing, and that a counter's samples and
/// the answers between them need not cover the same work.
pub(crate) fn is_too_sparse(spec: &StepSpec, intervals: &[Interval], window: Span) -> bool {
    spec.window == WindowRule::LastEnded
        && operations(spec, intervals, window) < (MIN_PER_SECOND * window.seconds()).max(MIN_OPERATIONS)
}

fn operations(spec: &StepSpec, intervals: &[Interval], window: Span) -> f64 {
    tally(intervals, &spec.headline.kind, window).operations
}

/// The whole second in which the first client had done its share; `None` where all were at work in
/// all whole seconds of the window.
///
/// Each connection has its share of the operations, or of the rows to load. One whose answers came
/// later than the others' goes on alone, and seconds of one connection of many are no stalls of the
/// server. A client that is stuck is at work: its last answer is yet to come. Of more than 64
/// connections some are one client in the record, which ends with the last of them.
pub(crate) fn tail_from(spec: &StepSpec, intervals: &[Interval], window: Span) -> Option<u64> {
    if spec.window != WindowRule::LastEnded {
        return None;
    }
    let mut last_answers: BTreeMap<u32, u64> = BTreeMap::new();
    for interval in intervals.iter().filter(|interval| interval.kind == spec.headline.kind) {
        if interval.done + interval.failed + interval.dropped > 0 {
            let last = last_answers.entry(interval.client).or_default();
            *last = (*last).max(interval.from_us / SECOND_US);
        }
    }
    last_answers.into_values().min().filter(|second| window.whole_seconds().contains(second))
}

/// The part of the window in which all clients were at work.
pub(crate) fn all_at_work(spec: &StepSpec, intervals: &[Interval], window: Span) -> Span {
    match tail_from(spec, intervals, window) {
        Some(second) => window.overlap(Span::new(0, second * SECOND_US)),
        None => window,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{index_spec, interval, load_spec, scan_step};

    /// Updates that end by a count: operations of each second of each client.
    fn counted(clients: &[&[u64]]) -> (StepSpec, Vec<Interval>) {
        let mut spec = load_spec();
        spec.window = WindowRule::LastEnded;
        let of_client = |(client, seconds): (u32, &&[u64])| -> Vec<Interval> {
            let of_second = |(second, done): (u64, &u64)| {
                interval(second * SECOND_US, (second + 1) * SECOND_US, client, "insert", *done, 0)
            };
            (0..).zip(seconds.iter()).map(of_second).collect()
        };
        (spec, (1..).zip(clients).flat_map(of_client).collect())
    }

    #[test]
    fn seconds_in_which_a_client_had_done_its_share_are_the_tail() {
        let (spec, intervals) = counted(&[&[20, 20, 20, 0, 0], &[15, 15, 15, 15, 0]]);
        // Client 1 ended somewhere in second 2. Second 4 of the window had no one at work, but for
        // what the step waits for.
        let window = Span::new(0, 5_000_000);
        assert_eq!(tail_from(&spec, &intervals, window), Some(2));
        assert_eq!(all_at_work(&spec, &intervals, window), Span::new(0, 2_000_000));
        assert_eq!(all_at_work(&load_spec(), &intervals, window), window, "the first client ends the window");
    }

    #[test]
    fn clients_that_end_in_the_same_last_second_leave_no_tail() {
        let (spec, intervals) = counted(&[&[20, 20, 7], &[20, 20, 3]]);
        let window = Span::new(0, 2_700_000);
        assert_eq!(tail_from(&spec, &intervals, window), None);
        assert_eq!(all_at_work(&spec, &intervals, window), window);
    }

    #[test]
    fn a_stall_of_all_before_their_last_answers_is_no_tail() {
        let (spec, intervals) = counted(&[&[20, 0, 0, 0, 1], &[20, 0, 0, 0, 1]]);
        assert_eq!(tail_from(&spec, &intervals, Span::new(0, 4_100_000)), None);
    }

    #[test]
    fn a_window_with_less_than_twenty_operations_or_one_per_connection_decides_nothing() {
        let found = |connections: usize, scan_us: u64| {
            let step = scan_step(&vec![(scan_us, 1); connections], (0, 10_000_000));
            too_few(&step.spec, &step.intervals, Span::new(0, 10_000_000))
        };
        assert_eq!(found(1, 500_000), None);
        let few = found(1, 1_000_000).unwrap();
        assert_eq!((few.operations, few.least, few.enough_seconds), (10.0, 20.0, 20.0));
        let many_connections = found(64, 15_000_000).unwrap();
        assert!((many_connections.operations - 64.0 / 1.5).abs() < 1e-6, "{many_connections:?}");
        assert_eq!(many_connections.least, 64.0);
        let (spec, intervals) = counted(&[&[1, 0, 0]]);
        assert_eq!(too_few(&spec, &intervals, Span::new(0, 3_000_000)), None, "it ends by a count");
    }

    #[test]
    fn few_operations_are_a_piece_of_work_and_ten_a_second_fill_their_seconds() {
        let of = |clients: &[&[u64]], to_us| {
            let (spec, intervals) = counted(clients);
            let window = Span::new(0, to_us);
            (is_one_piece(&spec, &intervals, window), is_too_sparse(&spec, &intervals, window))
        };
        assert_eq!(of(&[&[9]], 1_000_000), (true, true));
        assert_eq!(of(&[&[0, 0, 0, 12]], 4_000_000), (false, true));
        assert_eq!(of(&[&[9, 8, 9, 8], &[9, 8, 9, 8]], 4_000_000), (false, false));
        let window = Span::new(0, 4_000_000);
        assert!(is_one_piece(&index_spec(), &[], window));
        assert!(!is_one_piece(&load_spec(), &[], window) && !is_too_sparse(&load_spec(), &[], window));
    }
}
