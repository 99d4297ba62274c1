//! Tests that the engine's counts and times agree with the known behaviour of a fake database.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dbdyno_loadgen::{Arrivals, Coupling, Failure, Limit, Side, StepEnd, Threads};
use dbdyno_record::{ErrorClass, Outcome, StepEvent, StepRecord};

use crate::support::{
    Act, HANGS, Options, Script, WAITS, answers, even, ok_if, percentile, retry_if_disturbed, run_opened,
    run_step, spec, sum, task,
};

/// Returns `script` and a list, to which each call of the script adds its time.
fn noting(script: Script) -> (Script, Arc<Mutex<Vec<Instant>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let noting = move |number| {
        noted.lock().expect("no panic").push(Instant::now());
        script(number)
    };
    (Arc::new(noting), asked)
}

/// Returns the 90th percentile of `times` in microseconds, to compare with [`percentile`].
fn percentile_90_us(mut times: Vec<Duration>) -> u64 {
    times.sort();
    u64::try_from(times[times.len() * 9 / 10 - 1].as_micros()).expect("a short time")
}

#[test]
fn a_stall_shows_in_response_time_and_not_in_service_time() {
    for wait in WAITS {
        // For 3 s, 100 operations per second are due. Operation 100 takes 1 s, so the 100
        // operations that are due meanwhile are answered late.
        let script: Script = Arc::new(|number| {
            Act::Answer(if number == 100 { Duration::from_secs(1) } else { Duration::from_micros(100) })
        });
        let (script, asked) = noting(script);
        let tasks = vec![(task(1, 0, even(100), Limit::Operations(300)), script)];
        let options = wait.options();
        let barrier = Arc::clone(&options.barrier);
        let (end, record) = run_step(&spec(1, &["query"]), tasks, options);
        assert_eq!(end.outcome, Outcome::Completed);
        assert_eq!(sum(&record, "query", |interval| interval.done), 300);
        // A third of all operations waited, for times evenly spread from 0 to 1 s. The 90th
        // percentile is therefore about 0.7 s, or more on a busy machine. If the engine missed the
        // stall, the percentile would be below 1 ms.
        let late = percentile(&record, "response", 0.9);
        assert!(late >= 550_000, "{late} µs");
        // On a busy machine too, each operation was answered after its own call of the script and
        // before the next call.
        let barrier = *barrier.get().expect("the clock started");
        let asked = asked.lock().expect("no panic");
        let ended = barrier + Duration::from_micros(end.at_us + 1);
        let since_scheduled = |times: &mut dyn Iterator<Item = Instant>| -> Vec<Duration> {
            times.zip(0..).map(|(time, number)| time - barrier - Duration::from_millis(10) * number).collect()
        };
        let min = percentile_90_us(since_scheduled(&mut asked.iter().copied()));
        let max = percentile_90_us(since_scheduled(&mut asked[1..].iter().copied().chain([ended])));
        let between = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(late * 100 >= min * 99 && late * 99 <= max * 100, "{late} µs, not {min} to {max} µs");
        let (service, between) = (percentile(&record, "service", 0.9), percentile_90_us(between));
        assert!(service * 99 <= between * 100, "{service} µs of service, asked every {between} µs");
        assert!(record.intervals.iter().any(|interval| interval.backlog > 80), "the backlog was seen");
    }
}

#[test]
fn a_closed_loop_hides_a_stall_from_its_percentiles() {
    let script: Script = Arc::new(|number| {
        Act::Answer(if number == 50 { Duration::from_millis(500) } else { Duration::from_millis(2) })
    });
    retry_if_disturbed(|| {
        let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(200)), Arc::clone(&script))];
        let (_, record) = run_step(&spec(1, &["query"]), tasks, Options::default());
        assert!(percentile(&record, "response", 1.0) >= 500_000);
        let most_us = percentile(&record, "response", 0.95);
        ok_if(most_us < 20_000, most_us)
    });
}

#[test]
fn an_even_schedule_keeps_its_rate_and_its_window() {
    retry_if_disturbed(|| {
        let tasks = (1..=4)
            .map(|client| (task(client, 0, even(250), Limit::Operations(500)), answers(Duration::ZERO)))
            .collect();
        let (_, record) = run_step(&spec(4, &["insert"]), tasks, Options::default());
        let (from, to) = record.window().expect("a window");
        assert_eq!(from, 0);
        assert!(to >= 2_000_000, "{to} µs");
        let in_window: Vec<_> = record.intervals.iter().filter(|interval| interval.to_us <= to).collect();
        assert_eq!(in_window.iter().map(|interval| interval.due).sum::<u64>(), 2000);
        for client in 1..=4 {
            let of_client: Vec<_> = in_window.iter().filter(|interval| interval.client == client).collect();
            assert_eq!(of_client[0].due, 250, "of the first second: {:?}", of_client[0]);
            let done: u64 = of_client.iter().map(|interval| interval.done).sum();
            let last = of_client[of_client.len() - 1];
            assert_eq!(done + last.backlog + last.in_flight, 500, "{last:?}");
        }
        assert_eq!(sum(&record, "insert", |interval| interval.done), 2000);
        // 500 operations at 250/s are a schedule of exactly 2 s, not of 499 intervals, and they are
        // sent when they are due.
        let half_us = percentile(&record, "response", 0.5);
        ok_if(to < 3_000_000 && half_us < 10_000, (to, half_us))
    });
}

#[test]
fn the_window_ends_with_the_first_client_and_the_rest_is_recorded_separately() {
    let tasks = vec![
        (task(1, 0, Arrivals::Closed, Limit::Operations(50)), answers(Duration::from_millis(10))),
        (task(2, 0, Arrivals::Closed, Limit::Operations(50)), answers(Duration::from_millis(30))),
    ];
    // Both tasks are on one thread, so a delay by the machine lengthens one operation of each, and
    // never one task alone.
    let threads = Threads { count: Some(1), ..Threads::default() };
    let (end, record) = run_step(&spec(2, &["insert"]), tasks, Options { threads, ..Options::default() });
    let (_, to) = record.window().expect("a window");
    assert!(end.at_us > 1_400_000, "{}", end.at_us);
    // The window is a third of the step, or more when the machine delays both tasks.
    assert!(to >= 450_000 && to * 5 < end.at_us * 4, "{to} of {}", end.at_us);
    let of = |client| {
        let inside =
            record.intervals.iter().filter(|interval| interval.client == client && interval.to_us <= to);
        inside.map(|interval| interval.done).sum::<u64>()
    };
    assert_eq!(of(1), 50);
    assert!((10..30).contains(&of(2)), "{}", of(2));
}

#[test]
fn queries_go_on_until_their_clients_writer_is_done() {
    for wait in WAITS {
        // However late the writer is, each of its operations leaves time for queries.
        let tasks = vec![
            (task(1, 0, even(20), Limit::Operations(10)), answers(Duration::from_millis(40))),
            (task(1, 1, Arrivals::Closed, Limit::UntilClientEnds), answers(Duration::from_millis(1))),
        ];
        let (end, record) = run_step(&spec(1, &["insert", "query"]), tasks, wait.options());
        assert_eq!(end.outcome, Outcome::Completed);
        assert!(end.tasks.iter().all(|task| task.complete), "{:?}", end.tasks);
        let queries = sum(&record, "query", |interval| interval.done);
        // Each query takes at least 1 ms.
        assert!(queries >= 10 && queries * 1000 <= end.at_us, "{queries} in {} µs", end.at_us);
        assert!(record.events.iter().any(|event| matches!(
            event,
            StepEvent::Lookup { name, value: Some(3_000_000_000), .. } if name == "min_id"
        )));
    }
}

#[test]
fn coupled_connections_stay_within_nine_statements() {
    let coupling = Arc::new(Coupling::new(Coupling::ORIGINAL_LEAD));
    let lead = Arc::new(AtomicI64::new(0));
    let max = Arc::new(AtomicI64::new(0));
    let script = |sign: i64, after: Duration| -> Script {
        let (lead, max) = (Arc::clone(&lead), Arc::clone(&max));
        Arc::new(move |_| {
            let now = lead.fetch_add(sign, Ordering::SeqCst) + sign;
            max.fetch_max(now.abs(), Ordering::SeqCst);
            Act::Answer(after)
        })
    };
    let mut fast = task(1, 0, Arrivals::Closed, Limit::Operations(200));
    fast.coupling = Some((Arc::clone(&coupling), Side::Left));
    let mut slow = task(1, 1, Arrivals::Closed, Limit::Operations(200));
    slow.coupling = Some((coupling, Side::Right));
    let tasks = vec![(fast, script(1, Duration::ZERO)), (slow, script(-1, Duration::from_millis(2)))];
    let blocking =
        Options { threads: Threads { blocking: true, ..Threads::default() }, ..Options::default() };
    let (end, _) = run_step(&spec(1, &["insert", "delete"]), tasks, blocking);
    assert_eq!(end.tasks.iter().map(|task| task.done).sum::<u64>(), 400);
    assert!((5..=9).contains(&max.load(Ordering::SeqCst)), "{}", max.load(Ordering::SeqCst));
}

#[test]
fn retries_are_counted_and_the_operation_succeeds_once() {
    for wait in WAITS {
        let script: Script =
            Arc::new(
                |number| if number == 3 { Act::Fail(ErrorClass::Retry) } else { Act::Answer(Duration::ZERO) },
            );
        let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(10)), script)];
        let (end, record) = run_step(&spec(1, &["insert"]), tasks, wait.options());
        assert_eq!(end.outcome, Outcome::Completed);
        assert_eq!(end.tasks[0].retries, 2);
        assert_eq!(sum(&record, "insert", |interval| interval.errors.retry), 2);
        assert_eq!(sum(&record, "insert", |interval| interval.done), 10);
        assert_eq!(sum(&record, "insert", |interval| interval.failed), 0);
    }
}

const REFUSED_TOO_OFTEN: &str = "operation 0 was refused 1000 times with a request to try again, the last time with: the pretended answer is \
                                 no (42); use fewer connections, or look for locks that others hold";

/// Runs one task whose first operation must be made ready again `times` times.
fn not_ready(times: u32) -> (StepEnd, StepRecord) {
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(10)), answers(Duration::ZERO))];
    run_step(&spec(1, &["insert"]), tasks, Options { not_ready: times, ..Options::default() })
}

#[test]
fn an_operation_that_gets_a_retry_before_it_is_sent_is_made_ready_again() {
    let (end, record) = not_ready(2);
    assert_eq!((end.outcome, end.message), (Outcome::Completed, None));
    assert_eq!((end.tasks[0].retries, end.tasks[0].done), (2, 10));
    assert_eq!(sum(&record, "insert", |interval| interval.errors.retry), 2);
    assert_eq!(sum(&record, "insert", |interval| interval.failed), 0);
}

#[test]
fn an_operation_that_is_never_made_ready_fails_the_step() {
    let (end, _) = not_ready(u32::MAX);
    assert_eq!((end.outcome, end.message.as_deref()), (Outcome::Failed, Some(REFUSED_TOO_OFTEN)));
}

#[test]
fn an_operation_that_gets_only_retries_fails_the_step_with_the_last_refusal() {
    let tasks =
        vec![(task(1, 0, Arrivals::Closed, Limit::Operations(10)), Arc::new(|_| Act::Busy) as Script)];
    let (end, record) = run_step(&spec(1, &["insert"]), tasks, Options::default());
    assert_eq!((end.outcome, end.message.as_deref()), (Outcome::Failed, Some(REFUSED_TOO_OFTEN)));
    assert_eq!((end.tasks[0].retries, &end.tasks[0].failed_numbers[..]), (1000, &[0][..]));
    assert_eq!(sum(&record, "insert", |interval| interval.failed), 1);
}

#[test]
fn a_refused_operation_fails_alone_and_is_named() {
    let script: Script =
        Arc::new(
            |number| if number == 3 { Act::Fail(ErrorClass::Refused) } else { Act::Answer(Duration::ZERO) },
        );
    let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(10)), script)];
    let (end, record) = run_step(&spec(1, &["insert"]), tasks, Options::default());
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(end.tasks[0].failed_numbers, [3]);
    assert_eq!(sum(&record, "insert", |interval| interval.done), 9);
    assert!(record.events.iter().any(|event| matches!(event, StepEvent::Error { code, .. } if code == "42")));
}

#[test]
fn a_lost_connection_fails_the_step_and_ends_the_other_clients() {
    for wait in WAITS {
        let script: Script =
            Arc::new(
                |number| if number == 5 { Act::Fail(ErrorClass::Lost) } else { Act::Answer(Duration::ZERO) },
            );
        let tasks = vec![
            (task(1, 0, Arrivals::Closed, Limit::Operations(10)), script),
            (task(2, 0, Arrivals::Closed, Limit::Operations(u64::MAX)), answers(Duration::from_millis(1))),
        ];
        let (end, record) = run_step(&spec(2, &["insert"]), tasks, wait.options());
        assert_eq!(end.outcome, Outcome::Failed);
        assert_eq!(end.message.as_deref(), Some("the pretended answer is no (42)"));
        assert_eq!(record.window(), None);
    }
}

#[test]
fn a_failed_connection_is_known_before_the_clock_starts() {
    let refused = Failure { class: ErrorClass::Fatal, code: "1045".into(), message: "access denied".into() };
    let tasks =
        vec![(task(1, 0, Arrivals::Closed, Limit::Operations(10)), answers(Duration::ZERO), Err(refused))];
    let (end, record) = run_opened(&spec(1, &["insert"]), tasks, Options::default());
    assert_eq!(end.outcome, Outcome::Failed);
    assert_eq!(end.message.as_deref(), Some("access denied (1045)"));
    assert!(record.intervals.is_empty());
}

#[test]
fn a_cancelled_step_keeps_what_was_measured() {
    let cancel = Arc::new(AtomicBool::new(false));
    let signal = Arc::clone(&cancel);
    let cancels: Script = Arc::new(move |number| {
        if number == 30 {
            signal.store(true, Ordering::Relaxed);
        }
        Act::Answer(Duration::from_millis(1))
    });
    let tasks = vec![
        (task(1, 0, Arrivals::Closed, Limit::Operations(u64::MAX)), cancels),
        (task(2, 0, even(1), Limit::Operations(100)), answers(Duration::ZERO)),
    ];
    let began = Instant::now();
    let (end, record) = run_step(&spec(2, &["insert"]), tasks, Options { cancel, ..Options::default() });
    assert_eq!(end.outcome, Outcome::Interrupted);
    assert!(began.elapsed() < Duration::from_secs(100), "the schedule alone takes 100 s");
    assert!(sum(&record, "insert", |interval| interval.done) >= 30);
}

#[test]
fn a_hanging_answer_does_not_keep_a_stopped_step_forever() {
    retry_if_disturbed(|| {
        let (script, asked) = noting(Arc::new(|_| Act::Hang));
        let tasks = vec![(task(1, 0, Arrivals::Closed, Limit::Operations(10)), script)];
        let cap = Options { cap: Some(Duration::from_millis(300)), ..Options::default() };
        let (end, record) = run_step(&spec(1, &["insert"]), tasks, cap);
        assert_eq!(end.outcome, Outcome::Failed);
        assert!(end.message.expect("a reason").contains("time cap"));
        // A task that the machine delays until the time cap sends nothing.
        let asked = asked.lock().expect("no panic").len();
        assert_eq!(record.intervals.last().expect("an interval").in_flight, asked as u64);
        ok_if(asked == 1, asked)
    });
}

#[test]
fn a_connection_that_hangs_while_it_opens_does_not_keep_a_cancelled_step_forever() {
    let cancel = Arc::new(AtomicBool::new(true));
    let closed = |client| task(client, 0, Arrivals::Closed, Limit::Operations(10));
    let hang = Failure { class: ErrorClass::Lost, code: HANGS.into(), message: String::new() };
    let tasks =
        vec![(closed(1), answers(Duration::ZERO), Err(hang)), (closed(2), answers(Duration::ZERO), Ok(()))];
    let (end, _) = run_opened(&spec(2, &["insert"]), tasks, Options { cancel, ..Options::default() });
    assert_eq!(end.outcome, Outcome::Interrupted);
}

#[test]
fn operations_that_a_capped_schedule_never_sent_are_dropped() {
    let tasks = vec![(task(1, 0, even(100), Limit::Operations(1000)), answers(Duration::from_millis(50)))];
    let (end, record) = run_step(
        &spec(1, &["insert"]),
        tasks,
        Options { cap: Some(Duration::from_secs(1)), ..Options::default() },
    );
    assert_eq!(end.outcome, Outcome::Failed);
    let dropped = sum(&record, "insert", |interval| interval.dropped);
    // At the time cap 100 operations were due, and 20 can be done by then. On a busy machine the
    // step ends later, and more were due.
    let due = end.at_us / 10_000 + 1;
    assert!((60..=due).contains(&dropped), "{dropped} of {due}");
}

#[test]
fn bursts_follow_the_originals_rule() {
    retry_if_disturbed(|| {
        let arrivals = Arrivals::Burst { per_second: 5 };
        let tasks = vec![(task(1, 0, arrivals, Limit::Operations(11)), answers(Duration::ZERO))];
        let (_, record) = run_step(&spec(1, &["insert"]), tasks, Options::default());
        let done: Vec<u64> = record.intervals.iter().map(|interval| interval.done).collect();
        assert_eq!(done.iter().sum::<u64>(), 11);
        // The first burst is round 0 alone. Each later one has k rounds and begins a second after
        // the burst before it. A late burst is followed by the next one at once.
        ok_if(done.starts_with(&[1, 5, 5]), done)
    });
}
