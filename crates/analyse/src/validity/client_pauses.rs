//! Whether dbdyno itself stalled in a step: stopped (Ctrl-Z), frozen with its container or machine,
//! or kept off the CPUs for so long that its figures are its own.
//!
//! The sampler's first thread sleeps from one whole second to the next and writes down how late it
//! woke (`late_us`). It has nothing to wait for but a CPU, whatever the server, a disk or a file
//! does: next to a hundred busy programs on its only CPU it wakes two tenths of a second late.
//! While it does not run, neither do the load threads, and the server is not to blame for what it
//! did not answer.

use crate::model::{Code, Notice};
use dbdyno_record::{CellRecord, StepRecord};

use crate::readings::span::Span;

/// One as long as this makes a step invalid. They are not added up: in hours of a machine that is
/// far too busy there may be two of half a second.
const LIMIT_US: i64 = 1_000_000;
/// From here on it is reported.
const REPORTED_US: i64 = 500_000;

/// How long dbdyno stalled at most at once within the common window, and up to a second less than
/// it did: what lies before the sampler was due is not seen.
fn longest_us(step: &StepRecord) -> i64 {
    let Some(((from_us, to_us), sampler)) = step.window().zip(step.counters.get("sampler")) else { return 0 };
    let window = Span::new(from_us, to_us);
    let late =
        sampler.values("late_us").map(|(at_us, late_us)| Span { from_us: at_us - late_us, to_us: at_us });
    late.map(|late| window.overlap(late)).map(|late| late.to_us - late.from_us).max().unwrap_or(0)
}

/// Why the step must not be used; `None` when dbdyno was at work all the time.
pub(crate) fn fault(step: &StepRecord) -> Option<Notice> {
    let still_us = Some(longest_us(step)).filter(|still_us| *still_us >= LIMIT_US)?;
    Some(Notice::reason(Code::Paused).with("seconds", still_us as f64 / 1e6))
}

/// A time that is too short for that.
pub(crate) fn notice(cell: &CellRecord, step: &StepRecord) -> Option<Notice> {
    let still_us = longest_us(step);
    let place = format!("block {} {} {}", cell.id.block, cell.id.variant, step.name);
    (REPORTED_US..LIMIT_US)
        .contains(&still_us)
        .then(|| Notice::new(Code::ClientPause).at(place).with("seconds", still_us as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, series, shown, shown_all};
    use crate::model::Validity;
    use crate::validity::validity;

    /// A step of 2 s, with when the sampler woke and how late.
    fn step(wakes: &[(i64, i64)]) -> StepRecord {
        let mut step = load_step(1_000);
        let samples: Vec<_> = wakes.iter().map(|(at_us, late_us)| (*at_us, vec![*late_us])).collect();
        step.counters.extend(series("sampler", &["late_us"], &samples));
        step
    }

    fn reported(step: &StepRecord) -> Option<String> {
        notice(&cell(1, "a", Vec::new()), step).as_ref().map(shown)
    }

    #[test]
    fn a_step_in_which_dbdyno_was_stopped_is_invalid() {
        let step = step(&[(-40_000, 0), (100, 0), (1_800_000, 1_100_000), (2_900_000, 900_000)]);
        let Validity::Invalid { reasons } = validity(&step) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"paused seconds: 1.1");
        assert_eq!(reported(&step), None);
    }

    #[test]
    fn a_busy_machine_and_what_lies_outside_of_the_window_make_nothing_invalid() {
        let busy = step(&[(0, 450_000), (1_490_000, 490_000), (2_300_000, 300_000)]);
        assert_eq!((validity(&busy), reported(&busy)), (Validity::Valid, None));
        let after = step(&[(100, 0), (1_000_100, 0), (5_000_000, 3_000_000)]);
        assert_eq!((validity(&after), reported(&after)), (Validity::Valid, None));
        let not_sampled = load_step(1_000);
        assert_eq!((validity(&not_sampled), reported(&not_sampled)), (Validity::Valid, None));
    }

    #[test]
    fn a_short_stop_is_reported() {
        let short = step(&[(100, 0), (900_000, 500_000), (1_600_000, 600_000)]);
        assert_eq!(validity(&short), Validity::Valid);
        insta::assert_snapshot!(reported(&short).unwrap(), @"client-pause [block 1 a l.i0] seconds: 0.6");
    }
}
