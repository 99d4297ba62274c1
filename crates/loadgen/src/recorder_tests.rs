//! Tests that a load thread's counters are cut at the right times, that they balance, and that no
//! time is lost.

use std::cell::RefCell;
use std::rc::Rc;

use std::time::Duration;

use dbdyno_record::ErrorClass;

use crate::batch::{Batch, Times};
use crate::recorder::{Ending, Recorder};
use crate::{ArrivalProcess, Arrivals, Limit, Role, TaskSpec};

/// Returns arrivals of ten operations per second.
fn tenths() -> Arrivals {
    Arrivals::Open(ArrivalProcess::Constant {
        operations: 10,
        per: Duration::from_secs(1),
        phase: Duration::ZERO,
    })
}

fn task(arrivals: Arrivals, operations: u64) -> TaskSpec {
    TaskSpec {
        client: 1,
        kind: 0,
        arrivals,
        limit: Limit::Operations(operations),
        role: Role::Decides,
        coupling: None,
    }
}

fn recorder(spec: TaskSpec) -> (Recorder, Rc<RefCell<Vec<Batch>>>) {
    recorder_from(0, spec)
}

/// Returns a recorder whose common window begins after a warm-up.
fn recorder_from(window_from_ms: u64, spec: TaskSpec) -> (Recorder, Rc<RefCell<Vec<Batch>>>) {
    let batches = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&batches);
    let recorder = Recorder::new(
        vec!["query".into()],
        &[spec],
        window_from_ms * 1_000_000,
        Box::new(move |batch| sink.borrow_mut().push(batch)),
    );
    (recorder, batches)
}

fn ending(due_ms: u64, sent_ms: u64, ended_ms: u64) -> Ending {
    let ns = |ms: u64| ms * 1_000_000;
    Ending {
        began_ns: ns(sent_ms),
        scheduled_ns: ns(due_ms),
        sent_ns: ns(sent_ms),
        ended_ns: ns(ended_ms),
        rows: 10,
        received_bytes: 7,
    }
}

fn assert_accounts_balance(batches: &[Batch]) {
    let (mut due, mut ended) = (0, 0);
    for batch in batches {
        for (_, interval) in &batch.intervals {
            due += interval.due;
            ended += interval.done + interval.failed + interval.dropped;
            assert_eq!(due, ended + interval.backlog + interval.in_flight, "{interval:?}");
        }
    }
}

#[test]
fn an_answer_belongs_to_the_second_in_which_it_was_complete() {
    let (mut recorder, batches) = recorder(task(Arrivals::Closed, 10));
    recorder.advance(900_000_000, None);
    recorder.started(0);
    recorder.advance(3_200_000_000, None);
    recorder.done(0, ending(900, 900, 3200));
    recorder.ended(0, 3_500_000_000);
    recorder.finish(3_500_000_000, Some(3_400_000_000));
    let batches = batches.borrow();
    let done: Vec<_> =
        batches.iter().map(|batch| (batch.to_ns / 1_000_000, batch.intervals[0].1.done)).collect();
    assert_eq!(done, [(1000, 0), (2000, 0), (3000, 0), (3400, 1), (3500, 0)]);
    assert_eq!(batches[1].intervals[0].1.in_flight, 1);
    assert_accounts_balance(&batches);
}

#[test]
fn a_late_schedule_shows_its_backlog_and_counts_response_from_the_scheduled_time() {
    let arrivals = tenths();
    let (mut recorder, batches) = recorder(task(arrivals, 30));
    recorder.advance(0, None);
    recorder.started(0);
    recorder.advance(2_050_000_000, None);
    recorder.done(0, ending(0, 0, 2050));
    recorder.started(0);
    recorder.advance(2_060_000_000, None);
    recorder.done(0, ending(100, 2050, 2060));
    recorder.advance(3_000_000_000, None);
    let batches = batches.borrow();
    let first = &batches[0].intervals[0].1;
    assert_eq!((first.due, first.done, first.backlog, first.in_flight), (10, 0, 9, 1));
    let third = &batches[2].intervals[0].1;
    assert_eq!((third.due, third.done, third.backlog, third.in_flight), (10, 2, 28, 0));
    assert_eq!(third.service_max_us, 2_050_000);
    assert_eq!(third.response_sum_us, 2_050_000 + 1_960_000);
    assert_accounts_balance(&batches);
}

#[test]
fn an_operation_of_more_than_an_hour_keeps_its_time() {
    let (mut recorder, batches) = recorder(task(Arrivals::Closed, 10));
    let three_hours_ms = 3 * 3_600_000;
    recorder.started(0);
    recorder.done(0, ending(0, 0, three_hours_ms));
    recorder.finish(500_000_000, None);
    let batches = batches.borrow();
    let mut sum = Times::new();
    sum.add(&batches[0].times[&0]);
    for histogram in [&sum.service, sum.response()] {
        let expected = three_hours_ms * 1000;
        assert_eq!((histogram.len(), histogram.equivalent(histogram.max(), expected)), (1, true));
    }
}

#[test]
fn operations_that_a_stopped_connection_never_sent_are_dropped() {
    let arrivals = tenths();
    let (mut recorder, batches) = recorder(task(arrivals, 30));
    recorder.started(0);
    recorder.done(0, ending(0, 0, 1));
    recorder.advance(1_450_000_000, None);
    recorder.ended(0, 1_450_000_000);
    recorder.finish(1_500_000_000, None);
    let batches = batches.borrow();
    let last = &batches[1].intervals[0].1;
    assert_eq!((last.due, last.dropped, last.backlog), (5, 14, 0));
    assert_accounts_balance(&batches);
}

#[test]
fn a_failed_operation_is_counted_once_and_leaves_no_time() {
    let (mut recorder, batches) = recorder(task(Arrivals::Closed, 10));
    recorder.started(0);
    recorder.error(0, ErrorClass::Retry);
    recorder.error(0, ErrorClass::Refused);
    recorder.failed(0, 0, 400_000_000);
    recorder.finish(500_000_000, None);
    let batches = batches.borrow();
    let interval = &batches[0].intervals[0].1;
    assert_eq!((interval.due, interval.done, interval.failed), (1, 0, 1));
    assert_eq!((interval.errors.retry, interval.errors.refused), (1, 1));
    assert!(batches[0].times.is_empty());
    assert_accounts_balance(&batches);
}

#[test]
fn an_operation_counts_by_the_share_of_its_cycle_that_lies_in_the_window() {
    // The window is from 1 s to 3.5 s. The connection's cycles take 1.6 s each, back to back.
    let (mut recorder, batches) = recorder_from(1_000, task(Arrivals::Closed, 10));
    let window_end = Some(3_500_000_000);
    for end_ms in [1_600, 3_200, 4_800] {
        let began_ms = end_ms - 1_600;
        recorder.started(0);
        recorder.advance(end_ms * 1_000_000, window_end);
        recorder.done(0, Ending { began_ns: began_ms * 1_000_000, ..ending(end_ms, end_ms, end_ms) });
    }
    recorder.finish(4_900_000_000, window_end);
    let batches = batches.borrow();
    let (mut operations, mut rows, mut cycle_us) = (0.0, 0.0, 0.0);
    for (_, interval) in batches.iter().flat_map(|batch| &batch.intervals) {
        let counted =
            |of: u64| if (1_000_000..3_500_000).contains(&interval.from_us) { of as f64 } else { 0.0 };
        operations += counted(interval.done) + interval.cut.operations;
        rows += counted(interval.rows) + interval.cut.rows;
        cycle_us += counted(interval.cycle_sum_us) + interval.cut.cycle_us;
    }
    // The window holds 0.6 of the first cycle, the second, and 0.3 of the third. That is 2.5 s of
    // cycles of 1.6 s.
    assert!((operations - 2.5 / 1.6).abs() < 1e-5, "{operations}");
    assert!((rows - 25.0 / 1.6).abs() < 1e-4, "{rows}");
    assert!((cycle_us - 2_500_000.0).abs() < 1.0, "{cycle_us}");
}

#[test]
fn a_failed_operation_has_a_cycle_but_does_not_count_as_done() {
    let (mut recorder, batches) = recorder_from(1_000, task(Arrivals::Closed, 10));
    recorder.started(0);
    recorder.advance(1_200_000_000, None);
    recorder.failed(0, 700_000_000, 1_200_000_000);
    recorder.finish(1_500_000_000, Some(1_500_000_000));
    let batches = batches.borrow();
    let interval = &batches[1].intervals[0].1;
    assert_eq!((interval.failed, interval.cycle_sum_us, interval.cut.operations), (1, 500_000, 0.0));
    assert!((interval.cut.cycle_us + 300_000.0).abs() < 1.0, "{:?}", interval.cut);
}
