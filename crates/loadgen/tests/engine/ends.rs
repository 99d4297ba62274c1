//! Tests that every step ends, and that each connection is closed no later than its step allows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_loadgen::{Arrivals, Connections, Failure, Limit};
use dbdyno_record::{ErrorClass, Outcome, WindowRule};

use crate::support::*;

fn hangs() -> Script {
    Arc::new(|_| Act::Hang)
}

/// Returns when the first connection was closed, and when the step ended.
fn closed_and_ended(rule: WindowRule, limits: [(Limit, u64); 2]) -> (Instant, Instant) {
    let tasks = (1..).zip(limits).map(|(client, (limit, answer_ms))| {
        (task(client, 0, Arrivals::Closed, limit), answers(Duration::from_millis(answer_ms)))
    });
    let options = Options::default();
    let (closed, barrier) = (Arc::clone(&options.closed), Arc::clone(&options.barrier));
    let mut spec = spec(2, &["insert"]);
    spec.window = rule;
    let (end, _) = run_step(&spec, tasks.collect(), options);
    assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
    let first = *closed.lock().expect("no panic").iter().min().expect("both were closed");
    (first, *barrier.get().expect("the clock started") + Duration::from_micros(end.at_us))
}

#[test]
fn a_connection_that_has_sent_all_is_closed_while_others_go_on() {
    let limits = [(Limit::Operations(1), 1), (Limit::Operations(400), 5)];
    let (closed, ended) = closed_and_ended(WindowRule::LastEnded, limits);
    assert!(closed + Duration::from_secs(1) < ended, "{closed:?} {ended:?}");
}

#[test]
fn a_connection_whose_time_is_over_is_closed_while_others_wait_for_answers() {
    let time = Limit::Time(Duration::from_millis(300));
    let (closed, ended) = closed_and_ended(WindowRule::FirstEnded, [(time, 5), (time, 3_000)]);
    assert!(closed + Duration::from_secs(1) < ended, "{closed:?} {ended:?}");
}

#[test]
fn a_step_that_is_cut_off_names_the_connections_that_never_had_an_answer() {
    let closed = |client| task(client, 0, Arrivals::Closed, Limit::Operations(u64::MAX));
    let tasks =
        vec![(closed(1), answers(Duration::from_millis(5))), (closed(2), hangs()), (closed(3), hangs())];
    let cap = Options { cap: Some(Duration::from_millis(500)), ..Options::default() };
    let (end, _) = run_step(&spec(3, &["insert"]), tasks, cap);
    let message = end.message.expect("a reason");
    assert!(
        message.contains("2 of 3 connections (client 2, 3) had no answer to their first statement"),
        "{message}"
    );
}

#[test]
fn a_step_without_a_cap_ends_when_nothing_is_answered_any_more() {
    let stops: Script =
        Arc::new(|number| if number < 20 { Act::Answer(Duration::from_millis(1)) } else { Act::Hang });
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(u64::MAX)), stops)];
    let connections = Connections { silence: Duration::from_secs(2), ..Connections::default() };
    let (end, _) = run_step(&spec(1, &["insert"]), tasks, Options { connections, ..Options::default() });
    assert_eq!(end.outcome, Outcome::Failed);
    let message = end.message.expect("a reason");
    assert!(message.contains("silence_timeout") && message.contains("waited for an answer"), "{message}");
}

#[test]
fn a_step_whose_connections_do_not_open_in_their_time_fails_and_says_how_many() {
    let hang = Failure { class: ErrorClass::Lost, code: HANGS.into(), message: String::new() };
    let closed = |client| task(client, 0, Arrivals::Closed, Limit::Operations(10));
    let tasks =
        vec![(closed(1), answers(Duration::ZERO), Err(hang)), (closed(2), answers(Duration::ZERO), Ok(()))];
    let connections = Connections { open_within: Duration::from_millis(500), ..Connections::default() };
    let (end, _) = run_opened(&spec(2, &["insert"]), tasks, Options { connections, ..Options::default() });
    let message = end.message.expect("a reason");
    assert!(
        message.contains("1 of 2 connections were not open") && message.contains("login_timeout"),
        "{message}"
    );
}
