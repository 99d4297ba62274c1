//! Checks a step's operations: whether rate and times agree, whether the window began with a
//! backlog, whether operations failed, and whether queries got the same answers as for the base.
//!
//! Little's law says that connections = rate × mean time of an operation. Each connection of a
//! closed loop is always in the cycle of one operation: it thinks, prepares, sends or waits for the
//! answer. If rate times mean time does not give the number of connections, operations or time were
//! lost.
//!
//! If an open loop begins its window with operations that the warm-up left waiting, its response
//! times are those of that queue, and not those of the requested load.
//!
//! Where many operations failed, a rate and percentiles over the answered operations alone make the
//! server look better than it is. Where answers differ, it is not known which of the two is wrong,
//! and their times must not be compared as if they were for the same query.

use dbdyno_record::{ErrorClass, StepEvent};

use crate::model::{Code, Execution, KindResult, StepRun, Warning};
use crate::window::{KindSummary, Span, WindowSummary};

/// Largest accepted difference between the connections that follow from rate and mean time and
/// those that ran.
const MAX_DIFFERENCE: f64 = 0.03;
/// Seconds of each connection's time that the check leaves out. A connection's end is recorded a
/// moment after its last answer, and later where its thread waits for a CPU.
const END_SECONDS: f64 = 0.01;

/// Why the rate of this kind cannot be right. `None` where it agrees with its times, where nothing
/// was answered, and for operations that come by a schedule.
pub(crate) fn littles_law_fault(step: &WindowSummary<'_>, kind: &KindSummary<'_>) -> Option<Warning> {
    let (done, window) = (kind.done, step.window);
    if !kind.spec.is_closed_loop() || window.seconds() <= 0.0 || done.operations <= 0.0 {
        return None;
    }
    let expected = open_connections(step, kind) - done.down_us / 1e6 / window.seconds();
    let rate = window.rate_of(done.operations);
    let cycle_us = done.cycle_sum_us / done.operations;
    let found = rate * cycle_us / 1e6;
    let allowed = MAX_DIFFERENCE * expected + END_SECONDS / window.seconds() * expected;
    ((found - expected).abs() > allowed).then(|| {
        Warning::reason(Code::LittlesLaw)
            .with("kind", kind.spec.kind.as_str())
            .with("rate", rate)
            .with("cycle_ms", cycle_us / 1e3)
            .with("found", found)
            .with("expected", expected)
            .with("most", MAX_DIFFERENCE)
    })
}

/// Mean number of connections of this kind that had not ended in the window.
fn open_connections(step: &WindowSummary<'_>, kind: &KindSummary<'_>) -> f64 {
    let after_end = step.events.iter().filter_map(|event| match event {
        StepEvent::ConnectionEnded { at_us, kind: of, .. } if *of == kind.spec.kind => {
            Some(Span::new(*at_us, u64::MAX).overlap(step.window).seconds())
        }
        _ => None,
    });
    f64::from(kind.connections) - after_end.sum::<f64>() / step.window.seconds()
}

/// Largest part of the schedule that may wait when the window begins, in seconds.
const MAX_WAITING_SECONDS: f64 = 0.010;
/// Alternatively this many service times may wait, because a server that keeps up at a high load
/// has a queue at any moment.
const MAX_WAITING_SERVICE_TIMES: f64 = 10.0;
/// If the queue grows in the window by more than this share of the operations due, the schedule is
/// not kept. That is reported separately.
const MAX_QUEUE_GROWTH: f64 = 0.01;

/// Why the response times of `kind` say nothing about its schedule; `None` where no more operations
/// waited at the window's beginning than are accepted.
pub(crate) fn backlog_fault(step: &WindowSummary<'_>, kind: &KindResult) -> Option<Warning> {
    let schedule = kind.schedule.as_ref().filter(|schedule| schedule.asked_per_second > 0.0)?;
    let intervals = step.kind(&kind.kind)?.intervals.0.iter();
    let at_beginning = intervals.filter(|interval| Span::new(0, interval.to_us).to_us == step.window.from_us);
    let waiting: u64 = at_beginning.map(|interval| interval.backlog).sum();
    let most_seconds = MAX_WAITING_SECONDS.max(MAX_WAITING_SERVICE_TIMES * kind.service.mean_us / 1e6);
    let most = (schedule.asked_per_second * most_seconds).max(1.0);
    let grows = schedule.queue_growth as f64 > MAX_QUEUE_GROWTH * schedule.due as f64;
    (waiting as f64 > most && !grows).then(|| {
        Warning::reason(Code::WarmupBacklog)
            .with("kind", kind.kind.as_str())
            .with("waiting", waiting)
            .with("waiting_ms", waiting as f64 / schedule.asked_per_second * 1e3)
            .with("most_ms", most_seconds * 1e3)
    })
}

/// Share of a step's operations that may fail. The step's p99 is then still that of nearly all of
/// them.
const MAX_FAILED_SHARE: f64 = 0.01;

/// Why the step's figures must not be used, if the server refused too many operations of `kind`.
/// Operations that were lost with their connection do not count: a plan that opens connections
/// again asks for the outage, and its length is reported.
pub(crate) fn refused_fault(kind: &KindResult, events: &[StepEvent]) -> Option<Warning> {
    let failed = kind.failed.saturating_sub(kind.errors.lost);
    let ended = kind.operations + failed;
    let share = failed as f64 / ended as f64;
    (failed > 0 && share > MAX_FAILED_SHARE).then(|| {
        Warning::reason(Code::OperationsFailed)
            .with("kind", kind.kind.as_str())
            .with("share", share)
            .with("most", MAX_FAILED_SHARE)
            .with("failed", failed)
            .with("ended", ended)
            .with_some("error", first_error(&kind.kind, events))
    })
}

/// The first error as text, such as `canceling statement due to statement timeout (57014)`.
fn first_error(kind: &str, events: &[StepEvent]) -> Option<String> {
    events.iter().find_map(|event| match event {
        StepEvent::Error {
            kind: of, class: ErrorClass::Refused | ErrorClass::Retry, code, message, ..
        } if of == kind => Some(format!("{message} ({code})")),
        _ => None,
    })
}

/// The queries that a run answered differently from the base's runs; one reason per query.
///
/// A run with several streams is not checked. Its streams run at the same time as refresh
/// functions, which insert and delete rows, so the answers depend on the order.
pub(crate) fn answer_faults(run: &StepRun, base: &[StepRun], base_name: &str) -> Vec<Warning> {
    let has_streams = run.executions.iter().any(|execution| execution.client > 1);
    let known = |name: &str| {
        let all = base.iter().flat_map(|run| &run.executions);
        all.filter(|execution| execution.name == name).find_map(|execution| execution.answer.as_ref())
    };
    let fault = |execution: &Execution| {
        let (answer, known) = (execution.answer.as_ref()?, known(&execution.name)?);
        (!answer.agrees(known)).then(|| {
            Warning::reason(Code::AnswerDiffers)
                .with("query", execution.name.as_str())
                .with("begins", answer.sample.first().cloned().unwrap_or_default())
                .with("base", base_name)
                .with("base_begins", known.sample.first().cloned().unwrap_or_default())
        })
    };
    if has_streams {
        return Vec::new();
    }
    let mut faults: Vec<Warning> = run.executions.iter().filter_map(fault).collect();
    faults.dedup();
    faults
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{AnswerDigest, ErrorClass, StepEvent, StepRecord};

    use super::*;
    use crate::fixtures::{read_write_step, scan_step, shown, shown_all, step_run, summary, validity_of};
    use crate::model::Validity;

    const SECOND: u64 = 1_000_000;

    fn found(step: &StepRecord) -> Option<String> {
        let summary = summary(step);
        littles_law_fault(&summary, &summary.kinds[0]).map(|warning| shown(&warning))
    }

    #[test]
    fn operations_counted_by_their_share_of_the_window_fill_it() {
        for cycle_us in [1_000, 340_000, 490_000, 1_450_000, 1_650_000, 90 * SECOND] {
            let step = scan_step(&[(cycle_us, 1); 8], (SECOND, 6 * SECOND));
            assert_eq!(found(&step), None, "{cycle_us} us");
        }
    }

    #[test]
    fn operations_counted_whole_in_a_window_that_cuts_them_do_not_fill_it() {
        let mut step = scan_step(&[(1_450_000, 1); 8], (0, 5 * SECOND));
        for interval in &mut step.intervals {
            interval.cut = dbdyno_record::WindowCut::default();
        }
        // 24 operations of 1.45 s ended in 5 s.
        insta::assert_snapshot!(found(&step).unwrap(), @"littles-law cycle_ms: 1450.0, expected: 8.0, found: 6.96, kind: scan, most: 0.03, rate: 4.8");
    }

    #[test]
    fn the_moment_between_a_last_answer_and_the_end_of_a_short_step_is_no_fault() {
        // An index was built in 0.678 ms, in a window of 0.7 ms.
        let mut step = scan_step(&[(678, 1)], (0, 678));
        step.events[1] = StepEvent::Window { from_us: 0, to_us: 700 };
        assert_eq!(found(&step), None);
    }

    #[test]
    fn a_connection_that_stood_still_is_missed_and_one_that_was_lost_or_has_ended_is_not() {
        let mut step = scan_step(&[(10_000, 1); 4], (0, 5 * SECOND));
        step.intervals.retain(|interval| interval.client != 4);
        assert!(found(&step).unwrap().contains("expected: 4.0, found: 3.0"));
        let mut lost = step.clone();
        lost.intervals[0].down_us = 5 * SECOND;
        assert_eq!(found(&lost), None);
        let kind = step.spec.kinds[0].kind.clone();
        step.events.push(StepEvent::ConnectionEnded { at_us: 0, client: 4, kind, operations: 0 });
        assert_eq!(found(&step), None);
    }

    /// A step whose queries arrive at 250 per second. Its first second is warm-up. `waiting`
    /// queries wait when that second ends, and `at_end` when the window ends.
    fn step(waiting: u64, at_end: u64) -> StepRecord {
        let mut step = read_write_step();
        let (_, end_us) = step.window().unwrap();
        step.events.retain(|event| !matches!(event, StepEvent::Window { .. }));
        step.events.push(StepEvent::Window { from_us: 1_000_000, to_us: end_us });
        let (kind, process) = ("query".to_owned(), "constant".to_owned());
        step.events.push(StepEvent::Scheduled {
            kind,
            process,
            operations_per_second: 250.0,
            connections: 2,
        });
        // The counters are one client's, and they balance.
        let mut left = 0;
        for interval in step.intervals.iter_mut().filter(|i| i.kind == "query" && i.client == 1) {
            interval.backlog = match interval.to_us {
                1_000_000 => waiting,
                to_us if to_us == end_us => at_end,
                _ => 0,
            };
            interval.due = interval.due + interval.backlog - left;
            left = interval.backlog;
        }
        step
    }

    #[test]
    fn a_queue_that_the_warm_up_left_makes_the_step_invalid() {
        assert_eq!(validity_of(step(0, 0)), Validity::Valid);
        assert_eq!(validity_of(step(2, 0)), Validity::Valid);
        let Validity::Invalid { reasons } = validity_of(step(100, 0)) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"warmup-backlog kind: query, most_ms: 10.0, waiting: 100, waiting_ms: 400.0");
    }

    #[test]
    fn a_queue_that_grows_on_is_that_of_a_schedule_that_is_not_kept() {
        assert_eq!(validity_of(step(30, 50)), Validity::Valid);
    }

    /// A step in which `failed` operations of `kind` failed, `lost` of them with their connection.
    fn failing(kind: &str, failed: u64, lost: u64) -> StepRecord {
        let mut step = read_write_step();
        let interval = step.intervals.iter_mut().find(|interval| interval.kind == kind).unwrap();
        (interval.failed, interval.errors.lost, interval.errors.refused) = (failed, lost, failed - lost);
        interval.due += failed;
        step.events.push(StepEvent::Error {
            at_us: 1,
            client: 1,
            kind: kind.to_owned(),
            class: ErrorClass::Refused,
            code: "57014".to_owned(),
            message: "statement timeout".to_owned(),
        });
        step
    }

    #[test]
    fn a_step_that_failed_more_than_a_hundredth_of_its_headline_is_invalid() {
        // 500 queries were answered in the window.
        assert_eq!(validity_of(failing("query", 5, 0)), Validity::Valid);
        let Validity::Invalid { reasons } = validity_of(failing("query", 125, 0)) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"operations-failed ended: 625, error: statement timeout (57014), failed: 125, kind: query, most: 0.01, share: 0.2");
    }

    #[test]
    fn operations_lost_with_their_connection_and_other_kinds_do_not_count() {
        assert_eq!(validity_of(failing("query", 200, 200)), Validity::Valid);
        assert_eq!(validity_of(failing("delete", 200, 0)), Validity::Valid);
    }

    fn run(sum: f64, clients: u32) -> StepRun {
        let sample = vec![vec![Some("FRANCE".to_owned()), Some(sum.to_string())]];
        let answer = AnswerDigest { exact: "5".to_owned(), sums: vec![sum], tolerance: 0.01, sample };
        let execution = |client| Execution {
            name: "q5".to_owned(),
            client,
            repetition: 1,
            seconds: 1.0,
            cut_off: false,
            rows: 1,
            answer: Some(answer.clone()),
        };
        StepRun { executions: (1..=clients).map(execution).collect(), ..step_run(1, 1.0) }
    }

    #[test]
    fn a_different_answer_is_reported_with_both_and_a_differently_rounded_one_is_the_same() {
        let base = [run(1_000.0, 1)];
        assert!(answer_faults(&run(1_000.000_9, 1), &base, "a").is_empty());
        let found = answer_faults(&run(900.0, 1), &base, "a");
        insta::assert_snapshot!(shown_all(&found), @r#"answer-differs base: a, base_begins: ["FRANCE","1000"], begins: ["FRANCE","900"], query: q5"#);
        assert!(answer_faults(&run(900.0, 3), &base, "a").is_empty());
    }
}
