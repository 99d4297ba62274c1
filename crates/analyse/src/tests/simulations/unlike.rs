//! Tests of the statistical methods against simulated truth where their assumptions do not hold:
//! heavy tails, skew, unequal scatter.
//!
//! The noise is added to each side's log rate, because rates are measured. Intervals are computed
//! from the difference between the two sides of a block, or between two runs.

use super::{chance, close, normal, share};
use crate::statistics::ranks::hodges_lehmann;
use crate::statistics::resampling;
use crate::statistics::student::Estimate;

/// A function that gives one log rate of a study, around 0.
type Noise = fn(study: u64, position: u64) -> f64;

/// Noise with Student's t distribution with 3 degrees of freedom. One value in a hundred is beyond
/// 5.8 times the usual scatter.
fn heavy(study: u64, position: u64) -> f64 {
    let part = |number: u64| normal(study, 4 * position + number);
    let squares: f64 = (1..4).map(|number| part(number).powi(2)).sum();
    part(0) / (squares / 3.0).sqrt()
}

/// Exponentially distributed losses. Most blocks lose little, some lose much, and none gains.
fn skewed(study: u64, position: u64) -> f64 {
    let even = ((resampling::random_number(resampling::random_number(study, 91), position) >> 11) as f64
        + 0.5)
        / (1_u64 << 53) as f64;
    even.ln() + 1.0
}

/// Differences between the sides of `blocks` pairs.
fn pairs(study: u64, blocks: u64, variant: Noise, base: Noise) -> Vec<f64> {
    (0..blocks).map(|block| variant(study, 2 * block) - base(study, 2 * block + 1)).collect()
}

const STUDIES: u64 = 4_000;

fn paired_coverage(blocks: u64, variant: Noise, base: Noise) -> f64 {
    share(STUDIES, |study| {
        Estimate::of_mean(&pairs(study, blocks, variant, base)).unwrap().interval(0.95).contains(0.0)
    })
}

#[test]
fn each_noise_has_the_distribution_that_it_claims() {
    let of = |noise: Noise| -> Vec<f64> { (0..50_000).map(|at| noise(at / 10, at % 10)).collect() };
    let beyond = |values: &[f64], bound: f64| {
        values.iter().filter(|value| value.abs() > bound).count() as f64 / values.len() as f64
    };
    // Printed tables have t(0.995; 3) = 5.8409.
    close(beyond(&of(heavy), 5.840_9), 0.01, chance(0.01, 50_000));
    let losses = of(skewed);
    close(losses.iter().sum::<f64>() / 50_000.0, 0.0, 3.0 / 50_000_f64.sqrt());
    close(beyond(&losses, 2.0), (-3.0_f64).exp(), chance(0.05, 50_000));
    assert!(losses.iter().all(|value| *value < 1.0));
}

#[test]
fn pairs_whose_sides_have_the_same_noise_have_intervals_that_contain_the_truth_often_enough() {
    // Skew cancels in the difference between two sides that both have it. Tails make intervals
    // wider, but not wrong more often.
    for noise in [heavy as Noise, skewed] {
        for blocks in [3, 5, 10] {
            let covered = paired_coverage(blocks, noise, noise);
            assert!(covered >= 0.95 - chance(0.95, STUDIES), "{blocks} blocks: {covered}");
            assert!(covered <= 0.98, "{blocks} blocks: {covered} is needlessly wide");
        }
    }
}

#[test]
fn losses_of_one_side_alone_make_intervals_miss_as_often_as_the_documentation_says() {
    let calm: Noise = |study, position| 0.1 * normal(study, position);
    for (blocks, documented) in [(3, 0.89), (5, 0.89), (10, 0.90)] {
        let covered = paired_coverage(blocks, skewed, calm);
        close(covered, documented, 0.005 + chance(documented, STUDIES));
    }
}

#[test]
fn the_robust_interval_contains_the_truth_for_pairs_with_heavy_tails() {
    for blocks in [5, 10] {
        let promised = hodges_lehmann(&pairs(0, blocks, heavy, heavy), 0.95).unwrap().confidence;
        let covered = share(STUDIES, |study| {
            hodges_lehmann(&pairs(study, blocks, heavy, heavy), 0.95).unwrap().interval.contains(0.0)
        });
        close(covered, promised, chance(promised, STUDIES));
    }
}

fn unpaired_coverage(counts: (u64, u64), scales: (f64, f64), noise: Noise) -> f64 {
    share(STUDIES, |study| {
        let side = |count: u64, scale: f64, from: u64| -> Vec<f64> {
            (0..count).map(|at| scale * noise(study, from + at)).collect()
        };
        let (base, new) = (side(counts.0, scales.0, 0), side(counts.1, scales.1, 100));
        Estimate::of_difference(&base, &new).unwrap().interval(0.95).contains(0.0)
    })
}

#[test]
fn two_runs_of_unequal_scatter_and_length_have_intervals_that_contain_the_truth() {
    for (counts, scales) in
        [((5, 5), (1.0, 5.0)), ((5, 10), (1.0, 5.0)), ((10, 5), (1.0, 5.0)), ((3, 10), (1.0, 2.0))]
    {
        let covered = unpaired_coverage(counts, scales, normal);
        assert!((0.93..=0.97).contains(&covered), "{counts:?} blocks, scatter {scales:?}: {covered}");
    }
    for counts in [(5, 5), (10, 10)] {
        let covered = unpaired_coverage(counts, (1.0, 1.0), heavy);
        assert!(covered >= 0.95 - chance(0.95, STUDIES), "{counts:?}: {covered}");
    }
}
