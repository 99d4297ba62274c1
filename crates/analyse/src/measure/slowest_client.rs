//! The rate that is judged against a background target: that of the slowest client.

use dbdyno_record::{StepEvent, StepRecord, Target};

use crate::readings::rates::per_second;
use crate::readings::span::{Span, tally_by_client};

/// What all clients would write a second if each wrote as little as the slowest. The original's
/// rate is over the time to its last client's exit, so that one slow client fails the step; the
/// common window ends with the first.
pub(crate) fn judged_rate(step: &StepRecord, target: &Target, window: Span) -> f64 {
    let inside = tally_by_client(&step.intervals, &target.kind, window);
    let until_done = tally_by_client(&step.intervals, &target.kind, Span { to_us: i64::MAX, ..window });
    let rate_of = |client: u32| {
        let rows =
            inside.get(&client).map_or(0.0, |sum| sum.rows) + rows_under_way(step, target, client, window);
        let own = own_time(step, target, client, window)
            .zip(until_done.get(&client))
            .map_or(0.0, |(time, sum)| per_second(sum.rows, time));
        per_second(rows, window).max(own)
    };
    let least = (1..=step.spec.clients).map(rate_of).reduce(f64::min);
    least.unwrap_or(0.0) * f64::from(step.spec.clients)
}

/// Rows of the statement that was sent in the window and is under way at its end. Of a client's few
/// statements in a short step one is several percent.
fn rows_under_way(step: &StepRecord, target: &Target, client: u32, window: Span) -> f64 {
    let kind = step.spec.kinds.iter().find(|kind| kind.kind == target.kind);
    let mut own =
        step.intervals.iter().filter(|interval| interval.client == client && interval.kind == target.kind);
    let last = own.find(|interval| i64::try_from(interval.to_us) == Ok(window.to_us));
    last.zip(kind).map_or(0.0, |(last, kind)| last.in_flight as f64 * f64::from(kind.rows_per_operation))
}

/// From the window's begin to when the client was done, which is the time that the original takes.
/// The window may cut the last burst of a client that is a moment after the first.
fn own_time(step: &StepRecord, target: &Target, client: u32, window: Span) -> Option<Span> {
    let ends = step.events.iter().filter_map(|event| match event {
        StepEvent::LaneEnded { at_us, client: of, kind, .. } if *of == client && *kind == target.kind => {
            Some(*at_us)
        }
        _ => None,
    });
    let to_us = i64::try_from(ends.max()?).ok()?;
    (to_us > window.from_us).then_some(Span { to_us, ..window })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Interval;

    use super::*;
    use crate::fixtures::{interval, read_write_step};
    use crate::readings::rates::keeps_target;

    const WINDOW: Span = Span { from_us: 0, to_us: 10_000_000 };

    /// `qr100` of four clients, target 400 rows/s, over a window of 10 s. The last client writes
    /// `done` of its 20 statements in it and has one more under way where `in_flight` says so; the
    /// others write all.
    fn step(done: u64, in_flight: u64) -> StepRecord {
        let mut step = read_write_step();
        step.spec.clients = 4;
        step.spec.target.as_mut().unwrap().rows_per_second = 400.0;
        let counted = |client: u32, done: u64| interval(0, 10_000_000, client, "insert", done, done * 50);
        step.intervals = (1..=3).map(|client| counted(client, 20)).collect();
        step.intervals.push(Interval { in_flight, ..counted(4, done) });
        step
    }

    fn judged(step: &StepRecord) -> f64 {
        judged_rate(step, step.spec.target.as_ref().unwrap(), WINDOW)
    }

    #[test]
    fn one_slow_client_misses_the_target_of_all() {
        // 17 of 20 statements are 85 % of the client's own part; all together wrote 385 of 400 rows
        // a second, 96 %.
        assert_eq!(judged(&step(17, 0)), 340.0);
        assert!(!keeps_target(340.0, 400.0, 0.95) && keeps_target(385.0, 400.0, 0.95));
        assert_eq!(judged(&step(19, 0)), 380.0);
        assert_eq!(judged(&step(20, 0)), 400.0);
    }

    #[test]
    fn a_statement_under_way_at_the_end_was_sent_in_time() {
        assert_eq!((judged(&step(18, 0)), judged(&step(18, 1))), (360.0, 380.0));
    }

    #[test]
    fn a_client_that_is_done_a_moment_later_is_judged_by_its_own_time() {
        let until = |at_us: u64| {
            let mut step = step(10, 1);
            step.intervals.push(interval(10_000_000, at_us, 4, "insert", 10, 500));
            let kind = "insert".to_owned();
            step.events.push(StepEvent::LaneEnded { at_us, client: 4, kind, operations: 20 });
            judged(&step).round()
        };
        // 1000 rows in so many seconds, four times.
        assert_eq!((until(10_100_000), until(12_500_000)), (396.0, 320.0));
    }

    #[test]
    fn a_client_that_never_wrote_misses_the_target_of_all() {
        let mut step = step(20, 0);
        step.intervals.pop();
        assert_eq!(judged(&step), 0.0);
    }
}
