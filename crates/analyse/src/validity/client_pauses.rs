//! Check whether the client itself stood still in a step: it was stopped (Ctrl-Z, SIGSTOP), frozen
//! with its control group, or its machine was. In that time it sent the server nothing to answer.
//!
//! The load engine records each pause, without the time in which it waited for a CPU
//! ([`StepEvent::Paused`]).

use dbdyno_record::{CellRecord, StepEvent, StepRecord};

use crate::model::{Code, Warning};
use crate::window::Span;

/// Share of the common window from which a step is invalid. It is the same as for a CPU quota.
const LIMIT: f64 = 0.02;
/// Share from which a pause is reported.
const REPORTED: f64 = 0.005;

/// How long the client stood still within the common window, in seconds and as a share of it.
/// Several client hosts may have stood still at the same time.
fn stood_still(step: &StepRecord) -> Option<(f64, f64)> {
    let (from_us, to_us) = step.window().filter(|(from_us, to_us)| from_us < to_us)?;
    let window = Span::new(from_us, to_us);
    let paused = |event: &StepEvent| match event {
        StepEvent::Paused { to_us, paused_us } => {
            Some(window.overlap(Span::new(to_us.saturating_sub(*paused_us), *to_us)))
        }
        _ => None,
    };
    let seconds: f64 = step.events.iter().filter_map(paused).map(|pause| pause.seconds().max(0.0)).sum();
    Some((seconds, (seconds / window.seconds()).min(1.0)))
}

/// Why the step must not be used; `None` when the client was at work.
pub(crate) fn fault(step: &StepRecord) -> Option<Warning> {
    let (seconds, share) = stood_still(step).filter(|(_, share)| *share > LIMIT)?;
    Some(Warning::reason(Code::Paused).with("seconds", seconds).with("share", share).with("limit", LIMIT))
}

/// A warning for a shorter pause that is still long enough to be reported.
pub(crate) fn warning(cell: &CellRecord, step: &StepRecord) -> Option<Warning> {
    let (seconds, share) = stood_still(step)?;
    let place = format!("block {} {} {}", cell.id.block, cell.id.variant, step.name);
    (share > REPORTED && share <= LIMIT)
        .then(|| Warning::new(Code::ClientPause).at(place).with("seconds", seconds).with("share", share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, shown, shown_all};
    use crate::model::Validity;
    use crate::validity::validity;

    /// A step of 2 s. The client stood still before each of these times, for the time after it, in
    /// ms.
    fn step(pauses: &[(u64, u64)]) -> StepRecord {
        let mut step = load_step(1_000);
        let paused =
            |(to_ms, ms): &(u64, u64)| StepEvent::Paused { to_us: 1000 * to_ms, paused_us: 1000 * ms };
        step.events.extend(pauses.iter().map(paused));
        step
    }

    fn reported(step: &StepRecord) -> Option<String> {
        warning(&cell(1, "a", Vec::new()), step).as_ref().map(shown)
    }

    #[test]
    fn a_step_in_which_the_client_stood_still_is_invalid() {
        // The client was stopped for 4 s, of which half a second lies within the window.
        let step = step(&[(5_500, 4_000)]);
        let Validity::Invalid { reasons } = validity(&step) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"paused limit: 0.02, seconds: 0.5, share: 0.25");
        assert_eq!(reported(&step), None);
    }

    #[test]
    fn pauses_add_up_and_short_ones_are_reported() {
        let short = step(&[(500, 15), (1_500, 15)]);
        insta::assert_snapshot!(reported(&short).unwrap(), @"client-pause [block 1 a l.i0] seconds: 0.03, share: 0.015");
        assert_eq!(validity(&short), Validity::Valid);
        assert!(matches!(validity(&step(&[(500, 25), (1_500, 25)])), Validity::Invalid { .. }));
    }

    #[test]
    fn what_lies_outside_of_the_window_makes_nothing_invalid() {
        let after = step(&[(5_000, 2_900)]);
        assert_eq!((validity(&after), reported(&after)), (Validity::Valid, None));
    }
}
