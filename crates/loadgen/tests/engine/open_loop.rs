//! Tests shared schedules, Poisson arrivals, backlog limits, think time and time limits.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dbdyno_loadgen::{ArrivalProcess, Arrivals, Draws, Limit, Schedule, TaskSpec, ThinkTime, Threads};
use dbdyno_record::{Clock, Outcome, StepEvent, StepRecord};
use proptest::prelude::*;

use crate::support::{
    Act, Options, Script, WAITS, answers, even, ok_if, percentile, retry_if_disturbed, run_step, spec, sum,
    task,
};

fn constant(per_second: u64) -> ArrivalProcess {
    ArrivalProcess::Constant { operations: per_second, per: Duration::from_secs(1), phase: Duration::ZERO }
}

fn poisson(per_second: u64, seed: u64) -> ArrivalProcess {
    ArrivalProcess::poisson(per_second, Duration::from_secs(1), Draws::new(seed, 1, 1))
}

/// Returns `connections` tasks of client 1 that share one schedule.
fn shared(schedule: Schedule, connections: usize, limit: Limit, script: &Script) -> Vec<(TaskSpec, Script)> {
    let arrivals = Arrivals::Shared(Arc::new(schedule));
    (0..connections).map(|_| (task(1, 0, arrivals.clone(), limit), Arc::clone(script))).collect()
}

/// Returns a script that answers after `service`, and the list of operation numbers that it was
/// called with.
fn noting(service: Duration) -> (Script, Arc<Mutex<Vec<u64>>>) {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&numbers);
    let script: Script = Arc::new(move |number| {
        noted.lock().expect("no panic").push(number);
        Act::Answer(service)
    });
    (script, numbers)
}

fn highest_backlog(record: &StepRecord) -> u64 {
    record.intervals.iter().map(|interval| interval.backlog).max().expect("intervals")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn connections_that_share_a_schedule_send_every_number_once(
        connections in 1_usize..40,
        threads in 1_u32..4,
        per_second in 500_u64..4000,
        is_poisson in any::<bool>(),
        service_us in 0_u64..3000,
    ) {
        let arrival_process = if is_poisson { poisson(per_second, 5) } else { constant(per_second) };
        let (script, numbers) = noting(Duration::from_micros(service_us));
        let tasks = shared(Schedule::new(arrival_process), connections, Limit::Operations(300), &script);
        let options = Options { threads: Threads { count: Some(threads), ..Threads::default() }, ..Options::default() };
        let (end, record) = run_step(&spec(1, &["query"]), tasks, options);
        prop_assert_eq!(end.outcome, Outcome::Completed);
        let mut sent = numbers.lock().expect("no panic").clone();
        sent.sort_unstable();
        prop_assert_eq!(sent, (0..300).collect::<Vec<u64>>());
        prop_assert_eq!(sum(&record, "query", |interval| interval.due), 300);
        prop_assert_eq!(sum(&record, "query", |interval| interval.done), 300);
        prop_assert_eq!(sum(&record, "query", |interval| interval.dropped), 0);
    }
}

#[test]
fn a_shared_schedule_is_kept_by_any_free_connection() {
    retry_if_disturbed(|| {
        // Two connections can do 200 of the 300 operations that are due per second. The others wait
        // in the backlog and are dropped at the end.
        let tasks = shared(
            Schedule::new(constant(300)),
            2,
            Limit::Time(Duration::from_millis(1500)),
            &answers(Duration::from_millis(9)),
        );
        let (end, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        assert_eq!(end.outcome, Outcome::Completed);
        assert_eq!(record.window(), Some((0, 1_500_000)));
        let first = &record.intervals[0];
        assert_eq!((first.due, first.due), (300, first.done + first.backlog + first.in_flight));
        assert_eq!(sum(&record, "query", |interval| interval.due), 450);
        let done = sum(&record, "query", |interval| interval.done);
        assert_eq!(sum(&record, "query", |interval| interval.dropped), 450 - done);
        assert!(record.events.iter().any(|event| matches!(
            event,
            StepEvent::Scheduled { process, operations_per_second, connections: 2, .. }
                if process == "constant" && *operations_per_second == 300.0
        )));
        assert!(done < 340, "{done}");
        // One connection alone cannot do more than this, because each answer takes 9 ms.
        ok_if(done > 1500 / 9, done)
    });
}

#[test]
fn one_slow_connection_holds_up_only_what_it_has_taken() {
    // Operation 100 takes a second, and the other connections keep to the schedule.
    let script: Script = Arc::new(|number| {
        Act::Answer(if number == 100 { Duration::from_secs(1) } else { Duration::from_micros(100) })
    });
    retry_if_disturbed(|| {
        let tasks = shared(Schedule::new(constant(200)), 4, Limit::Operations(400), &script);
        let (_, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        assert_eq!(sum(&record, "query", |interval| interval.done), 400);
        assert!(percentile(&record, "response", 1.0) >= 1_000_000);
        // If all connections waited for it, half of all operations would be late, half of those by
        // more than 0.5 s. The backlog would be 100 at the end of the first second.
        let (late_us, backlog) = (percentile(&record, "response", 0.75), highest_backlog(&record));
        ok_if(late_us < 300_000 && backlog < 90, (late_us, backlog))
    });
}

#[test]
fn a_backlog_limit_drops_the_oldest_operations_and_counts_them() {
    retry_if_disturbed(|| {
        let schedule = Schedule::with_max_backlog(constant(1000), 10);
        let (script, numbers) = noting(Duration::from_millis(20));
        let tasks = shared(schedule, 2, Limit::Time(Duration::from_secs(1)), &script);
        let (end, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        assert_eq!(end.outcome, Outcome::Completed);
        let sent = numbers.lock().expect("no panic");
        let different: HashSet<_> = sent.iter().collect();
        assert_eq!(different.len(), sent.len());
        let (due, done) = (sum(&record, "query", |i| i.due), sum(&record, "query", |i| i.done));
        assert_eq!((due, done), (1000, sent.len() as u64));
        assert_eq!(sum(&record, "query", |interval| interval.dropped), 1000 - done);
        // At most ten later operations are waiting when an operation is sent, and these arrive
        // within 10 ms. The answer takes 20 ms.
        let late_us = percentile(&record, "response", 0.9);
        ok_if(late_us < 80_000, late_us)
    });
}

#[test]
fn poisson_connections_send_as_many_as_were_due() {
    let arrivals = Arrivals::Open(poisson(500, 11));
    let due =
        (0..).take_while(|number| arrivals.due(*number).expect("scheduled") < Duration::from_secs(1)).count();
    retry_if_disturbed(|| {
        let limit = Limit::Time(Duration::from_secs(1));
        let tasks = vec![(task(1, 0, arrivals.clone(), limit), answers(Duration::ZERO))];
        let (end, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        assert_eq!(sum(&record, "query", |interval| interval.due), due as u64);
        let dropped = sum(&record, "query", |interval| interval.dropped);
        assert_eq!(end.tasks[0].started + dropped, due as u64);
        // An operation that is due just before the step's end may not be sent in time.
        ok_if(dropped <= due as u64 / 10, dropped)
    });
}

#[test]
fn lag_is_recorded_for_operations_that_were_waited_for_and_not_for_late_ones() {
    let lag = |record: &StepRecord| -> u64 {
        let spans = record.histograms.iter().filter(|span| span.clock == Clock::Lag);
        spans.map(|span| span.histogram().expect("readable").len()).sum()
    };
    retry_if_disturbed(|| {
        let tasks = vec![(task(1, 0, even(200), Limit::Operations(200)), answers(Duration::ZERO))];
        let (_, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        ok_if(lag(&record) >= 100, lag(&record))
    });
    let tasks = vec![(task(1, 0, even(1000), Limit::Operations(100)), answers(Duration::from_millis(5)))];
    let (_, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
    assert!(lag(&record) <= 2, "{}", lag(&record));
}

#[test]
fn think_time_lowers_the_rate_and_is_in_no_measured_time() {
    let think = ThinkTime::Fixed { time: Duration::from_millis(20), draws: Draws::new(1, 1, 1) };
    let limit = Limit::Time(Duration::from_secs(1));
    retry_if_disturbed(|| {
        let tasks = vec![(task(1, 0, Arrivals::Thinking(think), limit), answers(Duration::from_millis(5)))];
        let (end, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        assert_eq!(end.outcome, Outcome::Completed);
        // Each operation takes 25 ms and a tick of tokio's timer. Without think time there would be
        // 160 operations.
        let done = sum(&record, "query", |interval| interval.done);
        assert!(done <= 41, "{done}");
        let half_us = percentile(&record, "response", 0.5);
        ok_if(done >= 20 && half_us < 15_000, (done, half_us))
    });
}

#[test]
fn a_closed_loop_limited_in_time_ends_its_window_at_exactly_that_time() {
    for wait in WAITS {
        let limit = Limit::Time(Duration::from_millis(700));
        let tasks = (1..=3)
            .map(|client| (task(client, 0, Arrivals::Closed, limit), answers(Duration::from_millis(3))));
        let (end, record) = run_step(&spec(3, &["query"]), tasks.collect(), wait.options());
        assert_eq!((end.outcome, record.window()), (Outcome::Completed, Some((0, 700_000))));
        assert!(end.tasks.iter().all(|task| task.complete));
        assert!(end.at_us >= 700_000, "{}", end.at_us);
    }
}
