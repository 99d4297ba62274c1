//! Tests faults and delays that are not in the answers: code that panics, a thread that cannot run,
//! a connection that is slow to close, and an observer that hangs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dbdyno_loadgen::{Arrivals, Limit, Threads};
use dbdyno_record::{ErrorClass, Outcome, StepEvent};

use crate::support::{Act, Options, Script, answers, even, run_step, spec, task};

#[test]
fn a_connection_that_panics_fails_the_step_and_does_not_hang_it() {
    let breaks: Script =
        Arc::new(|number| if number == 3 { Act::Panic } else { Act::Answer(Duration::from_millis(1)) });
    let tasks = vec![
        (task(1, 0, Arrivals::Closed, Limit::Operations(10)), breaks),
        (task(2, 0, even(10), Limit::Operations(1_000)), answers(Duration::ZERO)),
    ];
    let began = Instant::now();
    let (end, _) = run_step(&spec(2, &["insert"]), tasks, Options::default());
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.message.expect("a reason").contains("panic"));
    assert!(began.elapsed() < Duration::from_secs(100), "the other's schedule takes 100 s");
}

#[test]
fn a_thread_that_cannot_run_on_its_cpus_fails_the_step_and_says_so() {
    // No kernel is built for so many CPUs.
    for cpu in [8_191, 1_000_000] {
        let threads = Threads { cpus: Some(vec![cpu]), ..Threads::default() };
        let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(1)), answers(Duration::ZERO))];
        let (end, record) = run_step(&spec(1, &["insert"]), tasks, Options { threads, ..Options::default() });
        assert_eq!((end.outcome, record.window()), (Outcome::Failed, None));
        let message = end.message.expect("a reason");
        assert!(message.contains(&format!("CPUs {cpu}:")) && message.contains("client_cpus"), "{message}");
    }
}

#[test]
fn a_connection_that_is_slow_to_close_does_not_fail_a_step_that_was_done_in_time() {
    let tasks = vec![(task(1, 0, even(100), Limit::Operations(20)), answers(Duration::ZERO))];
    let options = Options {
        cap: Some(Duration::from_millis(1_500)),
        closing: Duration::from_millis(2_000),
        ..Options::default()
    };
    let (end, record) = run_step(&spec(1, &["insert"]), tasks, options);
    assert_eq!((end.outcome, end.message), (Outcome::Completed, None));
    assert!(record.window().is_some());
}

#[test]
fn statements_of_attempts_that_failed_are_counted_too() {
    // Every fourth operation is refused. All others are answered at the third attempt.
    let script: Script =
        Arc::new(|number| Act::Fail(if number % 4 == 3 { ErrorClass::Refused } else { ErrorClass::Retry }));
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(12)), script)];
    let (end, record) = run_step(&spec(1, &["insert"]), tasks, Options::default());
    assert_eq!((end.tasks[0].done, end.tasks[0].retries, end.tasks[0].failed_numbers.len()), (9, 18, 3));
    let asked = record.events.iter().find_map(|event| match event {
        StepEvent::Statement { statement, done, .. } if statement == "ask" => Some(*done),
        _ => None,
    });
    assert_eq!(asked, Some(9 * 3 + 3));
}

const LOOKING: Duration = Duration::from_secs(3_600);

/// Returns options with an observer that samples the end of the window for longer than any test
/// waits.
fn with_observer_that_never_ends() -> Options {
    Options { looking: LOOKING, ..Options::default() }
}

#[test]
fn connections_stay_open_until_the_end_of_the_window_has_been_sampled() {
    let looking = Duration::from_millis(1_500);
    let time = Duration::from_millis(200);
    let tasks = (1..=3)
        .map(|client| {
            (task(client, 0, Arrivals::Closed, Limit::Time(time)), answers(Duration::from_millis(5)))
        })
        .collect();
    let options = Options { looking, ..Options::default() };
    let (closed, barrier) = (Arc::clone(&options.closed), Arc::clone(&options.barrier));
    let began = Instant::now();
    let (end, record) = run_step(&spec(3, &["insert"]), tasks, options);
    assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
    let closed = closed.lock().unwrap();
    assert_eq!(closed.len(), 3);
    assert!(closed.iter().all(|at| *at - began >= time + looking), "{began:?}, {closed:?}");
    // The step ends with its last answer, not when its connections are closed.
    let ended = *barrier.get().expect("the clock started") + Duration::from_micros(end.at_us);
    assert!(closed.iter().all(|at| ended < *at) && record.window().is_some(), "{end:?}");
}

#[test]
fn the_stop_of_a_step_does_not_wait_for_an_observer() {
    let options = with_observer_that_never_ends();
    let (cancel, window_ended) = (Arc::clone(&options.cancel), Arc::clone(&options.window_ended));
    let began = Instant::now();
    let stop = std::thread::spawn(move || {
        while !window_ended.load(Ordering::Acquire) && began.elapsed() < Duration::from_secs(15) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // If the engine did not wait for the observer, the step would have ended by then.
        std::thread::sleep(Duration::from_millis(200));
        let stopped = Instant::now();
        cancel.store(true, Ordering::Relaxed);
        stopped
    });
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(3)), answers(Duration::ZERO))];
    let (end, _) = run_step(&spec(1, &["insert"]), tasks, options);
    let ended = Instant::now();
    let stopped = stop.join().unwrap();
    assert_eq!((end.outcome, end.message), (Outcome::Completed, None), "all was done before the stop");
    assert!(ended >= stopped, "it did not wait for the observer");
    assert!(began.elapsed() < LOOKING, "{:?}", began.elapsed());
}

#[test]
fn a_step_that_fails_does_not_wait_for_an_observer() {
    let fails: Script = Arc::new(|_| Act::Fail(ErrorClass::Fatal));
    let began = Instant::now();
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(3)), fails)];
    let (end, record) = run_step(&spec(1, &["insert"]), tasks, with_observer_that_never_ends());
    assert_eq!((end.outcome, record.window()), (Outcome::Failed, None));
    assert!(began.elapsed() < LOOKING, "{:?}", began.elapsed());
}
