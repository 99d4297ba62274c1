//! How well a given number of blocks can show that two variants are the same: power of the two
//! one-sided tests, the margin that they reach, and the number of blocks for a margin.
//!
//! Both tests succeed when |estimate| < margin − t × s ÷ √n. Given the sample deviation, the
//! probability of that is a difference of normal probabilities. The power is its mean over the
//! distribution of the sample deviation, which is Owen's Q in another form.
//!
//! Sources: D. B. Owen, "A Special Case of a Bivariate Non-Central t-Distribution", Biometrika 52
//! (1965); K. F. Phillips, "Power of the Two One-Sided Tests Procedure in Bioequivalence", J.
//! Pharmacokinetics and Biopharmaceutics 18 (1990).

use statrs::distribution::{ContinuousCDF, Normal};

use super::power::{MOST_BLOCKS, least_blocks, mean_over_deviation};
use super::student::quantile;

/// Probability that a study of `blocks` shows two variants that differ by `difference` to be within
/// ± `margin` (both log ratios) at `level` (0.05), when log ratios scatter with `deviation`. It is
/// 0 for fewer than two blocks.
pub fn power_same(difference: f64, margin: f64, deviation: f64, blocks: u32, level: f64) -> f64 {
    if blocks < 2 {
        return 0.0;
    }
    if deviation <= 0.0 {
        return if difference.abs() < margin { 1.0 } else { 0.0 };
    }
    let error = deviation / f64::from(blocks).sqrt();
    power_at(difference / error, margin / error, f64::from(blocks - 1), level)
}

/// The smallest margin (log ratio) within which a study of `blocks` shows two equal variants to be
/// with `wanted` power; `None` for fewer than two blocks.
pub fn margin_for_same(deviation: f64, blocks: u32, level: f64, wanted: f64) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    let degrees = f64::from(blocks - 1);
    let (mut low, mut high) = (0.0, 4.0);
    while power_at(0.0, high, degrees, level) < wanted {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if power_at(0.0, middle, degrees, level) < wanted { low = middle } else { high = middle }
    }
    Some(high * deviation / f64::from(blocks).sqrt())
}

/// The smallest number of blocks that show two equal variants to be within `margin` (log ratio)
/// with `wanted` power; `None` when even [`MOST_BLOCKS`] do not.
pub fn blocks_for_same(margin: f64, deviation: f64, level: f64, wanted: f64) -> Option<u32> {
    least_blocks(MOST_BLOCKS, |blocks| power_same(0.0, margin, deviation, blocks, level) >= wanted)
}

/// Power for the difference and the margin, both in standard errors.
fn power_at(shift: f64, margin: f64, degrees: f64, level: f64) -> f64 {
    let critical = quantile(1.0 - level, degrees);
    let normal = Normal::standard();
    mean_over_deviation(degrees, |s| {
        let room = margin - critical * s;
        if room <= 0.0 { 0.0 } else { normal.cdf(room - shift) - normal.cdf(-room - shift) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::{close, normal};
    use crate::statistics::student::Estimate;

    /// Published powers of 2×2 crossover studies of bioequivalence: coefficient of variation,
    /// subjects, and the power for a true ratio of 0.95 and limits of 0.8 and 1.25. They are from
    /// the manual of the R package PowerTOST (D. Labes, H. Schütz, B. Lang), exact method.
    const PUBLISHED: [(f64, f64, f64); 3] =
        [(0.20, 20.0, 0.834_680), (0.25, 28.0, 0.807_439), (0.30, 40.0, 0.815_845)];

    #[test]
    fn power_is_that_of_published_tables() {
        for (variation, subjects, expected) in PUBLISHED {
            let variance: f64 = (variation * variation + 1.0_f64).ln();
            let error = (2.0 * variance / subjects).sqrt();
            let found = power_at(0.95_f64.ln() / error, 1.25_f64.ln() / error, subjects - 2.0, 0.05);
            close(found, expected, 2e-6);
        }
    }

    #[test]
    fn what_is_promised_is_what_studies_show() {
        let margin = margin_for_same(0.01, 5, 0.05, 0.8).unwrap();
        close(power_same(0.0, margin, 0.01, 5, 0.05), 0.8, 1e-9);
        let bounds = crate::statistics::Interval { low: -margin, high: margin };
        let shown = (0..2_000_u64).filter(|study| {
            let values: Vec<f64> = (0..5).map(|block| 0.01 * normal(*study, block)).collect();
            let estimate = Estimate::of_mean(&values).unwrap();
            crate::statistics::equivalence::p_of_equivalence(estimate, bounds) <= 0.05
        });
        close(shown.count() as f64 / 2_000.0, 0.8, 0.03);
    }

    #[test]
    fn blocks_for_a_margin_are_the_fewest_that_reach_it() {
        let blocks = blocks_for_same(0.02, 0.01, 0.05, 0.8).unwrap();
        let margin = |blocks| margin_for_same(0.01, blocks, 0.05, 0.8).unwrap();
        assert!(margin(blocks) <= 0.02 && margin(blocks - 1) > 0.02, "{blocks}");
        assert_eq!(
            (blocks_for_same(0.02, 0.0, 0.05, 0.8), blocks_for_same(0.02, 5.0, 0.05, 0.8)),
            (Some(2), None)
        );
    }
}
