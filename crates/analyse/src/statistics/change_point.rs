//! Finds where series change their level, and how likely noise alone is to look like that. It finds
//! the largest change in one series, and all changes in many series, such that noise is rarely
//! reported as a change in any of them.
//!
//! The statistic is the largest between-groups sum of squares over all splits. The split with this
//! sum also has the largest t and the largest scaled CUSUM. Its p is the share of shuffled series
//! whose *largest* sum is at least as large. A t-test at the chosen split would use a distribution
//! for splits that were not chosen, and would find something in most series of noise.
//!
//! In many series, first the largest change in each whole series is tested. Where there is one, the
//! parts before and after it are tested in the same way, then the parts of those. All tests in such
//! a round are one family, adjusted together by Benjamini and Hochberg. Where no series has a
//! further change, one more is reported in at most 5 % of all histories, however many series there
//! are.
//!
//! Sources: A. N. Pettitt, "A Non-Parametric Approach to the Change-Point Problem", Applied
//! Statistics 28 (1979), for the question; M. Hušková, A. Slabý, "Permutation tests for multiple
//! changes", Kybernetika 37 (2001), for the permutations. Shuffling ends early where p is large (J.
//! Besag, P. Clifford, "Sequential Monte Carlo p-values", Biometrika 78 (1991)). The time saved
//! goes to the series with a small p. They need more permutations the more series there are:
//! [`permutations_for`].
//!
//! The test is for values from runs or blocks. It must not be used on the seconds within one run,
//! because they depend on each other.

use dbdyno_record::parallel;
use serde::Serialize;

use crate::statistics::describe::mean;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::resampling;

/// Largest number of times that a series is shuffled, if it is the only one.
pub const PERMUTATIONS: u64 = 999;
/// Number of shuffled series with a change at least as large after which shuffling ends. The p is
/// then large, and known well enough.
const ENOUGH: u64 = 100;
/// Smallest number of values on either side of a split.
const MIN_SIDE: usize = 2;

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

/// Number of permutations with which a change in one of `series` series can be found at the level
/// of 5 %.
/// The smallest possible p, 1 ÷ (permutations + 1), is then at most half of 5 % ÷ `series`.
pub fn permutations_for(series: usize) -> u64 {
    (40 * series as u64).max(PERMUTATIONS)
}

/// The smallest p that a series of `values` can have when its `newer` last values are at another
/// level, however far apart the levels are. It counts the orders that have the newer values
/// together at the end or at the beginning. It is 1 where a side has fewer than two values.
pub fn lowest_p(values: usize, newer: usize) -> f64 {
    if newer < MIN_SIDE || newer + MIN_SIDE > values {
        return 1.0;
    }
    // This is 2 divided by the number of ways to choose `newer` of `values`.
    2.0 * (1..=newer).map(|k| k as f64 / (values - newer + k) as f64).product::<f64>()
}

/// Smallest number of values with which a change in one series among `series` can be found at
/// `level`. It is for the best case, in which each of the two levels has half of the values.
pub fn min_values(series: usize, level: f64) -> usize {
    let mut values = 2 * MIN_SIDE;
    while lowest_p(values, values / 2) * series as f64 > level {
        values += 1;
    }
    values
}

/// Smallest number of newest values at another level that can be found at `level`, in one series of
/// `values` values among `series`.
pub fn min_newer(values: usize, series: usize, level: f64) -> Option<usize> {
    (MIN_SIDE..values).find(|newer| lowest_p(values, *newer) * series as f64 <= level)
}

/// The largest change in `values`, whatever its p; `None` for fewer than four values and for equal
/// ones.
pub fn largest_change(values: &[f64], seed: u64, permutations: u64) -> Option<ChangePoint> {
    let (at, statistic) = largest_split(values)?;
    if statistic <= 0.0 {
        return None;
    }
    // Shuffling changes the order of additions and thus the last bits of a sum. A sum that is
    // smaller by rounding alone must count as equal.
    let lowest = statistic * (1.0 - 1e-9);
    let mut shuffled = values.to_vec();
    let (mut as_large, mut counted) = (0, 0);
    while counted < permutations && as_large < ENOUGH {
        resampling::shuffle(&mut shuffled, resampling::random_number(seed, counted));
        as_large += u64::from(largest_split(&shuffled).is_some_and(|(_, other)| other >= lowest));
        counted += 1;
    }
    let p = if as_large == ENOUGH {
        ENOUGH as f64 / counted as f64
    } else {
        (as_large + 1) as f64 / (counted + 1) as f64
    };
    Some(ChangePoint { at, before: mean(&values[..at])?, after: mean(&values[at..])?, p })
}

/// The split with the largest between-groups sum of squares, k (n − k) ÷ n × (difference of
/// means)², and that sum.
fn largest_split(values: &[f64]) -> Option<(usize, f64)> {
    let count = values.len();
    let total: f64 = values.iter().sum();
    let mut sum = 0.0;
    let mut largest: Option<(usize, f64)> = None;
    for (at, value) in values.iter().enumerate() {
        if at >= MIN_SIDE && at + MIN_SIDE <= count {
            let (left, right) = (at as f64, (count - at) as f64);
            let difference = sum / left - (total - sum) / right;
            let squares = left * right / count as f64 * difference * difference;
            if largest.is_none_or(|(_, most)| squares > most) {
                largest = Some((at, squares));
            }
        }
        sum += value;
    }
    largest
}

/// Smallest number of values for which there is a p. With fewer, a change does not have two values
/// on either side.
const MIN_VALUES: usize = 4;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// p of the largest change in the whole series; `None` for fewer than four values.
    pub p: Option<f64>,
    /// The same p, adjusted over all series.
    pub adjusted_p: Option<f64>,
    /// The changes found, in their order.
    pub found: Vec<ReportedChange>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedChange {
    /// The change, with levels up to the neighbouring changes.
    pub change: ChangePoint,
    /// Its p, adjusted over all changes that were tested in the same round.
    pub adjusted_p: f64,
}

/// A series' values from `start` to `end`.
#[derive(Debug, Clone, Copy)]
struct Segment {
    series: usize,
    start: usize,
    end: usize,
}

impl Segment {
    fn length(self) -> usize {
        self.end - self.start
    }

    /// The parts before and after the value at `at`.
    fn cut(self, at: usize) -> [Self; 2] {
        [Self { end: at, ..self }, Self { start: at, ..self }]
    }
}

/// The changes in each of `series` that have an adjusted p of at most `level`.
pub fn changes_of_all(series: &[Vec<f64>], level: f64, seed: u64) -> Vec<Changes> {
    let mut all = vec![Changes::default(); series.len()];
    let wholes =
        series.iter().enumerate().map(|(at, values)| Segment { series: at, start: 0, end: values.len() });
    let mut segments: Vec<Segment> = wholes.filter(|segment| segment.length() >= MIN_VALUES).collect();
    // A shorter part cannot have a p as small as `level`, whatever its values are.
    let shortest = min_values(1, level);
    let mut is_first = true;
    while !segments.is_empty() {
        let permutations = permutations_for(segments.len());
        let test_segment = |segment: &Segment| {
            let values = &series[segment.series][segment.start..segment.end];
            let own_seed =
                if is_first { seed } else { resampling::random_number(seed, segment.start as u64) };
            largest_change(values, own_seed, permutations)
        };
        let tested: Vec<Option<ChangePoint>> = parallel::map(&segments, test_segment);
        let p: Vec<f64> = tested.iter().map(|change| change.map_or(1.0, |change| change.p)).collect();
        let mut next = Vec::new();
        for ((segment, change), adjusted_p) in segments.iter().zip(tested).zip(benjamini_hochberg(&p)) {
            let own = &mut all[segment.series];
            if is_first {
                own.p = Some(change.map_or(1.0, |change| change.p));
                own.adjusted_p = Some(adjusted_p);
            }
            if let Some(change) = change.filter(|_| adjusted_p <= level) {
                let at = segment.start + change.at;
                own.found.push(ReportedChange { change: ChangePoint { at, ..change }, adjusted_p });
                next.extend(segment.cut(at).into_iter().filter(|segment| segment.length() >= shortest));
            }
        }
        segments = next;
        is_first = false;
    }
    for (own, values) in all.iter_mut().zip(series) {
        order(&mut own.found, values);
    }
    all
}

/// Puts changes into their order, and gives each the levels up to its neighbours.
fn order(found: &mut [ReportedChange], values: &[f64]) {
    found.sort_by_key(|found| found.change.at);
    let ends: Vec<usize> = found.iter().map(|found| found.change.at).chain([values.len()]).collect();
    let mut start = 0;
    for (ReportedChange { change, .. }, end) in found.iter_mut().zip(ends.into_iter().skip(1)) {
        change.before = mean(&values[start..change.at]).unwrap_or(change.before);
        change.after = mean(&values[change.at..end]).unwrap_or(change.after);
        start = change.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    #[test]
    fn a_step_is_found_where_it_is() {
        let values = [10.0, 10.2, 9.9, 10.1, 9.8, 10.0, 12.1, 12.0, 11.8, 12.2, 11.9, 12.0];
        let found = largest_change(&values, 1, PERMUTATIONS).unwrap();
        assert_eq!(found.at, 6);
        close(found.before, 10.0, 1e-9);
        close(found.after, 12.0, 1e-9);
        assert!(found.p <= 0.005, "{}", found.p);
    }

    #[test]
    fn the_p_value_is_that_of_all_orders() {
        // A separate program counted the expected p over all 720 orders of the six values.
        let found = largest_change(&[1.0, 2.0, 4.0, 3.0, 5.0, 6.5], 3, PERMUTATIONS).unwrap();
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
        let lowest = largest_split(values).unwrap().1 * (1.0 - 1e-9);
        let (mut as_large, mut orders) = (0_u32, 0_u32);
        visit(&mut values.to_vec(), 0, &mut |order| {
            as_large += u32::from(largest_split(order).unwrap().1 >= lowest);
            orders += 1;
        });
        f64::from(as_large) / f64::from(orders)
    }

    #[test]
    fn the_lowest_p_is_the_exact_p_of_two_distant_levels() {
        for (values, newer) in [(4, 2), (5, 2), (6, 2), (6, 3), (7, 3), (8, 2), (8, 4)] {
            let level = |n: usize| if n + newer < values { 0.0 } else { 100.0 };
            let series: Vec<f64> =
                (0..values).map(|n| level(n) + [0.3, 0.1, 0.7, 0.4][n % 4] * n as f64).collect();
            close(lowest_p(values, newer), exact_p(&series), 1e-9);
        }
        assert_eq!((lowest_p(8, 1), lowest_p(8, 7), lowest_p(3, 2)), (1.0, 1.0, 1.0));
    }

    #[test]
    fn more_series_need_more_runs_and_a_new_level_is_found_after_two_or_three() {
        assert_eq!([1, 10, 42, 84].map(|series| min_values(series, 0.05)), [8, 11, 13, 14]);
        assert_eq!(
            [7, 8, 9, 10, 30].map(|values| min_newer(values, 1, 0.05)),
            [None, Some(3), Some(3), Some(2), Some(2)]
        );
        assert_eq!([10, 15, 30].map(|values| min_newer(values, 10, 0.05)), [None, Some(3), Some(2)]);
    }

    #[test]
    fn a_change_in_one_of_many_series_can_be_found_among_all_of_them() {
        let level = |n: usize| [10.0, 12.0][n / 12] + [0.1, -0.1, 0.05, -0.05][n % 4];
        let values: Vec<f64> = (0..24).map(level).collect();
        let series = 84;
        let found = largest_change(&values, 1, permutations_for(series)).unwrap();
        assert!(found.p * series as f64 <= 0.05, "{}", found.p);
        let alone = largest_change(&values, 1, PERMUTATIONS).unwrap();
        assert!(alone.p * series as f64 > 0.05, "fewer permutations cannot show it: {}", alone.p);
    }

    #[test]
    fn too_few_or_equal_values_have_no_change() {
        assert!(largest_change(&[1.0, 1.0, 9.0], 1, PERMUTATIONS).is_none());
        assert!(largest_change(&[4.0; 8], 1, PERMUTATIONS).is_none());
    }

    /// A series with ten values per level.
    fn levels(levels: &[f64]) -> Vec<f64> {
        let value = |n: usize| levels[n / 10] + [0.1, -0.1, 0.05, -0.05][n % 4];
        (0..10 * levels.len()).map(value).collect()
    }

    fn positions(changes: &Changes) -> Vec<usize> {
        changes.found.iter().map(|found| found.change.at).collect()
    }

    #[test]
    fn each_of_two_steps_is_found_with_the_levels_around_it_and_a_p_of_its_own() {
        let all = changes_of_all(&[levels(&[5.0, 8.0, 6.0])], 0.05, 1);
        assert_eq!(positions(&all[0]), [10, 20]);
        let [first, second] = all[0].found[..] else { panic!("two changes: {all:?}") };
        close(second.change.before, 8.0, 0.02);
        close(second.change.after, 6.0, 0.02);
        assert_eq!((Some(first.change.p), Some(first.adjusted_p)), (all[0].p, all[0].adjusted_p));
        // Both parts around the first change were tested.
        close(second.adjusted_p, 2.0 * second.change.p, 1e-12);
    }

    #[test]
    fn the_parts_of_all_series_are_one_family() {
        // The part after the first change has a change of its own: the last 2 of its 20 values. Of
        // the 190 orders, 2 have these at one end.
        let mut last = levels(&[5.0, 20.0, 20.0]);
        last[28..].copy_from_slice(&[22.0, 22.1]);
        let alone = changes_of_all(std::slice::from_ref(&last), 0.05, 1);
        assert_eq!(positions(&alone[0]), [10, 28]);
        let mut many = vec![levels(&[5.0, 20.0, 20.0]); 10];
        many.push(last);
        let among = changes_of_all(&many, 0.05, 1);
        assert_eq!(positions(&among[10]), [10], "22 parts were tested: {:?}", among[10]);
    }

    #[test]
    fn a_series_of_noise_next_to_one_with_a_change_has_none() {
        let all = changes_of_all(&[levels(&[5.0, 5.0]), levels(&[5.0, 8.0])], 0.05, 1);
        assert_eq!((positions(&all[0]), positions(&all[1])), (vec![], vec![10]));
        assert!(all[0].adjusted_p > Some(0.05));
    }

    #[test]
    fn few_or_equal_values_have_no_change() {
        let all = changes_of_all(&[vec![1.0, 1.0, 9.0], vec![4.0; 8], Vec::new()], 0.05, 1);
        assert_eq!(all.iter().map(|changes| changes.p).collect::<Vec<_>>(), [None, Some(1.0), None]);
        assert!(all.iter().all(|changes| changes.found.is_empty()));
    }
}
