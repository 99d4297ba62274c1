//! Measures how well a step kept what the plan asked of it:
//!
//! * An open loop has a schedule. The figures say how well it was kept, and whether the client
//!   itself was late.
//! * Background writes have a target. The figures are the rate that is judged against the target,
//!   which is the slowest client's, and the seconds in which the target was kept.

use std::collections::BTreeMap;

use dbdyno_record::{Interval, StepEvent, Target};

use crate::model::{Code, KindResult, Latency, Schedule, Warning};
use crate::window::{KindSummary, Span, WindowSummary};

/// Lag in microseconds that is accepted, whatever the response time.
const LAG_ALLOWED_US: f64 = 1_000.0;
/// Lag that is accepted, as a share of the response time at the same percentile.
const LAG_ALLOWED_SHARE: f64 = 0.10;
/// Smallest number of operations for which a lag is judged. With fewer, a p99 is one or two of
/// them.
const MIN_OPERATIONS: u64 = 200;

/// The schedule of one kind; `None` for a closed loop. `lag` is the lag in the common window.
pub(crate) fn schedule(step: &WindowSummary<'_>, kind: &KindSummary<'_>, lag: Latency) -> Option<Schedule> {
    let mut asked = None;
    for event in step.events {
        if let StepEvent::Scheduled { kind: of, process, operations_per_second, .. } = event
            && *of == kind.spec.kind
        {
            let (_, sum) = asked.get_or_insert((process.clone(), 0.0));
            *sum += operations_per_second;
        }
    }
    let (process, asked_per_second) = asked?;
    let backlog_max = backlog_max(kind, step.window);
    let due = kind.answered.due.round() as u64;
    let queue_growth = queue(kind, step.window.to_us) - queue(kind, step.window.from_us);
    Some(Schedule { process, asked_per_second, due, backlog_max, queue_growth, lag })
}

/// Operations of all clients together that were due and had not ended at a moment. Where no
/// interval of a client ends at that moment, its number is that of its last interval before.
fn queue(kind: &KindSummary<'_>, at_us: i64) -> i64 {
    let mut last: BTreeMap<u32, &Interval> = BTreeMap::new();
    let until = |interval: &&&Interval| Span::new(0, interval.to_us).to_us <= at_us;
    for interval in kind.intervals.0.iter().filter(until) {
        let known = last.entry(interval.client).or_insert(interval);
        if known.to_us <= interval.to_us {
            *known = interval;
        }
    }
    let open: u64 = last.into_values().map(|interval| interval.backlog + interval.in_flight).sum();
    i64::try_from(open).unwrap_or(i64::MAX)
}

/// Highest backlog of all clients together at the end of any interval in the window.
fn backlog_max(kind: &KindSummary<'_>, window: Span) -> u64 {
    let mut at: BTreeMap<u64, u64> = BTreeMap::new();
    let inside = |interval: &&&Interval| window.share_of(interval.from_us, interval.to_us) > 0.0;
    for interval in kind.intervals.0.iter().filter(inside) {
        *at.entry(interval.to_us).or_default() += interval.backlog;
    }
    at.into_values().max().unwrap_or(0)
}

/// Why the response times of a kind are the client's own; `None` when the client sent in time.
pub(crate) fn schedule_fault(kind: &KindResult) -> Option<Warning> {
    let lag = &kind.schedule.as_ref()?.lag;
    let allowed_us = LAG_ALLOWED_US.max(LAG_ALLOWED_SHARE * kind.response.p99_us as f64);
    (lag.count >= MIN_OPERATIONS && lag.p99_us as f64 > allowed_us).then(|| {
        Warning::reason(Code::ClientLate)
            .with("kind", kind.kind.as_str())
            .with("lag_ms", lag.p99_us as f64 / 1e3)
            .with("allowed_ms", allowed_us / 1e3)
            .with("allowed_share", LAG_ALLOWED_SHARE)
            .with("response_ms", kind.response.p99_us as f64 / 1e3)
    })
}

/// Rows that all clients would write per second if each wrote as little as the slowest. The
/// original's rate covers the time until its last client exits, so one slow client fails the step.
/// The common window ends when the first client is done, so the slowest client's rate is used for
/// all clients.
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
    let lowest = (1..=step.spec.clients).map(rate_of).reduce(f64::min);
    lowest.unwrap_or(0.0) * f64::from(step.spec.clients)
}

/// Rows in the statement that was sent in the window and is under way at its end. A client sends
/// few statements in a short step, and a single statement is several percent of the client's rows.
fn rows_under_way(step: &WindowSummary<'_>, kind: &KindSummary<'_>, client: u32) -> f64 {
    let mut own = kind.intervals.0.iter().filter(|interval| interval.client == client);
    let last = own.find(|interval| i64::try_from(interval.to_us) == Ok(step.window.to_us));
    last.map_or(0.0, |last| last.in_flight as f64 * f64::from(kind.spec.rows_per_operation))
}

/// Time from the window's beginning until the client was done, as the original measures it. The
/// window may cut the last burst of a client that ends a moment after the first client.
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
/// rows give 50, 100 or 150 rows in a second, depending on where that second begins. A second is
/// therefore kept if one more statement from each client would reach `share * target`.
pub(crate) fn seconds_on_target(step: &WindowSummary<'_>, target: &Target) -> Option<f64> {
    let kind = step.kind(&target.kind)?;
    let tolerance = f64::from(kind.spec.rows_per_operation) * f64::from(step.spec.clients);
    let min_rows = target.share * target.rows_per_second;
    let kept = kind.seconds.iter().filter(|(_, sum)| sum.rows + tolerance >= min_rows).count();
    (!kind.seconds.is_empty()).then(|| kept as f64 / kind.seconds.len() as f64)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Interval, StepRecord};

    use super::*;
    use crate::compare::rates::keeps_target;
    use crate::fixtures::{completed, in_window, interval, read_write_spec, read_write_step, shown, summary};
    use crate::window::counters::Counters;

    fn schedule_of(step: &StepRecord, kind: &str) -> Option<Schedule> {
        let summary = summary(step);
        schedule(&summary, summary.kind(kind).unwrap(), Latency::default())
    }

    fn asked(kind: &str, operations_per_second: f64) -> StepEvent {
        let process = "constant".to_owned();
        StepEvent::Scheduled { kind: kind.to_owned(), process, operations_per_second, connections: 2 }
    }

    #[test]
    fn the_backlog_is_that_of_all_clients_at_one_moment_of_the_window() {
        let mut step = read_write_step();
        step.events.push(asked("insert", 4.0));
        let backlogs = [(1, 1_000_000, 7), (2, 2_000_000, 5), (1, 2_000_000, 4), (1, 3_000_000, 90)];
        for interval in step.intervals.iter_mut().filter(|interval| interval.kind == "insert") {
            let found = backlogs
                .iter()
                .find(|(client, to_us, _)| (interval.client, interval.to_us) == (*client, *to_us));
            interval.backlog = found.map_or(0, |(.., backlog)| *backlog);
        }
        let found = schedule_of(&step, "insert").unwrap();
        assert_eq!((found.process.as_str(), found.asked_per_second, found.backlog_max), ("constant", 4.0, 9));
        assert!(schedule_of(&step, "query").is_none(), "a closed loop");
    }

    #[test]
    fn the_queue_grows_by_what_waits_or_is_under_way_from_one_edge_of_the_window_to_the_other() {
        let mut step = read_write_step();
        step.events.push(asked("insert", 4.0));
        for interval in step.intervals.iter_mut().filter(|interval| interval.kind == "insert") {
            // The numbers hold for each of the two clients.
            let waiting = [(1_000_000, 1), (2_000_000, 2), (2_500_000, 3), (3_000_000, 9)];
            let found = waiting.iter().find(|(to_us, _)| interval.to_us == *to_us);
            (interval.backlog, interval.in_flight) = (found.map_or(0, |(_, waiting)| *waiting), 1);
        }
        let growth = |from_us, to_us| {
            schedule_of(&in_window(step.clone(), (from_us, to_us)), "insert").unwrap().queue_growth
        };
        assert_eq!([growth(0, 2_500_000), growth(1_000_000, 2_500_000), growth(0, 3_000_000)], [8, 4, 20]);
        assert_eq!(growth(2_500_000, 2_500_000), 0);
        step.intervals.reverse();
        let reversed = schedule_of(&step, "insert").unwrap();
        assert_eq!(reversed.queue_growth, 8, "whatever the order of lines");
    }

    fn late(count: u64, lag_p99_us: u64, response_p99_us: u64) -> Option<Warning> {
        let lag = Latency { count, p99_us: lag_p99_us, ..Latency::default() };
        let (process, kind) = ("poisson".to_owned(), "query".to_owned());
        let schedule = Some(Schedule {
            process,
            asked_per_second: 1_000.0,
            due: 0,
            backlog_max: 0,
            queue_growth: 0,
            lag,
        });
        let response = Latency { p99_us: response_p99_us, ..Latency::default() };
        schedule_fault(&KindResult { kind, schedule, response, ..KindResult::default() })
    }

    #[test]
    fn a_client_that_was_late_by_more_than_it_may_is_named_with_both_times() {
        insta::assert_snapshot!(shown(&late(1_000, 1_400, 9_000).unwrap()), @"client-late allowed_ms: 1.0, allowed_share: 0.1, kind: query, lag_ms: 1.4, response_ms: 9.0");
    }

    #[test]
    fn a_short_lag_a_lag_of_slow_answers_and_a_lag_of_few_operations_are_no_fault() {
        assert_eq!(late(1_000, 1_000, 50), None); // 1 ms
        assert_eq!(late(1_000, 4_900, 50_000), None); // 10 % of 50 ms
        assert!(late(1_000, 5_100, 50_000).is_some());
        assert_eq!(late(199, 90_000, 50), None);
        assert_eq!(schedule_fault(&KindResult::default()), None); // no schedule
    }

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
        // The target is 200 rows/s for 2 clients with a share of 0.95, so 190 rows/s are enough.
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
