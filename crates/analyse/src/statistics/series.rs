//! Computes figures for one time series with one value per second: its longest gap, its share of
//! slow seconds, its period, its two modes, and how much of its beginning is warm-up. The figures
//! describe one run, whose seconds never count as repetitions.
//!
//! Warm-up is found by the method MSER-5. Sources: K. P. White Jr., "An effective truncation
//! heuristic for bias reduction in simulation output", Simulation 69 (1997); K. P. White Jr., M. J.
//! Cobb, S. C. Spratt, "A comparison of five steady-state truncation heuristics for simulation",
//! Winter Simulation Conference 2000. The beginning is cut where the mean of the rest has the
//! smallest standard error. Unlike a test, the method may be used on seconds that depend on each
//! other.

use crate::statistics::describe::{deviation, mean, median};

/// Smallest share of all values that each mode must have.
const MIN_MODE_SHARE: f64 = 0.1;
/// Smallest share of the variance that the split into two groups must explain. A normal
/// distribution that is split at its middle gives 0.64, and a uniform distribution gives 0.75. A
/// series above this limit has neither distribution.
const MIN_EXPLAINED: f64 = 0.85;
/// Smallest difference between the modes that matters, as a share of the higher mode.
const MIN_MODE_DIFFERENCE: f64 = 0.1;
/// Smallest number of distinct values. With fewer, the levels are steps of a coarse counter and not
/// modes.
const MIN_DISTINCT: usize = 8;
/// Smallest correlation of a series with itself, one period later, for which a period is reported.
const MIN_CORRELATION: f64 = 0.3;
/// Smallest number of periods that a series must contain for a period to be reported.
const MIN_PERIODS: usize = 3;

/// Returns the length of the longest run of zeros.
pub fn longest_gap(values: &[f64]) -> usize {
    values.split(|value| *value > 0.0).map(<[f64]>::len).max().unwrap_or(0)
}

/// Returns the share of values below half of the median. The result is `None` for no values.
pub fn share_below_half_median(values: &[f64]) -> Option<f64> {
    let half = median(values)? / 2.0;
    Some(values.iter().filter(|value| **value < half).count() as f64 / values.len() as f64)
}

/// Returns the correlation of the series with itself `lag` values later. It is the usual (biased)
/// estimate, which divides by the variance over all values (G. E. P. Box, G. M. Jenkins, "Time
/// Series Analysis", section 2.1.5). The result is `None` for a series without variance.
pub fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    let mean = mean(values)?;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let shifted = values.iter().skip(lag);
    let product: f64 = values.iter().zip(shifted).map(|(a, b)| (a - mean) * (b - mean)).sum();
    (variance > 0.0).then(|| product / variance)
}

/// Returns the lag at which the series repeats itself best, with the correlation at that lag. It is
/// the highest local peak after the autocorrelation first fell below 0. The peak must be at least
/// 0.3 and at least twice 1.96 ÷ √n, which is the 95 % limit of pure noise. The result is `None`
/// when there is no such peak.
pub fn period(values: &[f64]) -> Option<(usize, f64)> {
    let longest = values.len() / MIN_PERIODS;
    let correlations: Vec<f64> =
        (0..=longest + 1).map(|lag| autocorrelation(values, lag)).collect::<Option<_>>()?;
    let first_below = correlations.iter().position(|correlation| *correlation < 0.0)?;
    let lowest = MIN_CORRELATION.max(2.0 * 1.96 / (values.len() as f64).sqrt());
    let peaks = (first_below.max(1)..=longest).filter(|lag| {
        let own = correlations[*lag];
        own >= lowest && own >= correlations[lag - 1] && own > correlations[lag + 1]
    });
    peaks.max_by(|a, b| correlations[*a].total_cmp(&correlations[*b])).map(|lag| (lag, correlations[lag]))
}

/// Two levels between which a series jumps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    pub low: f64,
    pub high: f64,
    pub low_share: f64,
}

/// Returns the two modes of values that have two. The split that explains most of the variance (N.
/// Otsu, "A Threshold Selection Method from Gray-Level Histograms", IEEE Trans. SMC 9 (1979)) must
/// explain at least 85 % of it, neither side may have less than a tenth of the values, and the
/// levels must differ by a tenth of the higher one. The method is simpler than Hartigan's dip test
/// and gives no p-value, so its result is a hint to look at the chart.
pub fn modes(values: &[f64]) -> Option<Modes> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.chunk_by(|a, b| a == b).count() < MIN_DISTINCT {
        return None;
    }
    let count = sorted.len() as f64;
    let total: f64 = sorted.iter().sum();
    let sum_of_squares = deviation(&sorted)?.powi(2) * (count - 1.0);
    let mut best: Option<(f64, Modes)> = None;
    let mut sum = 0.0;
    for (at, value) in sorted.iter().enumerate() {
        let (left, right) = (at as f64, count - at as f64);
        if at > 0 {
            let modes = Modes { low: sum / left, high: (total - sum) / right, low_share: left / count };
            let between = left * right / count * (modes.high - modes.low).powi(2);
            if best.is_none_or(|(most, _)| between > most) {
                best = Some((between, modes));
            }
        }
        sum += value;
    }
    let (between, modes) = best?;
    let both_are_common = modes.low_share.min(1.0 - modes.low_share) >= MIN_MODE_SHARE;
    let are_apart = modes.high - modes.low >= MIN_MODE_DIFFERENCE * modes.high;
    (between >= MIN_EXPLAINED * sum_of_squares && both_are_common && are_apart).then_some(modes)
}

/// Number of values in one batch, as in the name of MSER-5.
pub const BATCH: usize = 5;
/// Smallest number of batches. A shorter series cannot tell warm-up from noise.
const MIN_BATCHES: usize = 8;

/// How a series begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// Number of values before the steady state, a multiple of [`BATCH`]; 0 for none.
    EndsAfter(usize),
    /// The best cut would lose more than half of the series, which never became steady.
    NeverSteady,
}

/// Finds the warm-up. The result is `None` for fewer than 40 values. Values after the last whole
/// batch are left out.
pub fn warm_up(values: &[f64]) -> Option<WarmUp> {
    let batches: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < MIN_BATCHES {
        return None;
    }
    // The squared standard error of the mean of the rest is the sum of its squared deviations ÷
    // count². The last few batches may be alike by chance, so no cut is made among them.
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    let shift = batches[batches.len() - 1];
    for (start, batch) in batches.iter().enumerate().rev() {
        let value = batch - shift;
        (count, sum, squares) = (count + 1.0, sum + value, squares + value * value);
        let error = (squares - sum * sum / count).max(0.0) / (count * count);
        if batches.len() - start >= BATCH && error <= best.0 {
            best = (error, start);
        }
    }
    let (_, start) = best;
    Some(if start > batches.len() / 2 { WarmUp::NeverSteady } else { WarmUp::EndsAfter(start * BATCH) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::{close, normal};

    fn noise(study: u64, count: u64) -> Vec<f64> {
        (0..count).map(|second| 1_000.0 + 50.0 * normal(study, second)).collect()
    }

    #[test]
    fn the_longest_gap_is_the_longest_run_of_zeros() {
        assert_eq!(longest_gap(&[5.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0]), 3);
        assert_eq!(longest_gap(&[5.0, 1.0]), 0);
        assert_eq!(longest_gap(&[]), 0);
    }

    #[test]
    fn slow_seconds_are_those_below_half_of_the_median() {
        assert_eq!(share_below_half_median(&[100.0, 100.0, 49.0, 51.0, 100.0]), Some(0.2));
        assert_eq!(share_below_half_median(&[]), None);
    }

    #[test]
    fn autocorrelation_is_what_a_calculation_by_hand_gives() {
        // By hand, the mean is 3, the deviations are −2 −1 0 1 2, and their squares sum to 10. Lag
        // 1 gives 2 + 0 + 0 + 2 = 4, and lag 2 gives 0 − 1 + 0 = −1.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        close(autocorrelation(&values, 1).unwrap(), 0.4, 1e-12);
        close(autocorrelation(&values, 2).unwrap(), -0.1, 1e-12);
        assert_eq!(autocorrelation(&[3.0; 4], 1), None);
    }

    #[test]
    fn a_dip_every_thirteen_seconds_is_found_and_noise_has_no_period() {
        let dip = |second: usize, value: f64| if second % 13 == 9 { 0.4 * value } else { value };
        let values: Vec<f64> = noise(1, 130).iter().enumerate().map(|(n, value)| dip(n, *value)).collect();
        let (lag, correlation) = period(&values).unwrap();
        assert!(lag.is_multiple_of(13) && correlation > 0.5, "{lag} {correlation}");
        let false_alarms = (0..200).filter(|study| period(&noise(*study, 300)).is_some()).count();
        assert!(false_alarms <= 2, "{false_alarms} of 200");
    }

    #[test]
    fn two_levels_are_two_modes_and_one_level_is_none() {
        let mut values = noise(1, 150);
        values[40..85].iter_mut().for_each(|value| *value -= 400.0);
        let found = modes(&values).unwrap();
        close(found.low, 600.0, 30.0);
        close(found.high, 1_000.0, 30.0);
        close(found.low_share, 0.3, 0.01);
        assert!((0..200).all(|study| modes(&noise(study, 60)).is_none()));
        let even: Vec<f64> = (0..100).map(|n| f64::from(n) + 100.0).collect();
        assert_eq!(modes(&even), None);
    }

    #[test]
    fn a_coarse_counter_and_two_close_levels_are_no_modes() {
        let coarse: Vec<f64> = (0..100).map(|n| f64::from(100 + 50 * (n % 2))).collect();
        assert_eq!(modes(&coarse), None);
        let close_levels: Vec<f64> =
            (0..100).map(|n| 1_000.0 + f64::from(50 * (n % 2)) + f64::from(n) * 0.01).collect();
        assert_eq!(modes(&close_levels), None);
    }

    #[test]
    fn a_slow_start_is_cut_off_at_its_end() {
        let rate = |second: u64| if second < 20 { 500.0 } else { 1_000.0 } + 20.0 * normal(1, second);
        let values: Vec<f64> = (0..120).map(rate).collect();
        assert_eq!(warm_up(&values), Some(WarmUp::EndsAfter(20)));
    }

    #[test]
    fn a_steady_series_has_no_warm_up_or_little() {
        let cut = |study: u64| {
            let values: Vec<f64> = (0..200).map(|second| 1_000.0 + 20.0 * normal(study, second)).collect();
            warm_up(&values)
        };
        let little = (0..100).filter(|study| matches!(cut(*study), Some(WarmUp::EndsAfter(0..=40)))).count();
        assert!(little >= 80, "{little} of 100");
        assert_eq!(warm_up(&[7.0; 60]), Some(WarmUp::EndsAfter(0)));
    }

    #[test]
    fn a_series_that_only_rises_is_never_steady() {
        let values: Vec<f64> = (0..200).map(|second| 1_000.0 + 3.0 * f64::from(second)).collect();
        assert_eq!(warm_up(&values), Some(WarmUp::NeverSteady));
    }

    #[test]
    fn a_series_of_fewer_than_forty_values_has_no_result() {
        assert_eq!(warm_up(&[1.0; 39]), None);
    }
}
