//! Finds the functions, areas and settings that make the difference between two variants' CPU time
//! per operation.
//!
//! A block has a number of samples for each function, and the exact CPU time per operation. A
//! function's share of the samples, times that CPU time, is its own time per operation. The
//! difference to the base is paired by block. Its standard error is that of the blocks' mean, or
//! that of the numbers of samples (Poisson) where this is larger: a few blocks may agree by chance,
//! and a function with few samples then looks certain. Student's t has as many degrees of freedom
//! as there are blocks, minus one. The p-values of all functions of a comparison are adjusted for
//! the false discovery rate (Benjamini and Hochberg).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::{CONFIDENCE, LEVEL};
use crate::statistics::Interval;
use crate::statistics::describe::mean;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::student::Estimate;

/// What has fewer samples than this in all blocks of both variants decides nothing, so it is not
/// tested by itself.
const MIN_SAMPLES: u64 = 8;
/// Rows are shown until they make this share of all decided changes.
const SHOWN: f64 = 0.9;

/// One block's samples of a variant in a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counted<Key> {
    pub(super) block: u32,
    /// The server's CPU time per operation, as the kernel accounts for it.
    pub(super) cpu_us: f64,
    /// Samples by what ran.
    pub(super) samples: BTreeMap<Key, u64>,
}

impl<Key: Ord + Clone> Counted<Key> {
    fn total(&self) -> f64 {
        self.samples.values().sum::<u64>() as f64
    }

    /// CPU time per operation for which one sample stands.
    fn unit_us(&self) -> f64 {
        self.cpu_us / self.total()
    }

    fn count(&self, key: &Key) -> u64 {
        self.samples.get(key).copied().unwrap_or(0)
    }

    /// Adds samples up by `group`. What has no group is left out of the parts, but counts in the
    /// whole.
    pub(super) fn grouped<Group: Ord + Clone>(
        &self,
        group: impl Fn(&Key) -> Option<Group>,
    ) -> Counted<Option<Group>> {
        let mut samples = BTreeMap::new();
        for (key, count) in &self.samples {
            *samples.entry(group(key)).or_default() += count;
        }
        Counted { block: self.block, cpu_us: self.cpu_us, samples }
    }
}

/// How much of the difference is one function's, area's or setting's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    pub name: String,
    /// CPU time per operation; means over the blocks.
    pub base_us: f64,
    pub variant_us: f64,
    pub difference_us: f64,
    /// The 95 % interval of the difference; `None` for one block.
    pub interval: Option<Interval>,
    /// The adjusted p-value of no difference; `None` for one block.
    pub q: Option<f64>,
    /// Whether it was sampled on one side only.
    pub presence: Presence,
}

impl Contribution {
    /// Returns whether the difference is real, at a false discovery rate of 5 %.
    pub fn is_decided(&self) -> bool {
        self.q.is_some_and(|q| q <= LEVEL)
    }
}

/// On which side of a comparison a function was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    Both,
    /// Only in the variant.
    New,
    /// Only in the base.
    Gone,
}

/// Pairs two variants' blocks.
pub(super) fn paired<Key: Clone>(
    base: &[Counted<Key>],
    variant: &[Counted<Key>],
) -> Vec<(Counted<Key>, Counted<Key>)> {
    let of_block = |block: u32| base.iter().find(|counted| counted.block == block);
    let pair = |counted: &Counted<Key>| Some((of_block(counted.block)?.clone(), counted.clone()));
    variant.iter().filter_map(pair).collect()
}

/// Returns what each key contributes to the difference, the largest change first.
pub(super) fn contributions<Key: Ord + Clone>(
    pairs: &[(Counted<Key>, Counted<Key>)],
    name: impl Fn(&Key) -> String,
) -> Vec<Contribution> {
    let keys: BTreeSet<&Key> =
        pairs.iter().flat_map(|(base, variant)| base.samples.keys().chain(variant.samples.keys())).collect();
    let found = keys.into_iter().filter_map(|key| contribution(pairs, key, name(key)));
    let (mut found, p): (Vec<Contribution>, Vec<Option<f64>>) = found.unzip();
    let known: Vec<f64> = p.iter().map(|p| p.unwrap_or(1.0)).collect();
    for ((one, q), p) in found.iter_mut().zip(benjamini_hochberg(&known)).zip(p) {
        one.q = p.map(|_| q);
    }
    found.sort_by(|one, other| other.difference_us.abs().total_cmp(&one.difference_us.abs()));
    found
}

/// Returns one key's contribution with its p-value, or `None` for too few samples.
fn contribution<Key: Ord + Clone>(
    pairs: &[(Counted<Key>, Counted<Key>)],
    key: &Key,
    name: String,
) -> Option<(Contribution, Option<f64>)> {
    let samples = |side: fn(&(Counted<Key>, Counted<Key>)) -> &Counted<Key>| -> u64 {
        pairs.iter().map(|pair| side(pair).count(key)).sum()
    };
    let (in_base, in_variant) = (samples(|pair| &pair.0), samples(|pair| &pair.1));
    if in_base + in_variant < MIN_SAMPLES {
        return None;
    }
    let own_us = |counted: &Counted<Key>| counted.unit_us() * counted.count(key) as f64;
    let sides = |side: fn(&(Counted<Key>, Counted<Key>)) -> &Counted<Key>| -> Vec<f64> {
        pairs.iter().map(|pair| own_us(side(pair))).collect()
    };
    let (base, variant) = (sides(|pair| &pair.0), sides(|pair| &pair.1));
    let differences: Vec<f64> = variant.iter().zip(&base).map(|(variant, base)| variant - base).collect();
    let estimate = Estimate::of_mean(&differences).map(|of_blocks| Estimate {
        standard_error: of_blocks.standard_error.max(counting_error(pairs, key)),
        ..of_blocks
    });
    let presence = match (in_base, in_variant) {
        (0, _) => Presence::New,
        (_, 0) => Presence::Gone,
        _ => Presence::Both,
    };
    let found = Contribution {
        name,
        base_us: mean(&base)?,
        variant_us: mean(&variant)?,
        difference_us: mean(&differences)?,
        interval: estimate.map(|estimate| estimate.interval(CONFIDENCE)),
        q: None,
        presence,
    };
    Some((found, estimate.map(Estimate::p_of_difference)))
}

/// The standard error of the mean difference that comes from the numbers of samples alone. The
/// variance of such a number is the number itself.
fn counting_error<Key: Ord + Clone>(pairs: &[(Counted<Key>, Counted<Key>)], key: &Key) -> f64 {
    let of = |counted: &Counted<Key>| counted.unit_us().powi(2) * counted.count(key) as f64;
    let variances: f64 = pairs.iter().map(|(base, variant)| of(base) + of(variant)).sum();
    variances.sqrt() / pairs.len() as f64
}

/// Returns how many of the contributions, which begin with the largest change, a table shows:
/// decided ones, until they make 90 % of all decided changes.
pub(super) fn shown(contributions: &[Contribution]) -> Vec<Contribution> {
    let decided: Vec<&Contribution> = contributions.iter().filter(|one| one.is_decided()).collect();
    let all: f64 = decided.iter().map(|one| one.difference_us.abs()).sum();
    let mut so_far = 0.0;
    let is_needed = |one: &&Contribution| {
        let is_needed = so_far < SHOWN * all;
        so_far += one.difference_us.abs();
        is_needed
    };
    decided.into_iter().take_while(is_needed).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::SQRT_2;

    use statrs::function::erf::erf;

    use super::*;
    use crate::simulations::{close, normal};

    /// A random number from 0 to 1.
    fn uniform(study: u64, position: u64) -> f64 {
        f64::midpoint(1.0, erf(normal(study, position) / SQRT_2))
    }

    /// Draws samples for a block in which each function has the time that `times_us` says, and the
    /// whole block is slower by a random few per cent.
    fn drawn(seed: u64, block: u32, times_us: &[f64], samples: u64) -> Counted<usize> {
        let all: f64 = times_us.iter().sum();
        let seed = seed * 1_000 + u64::from(block);
        let mut counted = BTreeMap::new();
        for draw in 0..samples {
            let mut at = uniform(seed, draw) * all;
            let key = times_us.iter().position(|time| {
                at -= time;
                at < 0.0
            });
            *counted.entry(key.unwrap_or(0)).or_default() += 1;
        }
        let slower = 1.0 + 0.02 * normal(seed, samples + 1);
        Counted { block, cpu_us: all * slower, samples: counted }
    }

    fn pairs(
        seed: u64,
        base: &[f64],
        variant: &[f64],
        (blocks, samples): (u32, u64),
    ) -> Vec<(Counted<usize>, Counted<usize>)> {
        let of = |block| {
            (drawn(2 * seed, block, base, samples), drawn(2 * seed + 1, block, variant, samples))
        };
        (1..=blocks).map(of).collect()
    }

    /// Forty functions, from half a microsecond to twenty.
    fn usual() -> Vec<f64> {
        (1..=40).map(|number| 0.5 * f64::from(number)).collect()
    }

    #[test]
    fn a_planted_difference_is_first_and_its_interval_has_the_truth() {
        const TRIALS: u64 = 40;
        let mut slower = usual();
        slower[7] += 15.0;
        let (mut is_first, mut has_truth) = (0, 0);
        for seed in 0..TRIALS {
            let found = contributions(&pairs(seed, &usual(), &slower, (5, 2_000)), usize::to_string);
            let first = &found[0];
            is_first += u64::from(first.name == "7" && first.is_decided());
            has_truth += u64::from(first.interval.unwrap().contains(15.0));
        }
        assert!(is_first >= TRIALS * 19 / 20, "first in {is_first} of {TRIALS}");
        assert!(has_truth >= TRIALS * 9 / 10, "covered in {has_truth} of {TRIALS}");
    }

    #[test]
    fn equal_variants_differ_in_no_function_in_19_of_20_trials() {
        const TRIALS: u64 = 100;
        let decides = |seed: &u64| {
            let pairs = pairs(1_000 + seed, &usual(), &usual(), (5, 2_000));
            contributions(&pairs, usize::to_string).iter().any(Contribution::is_decided)
        };
        let wrong = (0..TRIALS).filter(decides).count();
        // 5 of 100 are expected at most; 10 or more come by chance in less than 3 of 100 test runs.
        assert!(wrong < 10, "{wrong} of {TRIALS}");
    }

    fn counted(block: u32, cpu_us: f64, samples: &[(&'static str, u64)]) -> Counted<&'static str> {
        Counted { block, cpu_us, samples: samples.iter().copied().collect() }
    }

    #[test]
    fn times_add_up_to_the_cpu_time_and_presence_says_who_has_it() {
        let pairs: Vec<_> = (1..=2)
            .map(|block| {
                let base = counted(block, 100.0, &[("a", 60), ("gone", 40)]);
                (base, counted(block, 120.0, &[("a", 50), ("new", 70)]))
            })
            .collect();
        let found = contributions(&pairs, |name| (*name).to_owned());
        let of = |name: &str| found.iter().find(|one| one.name == name).unwrap();
        close(found.iter().map(|one| one.difference_us).sum(), 20.0, 1e-9);
        assert_eq!((of("new").presence, of("gone").presence), (Presence::New, Presence::Gone));
        close(of("new").difference_us, 70.0, 1e-9);
        close(of("a").difference_us, -10.0, 1e-9);
        assert_eq!(found[0].name, "new", "the largest change is first");
    }

    #[test]
    fn one_block_decides_nothing_and_rare_functions_are_not_tested() {
        let pairs = [(
            counted(1, 10.0, &[("a", 1_000)]),
            counted(1, 20.0, &[("a", 1_000), ("rare", MIN_SAMPLES - 1)]),
        )];
        let found = contributions(&pairs, |name| (*name).to_owned());
        assert_eq!(found.len(), 1);
        assert!(found[0].interval.is_none() && !found[0].is_decided());
    }

    #[test]
    fn few_samples_are_not_certain_though_all_blocks_agree() {
        let pairs: Vec<_> = (1..=5)
            .map(|block| (counted(block, 10.0, &[("a", 998)]), counted(block, 10.0, &[("a", 996), ("b", 2)])))
            .collect();
        let found = contributions(&pairs, |name| (*name).to_owned());
        let rare = found.iter().find(|one| one.name == "b").unwrap();
        let interval = rare.interval.unwrap();
        assert!(interval.high - interval.low > rare.difference_us, "{interval:?}");
    }

    #[test]
    fn rows_are_shown_until_nine_tenths_of_the_decided_changes() {
        let one = |name: &str, difference_us: f64, q: f64| Contribution {
            name: name.to_owned(),
            base_us: 0.0,
            variant_us: difference_us,
            difference_us,
            interval: None,
            q: Some(q),
            presence: Presence::Both,
        };
        let all = [one("a", 6.0, 0.01), one("b", -5.0, 0.2), one("c", -3.5, 0.01), one("d", 0.5, 0.01)];
        let names: Vec<String> = shown(&all).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["a", "c"]);
    }
}
