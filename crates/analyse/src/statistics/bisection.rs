//! Finds the commit at which a figure changed, from noisy measurements of some commits.
//!
//! A search keeps a posterior over explanations: one step at a commit, two steps, or a drift over the
//! whole range. Each measurement of a commit is a log ratio to the good commit in the same block. A
//! commit is never called good or bad by a threshold; all measurements count by their likelihood, so
//! a search may come back to a commit and change its mind. The next commit is the one whose
//! measurement tells most per unit of cost.
//!
//! Sources: the noisy binary search of M. Ben-Or and A. Hassidim, "The Bayesian Learner is Optimal
//! for Noisy Binary Search", FOCS 2008, and the choice of the next point by its posterior of R.
//! Waeber, P. I. Frazier and S. G. Henderson, "Bisection Search with Noisy Responses", SIAM J.
//! Control Optim. 51 (2013). They know only answers of yes and no. Here an answer is a
//! number whose noise is estimated from the repetitions: Student's t with the degrees of freedom of
//! the pooled scatter.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use statrs::function::gamma::ln_gamma;

use super::describe::mean;

/// Prior probabilities of the explanations. Most losses have one cause.
const ONE_STEP: f64 = 0.8;
const TWO_STEPS: f64 = 0.15;
const DRIFT: f64 = 0.05;
/// A commit's true level may differ from its neighbours' by this standard deviation without a
/// cause: the place of functions in memory changes with every build.
const OWN_DEVIATION: f64 = 0.003;
/// Shares of the whole difference that the first of two steps may have.
const SHARES: [f64; 3] = [0.25, 0.5, 0.75];
/// Number of sizes of the whole difference over which likelihoods are averaged.
const SIZES: i32 = 31;

/// The measurements of a search so far. Commits are numbered along first parents: 0 is the good one,
/// and `bad` the bad one.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub bad: usize,
    /// Log ratios to the good commit, block by block, of each commit that was measured. The good
    /// commit itself is not in it.
    pub measured: BTreeMap<usize, Vec<f64>>,
    /// Commits that cannot be measured, because they do not build or start.
    pub skipped: BTreeSet<usize>,
}

/// What the measurements say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Posterior {
    /// Probability that the one step is at the commit, for the commits 1 to `bad`.
    pub step_at: Vec<f64>,
    pub two_steps: f64,
    pub drift: f64,
    /// The difference of the bad commit from the good one, as a log ratio.
    pub difference: f64,
    /// Standard deviation of one block's log ratio.
    pub noise: f64,
}

/// The end of a search, or what it has reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// One commit, or a range of commits of which all but the last cannot be measured, has the step.
    Found { first: usize, last: usize, probability: f64 },
    /// The difference has two causes, or came little by little.
    SeveralCauses { probability: f64 },
    /// The smallest range that has the step with the asked probability.
    Open { first: usize, last: usize, probability: f64 },
}

impl Search {
    /// Computes the posterior. It is `None` before the bad commit has two measurements, because the
    /// noise is unknown then.
    pub fn posterior(&self) -> Option<Posterior> {
        let data = Data::of(self)?;
        let sizes = data.sizes();
        // Commits between two measured ones have the same likelihood, so only gaps are compared.
        let gaps = self.gaps();
        let one: Vec<f64> = gaps.iter().map(|gap| data.likelihood(&sizes, &|commit| level_of(commit, &[(gap.1, 1.0)]))).collect();
        let mut two = Vec::new();
        for (at, first) in gaps.iter().enumerate() {
            for second in &gaps[at + 1..] {
                let weight = (first.1 - first.0) as f64 * (second.1 - second.0) as f64;
                for share in SHARES {
                    let steps = [(first.1, share), (second.1, 1.0 - share)];
                    two.push((weight, data.likelihood(&sizes, &|commit| level_of(commit, &steps))));
                }
            }
        }
        let whole = self.bad as f64;
        let drift = data.likelihood(&sizes, &|commit| commit as f64 / whole);
        let best = one.iter().chain(two.iter().map(|(_, log)| log)).chain([&drift]).copied().fold(f64::MIN, f64::max);
        let probability = |log: f64| (log - best).exp();
        let commits = whole;
        let of_one: Vec<f64> = one.iter().map(|log| ONE_STEP / commits * probability(*log)).collect();
        let all_pairs: f64 = two.iter().map(|(weight, _)| weight).sum::<f64>().max(1.0);
        let of_two: f64 = two.iter().map(|(weight, log)| TWO_STEPS * weight / all_pairs * probability(*log)).sum();
        let of_drift = DRIFT * probability(drift);
        let in_gaps: f64 = of_one.iter().zip(&gaps).map(|(each, gap)| each * (gap.1 - gap.0) as f64).sum();
        let sum = in_gaps + of_two + of_drift;
        let each = |(probability, gap): (f64, &(usize, usize))| vec![probability / sum; gap.1 - gap.0];
        Some(Posterior {
            step_at: of_one.into_iter().zip(&gaps).flat_map(each).collect(),
            two_steps: of_two / sum,
            drift: of_drift / sum,
            difference: data.difference,
            noise: data.noise,
        })
    }

    /// Returns the ranges between measured commits, each as the commit before it and its last
    /// commit.
    fn gaps(&self) -> Vec<(usize, usize)> {
        let mut ends: Vec<usize> = self.measured.keys().copied().filter(|commit| *commit < self.bad).collect();
        ends.push(self.bad);
        let mut before = 0;
        ends.into_iter().map(|end| (std::mem::replace(&mut before, end), end)).collect()
    }

    /// Returns what the search has found, if its probability is at least `wanted` (0.95).
    pub fn answer(&self, posterior: &Posterior, wanted: f64) -> Answer {
        let several = posterior.two_steps + posterior.drift;
        if several >= wanted {
            return Answer::SeveralCauses { probability: several };
        }
        let (first, last, probability) = shortest_range(&posterior.step_at, wanted * (1.0 - several).max(wanted));
        let is_one = (first..last).all(|commit| self.skipped.contains(&commit));
        match is_one && probability >= wanted {
            true => Answer::Found { first, last, probability },
            false => Answer::Open { first, last, probability },
        }
    }

    /// Returns the commit whose measurement in `blocks` blocks tells most per cost, or `None` where
    /// nothing can be learnt. `cost` is in any unit, such as minutes, and counts a build that is to
    /// be made.
    pub fn next(&self, posterior: &Posterior, blocks: u32, cost: impl Fn(usize) -> f64) -> Option<usize> {
        let variance = posterior.noise.powi(2) / f64::from(blocks.max(1)) + OWN_DEVIATION.powi(2);
        // What an answer tells at most of one bit, if both levels are equally likely.
        let clarity = 1.0 - (-posterior.difference.powi(2) / variance / 4.0).exp();
        let (mut below, mut best) = (0.0, None::<(f64, usize)>);
        let whole: f64 = posterior.step_at.iter().sum();
        for commit in 1..self.bad {
            below += posterior.step_at[commit - 1];
            if self.skipped.contains(&commit) || whole <= 0.0 {
                continue;
            }
            let gain = entropy(below / whole) * clarity / cost(commit).max(1e-9);
            if gain > 1e-9 && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, commit));
            }
        }
        best.map(|(_, commit)| commit)
    }

    /// Estimates how many more commits must be measured: the bits that are open, divided by what one
    /// measurement tells.
    pub fn measurements_left(&self, posterior: &Posterior, blocks: u32) -> f64 {
        let variance = posterior.noise.powi(2) / f64::from(blocks.max(1)) + OWN_DEVIATION.powi(2);
        let clarity = 1.0 - (-posterior.difference.powi(2) / variance / 4.0).exp();
        let bits = |probability: &f64| if *probability > 0.0 { -probability * probability.log2() } else { 0.0 };
        posterior.step_at.iter().map(bits).sum::<f64>() / clarity.max(0.01)
    }
}

/// Returns a commit's level as a share of the whole difference, after steps at these commits.
fn level_of(commit: usize, steps: &[(usize, f64)]) -> f64 {
    steps.iter().filter(|(at, _)| commit >= *at).map(|(_, share)| share).sum()
}

/// Information in one answer of yes or no, in bits.
fn entropy(probability: f64) -> f64 {
    let bits = |part: f64| if part > 0.0 { -part * part.log2() } else { 0.0 };
    bits(probability.clamp(0.0, 1.0)) + bits((1.0 - probability).clamp(0.0, 1.0))
}

/// Returns the shortest run of commits whose probabilities add up to `wanted`, or all of them, with
/// their sum. Commits are numbered from 1.
fn shortest_range(step_at: &[f64], wanted: f64) -> (usize, usize, f64) {
    let mut best = (1, step_at.len(), step_at.iter().sum::<f64>());
    let (mut first, mut sum) = (0, 0.0);
    for (last, probability) in step_at.iter().enumerate() {
        sum += probability;
        while first < last && sum - step_at[first] >= wanted {
            sum -= step_at[first];
            first += 1;
        }
        let is_shorter = last - first < best.1 - best.0;
        if sum >= wanted && (is_shorter || last - first == best.1 - best.0 && sum > best.2) {
            best = (first + 1, last + 1, sum);
        }
    }
    best
}

/// The measurements as means with their number of blocks.
struct Data {
    means: Vec<(usize, f64, f64)>,
    difference: f64,
    noise: f64,
    degrees: f64,
}

impl Data {
    fn of(search: &Search) -> Option<Self> {
        let of_bad = search.measured.get(&search.bad).filter(|blocks| blocks.len() > 1)?;
        let (mut squares, mut degrees) = (0.0, 0.0);
        let mut means = Vec::new();
        for (commit, blocks) in &search.measured {
            let Some(middle) = mean(blocks) else { continue };
            squares += blocks.iter().map(|log| (log - middle).powi(2)).sum::<f64>();
            degrees += blocks.len() as f64 - 1.0;
            means.push((*commit, middle, blocks.len() as f64));
        }
        // Without any scatter, every measurement would be certain.
        let noise = (squares / degrees).sqrt().max(1e-4);
        Some(Self { means, difference: mean(of_bad)?, noise, degrees })
    }

    /// Sizes of the whole difference that the bad commit's measurements make plausible.
    fn sizes(&self) -> Vec<f64> {
        let blocks = self.means.iter().map(|(_, _, blocks)| *blocks).fold(1.0, f64::max);
        let error = (self.noise.powi(2) / blocks + OWN_DEVIATION.powi(2)).sqrt();
        let middle = SIZES / 2;
        (0..SIZES).map(|at| self.difference + error * 4.0 * f64::from(at - middle) / f64::from(middle)).collect()
    }

    /// The logarithm of the likelihood of all measurements, averaged over the sizes. `share` gives a
    /// commit's level as a share of the whole difference.
    fn likelihood(&self, sizes: &[f64], share: &dyn Fn(usize) -> f64) -> f64 {
        let of_size = |size: &f64| -> f64 {
            let of_commit = |(commit, middle, blocks): &(usize, f64, f64)| {
                let error = (self.noise.powi(2) / blocks + OWN_DEVIATION.powi(2)).sqrt();
                ln_density_t((middle - share(*commit) * size) / error, self.degrees) - error.ln()
            };
            self.means.iter().map(of_commit).sum()
        };
        let logs: Vec<f64> = sizes.iter().map(of_size).collect();
        let best = logs.iter().copied().fold(f64::MIN, f64::max);
        best + (logs.iter().map(|log| (log - best).exp()).sum::<f64>() / logs.len() as f64).ln()
    }
}

/// Logarithm of the density of Student's t.
fn ln_density_t(t: f64, degrees: f64) -> f64 {
    let half = f64::midpoint(degrees, 1.0);
    ln_gamma(half)
        - ln_gamma(degrees / 2.0)
        - 0.5 * (degrees * std::f64::consts::PI).ln()
        - half * (t * t / degrees).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::{close, normal};
    use crate::statistics::describe::median;

    const WANTED: f64 = 0.95;
    const BLOCKS: u32 = 3;

    /// The levels of 64 commits, of which one has a step of 2.4 %.
    fn one_step(at: usize) -> Vec<f64> {
        (0..=64).map(|commit| if commit >= at { -0.024 } else { 0.0 }).collect()
    }

    struct Trial {
        answer: Answer,
        commits: usize,
    }

    /// Searches with blocks that scatter by `noise`, until there is an answer or 60 visits are over.
    fn search(trial: u64, levels: &[f64], noise: f64, skipped: &[usize]) -> Trial {
        let bad = levels.len() - 1;
        let skipped = skipped.iter().copied().collect();
        let mut search = Search { bad, measured: BTreeMap::new(), skipped };
        let mut draw = 0;
        let mut block = |search: &mut Search, commit: usize| {
            draw += 1;
            let own = 0.001 * normal(trial, 10_000 + commit as u64);
            let log = levels[commit] + own + noise * normal(trial, draw);
            search.measured.entry(commit).or_default().push(log);
        };
        (0..6).for_each(|_| block(&mut search, bad));
        for _ in 0..60 {
            let posterior = search.posterior().unwrap();
            let answer = search.answer(&posterior, WANTED);
            let next = search.next(&posterior, BLOCKS, |_| 1.0);
            let is_over = !matches!(answer, Answer::Open { .. });
            let Some(next) = next.filter(|_| !is_over) else {
                return Trial { answer, commits: search.measured.len() };
            };
            for _ in 0..BLOCKS {
                block(&mut search, next);
                // The bad commit is in every block.
                block(&mut search, bad);
            }
        }
        let posterior = search.posterior().unwrap();
        Trial { answer: search.answer(&posterior, WANTED), commits: search.measured.len() }
    }

    #[test]
    fn the_step_is_found_in_19_of_20_searches_with_few_commits() {
        const TRIALS: u64 = 100;
        let trial = |number: u64| {
            let at = 1 + (number as usize * 37) % 64;
            let trial = search(number, &one_step(at), 0.01, &[]);
            (at, trial)
        };
        let (mut right, mut wrong, mut commits) = (0, 0, Vec::new());
        for (at, Trial { answer, commits: count }) in (0..TRIALS).map(trial) {
            commits.push(count as f64);
            match answer {
                Answer::Found { last, .. } if last == at => right += 1,
                Answer::Found { .. } | Answer::SeveralCauses { .. } => wrong += 1,
                Answer::Open { .. } => {}
            }
        }
        assert!(right >= 95, "right in {right}, wrong in {wrong} of {TRIALS}");
        let usual = median(&commits).unwrap();
        assert!(usual <= 13.0, "{usual} commits in the median, the bad one included");
    }

    #[test]
    fn two_steps_and_a_drift_are_not_forced_into_one() {
        const TRIALS: u64 = 20;
        let two = |commit: usize| -0.06 * (f64::from(u8::from(commit >= 20)) + f64::from(u8::from(commit >= 45)));
        let levels: Vec<f64> = (0..=64).map(two).collect();
        let drift: Vec<f64> = (0..=64_u32).map(|commit| -0.12 * f64::from(commit) / 64.0).collect();
        let named = |levels: &[f64], base: u64| {
            let is_named = |trial: &u64| {
                let found = search(base + trial, levels, 0.01, &[]);
                matches!(found.answer, Answer::SeveralCauses { .. })
            };
            (0..TRIALS).filter(is_named).count()
        };
        assert!(named(&levels, 500) >= 18, "two steps");
        assert!(named(&drift, 600) >= 18, "a drift");
    }

    #[test]
    fn commits_that_cannot_be_measured_are_named_as_a_group() {
        let skipped: Vec<usize> = (30..40).collect();
        let found = search(7, &one_step(35), 0.005, &skipped);
        assert!(matches!(found.answer, Answer::Found { first: 30, last: 40, .. }), "{:?}", found.answer);
    }

    #[test]
    fn without_measurements_every_commit_is_as_likely_and_the_middle_is_next() {
        let measured = BTreeMap::from([(8, vec![-0.1, -0.11, -0.09])]);
        let search = Search { bad: 8, measured, skipped: BTreeSet::new() };
        let posterior = search.posterior().unwrap();
        posterior.step_at.iter().for_each(|probability| close(*probability, posterior.step_at[0], 1e-12));
        assert_eq!(search.next(&posterior, 3, |_| 1.0), Some(4));
        // A build that costs as much as many measurements is not worth it.
        assert_eq!(search.next(&posterior, 3, |commit| if commit == 2 { 1.0 } else { 9.0 }), Some(2));
        assert!(search.measurements_left(&posterior, 3) > 1.0);
        assert!(Search { bad: 8, ..Search::default() }.posterior().is_none());
    }

    /// The values are those of SciPy 1.17's `t.logpdf`.
    #[test]
    fn the_density_is_that_of_students_t() {
        close(ln_density_t(0.0, 1.0), -1.144_729_885_849_400_2, 1e-12);
        close(ln_density_t(2.0, 5.0), -2.731_98, 1e-4);
    }
}
