//! The test for "equal for practical purposes": two one-sided tests (TOST) against a margin.
//!
//! Source: D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power
//! approach for assessing the equivalence of average bioavailability", J. Pharmacokinetics and
//! Biopharmaceutics 15 (1987).

use super::Interval;
use super::student::Estimate;

/// The range of log ratios that count as no difference, from −ln(1 + margin) to ln(1 + margin).
///
/// It is symmetric on the log scale, so that a against b and b against a get the same answer. 2 %
/// is a ratio from 0.9804 to 1.02.
pub fn bounds(margin: f64) -> Interval {
    let log = margin.max(0.0).ln_1p();
    Interval { low: -log, high: log }
}

/// The larger p of the two tests "not below the lower bound" and "not above the upper bound". It is
/// at most 0.05 exactly when the 90 % interval of the estimate lies within the bounds.
pub fn p_of_equivalence(estimate: Estimate, bounds: Interval) -> f64 {
    estimate.p_above(bounds.low).max(estimate.p_below(bounds.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    #[test]
    fn the_margin_is_symmetric_on_the_log_scale() {
        let bounds = bounds(0.02).exp();
        close(bounds.high, 1.02, 1e-12);
        close(bounds.low, 1.0 / 1.02, 1e-12);
    }

    #[test]
    fn the_greater_of_two_one_sided_tests_counts() {
        // The expected values are from SciPy 1.17's ttest_1samp against either bound.
        let values = [0.004, -0.006, 0.009, 0.001, -0.002];
        let estimate = Estimate::of_mean(&values).unwrap();
        close(p_of_equivalence(estimate, bounds(0.02)), 0.000_948_749_970_977_949_3, 1e-12);
    }

    #[test]
    fn equivalence_at_five_percent_is_a_ninety_percent_interval_within_the_bounds() {
        for centre in [-0.02, -0.01, 0.0, 0.012, 0.015, 0.0195] {
            let values = [centre + 0.004, centre - 0.006, centre + 0.009, centre + 0.001, centre - 0.002];
            let estimate = Estimate::of_mean(&values).unwrap();
            let bounds = bounds(0.02);
            let interval = estimate.interval(0.90);
            let within = bounds.contains(interval.low) && bounds.contains(interval.high);
            assert_eq!(p_of_equivalence(estimate, bounds) <= 0.05, within, "{centre}");
        }
    }

    #[test]
    fn exactly_equal_values_are_equivalent() {
        let estimate = Estimate::of_mean(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!(p_of_equivalence(estimate, bounds(0.02)), 0.0);
    }
}
