//! Check by Little's law: connections = rate × mean time of an operation.
//!
//! Each connection of a closed loop is always in the cycle of one operation: it thinks, prepares,
//! sends or waits for the answer. If rate times mean time does not give the number of connections,
//! operations or time were lost.

use dbdyno_record::StepEvent;

use crate::model::{Code, Warning};
use crate::window::{KindSummary, Span, WindowSummary};

/// Largest accepted difference between the connections that follow from rate and mean time and
/// those that ran.
const MOST: f64 = 0.03;
/// Seconds of each connection's time that the check leaves out. A connection's end is recorded a
/// moment after its last answer, and later where its thread waits for a CPU.
const END_SECONDS: f64 = 0.01;

/// Why the rate of this kind cannot be right. `None` where it agrees with its times, where nothing
/// was answered, and for operations that come by a schedule.
pub(crate) fn fault(step: &WindowSummary<'_>, kind: &KindSummary<'_>) -> Option<Warning> {
    let (done, window) = (kind.done, step.window);
    if !kind.spec.is_closed_loop() || window.seconds() <= 0.0 || done.operations <= 0.0 {
        return None;
    }
    let expected = open_connections(step, kind) - done.down_us / 1e6 / window.seconds();
    let rate = window.rate_of(done.operations);
    let cycle_us = done.cycle_sum_us / done.operations;
    let found = rate * cycle_us / 1e6;
    let allowed = MOST * expected + END_SECONDS / window.seconds() * expected;
    ((found - expected).abs() > allowed).then(|| {
        Warning::reason(Code::LittlesLaw)
            .with("kind", kind.spec.kind.as_str())
            .with("rate", rate)
            .with("cycle_ms", cycle_us / 1e3)
            .with("found", found)
            .with("expected", expected)
            .with("most", MOST)
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

#[cfg(test)]
mod tests {
    use dbdyno_record::StepRecord;

    use super::*;
    use crate::fixtures::{scan_step, shown, summary};

    const SECOND: u64 = 1_000_000;

    fn found(step: &StepRecord) -> Option<String> {
        let summary = summary(step);
        fault(&summary, &summary.kinds[0]).map(|warning| shown(&warning))
    }

    #[test]
    fn operations_counted_by_their_share_of_the_window_fill_it() {
        for cycle_us in [1_000, 340_000, 490_000, 1_450_000, 1_650_000, 90 * SECOND] {
            let step = scan_step(&[(cycle_us, 1); 8], (SECOND, 6 * SECOND));
            assert_eq!(found(&step), None, "{cycle_us} us");
        }
    }

    #[test]
    fn whole_operations_of_a_window_that_cuts_them_do_not() {
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
}
