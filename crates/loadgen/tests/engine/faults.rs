//! What breaks beside the answers: our own code, a thread, a connection that is slow to close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_loadgen::{Limit, Pace};
use dbdyno_record::Outcome;

use crate::support::{Act, Behaviour, Options, answers, even, lane, run_step, spec};

#[test]
fn a_lane_that_panics_fails_the_step_and_does_not_hang_it() {
    let breaks: Behaviour =
        Arc::new(|number| if number == 3 { Act::Panic } else { Act::Answer(Duration::from_millis(1)) });
    let lanes = vec![
        (lane(1, 0, Pace::Closed, Limit::Operations(10)), breaks),
        (lane(2, 0, even(10), Limit::Operations(1_000)), answers(Duration::ZERO)),
    ];
    let began = Instant::now();
    let (end, _) = run_step(&spec(2, &["insert"]), lanes, Options::default());
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.message.expect("a reason").contains("panic"));
    assert!(began.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_connection_that_is_slow_to_close_does_not_fail_a_step_that_was_done_in_time() {
    let lanes = vec![(lane(1, 0, even(100), Limit::Operations(20)), answers(Duration::ZERO))];
    let options = Options {
        cap: Some(Duration::from_millis(400)),
        closing: Duration::from_millis(800),
        ..Options::default()
    };
    let (end, record) = run_step(&spec(1, &["insert"]), lanes, options);
    assert_eq!((end.outcome, end.message), (Outcome::Completed, None));
    assert!(record.window().is_some());
}
