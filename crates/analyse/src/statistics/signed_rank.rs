//! The Hodges–Lehmann estimate with its interval: a centre that one outlying block cannot move far.
//!
//! Sources: J. L. Hodges, E. L. Lehmann, "Estimates of Location Based on Rank Tests", Ann. Math.
//! Statist. 34 (1963). The interval is by J. W. Tukey; see M. Hollander, D. A. Wolfe,
//! "Nonparametric Statistical Methods", section 3.3. The method assumes a symmetric distribution
//! and nothing else.

use serde::Serialize;

use super::Interval;
use super::describe::median;

/// A robust centre, with an interval whose confidence is known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HodgesLehmann {
    pub value: f64,
    pub interval: Interval,
    /// Confidence of the interval. It is at least what was asked for, where so few values can give
    /// that: 5 values can give no more than 0.9375.
    pub confidence: f64,
}

/// The estimate is the median of all pairwise means (Walsh averages). The interval lies between two
/// of them, by the exact distribution of Wilcoxon's signed-rank statistic. `None` for no values.
pub fn hodges_lehmann(values: &[f64], confidence: f64) -> Option<HodgesLehmann> {
    let averages = walsh_averages(values);
    let value = median(&averages)?;
    let tails = lower_tails(values.len());
    // As many averages are cut off at each end as keep P(W < cut) within half of what may be
    // missed.
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
    let greatest = count * (count + 1) / 2;
    let mut probabilities = vec![0.0; greatest + 1];
    probabilities[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=greatest).rev() {
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
