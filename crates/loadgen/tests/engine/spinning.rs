//! Tests the polling time that a spinning client counts. Other tests check that it otherwise
//! behaves like a sleeping client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dbdyno_loadgen::{Arrivals, Limit, StepEnd, Threads};
use dbdyno_record::Outcome;

use crate::support::{Act, Options, Script, WAITS, Wait, answers, even, run_step, spec, task};

/// Runs a step with one closed loop on a thread that spins. The result has the step's end, the time
/// of the whole call, and the time that the thread counted for polls that found nothing.
fn spun(operations: u64, script: Script, threads: Threads) -> (StepEnd, Duration, Duration) {
    let polled_ns = threads.polled_ns.clone().expect("it spins");
    let begin = Instant::now();
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(operations)), script)];
    let (end, _) = run_step(&spec(1, &["query"]), tasks, Options { threads, ..Options::default() });
    assert_eq!((end.outcome, end.tasks[0].done), (Outcome::Completed, operations));
    (end, begin.elapsed(), Duration::from_nanos(polled_ns[0].load(Ordering::Relaxed)))
}

#[test]
fn empty_polls_are_counted_and_take_less_time_than_the_step() {
    let (end, took, polled) = spun(50, answers(Duration::from_millis(4)), Wait::Spinning.threads(1));
    assert!(Duration::ZERO < polled && polled < took, "{polled:?} of {took:?}, {end:?}");
}

#[test]
fn added_work_takes_its_time_after_each_answer_and_does_not_count_as_polling() {
    const WORK: Duration = Duration::from_millis(3);
    let threads = Threads { added_work: WORK, ..Wait::Spinning.threads(1) };
    let (end, took, polled) = spun(40, answers(Duration::from_millis(1)), threads);
    // Each of the 40 operations has 1 ms of waiting and 3 ms of work.
    assert!(Duration::from_micros(end.at_us) >= Duration::from_millis(160), "{end:?}");
    assert!(polled + 40 * WORK < took, "{polled:?} of {took:?}");
    let sleeping = Threads { added_work: WORK, ..Wait::Sleeping.threads(1) };
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(40)), answers(Duration::ZERO))];
    let (end, _) = run_step(&spec(1, &["query"]), tasks, Options { threads: sleeping, ..Options::default() });
    assert!(Duration::from_micros(end.at_us) >= 40 * WORK, "{end:?}");
}

#[test]
fn a_connection_that_blocks_its_thread_does_not_spin() {
    let threads = Threads { blocking: true, ..Wait::Spinning.threads(1) };
    let (_, _, polled) = spun(5, answers(Duration::from_millis(2)), threads);
    assert_eq!(polled, Duration::ZERO);
}

#[test]
fn a_thread_without_a_counter_sleeps_next_to_one_that_spins() {
    let threads = Wait::Spinning.threads(2);
    let polled_ns = threads.polled_ns.clone().expect("it spins");
    let tasks = (1..=4)
        .map(|client| (task(client, 0, even(200), Limit::Operations(60)), answers(Duration::from_millis(1))));
    let (end, _) = run_step(&spec(4, &["query"]), tasks.collect(), Options { threads, ..Options::default() });
    assert_eq!(end.outcome, Outcome::Completed);
    assert!(polled_ns.len() == 1 && polled_ns[0].load(Ordering::Relaxed) > 0);
}

#[test]
fn a_cancelled_step_ends_while_answers_hang() {
    for wait in WAITS {
        let cancel = Arc::new(AtomicBool::new(false));
        let setter = Arc::clone(&cancel);
        let script: Script = Arc::new(move |number| {
            if number == 3 {
                setter.store(true, Ordering::Relaxed);
                return Act::Hang;
            }
            Act::Answer(Duration::from_millis(1))
        });
        let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Time(Duration::from_secs(600))), script)];
        let (end, _) = run_step(&spec(1, &["query"]), tasks, Options { cancel, ..wait.options() });
        assert_eq!((end.outcome, end.tasks[0].done), (Outcome::Interrupted, 3), "{wait:?}");
    }
}
