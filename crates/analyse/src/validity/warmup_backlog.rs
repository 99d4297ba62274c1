//! Check for open loops that begin their window with operations left waiting by the warm-up. Their
//! response times are then those of that queue, and not of the load that was asked for.

use crate::model::{Code, KindResult, Warning};
use crate::window::{Span, WindowSummary};

/// Largest part of the schedule that may wait when the window begins, in seconds.
const MOST_SECONDS: f64 = 0.010;
/// Alternatively this many service times may wait, because a server that keeps up at a high load
/// has a queue at any moment.
const MOST_SERVICE_TIMES: f64 = 10.0;
/// If the queue grows in the window by more than this share of the operations due, the schedule is
/// not kept. That is reported separately.
const MOST_GROWTH: f64 = 0.01;

/// Why the response times of `kind` say nothing about its schedule; `None` where no more waited
/// than may.
pub(crate) fn fault(step: &WindowSummary<'_>, kind: &KindResult) -> Option<Warning> {
    let schedule = kind.schedule.as_ref().filter(|schedule| schedule.asked_per_second > 0.0)?;
    let intervals = step.kind(&kind.kind)?.intervals.0.iter();
    let at_beginning = intervals.filter(|interval| Span::new(0, interval.to_us).to_us == step.window.from_us);
    let waiting: u64 = at_beginning.map(|interval| interval.backlog).sum();
    let most_seconds = MOST_SECONDS.max(MOST_SERVICE_TIMES * kind.service.mean_us / 1e6);
    let most = (schedule.asked_per_second * most_seconds).max(1.0);
    let grows = schedule.queue_growth as f64 > MOST_GROWTH * schedule.due as f64;
    (waiting as f64 > most && !grows).then(|| {
        Warning::reason(Code::WarmupBacklog)
            .with("kind", kind.kind.as_str())
            .with("waiting", waiting)
            .with("waiting_ms", waiting as f64 / schedule.asked_per_second * 1e3)
            .with("most_ms", most_seconds * 1e3)
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{StepEvent, StepRecord};

    use crate::fixtures::{read_write_step, shown_all, validity_of};
    use crate::model::Validity;

    /// A step whose queries are asked for at 250 per second. `waiting` queries wait when its first
    /// second ends, which is warm-up, and `at_end` when its window ends.
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
    fn a_queue_that_the_warm_up_has_left_makes_the_step_invalid() {
        assert_eq!(validity_of(step(0, 0)), Validity::Valid);
        assert_eq!(validity_of(step(2, 0)), Validity::Valid);
        let Validity::Invalid { reasons } = validity_of(step(100, 0)) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"warmup-backlog kind: query, most_ms: 10.0, waiting: 100, waiting_ms: 400.0");
    }

    #[test]
    fn a_queue_that_grows_on_is_that_of_a_schedule_that_is_not_kept() {
        assert_eq!(validity_of(step(30, 50)), Validity::Valid);
    }
}
