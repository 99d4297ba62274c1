//! A step's target for background writes: the rate that is judged against it, which is the slowest
//! client's, and the seconds in which it was kept.

use dbdyno_record::{StepEvent, Target};

use crate::window::{KindSummary, Span, WindowSummary};

/// Rows that all clients would write per second if each wrote as little as the slowest. The
/// original computes the rate over the time until its last client's exit, so that one slow client
/// fails the step. The common window ends with the first client, so the slowest one stands for all.
pub(crate) fn judged_rate(step: &WindowSummary<'_>, target: &Target) -> f64 {
    let Some(kind) = step.kind(&target.kind) else { return 0.0 };
    let inside = kind.intervals.by_client(step.window);
    let until_done = kind.intervals.by_client(Span { to_us: i64::MAX, ..step.window });
    let rate_of = |client: u32| {
        let rows = inside.get(&client).map_or(0.0, |sum| sum.rows) + rows_under_way(step, kind, client);
        let own = own_time(step, target, client)
            .zip(until_done.get(&client))
            .map_or(0.0, |(time, sum)| time.rate_of(sum.rows));
        step.window.rate_of(rows).max(own)
    };
    let least = (1..=step.spec.clients).map(rate_of).reduce(f64::min);
    least.unwrap_or(0.0) * f64::from(step.spec.clients)
}

/// Rows in the statement that was sent in the window and is under way at its end. A client sends
/// few statements in a short step, and one of them is several percent.
fn rows_under_way(step: &WindowSummary<'_>, kind: &KindSummary<'_>, client: u32) -> f64 {
    let mut own = kind.intervals.0.iter().filter(|interval| interval.client == client);
    let last = own.find(|interval| i64::try_from(interval.to_us) == Ok(step.window.to_us));
    last.map_or(0.0, |last| last.in_flight as f64 * f64::from(kind.spec.rows_per_operation))
}

/// Time from the window's begin until the client was done, which is the time that the original
/// takes. The window may cut the last burst of a client that ends a moment after the first.
fn own_time(step: &WindowSummary<'_>, target: &Target, client: u32) -> Option<Span> {
    let ends = step.events.iter().filter_map(|event| match event {
        StepEvent::ConnectionEnded { at_us, client: of, kind, .. }
            if *of == client && *kind == target.kind =>
        {
            Some(*at_us)
        }
        _ => None,
    });
    let to_us = i64::try_from(ends.max()?).ok()?;
    (to_us > step.window.from_us).then_some(Span { to_us, ..step.window })
}

/// Share of the window's whole seconds in which the background rate was kept; `None` when there is
/// no whole second.
///
/// A constant rate of few large statements comes in coarse steps: 2 statements per second of 50
/// rows give 50, 100 or 150 rows in a second, depending on where its borders fall. A second is
/// therefore kept if one more statement from each client would reach `share * target`.
pub(crate) fn seconds_on_target(step: &WindowSummary<'_>, target: &Target) -> Option<f64> {
    let kind = step.kind(&target.kind)?;
    let tolerance = f64::from(kind.spec.rows_per_operation) * f64::from(step.spec.clients);
    let least = target.share * target.rows_per_second;
    let kept = kind.seconds.iter().filter(|(_, sum)| sum.rows + tolerance >= least).count();
    (!kind.seconds.is_empty()).then(|| kept as f64 / kind.seconds.len() as f64)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Interval, StepRecord};

    use super::*;
    use crate::compare::targets::keeps_target;
    use crate::fixtures::{completed, in_window, interval, read_write_spec, read_write_step, summary};
    use crate::window::counters::Counters;

    /// `qr100` with four clients and a target of 400 rows/s, over a window of 10 s. The last client
    /// writes `done` of its 20 statements in the window, and has one more under way where
    /// `in_flight` says so. The others write all of theirs.
    fn step(done: u64, in_flight: u64) -> StepRecord {
        let mut step = read_write_step();
        step.spec.clients = 4;
        step.spec.target.as_mut().unwrap().rows_per_second = 400.0;
        let counted = |client: u32, done: u64| interval(0, 10_000_000, client, "insert", done, done * 50);
        step.intervals = (1..=3).map(|client| counted(client, 20)).collect();
        step.intervals.push(Interval { in_flight, ..counted(4, done) });
        in_window(step, (0, 10_000_000))
    }

    fn judged(step: &StepRecord) -> f64 {
        judged_rate(&summary(step), step.spec.target.as_ref().unwrap())
    }

    #[test]
    fn one_slow_client_misses_the_target_of_all() {
        // 17 of 20 statements are 85 % of the client's own part. All together wrote 385 of 400 rows
        // per second, 96 %.
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
            step.events.push(StepEvent::ConnectionEnded { at_us, client: 4, kind, operations: 20 });
            judged(&step).round()
        };
        // Each of four clients writes 1000 rows in this many seconds.
        assert_eq!((until(10_100_000), until(12_500_000)), (396.0, 320.0));
    }

    #[test]
    fn a_client_that_never_wrote_misses_the_target_of_all() {
        let mut step = step(20, 0);
        step.intervals.pop();
        assert_eq!(judged(&step), 0.0);
    }

    #[test]
    fn a_second_short_of_one_statement_for_each_client_still_keeps_the_target() {
        // The target is 200 rows/s for 2 clients with a share of 0.95, so that the least is 190.
        // The tolerance is 2 x 50 = 100 rows.
        let mut spec = read_write_spec();
        spec.target.as_mut().unwrap().rows_per_second = 200.0;
        let target = spec.target.clone().unwrap();
        let second =
            |n: u64, rows| interval(n * 1_000_000, (n + 1) * 1_000_000, 1, "insert", rows / 50, rows);
        let intervals = vec![second(0, 200), second(1, 100), second(2, 50), second(3, 300)];
        let step = completed(spec, intervals, (0, 4_500_000), Counters::new());
        assert_eq!(seconds_on_target(&summary(&step), &target), Some(0.75));
        assert_eq!(seconds_on_target(&summary(&in_window(step, (0, 900_000))), &target), None);
    }
}
