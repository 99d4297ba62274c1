//! One figure that is held against a truth or a limit.

use crate::bench::spread::Spread;

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    /// Within this share of the truth, and of what the server itself measured.
    Near {
        truth: f64,
        share: f64,
    },
    AtMost(f64),
    /// For comparison only.
    Shown,
}

/// A figure with its measurements, one or more a round.
#[derive(Debug)]
pub(super) struct Check {
    /// What was asked: `exponential 5 ms at 10000/s`.
    pub(super) part: String,
    /// Which figure, with its unit.
    pub(super) figure: String,
    pub(super) bound: Bound,
    pub(super) samples: Vec<f64>,
    /// The same figure as the server itself measured it.
    pub(super) of_server: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Missed,
    /// The server itself was off by more than is allowed, so that nothing is known of the client.
    ServerWasOff,
    /// There is nothing to reach.
    None,
}

impl Check {
    pub(super) fn median(&self) -> f64 {
        Spread::of(self.samples.iter().copied()).median
    }

    /// The server's own median; `None` where it does not measure the same.
    pub(super) fn server_median(&self) -> Option<f64> {
        (!self.of_server.is_empty()).then(|| Spread::of(self.of_server.iter().copied()).median)
    }

    pub(super) fn verdict(&self) -> Verdict {
        if self.samples.is_empty() {
            return Verdict::Missed;
        }
        let is_met = match self.bound {
            Bound::Shown => return Verdict::None,
            Bound::AtMost(most) => self.median() <= most,
            Bound::Near { truth, share } => {
                let is_near = |value: f64, truth: f64| (value / truth - 1.0).abs() <= share;
                let own = self.server_median();
                if own.is_some_and(|own| !is_near(own, truth)) {
                    return Verdict::ServerWasOff;
                }
                // Errors of the two must not cancel.
                is_near(self.median(), truth) && own.is_none_or(|own| is_near(self.median(), own))
            }
        };
        if is_met { Verdict::Met } else { Verdict::Missed }
    }
}

/// All figures in the order in which they were first measured.
#[derive(Debug, Default)]
pub(super) struct Checks(pub(super) Vec<Check>);

impl Checks {
    /// One more measurement of `figure` of `part`. Returns all of them, for what the server itself
    /// says.
    pub(super) fn add(&mut self, part: &str, figure: &str, bound: Bound, sample: f64) -> &mut Check {
        let found = self.0.iter().position(|check| check.part == part && check.figure == figure);
        let index = found.unwrap_or_else(|| {
            let (part, figure) = (part.to_owned(), figure.to_owned());
            self.0.push(Check { part, figure, bound, samples: Vec::new(), of_server: Vec::new() });
            self.0.len() - 1
        });
        self.0[index].samples.push(sample);
        &mut self.0[index]
    }

    /// Nothing was missed, and nothing is left without a judgement.
    pub(super) fn is_met(&self) -> bool {
        let good = |check: &Check| matches!(check.verdict(), Verdict::Met | Verdict::None);
        !self.0.is_empty() && self.0.iter().all(good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_judged_by_the_median_unless_the_server_was_off() {
        let bound = Bound::Near { truth: 100.0, share: 0.03 };
        let mut checks = Checks::default();
        assert!(!checks.is_met(), "nothing measured is nothing met");
        for (sample, of_server) in [(102.9, 101.0), (150.0, 101.4), (97.2, 100.0)] {
            checks.add("a", "mean", bound, sample).of_server.push(of_server);
        }
        assert_eq!((checks.0.len(), checks.0[0].verdict()), (1, Verdict::Met));
        checks.add("a", "mean", bound, 104.0).of_server.push(101.0);
        assert_eq!((checks.0[0].verdict(), checks.is_met()), (Verdict::Missed, false));
        checks.0[0].of_server = vec![103.1; 4];
        assert_eq!((checks.0[0].verdict(), checks.is_met()), (Verdict::ServerWasOff, false));
        checks.0[0].samples = vec![101.0];
        checks.0[0].of_server = vec![97.5];
        assert_eq!(checks.0[0].verdict(), Verdict::Missed, "one error hides the other");
    }

    #[test]
    fn a_limit_is_met_at_the_limit_and_what_is_only_shown_always() {
        let mut checks = Checks::default();
        checks.add("a", "lag", Bound::AtMost(200.0), 200.0);
        checks.add("a", "shown", Bound::Shown, 1e9);
        assert!(checks.is_met());
        checks.add("b", "lag", Bound::AtMost(200.0), 200.1);
        assert!(!checks.is_met());
    }
}
