//! Tests by t after every further block (interim analyses), and finds how small p must be so that
//! all tests together err no more often than one.
//!
//! After n blocks, 1 − 2 ÷ n of the allowed error may have been spent: a third at 3, half at 4, 0.8
//! at 10. A test that is known to be the last spends the rest. Early tests get a large share: with
//! three or four blocks, t's quantiles for a small error are so large that a test with a small
//! share would find almost nothing. No number of blocks has to be planned. Source for the spending:
//! K. K. G. Lan, D. L. DeMets, "Discrete Sequential Boundaries for Clinical Trials", Biometrika 70
//! (1983).
//!
//! The limits that spend exactly this share are computed by recursion over the blocks. Sources: P.
//! Armitage, C. K. McPherson, B. C. Rowe, "Repeated Significance Tests on Accumulating Data", J. R.
//! Statist. Soc. A 132 (1969); for Student's t C. Jennison, B. W. Turnbull, "Exact Calculations for
//! Repeated t, χ² and F Tests", Biometrika 78 (1991). Let U = Σx ÷ √Σx² of n equal normal values. U
//! of n + 1 values is (U + W) ÷ √(1 + W²), where √n × W has Student's t distribution with n degrees
//! of freedom and does not depend on what U was before (D. Basu, Sankhyā 15 (1955)). The recursion
//! therefore follows one number only. After [`EXACT_BLOCKS`] blocks, each look is tested alone at
//! the share that it may spend. The sum of these shares is an upper bound of the error.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::{Mutex, PoisonError};

use super::Interval;
use super::student::{Estimate, cdf, quantile};

/// Largest number of blocks for which limits are exact.
const EXACT_BLOCKS: u32 = 40;
/// Number of one-sided levels for which limits are kept. They go from 0.25 down, each half of the
/// one before.
const LEVELS: usize = 26;
/// Number of cells between `LOWEST` and `HIGHEST`.
const CELLS: usize = 130;
/// Lowest and highest t that are told apart, as normal deviations.
const LOWEST: f64 = -3.0;
const HIGHEST: f64 = 7.4;

/// One interim analysis (a look) at a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Number of blocks that the comparison had at its first look at three or more blocks.
    pub first: u32,
    /// Number of blocks that the comparison has at this look.
    pub blocks: u32,
    /// No other look follows this one, whatever it finds.
    pub is_last: bool,
}

/// Share of the error that may have been spent after this many blocks.
fn spent_after(blocks: u32) -> f64 {
    1.0 - 2.0 / f64::from(blocks.max(2))
}

/// The smallest one-sided level, for all looks together, at which a `t` as large as this is a
/// finding at this look. Where limits come from the recursion, it is 1 when `t` is not a finding at
/// a level of 0.25. The smallest of these values over the looks is a p-value, however many looks
/// there were and for whatever reason they ended.
pub fn p_above(at: At, t: f64) -> f64 {
    let alone = || cdf(-t, f64::from(at.blocks.max(2) - 1));
    match newly_spent(at) {
        share if share <= 0.0 => 1.0,
        share if at.blocks <= at.first || at.blocks > EXACT_BLOCKS => (alone() / share).min(1.0),
        _ => with_limits(at, |limits| level_of(limits, deviation(t, at.blocks))),
    }
}

/// The t that this look must reach for a finding at a one-sided `level`. It is the half width of
/// intervals that hold at all looks, in standard errors.
pub fn critical(at: At, level: f64) -> f64 {
    let alone = |level: f64| quantile(1.0 - level, f64::from(at.blocks.max(2) - 1));
    match newly_spent(at) {
        share if share <= 0.0 => f64::INFINITY,
        share if at.blocks <= at.first || at.blocks > EXACT_BLOCKS => alone(level * share),
        _ => with_limits(at, |limits| t_of(limit_of(limits, level), at.blocks)),
    }
}

/// Two-sided form of [`p_above`], for a difference from 0.
pub fn p_of_difference(at: At, estimate: Estimate) -> f64 {
    (2.0 * p_above(at, t(estimate.value.abs(), estimate))).min(1.0)
}

/// Form of [`p_above`] for a difference within `bounds`: the larger of the two one-sided values.
pub fn p_of_equivalence(at: At, estimate: Estimate, bounds: Interval) -> f64 {
    let above = p_above(at, t(estimate.value - bounds.low, estimate));
    above.max(p_above(at, t(bounds.high - estimate.value, estimate)))
}

/// The interval at this look. The intervals at all looks together contain the truth with this
/// `confidence`. The last interval therefore contains it too, for whatever reason the run ended.
/// Source: C. Jennison, B. W. Turnbull, "Interim Analyses: The Repeated Confidence Interval
/// Approach", J. R. Statist. Soc. B 51 (1989).
pub fn interval(at: At, estimate: Estimate, confidence: f64) -> Interval {
    let error = estimate.standard_error;
    let half = if error > 0.0 { critical(at, (1.0 - confidence) / 2.0) * error } else { 0.0 };
    Interval { low: estimate.value - half, high: estimate.value + half }
}

fn t(distance: f64, estimate: Estimate) -> f64 {
    if estimate.standard_error > 0.0 {
        distance / estimate.standard_error
    } else if distance == 0.0 {
        0.0
    } else {
        f64::INFINITY.copysign(distance)
    }
}

/// Share of the error that this look alone may spend.
fn newly_spent(at: At) -> f64 {
    let until_now = if at.is_last { 1.0 } else { spent_after(at.blocks) };
    let before = if at.blocks > at.first { spent_after(at.blocks - 1) } else { 0.0 };
    until_now - before
}

/// For each level of the error, the deviation at which it is reached.
type Limits = [f64];

fn level_at(index: usize) -> f64 {
    0.25 * 0.5_f64.powi(index as i32)
}

/// The level of the error at a deviation. Between two levels, the error's logarithm changes with
/// the square of the deviation, as normal tails do.
fn level_of(limits: &Limits, deviation: f64) -> f64 {
    if deviation < limits[0] {
        return 1.0;
    }
    let above = limits.partition_point(|limit| *limit <= deviation);
    if above >= limits.len() {
        return level_at(limits.len() - 1);
    }
    let (low, high) = (limits[above - 1], limits[above]);
    let share = (deviation * deviation - low * low) / (high * high - low * low);
    level_at(above - 1) * 0.5_f64.powf(share.clamp(0.0, 1.0))
}

fn limit_of(limits: &Limits, level: f64) -> f64 {
    let position = (0.25 / level).log2().clamp(0.0, (LEVELS - 1) as f64);
    let below = (position as usize).min(LEVELS - 2);
    let (low, high) = (limits[below], limits[below + 1]);
    (low * low + (position - below as f64) * (high * high - low * low)).max(0.0).sqrt()
}

/// t as an approximate normal deviation, by a formula that can be inverted (D. L. Wallace, Ann.
/// Math. Statist. 30 (1959)). It only chooses the cells, so it need not be exact.
fn deviation(t: f64, blocks: u32) -> f64 {
    let degrees = f64::from(blocks - 1);
    let size = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0) * (degrees * (t * t / degrees).ln_1p()).sqrt();
    size.copysign(t)
}

fn t_of(deviation: f64, blocks: u32) -> f64 {
    let degrees = f64::from(blocks - 1);
    let size = deviation * (8.0 * degrees + 3.0) / (8.0 * degrees + 1.0);
    (degrees * (size * size / degrees).exp_m1()).sqrt().copysign(deviation)
}

/// Σx ÷ √Σx² of `blocks` values that have this t.
fn direction(t: f64, blocks: u32) -> f64 {
    let count = f64::from(blocks);
    if t.is_infinite() { count.sqrt().copysign(t) } else { count.sqrt() * t / (count - 1.0 + t * t).sqrt() }
}

fn edge(index: usize) -> f64 {
    LOWEST + (HIGHEST - LOWEST) * index as f64 / CELLS as f64
}

/// Studies of equal variants that have found nothing yet, at one level of the error.
struct OpenStudies {
    /// Share of the studies in each cell. Studies below the lowest cell are counted in it.
    cells: Vec<f64>,
    /// Index of the cell that the last limit cuts, and the centre of the part below the limit.
    cut: (usize, f64),
}

/// Studies whose first look was after the same number of blocks.
struct FollowedStudies {
    blocks: u32,
    undecided: Vec<OpenStudies>,
    /// Limits by number of blocks, and the limits for a last look.
    limits: BTreeMap<u32, (Vec<f64>, Vec<f64>)>,
}

/// Cache of the studies, by the number of blocks at their first look. A report asks hundreds of
/// times for the same few.
static CACHE: Mutex<BTreeMap<u32, FollowedStudies>> = Mutex::new(BTreeMap::new());

fn with_limits<T>(at: At, of: impl FnOnce(&Limits) -> T) -> T {
    let mut known = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let followed = known.entry(at.first).or_insert_with(|| FollowedStudies::from(at.first));
    while followed.blocks < at.blocks {
        followed.add_block();
    }
    let (usual, last) = &followed.limits[&at.blocks];
    of(if at.is_last { last } else { usual })
}

impl FollowedStudies {
    fn from(first: u32) -> Self {
        let beyond: Vec<f64> =
            (0..=CELLS).map(|index| cdf(-t_of(edge(index), first), f64::from(first - 1))).collect();
        let undecided = (0..LEVELS).map(|_| OpenStudies { cells: vec![1.0], cut: (0, 0.0) }).collect();
        let mut new = Self { blocks: first, undecided, limits: BTreeMap::new() };
        new.look(&vec![beyond; LEVELS], |level| level * spent_after(first), |level| level);
        new
    }

    /// Adds one block and a look after it.
    fn add_block(&mut self) {
        let from = self.blocks;
        let steps: Vec<Vec<f64>> =
            (0..CELLS).map(|cell| steps(f64::midpoint(edge(cell), edge(cell + 1)), from)).collect();
        let beyond: Vec<Vec<f64>> =
            self.undecided.iter().map(|undecided| undecided.after(&steps, from)).collect();
        self.blocks += 1;
        let newly = spent_after(self.blocks) - spent_after(from);
        self.look(&beyond, |level| level * newly, |level| level * (1.0 - spent_after(from)));
    }

    /// Computes this look's limits. `beyond` has the share of studies beyond each edge, for each
    /// level.
    fn look(&mut self, beyond: &[Vec<f64>], usual: impl Fn(f64) -> f64, last: impl Fn(f64) -> f64) {
        let limits = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
            beyond.iter().enumerate().map(|(index, beyond)| limit(beyond, of(level_at(index)))).collect()
        };
        let (usual, last) = (limits(&usual), limits(&last));
        for ((undecided, beyond), limit) in self.undecided.iter_mut().zip(beyond).zip(&usual) {
            *undecided = undecided.below(beyond, *limit);
        }
        self.limits.insert(self.blocks, (usual, last));
    }
}

impl OpenStudies {
    /// The studies that are left when those beyond the limit have been found.
    fn below(&self, beyond: &[f64], limit: f64) -> Self {
        let position = (limit - LOWEST) / (HIGHEST - LOWEST) * CELLS as f64;
        let cut = (position.max(0.0) as usize).min(CELLS - 1);
        let spent = at_deviation(beyond, limit);
        let mut cells: Vec<f64> = beyond.windows(2).map(|pair| pair[0] - pair[1]).collect();
        cells[0] = self.cells.iter().sum::<f64>() - beyond[1];
        cells[cut] = (beyond[cut] - spent).max(0.0);
        cells[cut + 1..].fill(0.0);
        Self { cells, cut: (cut, f64::midpoint(edge(cut), limit)) }
    }

    /// Share of the studies beyond each edge after one more block.
    fn after(&self, steps: &[Vec<f64>], blocks: u32) -> Vec<f64> {
        let mut beyond = vec![0.0; CELLS + 1];
        let mut add = |share: f64, steps: &[f64]| {
            beyond.iter_mut().zip(steps).for_each(|(beyond, step)| *beyond += share * step);
        };
        let (cut, centre) = self.cut;
        for (cell, share) in self.cells.iter().enumerate().take(cut) {
            add(*share, &steps[cell]);
        }
        add(self.cells[cut], &self::steps(centre, blocks));
        beyond
    }
}

/// The deviation beyond which `share` lies. Between edges the share's logarithm is interpolated
/// linearly.
fn limit(beyond: &[f64], share: f64) -> f64 {
    let at = beyond.partition_point(|beyond| *beyond > share);
    if at == 0 || at > CELLS {
        return if at == 0 { LOWEST } else { HIGHEST };
    }
    let (more, less) = (beyond[at - 1].ln(), beyond[at].max(1e-300).ln());
    edge(at - 1) + (edge(at) - edge(at - 1)) * (more - share.ln()) / (more - less)
}

fn at_deviation(beyond: &[f64], limit: f64) -> f64 {
    let position = ((limit - LOWEST) / (HIGHEST - LOWEST) * CELLS as f64).clamp(0.0, CELLS as f64);
    let at = (position as usize).min(CELLS - 1);
    let (more, less) = (beyond[at].max(1e-300).ln(), beyond[at + 1].max(1e-300).ln());
    (more + (position - at as f64) * (less - more)).exp()
}

/// Probability that one more block passes each edge, from a deviation after `blocks`.
fn steps(from: f64, blocks: u32) -> Vec<f64> {
    let from = direction(t_of(from, blocks), blocks);
    let (length, turn) = ((1.0 + from * from).sqrt(), from.atan());
    let passed = |index: usize| {
        let to = direction(t_of(edge(index), blocks + 1), blocks + 1);
        if to >= length {
            return 0.0;
        }
        // (U + tan a) ÷ √(1 + tan² a) equals √(1 + U²) × sin(a + atan U).
        let angle = (to / length).max(-1.0).asin();
        let within = |angle: f64| (angle - turn).clamp(-FRAC_PI_2, FRAC_PI_2);
        (angle_cdf(within(PI - angle), blocks) - angle_cdf(within(angle), blocks)).max(0.0)
    };
    (0..=CELLS).map(passed).collect()
}

/// P(atan(T ÷ √degrees) ≤ `angle`) for Student's T with a whole number of degrees. Source: M.
/// Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
fn angle_cdf(angle: f64, degrees: u32) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, cosine) } else { (1.0, 1.0) };
    let mut factor = if is_odd { 3 } else { 2 };
    while factor < degrees {
        term *= cosine * cosine * f64::from(factor - 1) / f64::from(factor);
        sum += term;
        factor += 2;
    }
    let within = match degrees {
        1 => 2.0 / PI * angle,
        _ if is_odd => 2.0 / PI * (angle + sine * sum),
        _ => sine * sum,
    };
    f64::midpoint(1.0, within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::{chance, close, normal, share};

    /// Levels, each with the one-sided p of a single t-test at the limit of each look from the
    /// third block on. They were computed with SciPy 1.17 by the same recursion, over 2,400 cells
    /// up to the seventh block and 1,200 after.
    const PUBLISHED: [(f64, [f64; 10]); 3] = [
        (
            0.025,
            [
                0.008_333, 0.006_451, 0.005_065, 0.004_092, 0.003_392, 0.002_868, 0.002_474, 0.002_164,
                0.001_916, 0.001_712,
            ],
        ),
        (
            0.05,
            [
                0.016_667, 0.014_133, 0.011_664, 0.009_713, 0.008_212, 0.007_050, 0.006_144, 0.005_395,
                0.004_802, 0.004_310,
            ],
        ),
        (
            0.000_5,
            [
                1.666_7e-4, 9.523e-5, 6.382e-5, 4.708e-5, 3.689e-5, 3.011e-5, 2.530e-5, 2.174e-5, 1.902e-5,
                1.690e-5,
            ],
        ),
    ];

    fn look(first: u32, blocks: u32) -> At {
        At { first, blocks, is_last: false }
    }

    fn single_p(at: At, level: f64) -> f64 {
        cdf(-critical(at, level), f64::from(at.blocks - 1))
    }

    #[test]
    fn limits_are_those_of_an_independent_computation() {
        for (level, expected) in PUBLISHED {
            for (blocks, expected) in (3..).zip(expected) {
                let found = single_p(look(3, blocks), level);
                close(found / expected, 1.0, 0.04);
            }
        }
        for (blocks, is_last, expected) in [(4, false, 0.0125), (5, false, 0.007_024), (6, true, 0.015_43)] {
            close(single_p(At { first: 4, blocks, is_last }, 0.025) / expected, 1.0, 0.01);
        }
    }

    #[test]
    fn a_single_look_is_the_usual_test_and_interval() {
        let estimate = Estimate::of_mean(&[0.01, 0.02, 0.03, 0.025]).unwrap();
        let only = At { first: 4, blocks: 4, is_last: true };
        close(p_of_difference(only, estimate), estimate.p_of_difference(), 1e-12);
        close(interval(only, estimate, 0.95).low, estimate.interval(0.95).low, 1e-12);
        let bounds = Interval { low: -0.03, high: 0.03 };
        let usual = crate::statistics::student::p_of_equivalence(estimate, bounds);
        close(p_of_equivalence(only, estimate, bounds), usual, 1e-12);
    }

    #[test]
    fn p_and_limits_belong_together() {
        for (first, blocks, is_last) in [(3, 3, false), (3, 7, false), (5, 9, true), (3, 50, false)] {
            let at = At { first, blocks, is_last };
            for level in [0.1, 0.025, 0.001, 1e-6] {
                close(p_above(at, critical(at, level)) / level, 1.0, 1e-3);
            }
        }
        assert_eq!(p_above(look(3, 2), 1e9), 1.0);
        assert_eq!(p_above(look(3, 7), -1.0), 1.0);
        assert!(p_above(look(3, 7), f64::INFINITY) < 1e-7);
    }

    #[test]
    fn values_without_any_spread_are_certain() {
        let estimate = Estimate::of_mean(&[0.1, 0.1, 0.1, 0.1]).unwrap();
        assert!(p_of_difference(look(3, 4), estimate) < 1e-7);
        assert_eq!(interval(look(3, 4), estimate, 0.95).high, 0.1);
        assert_eq!(p_of_difference(look(3, 4), Estimate { value: 0.0, ..estimate }), 1.0);
    }

    /// The smallest p over the looks from block `first` to `most`, for equal variants.
    fn lowest_p(study: u64, (first, most): (u32, u32), value: impl Fn(u64, u64) -> f64) -> f64 {
        let values: Vec<f64> = (0..u64::from(most)).map(|block| value(study, block)).collect();
        let p = |blocks: u32| {
            let estimate = Estimate::of_mean(&values[..blocks as usize]).unwrap();
            p_of_difference(At { first, blocks, is_last: blocks == most }, estimate)
        };
        (first..=most).map(p).fold(1.0, f64::min)
    }

    #[test]
    fn all_looks_together_find_a_false_difference_as_often_as_the_level_says() {
        const STUDIES: u64 = 10_000;
        let all: Vec<f64> = (0..STUDIES).map(|study| lowest_p(study, (3, 12), normal)).collect();
        for level in [0.2, 0.05, 0.01, 0.001] {
            let found = all.iter().filter(|p| **p <= level).count() as f64 / STUDIES as f64;
            assert!((found - level).abs() <= chance(level, STUDIES), "{found} of {level}");
        }
    }

    #[test]
    fn heavy_tails_and_a_slow_drift_make_no_more_findings() {
        const STUDIES: u64 = 4_000;
        let heavy = |study: u64, block: u64| {
            let part = |number| normal(study, 4 * block + number);
            let squares: f64 = (1..4).map(|number| part(number) * part(number)).sum();
            part(0) / (squares / 3.0).sqrt()
        };
        // The machine slows from cell to cell by as much as a rate scatters. Which side is first is
        // random.
        let drifting = |study: u64, block: u64| {
            let side = if normal(study ^ 0x5eed, block) > 0.0 { 1.0 } else { -1.0 };
            2.0_f64.sqrt() * normal(study, block) + side
        };
        for value in [&heavy as &dyn Fn(u64, u64) -> f64, &drifting] {
            let found = share(STUDIES, |study| lowest_p(study, (3, 12), value) <= 0.05);
            assert!(found <= 0.05 + chance(0.05, STUDIES), "{found}");
        }
    }
}
