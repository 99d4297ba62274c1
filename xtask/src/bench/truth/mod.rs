//! Bench `truth`: what dbdyno reports of a server whose truth is known, and what recording it
//! costs.

mod ask;
mod check;
mod page;
mod parts;
pub(super) mod server;
mod wake_ups;

use anyhow::Result;

use super::{Measured, Setting, machine};
use check::{Bound, Checks};
use parts::Round;

/// p99.9 with and without sampling.
#[derive(Debug, Default)]
struct Recording {
    on: Vec<f64>,
    off: Vec<f64>,
}

/// Asks everything once a round.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let mut checks = Checks::default();
    let mut recording = Recording::default();
    for number in 1..=setting.rounds {
        let folder = setting.folder.join(number.to_string());
        let round = Round { dbdyno: &setting.dbdyno, folder: &folder, number };
        parts::delays(&round, &mut checks)?;
        parts::freeze(&round, &mut checks)?;
        parts::burn(&round, &mut checks)?;
        wake_ups::burns(&round, &mut checks)?;
        parts::schedule(&round, &mut checks)?;
        let [on, off] = parts::recording(&round)?;
        recording.on.extend(on);
        recording.off.extend(off);
    }
    recording.judge(&mut checks);
    let facts = vec![format!("rounds: {}", setting.rounds), format!("server {}", machine::shares())];
    Ok(Measured::of(&page::grid(&checks), facts, checks.is_met()))
}

impl Recording {
    /// Sampling is not to be seen: the median with it is no greater than the greatest without.
    fn judge(&self, checks: &mut Checks) {
        let part = "delay 500us, 10000/s, sampling on and off in turn";
        let greatest = self.off.iter().copied().fold(0.0, f64::max);
        for &sample in &self.on {
            checks.add(part, "response p99.9 with sampling, µs", Bound::AtMost(greatest), sample);
        }
        for &sample in &self.off {
            checks.add(part, "response p99.9 without, µs", Bound::Shown, sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_seen_when_its_median_is_beyond_all_that_is_without() {
        let judged = |on: &[f64], off: &[f64]| {
            let mut checks = Checks::default();
            Recording { on: on.to_vec(), off: off.to_vec() }.judge(&mut checks);
            checks.is_met()
        };
        assert!(judged(&[600.0, 610.0, 900.0], &[590.0, 605.0, 615.0]));
        assert!(!judged(&[620.0, 630.0, 640.0], &[590.0, 605.0, 615.0]));
        assert!(!judged(&[], &[]));
    }
}
