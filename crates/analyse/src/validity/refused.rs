//! Check for failed operations of the headline kind. A rate and percentiles over only those that a
//! server did answer make it look better.

use dbdyno_record::{ErrorClass, StepEvent};

use crate::model::{Code, KindResult, Warning};

/// Share of a step's operations that may fail. Its p99 is then still that of nearly all of them.
const MOST_FAILED_SHARE: f64 = 0.01;

/// Why the step's figures must not be used, if the server refused too many operations of `kind`.
/// Operations that were lost with their connection do not count: a plan that opens connections
/// again asks for the outage, and its length is reported.
pub(crate) fn fault(kind: &KindResult, events: &[StepEvent]) -> Option<Warning> {
    let failed = kind.failed.saturating_sub(kind.errors.lost);
    let ended = kind.operations + failed;
    let share = failed as f64 / ended as f64;
    (failed > 0 && share > MOST_FAILED_SHARE).then(|| {
        Warning::reason(Code::OperationsFailed)
            .with("kind", kind.kind.as_str())
            .with("share", share)
            .with("most", MOST_FAILED_SHARE)
            .with("failed", failed)
            .with("ended", ended)
            .with_some("error", first_error(&kind.kind, events))
    })
}

/// The first error as text, such as `canceling statement due to statement timeout (57014)`.
fn first_error(kind: &str, events: &[StepEvent]) -> Option<String> {
    events.iter().find_map(|event| match event {
        StepEvent::Error {
            kind: of, class: ErrorClass::Refused | ErrorClass::Retry, code, message, ..
        } if of == kind => Some(format!("{message} ({code})")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{ErrorClass, StepEvent, StepRecord};

    use crate::fixtures::{read_write_step, shown_all, validity_of};
    use crate::model::Validity;

    /// A step in which `failed` operations of `kind` failed, `lost` of them with their connection.
    fn failing(kind: &str, failed: u64, lost: u64) -> StepRecord {
        let mut step = read_write_step();
        let interval = step.intervals.iter_mut().find(|interval| interval.kind == kind).unwrap();
        (interval.failed, interval.errors.lost, interval.errors.refused) = (failed, lost, failed - lost);
        interval.due += failed;
        step.events.push(StepEvent::Error {
            at_us: 1,
            client: 1,
            kind: kind.to_owned(),
            class: ErrorClass::Refused,
            code: "57014".to_owned(),
            message: "statement timeout".to_owned(),
        });
        step
    }

    #[test]
    fn a_step_that_failed_more_than_a_hundredth_of_its_headline_is_invalid() {
        // 500 queries were answered in the window.
        assert_eq!(validity_of(failing("query", 5, 0)), Validity::Valid);
        let Validity::Invalid { reasons } = validity_of(failing("query", 125, 0)) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"operations-failed ended: 625, error: statement timeout (57014), failed: 125, kind: query, most: 0.01, share: 0.2");
    }

    #[test]
    fn what_was_lost_with_its_connection_and_other_kinds_do_not_count() {
        assert_eq!(validity_of(failing("query", 200, 200)), Validity::Valid);
        assert_eq!(validity_of(failing("delete", 200, 0)), Validity::Valid);
    }
}
