//! How an open loop kept its schedule: what was asked for, what became of it, and whether the
//! client itself was late.

use std::collections::BTreeMap;

use dbdyno_record::{Interval, StepEvent};

use crate::model::{Code, KindResult, Latency, Schedule, Warning};
use crate::window::{KindSummary, Span, WindowSummary};

/// Lag in microseconds that is accepted, whatever the response time.
const LAG_ALLOWED_US: f64 = 1_000.0;
/// Lag that is accepted, as a share of the response time at the same percentile.
const LAG_ALLOWED_SHARE: f64 = 0.10;
/// With fewer operations, a p99 is one or two of them.
const LEAST_OPERATIONS: u64 = 200;

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

/// Operations of all clients together that were due and not ended at a moment. Where no interval
/// ends then, it is the number at the last end before.
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
pub(crate) fn fault(kind: &KindResult) -> Option<Warning> {
    let lag = &kind.schedule.as_ref()?.lag;
    let allowed_us = LAG_ALLOWED_US.max(LAG_ALLOWED_SHARE * kind.response.p99_us as f64);
    (lag.count >= LEAST_OPERATIONS && lag.p99_us as f64 > allowed_us).then(|| {
        Warning::reason(Code::ClientLate)
            .with("kind", kind.kind.as_str())
            .with("lag_ms", lag.p99_us as f64 / 1e3)
            .with("allowed_ms", allowed_us / 1e3)
            .with("allowed_share", LAG_ALLOWED_SHARE)
            .with("response_ms", kind.response.p99_us as f64 / 1e3)
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::StepRecord;

    use super::*;
    use crate::fixtures::{in_window, read_write_step, shown, summary};

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
    fn the_queue_grows_by_what_waits_or_is_on_its_way_from_one_edge_of_the_window_to_the_other() {
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
        fault(&KindResult { kind, schedule, response, ..KindResult::default() })
    }

    #[test]
    fn a_client_that_was_late_by_more_than_it_may_is_named_with_both_times() {
        insta::assert_snapshot!(shown(&late(1_000, 1_400, 9_000).unwrap()), @"client-late allowed_ms: 1.0, allowed_share: 0.1, kind: query, lag_ms: 1.4, response_ms: 9.0");
    }

    #[test]
    fn short_lag_lag_of_slow_answers_and_a_handful_of_operations_are_no_fault() {
        assert_eq!(late(1_000, 1_000, 50), None); // 1 ms
        assert_eq!(late(1_000, 4_900, 50_000), None); // 10 % of 50 ms
        assert!(late(1_000, 5_100, 50_000).is_some());
        assert_eq!(late(199, 90_000, 50), None);
        assert_eq!(fault(&KindResult::default()), None); // no schedule
    }
}
