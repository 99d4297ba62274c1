//! How much of a series' beginning is warm-up, by the method MSER-5.
//!
//! Sources: K. P. White Jr., "An effective truncation heuristic for bias reduction in simulation
//! output", Simulation 69 (1997); K. P. White Jr., M. J. Cobb, S. C. Spratt, "A comparison of five
//! steady-state truncation heuristics for simulation", Winter Simulation Conference 2000. The
//! beginning is cut where the mean of the rest is known best. Unlike a test, the method may be used
//! on seconds that depend on each other.

/// Number of values in one batch.
pub const BATCH: usize = 5;
/// Smallest number of batches. A shorter series cannot tell warm-up from noise.
const LEAST_BATCHES: usize = 8;

/// How a series begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// Number of values before the steady state, a multiple of [`BATCH`]; 0 for none.
    EndsAfter(usize),
    /// The best cut would lose more than half of the series, which never became steady.
    NeverSteady,
}

/// Finds the warm-up; `None` for fewer than 40 values. Values after the last whole batch are left
/// out.
pub fn warm_up(values: &[f64]) -> Option<WarmUp> {
    let batches: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < LEAST_BATCHES {
        return None;
    }
    // The variance of the mean of what is left is its sum of squares ÷ count². The last few batches
    // may be alike by chance.
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
    use crate::simulations::normal;

    #[test]
    fn a_slow_start_is_cut_off_at_its_end() {
        let rate = |second: u64| if second < 20 { 500.0 } else { 1_000.0 } + 20.0 * normal(1, second);
        let values: Vec<f64> = (0..120).map(rate).collect();
        assert_eq!(warm_up(&values), Some(WarmUp::EndsAfter(20)));
    }

    #[test]
    fn a_steady_series_has_none_or_little() {
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
    fn a_short_series_says_nothing() {
        assert_eq!(warm_up(&[1.0; 39]), None);
    }
}
