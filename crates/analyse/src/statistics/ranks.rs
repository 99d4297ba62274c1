//! Methods by ranks. Kendall's test for drift asks whether values rise or fall in the order in
//! which the blocks were measured. The Hodges–Lehmann estimate, with its interval, is a centre that
//! one outlying block cannot move far.
//!
//! Sources for drift: H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13 (1945); M.
//! G. Kendall, "Rank Correlation Methods" (1948). The p is exact for up to [`EXACT`] values without
//! ties. Otherwise it is by the normal approximation, corrected for ties and continuity.
//!
//! Sources for the estimate: J. L. Hodges, E. L. Lehmann, "Estimates of Location Based on Rank
//! Tests", Ann. Math. Statist. 34 (1963). The interval is by J. W. Tukey; see M. Hollander, D. A.
//! Wolfe, "Nonparametric Statistical Methods", section 3.3. The method assumes a symmetric
//! distribution and nothing else.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::statistics::Interval;
use crate::statistics::describe::median;

/// Largest number of values for which the exact distribution is used.
pub const EXACT: usize = 60;

/// A trend. Its τ is −1 for values that fall at every step, and 1 for values that rise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Kendall's τ-a: (rising pairs − falling pairs) ÷ all pairs.
    pub tau: f64,
    /// Two-sided probability of at least such a trend in values that have none.
    pub p: f64,
}

/// The trend of `values` in their order; `None` for fewer than three values. A p below 0.05 needs
/// at least five values.
pub fn trend(values: &[f64]) -> Option<Trend> {
    if values.len() < 3 {
        return None;
    }
    let pairs = values.len() * (values.len() - 1) / 2;
    let signs =
        values.iter().enumerate().flat_map(|(at, a)| values[at + 1..].iter().map(move |b| sign(b - a)));
    let score: i64 = signs.sum();
    let ties = ties(values);
    let p = if ties.is_empty() && values.len() <= EXACT {
        exact_p(values.len(), score)
    } else {
        approximate_p(values.len(), score, &ties)
    };
    Some(Trend { tau: score as f64 / pairs as f64, p })
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

/// Sizes of the groups of equal values, without groups of one.
fn ties(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64).filter(|size| *size > 1.0).collect()
}

/// Exact p, from the number of orders of `count` values that have k inversions, k = 0, 1, …
fn exact_p(count: usize, score: i64) -> f64 {
    let pairs = count * (count - 1) / 2;
    let mut probabilities = vec![0.0; pairs + 1];
    probabilities[0] = 1.0;
    for size in 2..=count {
        // A new largest value has 0 to size − 1 values after it, and each number is equally likely.
        let before = probabilities.clone();
        for (inversions, probability) in probabilities.iter_mut().enumerate() {
            let from = inversions.saturating_sub(size - 1);
            *probability = before[from..=inversions].iter().sum::<f64>() / size as f64;
        }
    }
    let inversions = (pairs - score.unsigned_abs() as usize) / 2;
    (2.0 * probabilities[..=inversions].iter().sum::<f64>()).min(1.0)
}

fn approximate_p(count: usize, score: i64, ties: &[f64]) -> f64 {
    let part = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let variance = (part(count as f64) - ties.iter().map(|size| part(*size)).sum::<f64>()) / 18.0;
    if variance <= 0.0 || score == 0 {
        return 1.0;
    }
    let z = (score.unsigned_abs() as f64 - 1.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(z)).min(1.0)
}

/// A robust centre, with an interval whose confidence is known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HodgesLehmann {
    pub value: f64,
    pub interval: Interval,
    /// Confidence of the interval. It is at least what was asked for, unless there are too few
    /// values for that: 5 values can give no more than 0.9375.
    pub confidence: f64,
}

/// The estimate is the median of all pairwise means (Walsh averages). The interval lies between two
/// of them, by the exact distribution of Wilcoxon's signed-rank statistic. `None` for no values.
pub fn hodges_lehmann(values: &[f64], confidence: f64) -> Option<HodgesLehmann> {
    let averages = walsh_averages(values);
    let value = median(&averages)?;
    let tails = lower_tails(values.len());
    // At each end, the largest number of averages is cut off that keeps P(W < cut) within half of
    // what may be missed.
    let cut = tails.iter().take_while(|tail| **tail <= (1.0 - confidence) / 2.0).count();
    // Cutting off `cut` averages misses the truth with P(W ≤ cut − 1). With too few values not even
    // the outermost may be cut off.
    let missed = tails[cut.max(1) - 1];
    let outermost = cut.max(1) - 1;
    Some(HodgesLehmann {
        value,
        interval: Interval { low: averages[outermost], high: averages[averages.len() - 1 - outermost] },
        confidence: 1.0 - 2.0 * missed,
    })
}

/// Means of all pairs in ascending order. A value is paired with itself too.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let pairs =
        values.iter().enumerate().flat_map(|(at, a)| values[at..].iter().map(move |b| f64::midpoint(*a, *b)));
    let mut averages: Vec<f64> = pairs.collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// P(W ≤ w) for w = 0, 1, …. Each rank from 1 to `count` is in the sum with a probability of one
/// half.
fn lower_tails(count: usize) -> Vec<f64> {
    let largest = count * (count + 1) / 2;
    let mut probabilities = vec![0.0; largest + 1];
    probabilities[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=largest).rev() {
            let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = 0.5 * (probabilities[sum] + with);
        }
    }
    let running = probabilities.iter().scan(0.0, |total, probability| {
        *total += probability;
        Some(*total)
    });
    running.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    /// Values, τ and exact p, computed with SciPy 1.17's kendalltau.
    const TRENDS: [(&[f64], f64, f64); 3] = [
        (&[3.1, 2.9, 3.0, 2.5, 2.7, 2.2, 2.4], -0.714_285_714_285_714_3, 0.030_158_730_158_730_16),
        (
            &[10.0, 12.0, 11.0, 15.0, 14.0, 13.0, 17.0, 16.5],
            0.642_857_142_857_142_8,
            0.031_150_793_650_793_65,
        ),
        (&[5.0, 4.0, 1.0, 2.0, 3.0], -0.4, 0.483_333_333_333_333_34),
    ];

    #[test]
    fn five_values_that_only_rise_have_two_of_120_orders() {
        let found = trend(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(found.tau, 1.0);
        close(found.p, 2.0 / 120.0, 1e-12);
    }

    #[test]
    fn trends_are_those_of_an_independent_implementation() {
        for (values, tau, p) in TRENDS {
            let found = trend(values).unwrap();
            close(found.tau, tau, 1e-9);
            close(found.p, p, 1e-9);
        }
    }

    #[test]
    fn ties_are_no_trend() {
        assert_eq!(trend(&[2.0; 6]), Some(Trend { tau: 0.0, p: 1.0 }));
        // S = 8 and the variance is (6*5*17 − 2*1*9)/18 = 27.33, so z = 7/5.228 = 1.3389 and p
        // = 0.1806.
        let found = trend(&[1.0, 2.0, 2.0, 4.0, 3.0, 2.5]).unwrap();
        close(found.p, 0.180_6, 5e-5);
    }

    #[test]
    fn the_approximation_meets_the_exact_distribution() {
        close(exact_p(60, 300), approximate_p(60, 300, &[]), 5e-4);
    }

    #[test]
    fn two_values_have_no_trend() {
        assert_eq!(trend(&[1.0, 2.0]), None);
    }

    /// Hamilton's depression scale, after minus before, from Hollander and Wolfe's table 3.1.
    const HAMILTON: [f64; 9] = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];

    #[test]
    fn the_textbooks_example_has_the_textbooks_estimate_and_interval() {
        // Hollander and Wolfe give the estimate −0.46 and the 96 % interval from −0.786 to −0.010.
        let found = hodges_lehmann(&HAMILTON, 0.95).unwrap();
        close(found.value, -0.46, 1e-9);
        close(found.interval.low, -0.786, 1e-9);
        close(found.interval.high, -0.010, 1e-9);
        close(found.confidence, 1.0 - 2.0 * 10.0 / 512.0, 1e-12);
    }

    #[test]
    fn tails_are_counts_of_subsets() {
        // The 16 subsets of {1, 2, 3, 4} have the sums 0, 1 and 2 once, 3 and 4 twice, ...
        let tails = lower_tails(4);
        assert_eq!(tails[..5], [1.0 / 16.0, 2.0 / 16.0, 3.0 / 16.0, 5.0 / 16.0, 7.0 / 16.0]);
        assert_eq!(tails[10], 1.0);
    }

    #[test]
    fn five_values_give_at_most_93_75_percent_and_say_so() {
        let found = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 50.0], 0.95).unwrap();
        assert_eq!(found.confidence, 0.9375);
        assert_eq!(found.interval, Interval { low: 1.0, high: 50.0 });
        assert_eq!(found.value, 3.0, "50 instead of 5 leaves the centre where it was");
    }

    #[test]
    fn six_values_reach_95_percent() {
        assert_eq!(hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap().confidence, 0.968_75);
    }
}
