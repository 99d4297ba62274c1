//! Tests of the statistical methods against simulated truth: how often an interval contains the
//! truth, and how often a verdict is false.
//!
//! The file also has functions that other tests of the statistics share: a check for closeness, and
//! normally distributed numbers by position.

mod unlike;

use std::f64::consts::TAU;

use crate::compare::verdicts::{adjust, of_estimate, verdict_of_inference};
use crate::model::{Inference, Verdict};
use crate::statistics::change_point::{PERMUTATIONS, changes_of_all, largest_change};
use crate::statistics::ranks::hodges_lehmann;
use crate::statistics::resampling::{self, bca};
use crate::statistics::student::Estimate;

/// Fails unless the two differ by at most `tolerance`.
#[track_caller]
pub(crate) fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "found {found}, expected {expected} within {tolerance}");
}

/// Number `position` of study `study`. The numbers are normally distributed around 0 with deviation
/// 1 (Box and Muller, 1958).
pub(crate) fn normal(study: u64, position: u64) -> f64 {
    let even = |part| {
        let number = resampling::random_number(resampling::random_number(study, 77), 2 * position + part);
        ((number >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    (-2.0 * even(0).ln()).sqrt() * (TAU * even(1)).cos()
}

#[test]
fn the_numbers_are_normally_distributed() {
    let values: Vec<f64> = (0..50_000).map(|position| normal(position / 10, position % 10)).collect();
    let mean = values.iter().sum::<f64>() / 50_000.0;
    let squares = values.iter().map(|value| value * value).sum::<f64>() / 50_000.0;
    let far = values.iter().filter(|value| value.abs() > 1.959_964).count() as f64 / 50_000.0;
    close(mean, 0.0, 0.015);
    close(squares, 1.0, 0.02);
    close(far, 0.05, 0.003);
}

/// How far the share of `studies` may lie from a true `share` by chance: three standard errors of a
/// binomial share.
pub(crate) fn chance(share: f64, studies: u64) -> f64 {
    3.0 * (share * (1.0 - share) / studies as f64).sqrt()
}

/// Fails if something that may happen in at most 5 % of studies happened more often than chance
/// allows.
#[track_caller]
fn at_most_5_percent(share: f64, studies: u64) {
    assert!(share <= 0.05 + chance(0.05, studies), "{share} of {studies}");
}

/// Share of `studies` in which `what` is true.
pub(crate) fn share(studies: u64, what: impl Fn(u64) -> bool) -> f64 {
    (0..studies).filter(|study| what(*study)).count() as f64 / studies as f64
}

fn noise(study: u64, count: u64, deviation: f64) -> Vec<f64> {
    (0..count).map(|position| deviation * normal(study, position)).collect()
}

#[test]
fn the_interval_by_t_contains_the_truth_in_95_percent_of_studies() {
    for blocks in [3, 5, 10] {
        let covered = share(4_000, |study| {
            Estimate::of_mean(&noise(study, blocks, 0.01)).unwrap().interval(0.95).contains(0.0)
        });
        close(covered, 0.95, chance(0.95, 4_000));
    }
}

#[test]
fn the_bootstrap_is_too_narrow_for_few_blocks() {
    bootstrap_misses([(3, 0.69, 200), (5, 0.84, 200), (10, 0.90, 100)]);
}

#[test]
#[ignore = "in cargo xtask test --all: more simulated studies"]
fn the_bootstrap_is_too_narrow_for_few_blocks_as_its_documentation_says() {
    bootstrap_misses([(3, 0.69, 2_000), (5, 0.84, 2_000), (10, 0.90, 1_000)]);
}

/// The cases have a number of blocks, the documented coverage for it, and a number of studies.
fn bootstrap_misses(cases: [(u64, f64, u64); 3]) {
    for (blocks, documented, studies) in cases {
        let covered =
            share(studies, |study| bca(&noise(study, blocks, 0.01), 0.95, study).unwrap().contains(0.0));
        // The documentation has whole percentages.
        close(covered, documented, 0.005 + chance(documented, studies));
    }
}

#[test]
fn the_robust_interval_contains_the_truth_as_often_as_it_says() {
    for blocks in [5, 6, 10] {
        let promised = hodges_lehmann(&noise(0, blocks, 0.01), 0.95).unwrap().confidence;
        let covered = share(4_000, |study| {
            hodges_lehmann(&noise(study, blocks, 0.01), 0.95).unwrap().interval.contains(0.0)
        });
        close(covered, promised, chance(promised, 4_000));
    }
}

/// Log rates of two equal servers on a machine that gets slower by 1 % from one measurement to the
/// next, with 1 % of noise.
fn at_time(study: u64, time: u64) -> f64 {
    -0.01 * time as f64 + 0.01 * normal(study, time)
}

fn differs(inference: &Inference, estimate: Estimate, margin: f64) -> bool {
    matches!(verdict_of_inference(estimate.value.exp(), inference, margin), Verdict::Faster | Verdict::Slower)
}

#[test]
fn equal_servers_in_blocks_get_false_verdicts_in_at_most_5_percent_of_studies_despite_drift() {
    let in_blocks = |study: u64, margin: f64| {
        let ratio = |block: u64| {
            let (first, second) = (at_time(study, 2 * block), at_time(study, 2 * block + 1));
            // The order within a block is random.
            if resampling::random_below(resampling::random_number(study, 5), block, 2) == 0 {
                first - second
            } else {
                second - first
            }
        };
        let estimate = Estimate::of_mean(&(0..5).map(ratio).collect::<Vec<_>>()).unwrap();
        differs(&of_estimate(estimate, margin), estimate, margin)
    };
    at_most_5_percent(share(20_000, |study| in_blocks(study, 0.0)), 20_000);
    let with_margin = share(20_000, |study| in_blocks(study, 0.02));
    assert!(with_margin <= 0.05, "{with_margin}");
    let one_after_the_other = share(3_000, |study| {
        let rates = |times: std::ops::Range<u64>| times.map(|time| at_time(study, time)).collect::<Vec<_>>();
        let estimate = Estimate::of_difference(&rates(0..5), &rates(5..10)).unwrap();
        differs(&of_estimate(estimate, 0.02), estimate, 0.02)
    });
    assert!(one_after_the_other >= 0.5, "what blocks protect from: {one_after_the_other}");
}

/// Numbers of false and of all verdicts in a run of 42 steps, of which the first
/// `different` differ by 8 %.
fn run_of_42_steps(study: u64, different: u64) -> (usize, usize) {
    let estimates: Vec<Estimate> = (0..42)
        .map(|step| {
            let shift = if step < different { 0.08 } else { 0.0 };
            let logs: Vec<f64> = noise(1_000 * study + step, 5, 0.02).iter().map(|log| log + shift).collect();
            Estimate::of_mean(&logs).unwrap()
        })
        .collect();
    let mut inferences: Vec<Inference> =
        estimates.iter().map(|estimate| of_estimate(*estimate, 0.0)).collect();
    adjust(&mut inferences.iter_mut().collect::<Vec<_>>());
    let reported: Vec<usize> =
        (0..42).filter(|step| differs(&inferences[*step], estimates[*step], 0.0)).collect();
    (reported.iter().filter(|step| **step >= different as usize).count(), reported.len())
}

#[test]
fn few_of_the_differences_reported_over_42_steps_are_false() {
    reports_over_42_steps(200);
}

#[test]
#[ignore = "in cargo xtask test --all: more simulated studies"]
fn at_most_5_percent_of_the_differences_reported_over_42_steps_are_false() {
    reports_over_42_steps(2_000);
}

fn reports_over_42_steps(studies: u64) {
    let runs: Vec<(usize, usize)> = (0..studies).map(|study| run_of_42_steps(study, 12)).collect();
    let false_share: f64 =
        runs.iter().map(|(false_ones, all)| *false_ones as f64 / (*all).max(1) as f64).sum::<f64>()
            / studies as f64;
    assert!(false_share <= 0.05, "{false_share}");
    let found: usize = runs.iter().map(|(false_ones, all)| all - false_ones).sum();
    let there = 12 * studies as usize;
    assert!(found >= there / 2, "and most that is there is found: {found} of {there}");
    at_most_5_percent(share(studies, |study| run_of_42_steps(study + studies, 0).1 > 0), studies);
}

/// Number of false differences and of all reported differences in a run of 42 steps. 30 certainly
/// differ by half of the margin, which is not reported, and 12 are equal and noisy.
fn run_with_small_differences(study: u64) -> (usize, usize) {
    let margin = 0.02;
    let estimates: Vec<Estimate> = (0..42)
        .map(|step| {
            let (shift, scale) = if step < 30 { (0.01, 0.001) } else { (0.0, 0.03) };
            let logs: Vec<f64> =
                noise(1_000 * study + step, 5, scale).iter().map(|log| log + shift).collect();
            Estimate::of_mean(&logs).unwrap()
        })
        .collect();
    let mut inferences: Vec<Inference> =
        estimates.iter().map(|estimate| of_estimate(*estimate, margin)).collect();
    adjust(&mut inferences.iter_mut().collect::<Vec<_>>());
    let reported = (0..42).filter(|step| differs(&inferences[*step], estimates[*step], margin));
    (reported.clone().filter(|step| *step >= 30).count(), reported.count())
}

#[test]
fn certain_differences_inside_the_margin_do_not_lower_the_bar_for_others() {
    small_differences_are_rarely_reported(400);
}

#[test]
#[ignore = "in cargo xtask test --all: more simulated studies"]
fn certain_differences_inside_the_margin_do_not_lower_the_bar_for_others_in_many_studies() {
    small_differences_are_rarely_reported(4_000);
}

fn small_differences_are_rarely_reported(studies: u64) {
    // Every difference that is reported in these runs is false, so the share of runs with a false
    // difference is the false discovery rate.
    at_most_5_percent(share(studies, |study| run_with_small_differences(study).0 > 0), studies);
}

#[test]
fn at_most_5_percent_of_studies_say_same_for_a_difference_as_large_as_the_margin() {
    let said = |truth: f64| {
        share(20_000, |study| {
            let logs: Vec<f64> = noise(study, 5, 0.008).iter().map(|log| log + truth).collect();
            let estimate = Estimate::of_mean(&logs).unwrap();
            verdict_of_inference(estimate.value.exp(), &of_estimate(estimate, 0.02), 0.02) == Verdict::Same
        })
    };
    let (at_margin, outside, equal) = (said(1.02_f64.ln()), said(1.021_f64.ln()), said(0.0));
    at_most_5_percent(at_margin, 20_000);
    assert!(outside <= 0.05, "{outside}");
    assert!(equal >= 0.9, "and of equal servers it is said: {equal}");
}

#[test]
fn a_change_is_found_in_at_most_5_percent_of_series_of_noise() {
    let found = share(2_000, |study| {
        largest_change(&noise(study, 20, 1.0), study, PERMUTATIONS).is_some_and(|change| change.p <= 0.05)
    });
    at_most_5_percent(found, 2_000);
    let after_choosing = share(600, |study| {
        let values = noise(study, 20, 1.0);
        let at = largest_change(&values, study, PERMUTATIONS).unwrap().at;
        Estimate::of_difference(&values[..at], &values[at..]).is_some_and(|d| d.p_of_difference() <= 0.05)
    });
    assert!(after_choosing >= 0.2, "what the permutations protect from: {after_choosing}");
}

/// Five series of 40 runs with 3 % of noise. All became faster by 20 % at the 20th run and have not
/// changed since.
fn changed_once(study: u64) -> Vec<Vec<f64>> {
    let level = |run| if run < 20 { 0.0 } else { 1.2_f64.ln() };
    let of = |number| (0..).zip(noise(5 * study + number, 40, 0.03)).map(|(run, noise)| level(run) + noise);
    (0..5).map(|number| of(number).collect()).collect()
}

#[test]
fn a_further_change_is_rarely_reported_in_series_that_changed_once() {
    further_changes_are_rarely_reported(30);
}

#[test]
#[ignore = "in cargo xtask test --all: more simulated studies"]
fn a_further_change_is_reported_in_at_most_5_percent_of_histories_that_changed_once() {
    further_changes_are_rarely_reported(300);
}

fn further_changes_are_rarely_reported(studies: u64) {
    let reported = share(studies, |study| {
        let found = changes_of_all(&changed_once(study), 0.05, study);
        assert!(found.iter().all(|changes| !changes.found.is_empty()), "{found:?}");
        found.iter().any(|changes| changes.found.len() > 1)
    });
    at_most_5_percent(reported, studies);
    let each_by_itself = share(studies / 3, |study| {
        let is_reported =
            |part: &[f64]| largest_change(part, study, PERMUTATIONS).is_some_and(|change| change.p <= 0.05);
        changed_once(study).iter().any(|values| is_reported(&values[..20]) || is_reported(&values[20..]))
    });
    assert!(each_by_itself >= 0.25, "what one family of all parts protects from: {each_by_itself}");
}
