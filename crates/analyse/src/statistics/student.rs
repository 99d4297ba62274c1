//! Means and their tests by Student's t and by F: intervals for paired differences and for two
//! independent groups (Welch), the test for "equal for practical purposes", and the test for
//! whether several groups have the same mean (one-way analysis of variance).
//!
//! Sources: Student, "The Probable Error of a Mean", Biometrika 6 (1908); B. L. Welch, "The
//! Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
//! Biometrika 34 (1947). Equivalence is by two one-sided tests (TOST) against a margin: D. J.
//! Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for
//! assessing the equivalence of average bioavailability", J. Pharmacokinetics and Biopharmaceutics
//! 15 (1987). Analysis of variance: R. A. Fisher, "Statistical Methods for Research Workers"
//! (1925), chapter VII. The incomplete beta function, by which the distributions of t and F are
//! computed, is that of the crate `statrs`.

use statrs::function::beta::beta_reg;

use crate::statistics::Interval;
use crate::statistics::describe::{deviation, mean};

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

    /// A figure of several blocks, with the standard error by the jackknife: `without` has the
    /// figure computed again without each block. `None` for fewer than two blocks.
    pub fn by_jackknife(value: f64, without: &[f64]) -> Option<Self> {
        let count = without.len() as f64;
        let standard_error = deviation(without)? * (count - 1.0) / count.sqrt();
        Some(Self { value, standard_error, degrees: count - 1.0 })
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

    /// The interval that contains the true value with this confidence (0.95), if the values are
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

/// The range of log ratios that count as no difference, from −ln(1 + margin) to ln(1 + margin).
///
/// It is symmetric on the log scale, so comparing a with b gives the same result as comparing b
/// with a. For a margin of 2 %, the ratios are from 0.9804 to 1.02.
pub fn equivalence_bounds(margin: f64) -> Interval {
    let log = margin.max(0.0).ln_1p();
    Interval { low: -log, high: log }
}

/// The larger p of the two tests "not below the lower bound" and "not above the upper bound". It is
/// at most 0.05 exactly when the 90 % interval of the estimate lies within the bounds.
pub fn p_of_equivalence(estimate: Estimate, bounds: Interval) -> f64 {
    estimate.p_above(bounds.low).max(estimate.p_below(bounds.high))
}

/// Probability of means at least this far apart if all values came from one normal distribution.
/// With two groups it is Student's t test with the pooled variance, so one of them may have a
/// single value. `None` for fewer than two groups, for an empty one, and where each has one value.
pub fn p_of_equal_means(groups: &[&[f64]]) -> Option<f64> {
    let all = groups.concat();
    let between_degrees = groups.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let within_degrees = all.len().checked_sub(groups.len()).filter(|degrees| *degrees > 0)? as f64;
    let of_all = mean(&all)?;
    let (mut between, mut within) = (0.0, 0.0);
    for group in groups {
        let own = mean(group)?;
        between += group.len() as f64 * (own - of_all).powi(2);
        within += group.iter().map(|value| (value - own).powi(2)).sum::<f64>();
    }
    if within == 0.0 {
        // Groups without any spread leave no doubt.
        return Some(if between > 0.0 { 0.0 } else { 1.0 });
    }
    let f = (between / between_degrees) / (within / within_degrees);
    let x = within_degrees / (within_degrees + between_degrees * f);
    Some(beta_reg(within_degrees / 2.0, between_degrees / 2.0, x))
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
    fn the_jackknife_of_a_mean_is_the_mean_with_its_standard_error() {
        let values = [3.0, 5.0, 4.0, 8.0];
        let without = |left_out: usize| (values.iter().sum::<f64>() - values[left_out]) / 3.0;
        let wanted = Estimate::of_mean(&values).unwrap();
        let found = Estimate::by_jackknife(wanted.value, &[0, 1, 2, 3].map(without)).unwrap();
        close(found.standard_error, wanted.standard_error, 1e-12);
        assert_eq!(found.degrees, wanted.degrees);
        assert!(Estimate::by_jackknife(1.0, &[1.0]).is_none());
    }

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
    fn one_value_says_nothing_about_its_spread() {
        assert!(Estimate::of_mean(&[1.0]).is_none());
        assert!(Estimate::of_difference(&[1.0], &[1.0, 2.0]).is_none());
    }

    #[test]
    fn the_margin_is_symmetric_on_the_log_scale() {
        let bounds = equivalence_bounds(0.02).exp();
        close(bounds.high, 1.02, 1e-12);
        close(bounds.low, 1.0 / 1.02, 1e-12);
    }

    #[test]
    fn the_larger_of_two_one_sided_tests_counts() {
        // The expected values are from SciPy 1.17's ttest_1samp against either bound.
        let values = [0.004, -0.006, 0.009, 0.001, -0.002];
        let estimate = Estimate::of_mean(&values).unwrap();
        close(p_of_equivalence(estimate, equivalence_bounds(0.02)), 0.000_948_749_970_977_949_3, 1e-12);
    }

    #[test]
    fn equivalence_at_five_percent_is_a_ninety_percent_interval_within_the_bounds() {
        for centre in [-0.02, -0.01, 0.0, 0.012, 0.015, 0.0195] {
            let values = [centre + 0.004, centre - 0.006, centre + 0.009, centre + 0.001, centre - 0.002];
            let estimate = Estimate::of_mean(&values).unwrap();
            let bounds = equivalence_bounds(0.02);
            let interval = estimate.interval(0.90);
            let within = bounds.contains(interval.low) && bounds.contains(interval.high);
            assert_eq!(p_of_equivalence(estimate, bounds) <= 0.05, within, "{centre}");
        }
    }

    #[test]
    fn exactly_equal_values_are_equivalent() {
        let estimate = Estimate::of_mean(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!(p_of_equivalence(estimate, equivalence_bounds(0.02)), 0.0);
    }

    /// Shell lengths of mussels from five places. It is the example in SciPy's `f_oneway`, from
    /// McDonald, Seed, Koehn (1991).
    const MUSSELS: [&[f64]; 5] = [
        &[0.0571, 0.0813, 0.0831, 0.0976, 0.0817, 0.0859, 0.0735, 0.0659, 0.0923, 0.0836],
        &[0.0873, 0.0662, 0.0672, 0.0819, 0.0749, 0.0649, 0.0835, 0.0725],
        &[0.0974, 0.1352, 0.0817, 0.1016, 0.0968, 0.1064, 0.105],
        &[0.1033, 0.0915, 0.0781, 0.0685, 0.0677, 0.0697, 0.0764, 0.0689],
        &[0.0703, 0.1026, 0.0956, 0.0973, 0.1039, 0.1045],
    ];

    #[test]
    fn the_probability_is_that_of_an_independent_implementation() {
        close(p_of_equal_means(&MUSSELS).unwrap(), 0.000_281_224_231_453_454_4, 1e-12);
    }

    #[test]
    fn for_two_groups_it_is_students_t_with_the_pooled_variance() {
        // For groups of the same size and variance, Welch's test gives the same result.
        let (base, new) = ([1.0, 2.0, 4.0], [3.0, 4.0, 6.0]);
        let expected = Estimate::of_difference(&base, &new).unwrap().p_of_difference();
        close(p_of_equal_means(&[&base, &new]).unwrap(), expected, 1e-12);
        // A single value is tested against three: t = (4 − 2) ÷ (1 × √(1 + 1 ÷ 3)) with 2 degrees
        // of freedom.
        let single = Estimate { value: 2.0, standard_error: (4.0_f64 / 3.0).sqrt(), degrees: 2.0 };
        close(p_of_equal_means(&[&[4.0], &[1.0, 2.0, 3.0]]).unwrap(), single.p_of_difference(), 1e-12);
    }

    #[test]
    fn groups_without_spread_are_certain_and_single_values_say_nothing() {
        assert_eq!(p_of_equal_means(&[&[1.0, 1.0], &[2.0, 2.0]]), Some(0.0));
        assert_eq!(p_of_equal_means(&[&[1.0, 1.0], &[1.0, 1.0]]), Some(1.0));
        assert_eq!(p_of_equal_means(&[&[1.0], &[2.0]]), None);
        assert_eq!(p_of_equal_means(&[&[1.0, 2.0]]), None);
        assert_eq!(p_of_equal_means(&[&[1.0, 2.0], &[]]), None);
        assert_eq!(p_of_equal_means(&[]), None);
    }
}
