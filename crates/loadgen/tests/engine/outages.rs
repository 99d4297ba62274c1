//! Tests connections that are lost and opened again, and connection storms before the barrier.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dbdyno_loadgen::{
    ArrivalProcess, Arrivals, Connections, Draws, Limit, LostConnections, Reconnect, Schedule, StepEnd,
};
use dbdyno_record::{Outcome, StepEvent, StepRecord};

use crate::support::{Act, Options, Script, answers, even, run_step, spec, sum, task};

fn reconnecting(give_up_after: Duration) -> Options {
    let (wait, wait_max) = (Duration::from_millis(20), Duration::from_millis(80));
    let how = Reconnect { wait, wait_max, give_up_after, draws: Draws::new(1, 1, 1) };
    let connections = Connections { lost: LostConnections::Reconnect(how), ..Connections::default() };
    Options { connections, ..Options::default() }
}

/// Returns a script that answers, except that the connection is lost when operation `number` comes
/// for the first time. It opens again after `refusals` failed attempts.
fn breaks_at(number: u64, refusals: u32) -> Script {
    let broken = AtomicBool::new(false);
    Arc::new(move |current| {
        if current == number && !broken.swap(true, Ordering::Relaxed) {
            return Act::Break(refusals);
        }
        Act::Answer(Duration::from_millis(1))
    })
}

fn outage_events(record: &StepRecord) -> (usize, Vec<(u64, u32)>) {
    let lost = record.events.iter().filter(|event| matches!(event, StepEvent::ConnectionLost { .. })).count();
    let back = record.events.iter().filter_map(|event| match event {
        StepEvent::Reconnected { down_us, attempts, .. } => Some((*down_us, *attempts)),
        _ => None,
    });
    (lost, back.collect())
}

fn assert_went_on(end: &StepEnd) {
    assert_eq!((end.outcome, end.message.as_deref()), (Outcome::Completed, None));
    assert!(end.tasks.iter().all(|task| task.complete));
}

#[test]
fn a_lost_connection_is_opened_again_and_the_operation_on_its_way_has_failed() {
    let tasks = vec![
        (task(1, 0, Arrivals::Closed, Limit::Operations(50)), breaks_at(10, 2)),
        (task(2, 0, Arrivals::Closed, Limit::Operations(50)), answers(Duration::from_millis(1))),
    ];
    let (end, record) = run_step(&spec(2, &["insert"]), tasks, reconnecting(Duration::from_secs(10)));
    assert_went_on(&end);
    let task = end.tasks.iter().find(|task| task.client == 1).expect("client 1");
    assert_eq!((task.started, task.done, task.reconnects), (50, 49, 1));
    assert_eq!((&task.failed_numbers, &task.unknown_numbers), (&vec![10], &vec![10]));
    assert_eq!(sum(&record, "insert", |interval| interval.failed), 1);
    assert_eq!(sum(&record, "insert", |interval| interval.errors.lost), 1);
    // The pauses are 20, 40 and 80 ms, each shortened by up to a half.
    let (lost, back) = outage_events(&record);
    let [(down_us, 3)] = back[..] else { panic!("{back:?}") };
    assert_eq!(lost, 1);
    assert!((70_000..=end.at_us).contains(&down_us), "{down_us} of {}", end.at_us);
    let recorded = sum(&record, "insert", |interval| interval.down_us);
    assert!(recorded.abs_diff(down_us) <= record.intervals.len() as u64, "{recorded} {down_us}");
    assert_eq!(record.intervals.last().expect("intervals").down, 0);
}

#[test]
fn a_schedule_goes_on_while_its_connection_is_lost() {
    let per = Duration::from_secs(1);
    let schedule = Schedule::new(ArrivalProcess::Constant { operations: 100, per, phase: Duration::ZERO });
    let arrivals = Arrivals::Shared(Arc::new(schedule));
    // The 30 failed attempts take more than 1.1 s, so the outage includes the end of a second
    // whenever it begins.
    let tasks = vec![(task(1, 0, arrivals, Limit::Operations(200)), breaks_at(20, 30))];
    let (end, record) = run_step(&spec(1, &["query"]), tasks, reconnecting(Duration::from_secs(10)));
    assert_went_on(&end);
    let seen = record
        .intervals
        .iter()
        .find(|interval| interval.down == 1 && interval.backlog >= 10 && interval.down_us > 100_000);
    assert!(seen.is_some(), "{:?}", record.intervals);
    assert_eq!(sum(&record, "query", |interval| interval.done), 199);
    assert_eq!(sum(&record, "query", |interval| interval.dropped), 0);
}

#[test]
fn a_connection_that_does_not_come_back_fails_the_step_in_time() {
    let tasks = vec![
        (task(1, 0, Arrivals::Closed, Limit::Operations(50)), breaks_at(10, u32::MAX)),
        (task(2, 0, even(10), Limit::Operations(1000)), answers(Duration::ZERO)),
    ];
    let began = Instant::now();
    let (end, record) = run_step(&spec(2, &["insert"]), tasks, reconnecting(Duration::from_millis(400)));
    assert!(began.elapsed() < Duration::from_secs(100), "the other's schedule takes 100 s");
    assert_eq!(end.outcome, Outcome::Failed);
    let message = end.message.expect("a reason");
    assert_eq!(
        message,
        "a lost connection could not be opened again within 0.4 s: the pretended answer is no (42); raise reconnect_for"
    );
    let (lost, back) = outage_events(&record);
    assert_eq!((lost, back.len()), (1, 0));
}

#[test]
fn a_connection_limited_in_time_ends_with_its_time_even_without_a_connection() {
    let limit = Limit::Time(Duration::from_secs(1));
    let tasks = vec![(task(1, 0, Arrivals::Closed, limit), breaks_at(0, u32::MAX))];
    let (end, record) = run_step(&spec(1, &["insert"]), tasks, reconnecting(Duration::from_secs(60)));
    assert_went_on(&end);
    assert_eq!(record.window(), Some((0, 1_000_000)));
    let lost_us = record.events.iter().find_map(|event| match event {
        StepEvent::ConnectionLost { at_us, .. } => Some(*at_us),
        _ => None,
    });
    // The connection was lost from its `ConnectionLost` event until the end of the step.
    let expected_us = end.at_us - lost_us.expect("a lost connection");
    let down_us = sum(&record, "insert", |interval| interval.down_us);
    assert!(end.at_us >= 1_000_000, "{}", end.at_us);
    assert!(down_us.abs_diff(expected_us) <= 1_000, "{down_us} µs, not {expected_us} µs");
}

#[test]
fn reconnecting_is_given_up_when_the_step_is_stopped() {
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(50)), breaks_at(3, u32::MAX))];
    let options = Options { cap: Some(Duration::from_millis(300)), ..reconnecting(Duration::from_secs(60)) };
    let (end, _) = run_step(&spec(1, &["insert"]), tasks, options);
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.at_us < 60_000_000, "it waited as long as reconnecting may take: {} µs", end.at_us);
}

#[test]
fn logins_keep_the_rate_that_was_asked_for_and_each_is_timed() {
    let tasks = (1..=40)
        .map(|client| (task(client, 0, Arrivals::Closed, Limit::Operations(1)), answers(Duration::ZERO)));
    let connections = Connections { rate_per_second: Some(100.0), ..Connections::default() };
    let options = Options { connections, ..Options::default() };
    let opened = Arc::clone(&options.opened);
    let began = Instant::now();
    let (end, record) = run_step(&spec(40, &["insert"]), tasks.collect(), options);
    let most_us = u64::try_from(began.elapsed().as_micros()).expect("a short time");
    assert_went_on(&end);
    let mut opened = opened.lock().expect("no panic").clone();
    opened.sort_by_key(|(_, at)| *at);
    // Login n is due n × 10 ms after the storm has begun. No login is early, even after late ones.
    for (due, (_, at)) in (0..40_u32).zip(&opened) {
        assert!(*at - began >= Duration::from_millis(10) * due, "{:?} for {due}", *at - began);
    }
    let storm_us = record.events.iter().find_map(|event| match event {
        StepEvent::Barrier { connect_us, connections: 40, .. } => Some(*connect_us),
        _ => None,
    });
    let storm_us = storm_us.expect("a barrier");
    // The storm takes at least as long as the logins of any one thread.
    let mut of_thread: HashMap<_, Vec<Instant>> = HashMap::new();
    opened.iter().for_each(|(thread, at)| of_thread.entry(*thread).or_default().push(*at));
    let lowest = of_thread.values().map(|opened| opened[opened.len() - 1] - opened[0]).max();
    let min_us = u64::try_from(lowest.expect("a thread").as_micros()).expect("a short time");
    assert!((min_us..=most_us).contains(&storm_us), "{storm_us}, not {min_us} to {most_us}");
    let logins =
        record.histograms.iter().find(|span| span.tag() == "login/service").expect("times of logins");
    assert_eq!(logins.histogram().expect("readable").len(), 40);
}
