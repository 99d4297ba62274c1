//! How long a step should be: long enough that the scatter within it matters little, short enough
//! for many blocks.
//!
//! A block's log ratio scatters with b² + w² ÷ T, b from block to block and w within a step of T
//! seconds. Blocks cost T + c seconds a step, c being all that is not measured. The variance of the
//! mean after a given time is least at T = w √c ÷ b: W. G. Cochran, "Sampling Techniques", 3rd
//! edition (1977), section 10.6 (two-stage sampling). What scatters within is found from the means
//! of parts of a step, which neighbours' dependence hardly touches: G. S. Fishman, "Grouping
//! Observations in Digital Simulation", Management Science 24 (1978).

use super::describe::{deviation, mean};

/// Parts that a step is cut into.
const PARTS: usize = 5;

/// Variance of the mean of `logs`, a value a second, from what scatters within them; `None` for
/// fewer than two values a part.
pub fn variance_within(logs: &[f64]) -> Option<f64> {
    let length = logs.len() / PARTS;
    if length < 2 {
        return None;
    }
    let means: Option<Vec<f64>> = logs.chunks_exact(length).take(PARTS).map(mean).collect();
    Some(deviation(&means?)?.powi(2) / PARTS as f64)
}

/// The best number of seconds for a step: `total` and `within` are the deviations of a block's log
/// ratio, in all and from within steps of `seconds`; `cost` is what a step costs besides. Infinite
/// when blocks do not scatter by themselves.
pub fn best_seconds(total: f64, within: f64, seconds: f64, cost: f64) -> f64 {
    let between = (total.powi(2) - within.powi(2)).max(0.0);
    (within.powi(2) * seconds * cost / between).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::{close, normal};

    #[test]
    fn the_variance_of_a_mean_of_independent_seconds_is_theirs_by_their_number() {
        let variance = |study: u64| {
            let logs: Vec<f64> = (0..50).map(|second| 0.05 * normal(study, second)).collect();
            variance_within(&logs).unwrap()
        };
        let mean = (0..400).map(variance).sum::<f64>() / 400.0;
        close(mean / (0.05_f64.powi(2) / 50.0), 1.0, 0.12);
        assert_eq!(variance_within(&[0.0; 9]), None);
    }

    #[test]
    fn no_other_length_gives_more_information_in_the_same_time() {
        let (total, within, seconds, cost) = (0.02, 0.016, 10.0, 6.0);
        let variance = |time: f64| {
            let between = total * total - within * within;
            (between + within * within * seconds / time) * (time + cost)
        };
        let best = best_seconds(total, within, seconds, cost);
        // By hand: 0.016 × √(10 × 6) ÷ 0.012.
        close(best, 10.327_955, 1e-5);
        for other in [0.5, 0.9, 1.1, 2.0] {
            assert!(variance(best) < variance(best * other), "{other}");
        }
        assert!(best_seconds(0.01, 0.012, 10.0, 6.0).is_infinite());
    }
}
