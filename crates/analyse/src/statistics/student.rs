//! Means and their intervals by Student's t, for paired differences and for two independent groups
//! (Welch).
//!
//! Sources: Student, "The Probable Error of a Mean", Biometrika 6 (1908); B. L. Welch, "The
//! Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
//! Biometrika 34 (1947). The incomplete beta function, by which t's distribution is computed, is
//! that of the crate `statrs`.

use statrs::function::beta::beta_reg;

use super::Interval;
use super::describe::{deviation, mean};

/// An estimate with its standard error and degrees of freedom, which is all that intervals and
/// tests by t need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub standard_error: f64,
    pub degrees: f64,
}

impl Estimate {
    /// Mean of one group, for instance the log ratios of paired blocks. `None` for fewer than two
    /// values.
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        Some(Self {
            value: mean(values)?,
            standard_error: deviation(values)? / count.sqrt(),
            degrees: count - 1.0,
        })
    }

    /// Mean of `new` minus mean of `base`, which were measured independently. The standard error is
    /// Welch's, and the degrees of freedom are by Welch and Satterthwaite. `None` when either has
    /// fewer than two values.
    pub fn of_difference(base: &[f64], new: &[f64]) -> Option<Self> {
        let part =
            |values: &[f64]| Some((deviation(values)?.powi(2) / values.len() as f64, values.len() as f64));
        let ((a, a_count), (b, b_count)) = (part(base)?, part(new)?);
        let spread = a * a / (a_count - 1.0) + b * b / (b_count - 1.0);
        // For two groups without any spread, the fraction below would be 0 ÷ 0.
        let degrees = if spread > 0.0 { (a + b).powi(2) / spread } else { a_count + b_count - 2.0 };
        Some(Self { value: mean(new)? - mean(base)?, standard_error: (a + b).sqrt(), degrees })
    }

    /// The interval that holds the true value with this confidence (0.95), if the values are
    /// normally distributed.
    pub fn interval(self, confidence: f64) -> Interval {
        let half = quantile(f64::midpoint(1.0, confidence), self.degrees) * self.standard_error;
        Interval { low: self.value - half, high: self.value + half }
    }

    /// Two-sided probability of an estimate at least this far from 0 if the true value were 0.
    pub fn p_of_difference(self) -> f64 {
        (2.0 * self.p_above(0.0).min(self.p_below(0.0))).min(1.0)
    }

    /// Probability of an estimate at least this large if the true value were `bound`. A small one
    /// suggests that the true value is above `bound`.
    pub fn p_above(self, bound: f64) -> f64 {
        self.p_below_zero(bound - self.value)
    }

    /// Probability of an estimate at most this large if the true value were `bound`. A small one
    /// suggests that the true value is below `bound`.
    pub fn p_below(self, bound: f64) -> f64 {
        self.p_below_zero(self.value - bound)
    }

    fn p_below_zero(self, distance: f64) -> f64 {
        match (distance.total_cmp(&0.0), self.standard_error > 0.0) {
            (_, true) => cdf(distance / self.standard_error, self.degrees),
            // Values without any spread leave no doubt.
            _ if distance == 0.0 => 1.0,
            (std::cmp::Ordering::Less, false) => 0.0,
            (_, false) => 1.0,
        }
    }
}

/// P(T ≤ t) for Student's t with `degrees` of freedom, by the regularised incomplete beta function.
pub fn cdf(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 1.0 } else { 0.0 };
    }
    let tail = 0.5 * beta_reg(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The t with P(T ≤ t) = `probability`. It inverts [`cdf`] by halving until no number lies between,
/// which is slow, simple and exact to 1e-12.
pub fn quantile(probability: f64, degrees: f64) -> f64 {
    if probability < 0.5 {
        return -quantile(1.0 - probability, degrees);
    }
    if probability >= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while cdf(high, degrees) < probability {
        (low, high) = (high, high * 2.0);
    }
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if cdf(middle, degrees) < probability { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    /// Probability, degrees of freedom and quantile, computed with SciPy 1.17.
    const QUANTILES: [(f64, f64, f64); 8] = [
        (0.975, 1.0, 12.706_204_736_174_7),
        (0.975, 2.0, 4.302_652_729_749_46),
        (0.975, 4.0, 2.776_445_105_197_79),
        (0.95, 9.0, 1.833_112_932_656_24),
        (0.995, 3.0, 5.840_909_309_733_36),
        (0.9, 30.0, 1.310_415_025_391_4),
        (0.975, 5.7, 2.478_471_308_700_61),
        (0.999, 200.0, 3.131_479_814_221_12),
    ];

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (probability, degrees, expected) in QUANTILES {
            close(quantile(probability, degrees), expected, 1e-9);
            close(quantile(1.0 - probability, degrees), -expected, 1e-9);
            close(cdf(expected, degrees), probability, 1e-12);
        }
    }

    #[test]
    fn a_mean_of_paired_differences_has_students_interval() {
        // These are Student's own data of 1908: the hours of sleep that one drug gained over
        // another. He published t = -4.0621, p = 0.00283.
        let gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let estimate = Estimate::of_mean(&gained).unwrap();
        close(estimate.value / estimate.standard_error, 4.062_127_683_382_037, 1e-12);
        close(estimate.p_of_difference(), 0.002_832_890_197_384_25, 1e-12);
        let interval = estimate.interval(0.95);
        close(interval.low, 0.700_114_236_723_017_4, 1e-9);
        close(interval.high, 2.459_885_763_276_982_4, 1e-9);
    }

    #[test]
    fn two_groups_are_compared_as_by_welch() {
        // The expected values are from SciPy 1.17's ttest_ind without equal variances.
        let base = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let new = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.0, 23.9];
        let estimate = Estimate::of_difference(&base, &new).unwrap();
        close(estimate.value / estimate.standard_error, 2.835_263_800_664_482, 1e-9);
        close(estimate.degrees, 27.713_625_968_118_762, 1e-9);
        close(estimate.p_of_difference(), 0.008_452_732_437_443_423, 1e-9);
    }

    #[test]
    fn values_without_spread_are_certain() {
        let same = Estimate::of_mean(&[0.0, 0.0]).unwrap();
        assert_eq!((same.p_of_difference(), same.interval(0.95)), (1.0, Interval { low: 0.0, high: 0.0 }));
        let more = Estimate::of_mean(&[0.1, 0.1]).unwrap();
        assert_eq!((more.p_of_difference(), more.p_above(0.0), more.p_below(0.0)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn one_value_says_nothing_of_its_spread() {
        assert!(Estimate::of_mean(&[1.0]).is_none());
        assert!(Estimate::of_difference(&[1.0], &[1.0, 2.0]).is_none());
    }
}
