//! Where a series changes its level, and how likely noise alone is to do so.
//!
//! The statistic is the largest between-groups sum of squares over all splits. It is the split that
//! also has the largest t and the largest scaled CUSUM. Its p is the share of shuffled series whose
//! *largest* value is as large. A t-test after choosing the split would use a table for a split
//! that was not chosen, and would find something in most series of noise.
//!
//! Sources: A. N. Pettitt, "A Non-Parametric Approach to the Change-Point Problem", Applied
//! Statistics 28 (1979), for the question; M. Hušková, A. Slabý, "Permutation tests for multiple
//! changes", Kybernetika 37 (2001), for the permutations. The count ends early where p is large (J.
//! Besag, P. Clifford, "Sequential Monte Carlo p-values", Biometrika 78 (1991)). Many series can
//! then have as many permutations as a small p among many needs: [`permutations_for`].
//!
//! The test is for values from runs or blocks. The seconds within one run depend on each other, so
//! that it must not be used on them.

use serde::Serialize;

use super::describe::mean;
use super::draw;

/// Largest number of shuffled series for the measured one, if it is the only series.
pub const PERMUTATIONS: u64 = 999;
/// After this many shuffled series with such a large change, the count ends: p is large then, and
/// known well enough.
const ENOUGH: u64 = 100;
/// Smallest number of values on either side of a split.
const LEAST_SIDE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Position of the first value of the new level.
    pub at: usize,
    /// Mean level before and after the change, up to the neighbouring change or the end of the
    /// series.
    pub before: f64,
    pub after: f64,
    /// Share of shuffled series with at least as large a change.
    pub p: f64,
}

/// Number of permutations with which one series among `series` can be found at the level of 5 %.
/// The smallest possible p, 1 ÷ (permutations + 1), is then at most half of 5 % ÷ `series`.
pub fn permutations_for(series: usize) -> u64 {
    (40 * series as u64).max(PERMUTATIONS)
}

/// The smallest p that a series of `values` can have when its `newer` last values are at another
/// level, however far apart the levels are. It counts the orders that have the newer values
/// together at the end or at the beginning. It is 1 where a side has fewer than two values.
pub fn least_p(values: usize, newer: usize) -> f64 {
    if newer < LEAST_SIDE || newer + LEAST_SIDE > values {
        return 1.0;
    }
    // This is 2 divided by the number of ways to choose `newer` of `values`.
    2.0 * (1..=newer).map(|k| k as f64 / (values - newer + k) as f64).product::<f64>()
}

/// Smallest number of values with which a change in one series among `series` can be found at
/// `level`. It is the best case, with half of the values at either level.
pub fn least_values(series: usize, level: f64) -> usize {
    let mut values = 2 * LEAST_SIDE;
    while least_p(values, values / 2) * series as f64 > level {
        values += 1;
    }
    values
}

/// Smallest number of newest values at another level that can be found at `level`, in one series of
/// `values` values among `series`.
pub fn least_newer(values: usize, series: usize, level: f64) -> Option<usize> {
    (LEAST_SIDE..values).find(|newer| least_p(values, *newer) * series as f64 <= level)
}

/// The largest change in `values`, whatever its p; `None` for fewer than four values and for equal
/// ones.
pub fn greatest_change(values: &[f64], seed: u64, permutations: u64) -> Option<ChangePoint> {
    let (at, statistic) = greatest_split(values)?;
    if statistic <= 0.0 {
        return None;
    }
    // Shuffling changes the order of additions, so that equal sums must count as at least as large.
    let least = statistic * (1.0 - 1e-9);
    let mut shuffled = values.to_vec();
    let (mut as_great, mut counted) = (0, 0);
    while counted < permutations && as_great < ENOUGH {
        draw::shuffle(&mut shuffled, draw::number(seed, counted));
        as_great += u64::from(greatest_split(&shuffled).is_some_and(|(_, other)| other >= least));
        counted += 1;
    }
    let p = if as_great == ENOUGH {
        ENOUGH as f64 / counted as f64
    } else {
        (as_great + 1) as f64 / (counted + 1) as f64
    };
    Some(ChangePoint { at, before: mean(&values[..at])?, after: mean(&values[at..])?, p })
}

/// The split with the largest between-groups sum of squares, k (n − k) ÷ n × (difference of
/// means)², and that sum.
fn greatest_split(values: &[f64]) -> Option<(usize, f64)> {
    let count = values.len();
    let total: f64 = values.iter().sum();
    let mut sum = 0.0;
    let mut greatest: Option<(usize, f64)> = None;
    for (at, value) in values.iter().enumerate() {
        if at >= LEAST_SIDE && at + LEAST_SIDE <= count {
            let (left, right) = (at as f64, (count - at) as f64);
            let difference = sum / left - (total - sum) / right;
            let squares = left * right / count as f64 * difference * difference;
            if greatest.is_none_or(|(_, most)| squares > most) {
                greatest = Some((at, squares));
            }
        }
        sum += value;
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    #[test]
    fn a_step_is_found_where_it_is() {
        let values = [10.0, 10.2, 9.9, 10.1, 9.8, 10.0, 12.1, 12.0, 11.8, 12.2, 11.9, 12.0];
        let found = greatest_change(&values, 1, PERMUTATIONS).unwrap();
        assert_eq!(found.at, 6);
        close(found.before, 10.0, 1e-9);
        close(found.after, 12.0, 1e-9);
        assert!(found.p <= 0.005, "{}", found.p);
    }

    #[test]
    fn the_p_value_is_that_of_all_orders() {
        // A program written for it counted this over all 720 orders of the six values.
        let found = greatest_change(&[1.0, 2.0, 4.0, 3.0, 5.0, 6.5], 3, PERMUTATIONS).unwrap();
        assert_eq!(found.at, 4);
        close(found.p, 0.2, 0.04);
    }

    /// Share of all orders of `values` whose largest split is at least that of the given order.
    fn exact_p(values: &[f64]) -> f64 {
        fn visit(values: &mut Vec<f64>, from: usize, see: &mut impl FnMut(&[f64])) {
            if from == values.len() {
                return see(values);
            }
            for other in from..values.len() {
                values.swap(from, other);
                visit(values, from + 1, see);
                values.swap(from, other);
            }
        }
        let least = greatest_split(values).unwrap().1 * (1.0 - 1e-9);
        let (mut as_great, mut orders) = (0_u32, 0_u32);
        visit(&mut values.to_vec(), 0, &mut |order| {
            as_great += u32::from(greatest_split(order).unwrap().1 >= least);
            orders += 1;
        });
        f64::from(as_great) / f64::from(orders)
    }

    #[test]
    fn no_order_of_all_has_less_than_the_least_p() {
        for (values, newer) in [(4, 2), (5, 2), (6, 2), (6, 3), (7, 3), (8, 2), (8, 4)] {
            let level = |n: usize| if n + newer < values { 0.0 } else { 100.0 };
            let series: Vec<f64> =
                (0..values).map(|n| level(n) + [0.3, 0.1, 0.7, 0.4][n % 4] * n as f64).collect();
            close(least_p(values, newer), exact_p(&series), 1e-9);
        }
        assert_eq!((least_p(8, 1), least_p(8, 7), least_p(3, 2)), (1.0, 1.0, 1.0));
    }

    #[test]
    fn more_series_need_more_runs_and_a_new_level_shows_after_two_or_three() {
        assert_eq!([1, 10, 42, 84].map(|series| least_values(series, 0.05)), [8, 11, 13, 14]);
        assert_eq!(
            [7, 8, 9, 10, 30].map(|values| least_newer(values, 1, 0.05)),
            [None, Some(3), Some(3), Some(2), Some(2)]
        );
        assert_eq!([10, 15, 30].map(|values| least_newer(values, 10, 0.05)), [None, Some(3), Some(2)]);
    }

    #[test]
    fn a_change_in_one_of_many_series_can_be_found_among_all_of_them() {
        let level = |n: usize| [10.0, 12.0][n / 12] + [0.1, -0.1, 0.05, -0.05][n % 4];
        let values: Vec<f64> = (0..24).map(level).collect();
        let series = 84;
        let found = greatest_change(&values, 1, permutations_for(series)).unwrap();
        assert!(found.p * series as f64 <= 0.05, "{}", found.p);
        let alone = greatest_change(&values, 1, PERMUTATIONS).unwrap();
        assert!(alone.p * series as f64 > 0.05, "fewer permutations cannot show it: {}", alone.p);
    }

    #[test]
    fn too_few_or_equal_values_have_no_change() {
        assert!(greatest_change(&[1.0, 1.0, 9.0], 1, PERMUTATIONS).is_none());
        assert!(greatest_change(&[4.0; 8], 1, PERMUTATIONS).is_none());
    }
}
