//! All changes of level in many series, found so that noise seldom counts as a change in any of
//! them.
//!
//! First the largest change in each whole series is tested. Where there is one, the parts before
//! and after it are tested in the same way, then the parts of those. All tests in such a round are
//! one family, adjusted together by Benjamini and Hochberg. Of series that have no further change,
//! however many, one more is reported in at most 5 % of all histories.

use dbdyno_record::parallel;

use super::change_point::{ChangePoint, greatest_change, least_values, permutations_for};
use super::describe::mean;
use super::draw;
use super::false_discovery::benjamini_hochberg;

/// With fewer values a change does not have two on either side, so that there is no p.
const LEAST_VALUES: usize = 4;

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
    let mut segments: Vec<Segment> = wholes.filter(|segment| segment.length() >= LEAST_VALUES).collect();
    // A shorter part cannot have a p as small as `level`, whatever its values are.
    let least = least_values(1, level);
    let mut is_first = true;
    while !segments.is_empty() {
        let permutations = permutations_for(segments.len());
        let greatest = |segment: &Segment| {
            let values = &series[segment.series][segment.start..segment.end];
            let own_seed = if is_first { seed } else { draw::number(seed, segment.start as u64) };
            greatest_change(values, own_seed, permutations)
        };
        let tested: Vec<Option<ChangePoint>> = parallel::map(&segments, greatest);
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
                next.extend(segment.cut(at).into_iter().filter(|segment| segment.length() >= least));
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

    /// A series with ten values per level.
    fn levels(levels: &[f64]) -> Vec<f64> {
        let value = |n: usize| levels[n / 10] + [0.1, -0.1, 0.05, -0.05][n % 4];
        (0..10 * levels.len()).map(value).collect()
    }

    fn places(changes: &Changes) -> Vec<usize> {
        changes.found.iter().map(|found| found.change.at).collect()
    }

    #[test]
    fn each_of_two_steps_is_found_with_the_levels_around_it_and_a_p_of_its_own() {
        let all = changes_of_all(&[levels(&[5.0, 8.0, 6.0])], 0.05, 1);
        assert_eq!(places(&all[0]), [10, 20]);
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
        assert_eq!(places(&alone[0]), [10, 28]);
        let mut many = vec![levels(&[5.0, 20.0, 20.0]); 10];
        many.push(last);
        let among = changes_of_all(&many, 0.05, 1);
        assert_eq!(places(&among[10]), [10], "22 parts were tested: {:?}", among[10]);
    }

    #[test]
    fn a_series_of_noise_next_to_one_with_a_change_has_none() {
        let all = changes_of_all(&[levels(&[5.0, 5.0]), levels(&[5.0, 8.0])], 0.05, 1);
        assert_eq!((places(&all[0]), places(&all[1])), (vec![], vec![10]));
        assert!(all[0].adjusted_p > Some(0.05));
    }

    #[test]
    fn few_or_equal_values_have_no_change() {
        let all = changes_of_all(&[vec![1.0, 1.0, 9.0], vec![4.0; 8], Vec::new()], 0.05, 1);
        assert_eq!(all.iter().map(|changes| changes.p).collect::<Vec<_>>(), [None, Some(1.0), None]);
        assert!(all.iter().all(|changes| changes.found.is_empty()));
    }
}
