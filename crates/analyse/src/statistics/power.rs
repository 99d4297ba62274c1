//! What so many blocks can show: power, smallest detectable difference, blocks for a wanted one.
//!
//! Of the two-sided t-test of a mean of paired log ratios. The power is the noncentral t's, computed as the mean of normal
//! tails over the distribution of the sample deviation: P(|T| > c) = E[Φ(δ − c s) + Φ(−δ − c s)] with s² = χ² ÷ degrees and
//! δ = difference ÷ deviation × √blocks. Source: J. Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988),
//! chapter 2; the integral: D. B. Owen, "A Survey of Properties and Applications of the Noncentral t-Distribution",
//! Technometrics 10 (1968).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

use super::student::quantile;

/// The power that is usually asked for: four of five studies find a difference that is there.
pub const USUAL_POWER: f64 = 0.8;
/// More blocks than this are not looked for: no plan has them.
pub const MOST_BLOCKS: u32 = 1_000;

/// Panels of Simpson's rule; even.
const PANELS: u32 = 400;

/// Probability that a study of `blocks` finds a true `difference` (log ratio) at `level` (0.05), when log ratios scatter from
/// block to block with `deviation`. 0 for fewer than two blocks.
pub fn power(difference: f64, deviation: f64, blocks: u32, level: f64) -> f64 {
    if blocks < 2 {
        return 0.0;
    }
    if deviation <= 0.0 {
        return if difference == 0.0 { 0.0 } else { 1.0 };
    }
    power_at(difference.abs() / deviation * f64::from(blocks).sqrt(), blocks, level)
}

/// The least true difference (log ratio, positive) that a study of `blocks` finds with `wanted` power; `None` for fewer than
/// two blocks.
pub fn detectable(deviation: f64, blocks: u32, level: f64, wanted: f64) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    Some(detectable_shift(blocks, level, wanted) * deviation / f64::from(blocks).sqrt())
}

/// The noncentrality that is found with `wanted` power. Every comparison of a run asks for the same one, and each answer takes
/// dozens of integrals.
fn detectable_shift(blocks: u32, level: f64, wanted: f64) -> f64 {
    static KNOWN: Mutex<BTreeMap<(u32, u64, u64), f64>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry((blocks, level.to_bits(), wanted.to_bits())).or_insert_with(|| {
        let (mut low, mut high) = (0.0, 4.0);
        while power_at(high, blocks, level) < wanted {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if power_at(middle, blocks, level) < wanted { low = middle } else { high = middle }
        }
        high
    })
}

/// The least number of blocks that find a true `difference` (log ratio) with `wanted` power; `None` when even
/// [`MOST_BLOCKS`] do not.
pub fn blocks_needed(difference: f64, deviation: f64, level: f64, wanted: f64) -> Option<u32> {
    least_blocks(MOST_BLOCKS, |blocks| power(difference, deviation, blocks, level) >= wanted)
}

/// The least number from 2 to `most` that is `enough`, of which more are enough too.
pub(super) fn least_blocks(most: u32, enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !enough(most) {
        return None;
    }
    let (mut too_few, mut blocks) = (1, most);
    while blocks - too_few > 1 {
        let middle = u32::midpoint(too_few, blocks);
        if enough(middle) { blocks = middle } else { too_few = middle }
    }
    Some(blocks)
}

/// Power by the noncentrality δ.
fn power_at(shift: f64, blocks: u32, level: f64) -> f64 {
    let degrees = f64::from(blocks - 1);
    let critical = quantile(1.0 - level / 2.0, degrees);
    let normal = Normal::standard();
    mean_over_deviation(degrees, |s| normal.cdf(shift - critical * s) + normal.cdf(-shift - critical * s))
}

/// Mean of `of` over the distribution of a sample's deviation ÷ the true one, which is that of √(χ² ÷ `degrees`).
pub(super) fn mean_over_deviation(degrees: f64, of: impl Fn(f64) -> f64) -> f64 {
    let log_scale = std::f64::consts::LN_2 + degrees / 2.0 * (degrees / 2.0).ln() - ln_gamma(degrees / 2.0);
    let density = |s: f64| {
        // At 0 only one degree of freedom has any weight, and 0 × ln 0 would be no number.
        let power_of_s = if degrees > 1.0 { (degrees - 1.0) * s.max(f64::MIN_POSITIVE).ln() } else { 0.0 };
        (log_scale + power_of_s - degrees * s * s / 2.0).exp()
    };
    // s lies around 1 with a deviation of about 1 ÷ √(2 degrees); beyond nine of them there is nothing.
    let reach = 9.0 / (2.0 * degrees).sqrt();
    let (from, to) = ((1.0 - reach).max(0.0), 1.0 + reach);
    let width = (to - from) / f64::from(PANELS);
    let weight = |panel: u32| match panel {
        0 | PANELS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let term = |panel: u32| {
        let s = from + width * f64::from(panel);
        weight(panel) * density(s) * of(s)
    };
    ((0..=PANELS).map(term).sum::<f64>() * width / 3.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::simulations::close;

    /// Difference in deviations, blocks, power at 5 %; computed with SciPy 1.17's nct.
    const POWERS: [(f64, u32, f64); 9] = [
        (1.0, 2, 0.092_809_155_056),
        (1.0, 3, 0.179_255_393_777),
        (2.0, 3, 0.470_749_431_278),
        (1.0, 5, 0.401_389_917_372),
        (2.0, 5, 0.908_884_868_101),
        (0.5, 10, 0.293_175_606_514),
        (1.0, 10, 0.803_096_856_633),
        (0.3, 40, 0.456_522_112_706),
        (0.0, 7, 0.05),
    ];

    #[test]
    fn power_is_that_of_the_noncentral_t() {
        for (effect, blocks, expected) in POWERS {
            close(power(effect, 1.0, blocks, 0.05), expected, 1e-6);
        }
    }

    #[test]
    fn a_difference_of_half_a_deviation_needs_34_blocks() {
        // Cohen's table 2.4.1 and G*Power: d = 0.5, two-sided 5 %, power 80 %: 34 pairs.
        assert_eq!(blocks_needed(0.5, 1.0, 0.05, 0.8), Some(34));
        assert_eq!(blocks_needed(-0.5, 1.0, 0.05, 0.8), Some(34));
    }

    #[test]
    fn what_is_detectable_is_detected_with_the_wanted_power() {
        for blocks in [2, 3, 5, 10, 40] {
            let difference = detectable(0.013, blocks, 0.05, 0.8).unwrap();
            close(power(difference, 0.013, blocks, 0.05), 0.8, 1e-9);
        }
    }

    #[test]
    fn without_noise_two_blocks_show_everything_and_one_shows_nothing() {
        assert_eq!(blocks_needed(0.01, 0.0, 0.05, 0.8), Some(2));
        assert_eq!((power(0.01, 0.0, 1, 0.05), detectable(0.1, 1, 0.05, 0.8)), (0.0, None));
        assert_eq!(blocks_needed(0.0, 0.1, 0.05, 0.8), None);
    }
}
