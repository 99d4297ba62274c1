//! Computes how much a given number of blocks can show: the power, the smallest difference that is
//! reported, and the number of blocks for a wanted difference. The same is computed for showing
//! that two variants are the same, with the margin that two one-sided tests reach.
//!
//! A difference is reported when the two-sided t-test of the mean of paired log ratios finds it and
//! the estimate lies beyond the margin. Given the sample deviation s and the test's critical value
//! c, the estimate must exceed the larger of c s and the margin, all in standard errors. The
//! probability of that is a normal tail. The power is the mean of these tails over the distribution
//! of the sample deviation: E[Φ(δ − max(c s, m)) + Φ(−δ − max(c s, m))] with s² = χ² ÷ degrees,
//! δ = difference ÷ deviation × √blocks, and m made from the margin in the same way. With no margin
//! it is the noncentral t's power.
//!
//! Two variants are shown to be the same when |estimate| < margin − t × s ÷ √n, where both
//! one-sided tests succeed. Given the sample deviation, the probability of that is a difference of
//! normal probabilities. The power is its mean over the distribution of the sample deviation, which
//! is Owen's Q in another form.
//!
//! Sources: J. Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988), chapter 2;
//! for the integral D. B. Owen, "A Survey of Properties and Applications of the Noncentral
//! t-Distribution", Technometrics 10 (1968); for sameness D. B. Owen, "A Special Case of a
//! Bivariate Non-Central t-Distribution", Biometrika 52 (1965), and K. F. Phillips, "Power of the
//! Two One-Sided Tests Procedure in Bioequivalence", J. Pharmacokinetics and Biopharmaceutics 18
//! (1990).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

use crate::statistics::student::quantile;

/// The usual power: four out of five studies detect a difference that exists.
pub const USUAL_POWER: f64 = 0.8;
/// Largest number of blocks that is tried, because no plan has more.
pub const MAX_BLOCKS: u32 = 1_000;

/// Number of panels in Simpson's rule, which must be even.
const PANELS: u32 = 400;

/// Probability that a study of `blocks` detects a true `difference` at `level` (0.05). Log ratios
/// scatter from block to block with `deviation`, and estimates within ± `margin` are not reported.
/// Difference and margin are log ratios. With a margin of 0, the result is the power of the t-test
/// alone. It is 0 for fewer than two blocks.
pub fn power(difference: f64, margin: f64, deviation: f64, blocks: u32, level: f64) -> f64 {
    if blocks < 2 {
        return 0.0;
    }
    if deviation <= 0.0 {
        return if difference.abs() > margin { 1.0 } else { 0.0 };
    }
    let error = deviation / f64::from(blocks).sqrt();
    power_at(difference.abs() / error, margin / error, blocks, level)
}

/// The smallest true difference (log ratio, positive) that a study of `blocks` detects with
/// `wanted` power. It is always more than the margin, because half of all estimates lie within the
/// margin when the difference is just as large. `None` for fewer than two blocks.
pub fn detectable(margin: f64, deviation: f64, blocks: u32, level: f64, wanted: f64) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    if deviation <= 0.0 {
        return Some(margin);
    }
    let error = deviation / f64::from(blocks).sqrt();
    Some(error * detectable_shift(margin / error, blocks, level, wanted))
}

/// The noncentrality that is reported with `wanted` power. It is found by regula falsi in its
/// Illinois form, which needs few steps: every comparison in a run asks for one, and each step
/// takes an integral.
fn detectable_shift(margin: f64, blocks: u32, level: f64, wanted: f64) -> f64 {
    let beyond = |shift: f64| power_at(shift, margin, blocks, level) - wanted;
    let (mut low, mut high) = (0.0, margin + 4.0);
    let (mut at_low, mut at_high) = (beyond(low), beyond(high));
    while at_high < 0.0 {
        (low, at_low) = (high, at_high);
        high *= 2.0;
        at_high = beyond(high);
    }
    for _ in 0..60 {
        let between = (low * at_high - high * at_low) / (at_high - at_low);
        let found = beyond(between);
        if found.abs() < 1e-12 || high - low < 1e-12 * high {
            return between;
        }
        if found < 0.0 {
            (low, at_low, at_high) = (between, found, at_high / 2.0);
        } else {
            (high, at_high, at_low) = (between, found, at_low / 2.0);
        }
    }
    high
}

/// The smallest number of blocks that detect a true `difference` (log ratio) with `wanted` power.
/// `None` when even [`MAX_BLOCKS`] do not, as for every difference that is no larger than the
/// margin.
pub fn blocks_needed(difference: f64, margin: f64, deviation: f64, level: f64, wanted: f64) -> Option<u32> {
    min_blocks(MAX_BLOCKS, |blocks| power(difference, margin, deviation, blocks, level) >= wanted)
}

/// The smallest number from 2 to `most` that is `enough`, where all larger numbers are enough too.
fn min_blocks(most: u32, enough: impl Fn(u32) -> bool) -> Option<u32> {
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

/// Power for the noncentrality δ and the margin, both in standard errors.
fn power_at(shift: f64, margin: f64, blocks: u32, level: f64) -> f64 {
    let degrees = f64::from(blocks - 1);
    let critical = critical(degrees, level);
    mean_over_deviation(degrees, |s| {
        let threshold = margin.max(critical * s);
        normal_below(shift - threshold) + normal_below(-shift - threshold)
    })
}

/// The two-sided critical value of t. It is cached, like [`nodes`].
fn critical(degrees: f64, level: f64) -> f64 {
    static CACHE: Mutex<BTreeMap<[u64; 2], f64>> = Mutex::new(BTreeMap::new());
    let mut known = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = [degrees, level].map(f64::to_bits);
    *known.entry(asked).or_insert_with(|| quantile(1.0 - level / 2.0, degrees))
}

/// Φ, the normal distribution. Beyond nine deviations, where most of the integral lies for few
/// blocks, it is 0 or 1 to the last digit of a sum.
fn normal_below(x: f64) -> f64 {
    if x.abs() < 9.0 { Normal::standard().cdf(x) } else { f64::from(u8::from(x > 0.0)) }
}

/// Mean of `of` over the distribution of a sample's deviation ÷ the true one, which is the
/// distribution of √(χ² ÷ `degrees`).
fn mean_over_deviation(degrees: f64, of: impl Fn(f64) -> f64) -> f64 {
    nodes(degrees).iter().map(|(s, weight)| weight * of(*s)).sum::<f64>().clamp(0.0, 1.0)
}

/// Sample deviations, each with its weight in the mean.
type Nodes = Arc<[(f64, f64)]>;

/// The nodes for `degrees`. They are cached, because a run asks hundreds of times for the same few.
fn nodes(degrees: f64) -> Nodes {
    static CACHE: Mutex<BTreeMap<u64, Nodes>> = Mutex::new(BTreeMap::new());
    let mut known = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(known.entry(degrees.to_bits()).or_insert_with(|| weighted(degrees)))
}

/// The nodes by Simpson's rule, for the density of √(χ² ÷ `degrees`).
fn weighted(degrees: f64) -> Nodes {
    let log_scale = std::f64::consts::LN_2 + degrees / 2.0 * (degrees / 2.0).ln() - ln_gamma(degrees / 2.0);
    let density = |s: f64| {
        // At 0 the density is above 0 for one degree of freedom only, and 0 × ln 0 would not be a
        // number.
        let power_of_s = if degrees > 1.0 { (degrees - 1.0) * s.max(f64::MIN_POSITIVE).ln() } else { 0.0 };
        (log_scale + power_of_s - degrees * s * s / 2.0).exp()
    };
    // s lies around 1 with a deviation of about 1 ÷ √(2 degrees). Beyond nine of these the density
    // adds nothing.
    let reach = 9.0 / (2.0 * degrees).sqrt();
    let (from, to) = ((1.0 - reach).max(0.0), 1.0 + reach);
    let width = (to - from) / f64::from(PANELS);
    let factor = |panel: u32| match panel {
        0 | PANELS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let node = |panel: u32| {
        let s = from + width * f64::from(panel);
        (s, factor(panel) * density(s) * width / 3.0)
    };
    (0..=PANELS).map(node).collect()
}

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
    power_same_at(difference / error, margin / error, f64::from(blocks - 1), level)
}

/// The smallest margin (log ratio) within which a study of `blocks` shows two equal variants to be
/// with `wanted` power; `None` for fewer than two blocks.
pub fn margin_for_same(deviation: f64, blocks: u32, level: f64, wanted: f64) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    let degrees = f64::from(blocks - 1);
    let (mut low, mut high) = (0.0, 4.0);
    while power_same_at(0.0, high, degrees, level) < wanted {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if power_same_at(0.0, middle, degrees, level) < wanted { low = middle } else { high = middle }
    }
    Some(high * deviation / f64::from(blocks).sqrt())
}

/// The smallest number of blocks that show two equal variants to be within `margin` (log ratio)
/// with `wanted` power; `None` when even [`MAX_BLOCKS`] do not.
pub fn blocks_for_same(margin: f64, deviation: f64, level: f64, wanted: f64) -> Option<u32> {
    min_blocks(MAX_BLOCKS, |blocks| power_same(0.0, margin, deviation, blocks, level) >= wanted)
}

/// Power for the difference and the margin, both in standard errors.
fn power_same_at(shift: f64, margin: f64, degrees: f64, level: f64) -> f64 {
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

    /// Difference in deviations, blocks, and power at 5 %, computed with SciPy 1.17's nct.
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
            close(power(effect, 0.0, 1.0, blocks, 0.05), expected, 1e-6);
        }
    }

    #[test]
    fn a_difference_of_half_a_deviation_needs_34_blocks() {
        // Cohen's table 2.4.1 and G*Power give 34 pairs for d = 0.5, two-sided 5 % and a power of
        // 80 %.
        assert_eq!(blocks_needed(0.5, 0.0, 1.0, 0.05, 0.8), Some(34));
        assert_eq!(blocks_needed(-0.5, 0.0, 1.0, 0.05, 0.8), Some(34));
    }

    #[test]
    fn a_detectable_difference_has_the_wanted_power_and_lies_beyond_the_margin() {
        for blocks in [2, 3, 5, 10, 40] {
            for margin in [0.0, 0.005, 0.02, 0.2] {
                let difference = detectable(margin, 0.013, blocks, 0.05, 0.8).unwrap();
                close(power(difference, margin, 0.013, blocks, 0.05), 0.8, 1e-9);
                assert!(difference > margin, "{blocks} {margin}: {difference}");
            }
        }
    }

    /// The studies' noise, difference, margin and blocks.
    const STUDIES: [(f64, f64, f64, u32); 4] =
        [(0.01, 0.02, 0.02, 5), (0.01, 0.03, 0.02, 5), (0.02, 0.04, 0.02, 10), (0.005, 0.008, 0.02, 5)];

    #[test]
    fn the_computed_share_of_studies_detects_a_difference() {
        for (deviation, difference, margin, blocks) in STUDIES {
            let reported = (0..4_000_u64).filter(|study| {
                let value = |block| difference + deviation * normal(*study, u64::from(block));
                let values: Vec<f64> = (0..blocks).map(value).collect();
                let estimate = Estimate::of_mean(&values).unwrap();
                estimate.value.abs() > margin && estimate.p_of_difference() <= 0.05
            });
            let promised = power(difference, margin, deviation, blocks, 0.05);
            close(reported.count() as f64 / 4_000.0, promised, 0.025);
        }
    }

    #[test]
    fn a_difference_of_no_more_than_the_margin_needs_more_blocks_than_there_are() {
        assert_eq!(blocks_needed(0.02, 0.02, 0.01, 0.05, 0.8), None);
        assert_eq!(blocks_needed(0.04, 0.02, 0.01, 0.05, 0.8), Some(3));
    }

    #[test]
    fn without_noise_two_blocks_show_everything_and_one_shows_nothing() {
        assert_eq!(blocks_needed(0.03, 0.02, 0.0, 0.05, 0.8), Some(2));
        assert_eq!((power(0.01, 0.0, 0.0, 1, 0.05), detectable(0.0, 0.1, 1, 0.05, 0.8)), (0.0, None));
        assert_eq!(detectable(0.02, 0.0, 5, 0.05, 0.8), Some(0.02));
        assert_eq!(blocks_needed(0.0, 0.0, 0.1, 0.05, 0.8), None);
    }

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
            let found = power_same_at(0.95_f64.ln() / error, 1.25_f64.ln() / error, subjects - 2.0, 0.05);
            close(found, expected, 2e-6);
        }
    }

    #[test]
    fn the_computed_share_of_studies_shows_two_equal_variants_to_be_the_same() {
        let margin = margin_for_same(0.01, 5, 0.05, 0.8).unwrap();
        close(power_same(0.0, margin, 0.01, 5, 0.05), 0.8, 1e-9);
        let bounds = crate::statistics::Interval { low: -margin, high: margin };
        let shown = (0..2_000_u64).filter(|study| {
            let values: Vec<f64> = (0..5).map(|block| 0.01 * normal(*study, block)).collect();
            let estimate = Estimate::of_mean(&values).unwrap();
            crate::statistics::student::p_of_equivalence(estimate, bounds) <= 0.05
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
