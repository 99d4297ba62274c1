//! Computes ratios of a variant to the base over several blocks, paired by block. There are ratios
//! of rates, of 99th percentiles of response times (judged in the same way), and of every metric in
//! the groups that are compared. The ratios of several steps are summed up in a few figures, such
//! as average and median, as in published tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::interim_analyses::{Compared, Look, judge_family};
use crate::compare::verdicts::unpaired;
use crate::metrics::Better;
use crate::model::steps::{pairs, valid};
use crate::model::{
    Bound, CONFIDENCE, MetricGroup, PercentileRatio, Ratio, RelativeMetrics, StepComparison, StepFindings,
    StepRun, Verdict,
};
use crate::statistics::Interval;
use crate::statistics::describe::{self, Group as Figures, GroupFigure, geometric_mean};
use crate::statistics::student::Estimate;

/// Returns the geometric mean of the blocks' ratios. A block's ratio is the headline (the step's
/// rate or time) of `runs` ÷ that of `base`, in a block in which both runs are valid.
///
/// Pairing removes what differs between blocks (a warmer disk, a noisy neighbour). With the
/// geometric mean, the ratio of a to b is the reciprocal of the ratio of b to a. A block in which
/// one of the two runs answered nothing has no ratio. The result is `None` when no block has a
/// ratio. Where the headline is a time and one of the two runs ended at its time limit, the ratio
/// is only a bound. Where both did, the block has no ratio.
pub fn ratio_of_runs(runs: &[StepRun], base: &[StepRun]) -> Option<Ratio> {
    let mut bounds = Vec::new();
    let of_block = |(run, base): (&StepRun, &StepRun)| {
        if run.cut_off && base.cut_off {
            return None;
        }
        bounds.extend(bound(run, base));
        (base.rate > 0.0 && run.rate > 0.0).then(|| (run.block, run.rate / base.rate))
    };
    let ratio = ratio_of_blocks(pairs(runs, base).filter_map(of_block).collect())?;
    Some(Ratio { bound: Bound::of_all(bounds), ..ratio })
}

/// Returns the bounds of the blocks whose ratio is only a bound.
pub(crate) fn block_bounds(runs: &[StepRun], base: &[StepRun]) -> BTreeMap<u32, Bound> {
    pairs(runs, base).filter_map(|(run, base)| Some((run.block, bound(run, base)?))).collect()
}

/// Returns on which side of a block's ratio the true one lies, or `None` where the ratio is no
/// bound, because neither time was cut off or both were.
fn bound(run: &StepRun, base: &StepRun) -> Option<Bound> {
    match (run.cut_off, base.cut_off) {
        (true, false) => Some(Bound::MoreThan),
        (false, true) => Some(Bound::LessThan),
        _ => None,
    }
}

/// Returns the geometric mean of the blocks' ratios, each given with its block, or `None` if there
/// are no blocks.
pub fn ratio_of_blocks(blocks: Vec<(u32, f64)>) -> Option<Ratio> {
    let value = match blocks.as_slice() {
        [] => return None,
        // A single ratio is taken as it is: through the logarithm 1.1 would come back as
        // 1.1000000000000003.
        [(_, only)] => *only,
        many => (many.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / many.len() as f64).exp(),
    };
    Some(Ratio { value, blocks, bound: None, inference: None })
}

/// Returns the 95 % interval of the geometric mean over the blocks' ratios, or `None` for fewer
/// than two blocks.
pub fn interval_of_blocks(blocks: &[(u32, f64)]) -> Option<Interval> {
    let logs: Vec<f64> = blocks.iter().map(|(_, ratio)| ratio.ln()).collect();
    Estimate::of_mean(&logs).map(|estimate| estimate.interval(CONFIDENCE).exp())
}

/// Returns the 95 % interval of the geometric mean over several steps' ratios. It is `None` for one
/// block, for bounds, and where not all have the same blocks. Each block has one geometric mean
/// over the steps, and these means are the observations, because a block's steps are not
/// independent repetitions.
fn interval_of_steps(ratios: &[&Ratio]) -> Option<Interval> {
    let blocks: Vec<u32> = ratios.first()?.blocks.iter().map(|(block, _)| *block).collect();
    let same = |ratio: &&Ratio| ratio.blocks.iter().map(|(block, _)| *block).eq(blocks.iter().copied());
    if !ratios.iter().all(same) || ratios.iter().any(|ratio| ratio.bound.is_some()) {
        return None;
    }
    let of_block = |at: usize| ratios.iter().map(|ratio| ratio.blocks[at].1.ln()).sum::<f64>();
    let logs: Vec<f64> = (0..blocks.len()).map(|at| of_block(at) / ratios.len() as f64).collect();
    Estimate::of_mean(&logs).map(|estimate| estimate.interval(CONFIDENCE).exp())
}

/// The ratio of the 99th percentiles for `kind`'s response times, over the blocks in which both are
/// valid.
pub(crate) fn p99_ratio(runs: &[StepRun], base: &[StepRun], kind: &str) -> Option<PercentileRatio> {
    ratio_of_figures(runs, base, |run| p99_us(run, kind))
}

/// The ratio of the server's instructions per operation, over the blocks in which both are valid.
pub(crate) fn instructions_ratio(runs: &[StepRun], base: &[StepRun]) -> Option<PercentileRatio> {
    ratio_of_figures(runs, base, |run| run.hardware?.instructions.filter(|count| *count > 0.0))
}

fn ratio_of_figures(
    runs: &[StepRun],
    base: &[StepRun],
    figure: impl Fn(&StepRun) -> Option<f64>,
) -> Option<PercentileRatio> {
    let of_block = |(run, base): (&StepRun, &StepRun)| Some((run.block, figure(run)? / figure(base)?));
    let ratio = ratio_of_blocks(pairs(runs, base).filter_map(of_block).collect())?;
    Some(PercentileRatio { ratio, verdict: None })
}

/// Form of [`p99_ratio`] for step runs from two runs of dbdyno, whose blocks are not paired.
pub(crate) fn unpaired_p99_ratio(
    runs: &[StepRun],
    base: &[StepRun],
    kind: &str,
    margin: f64,
) -> Option<PercentileRatio> {
    let all = |runs: &[StepRun]| valid(runs).filter_map(|run| p99_us(run, kind)).collect::<Vec<f64>>();
    let (new, base) = (all(runs), all(base));
    let value = geometric_mean(&new)? / geometric_mean(&base)?;
    let ratio = Ratio { value, blocks: Vec::new(), bound: None, inference: unpaired(&base, &new, margin) };
    Some(PercentileRatio { ratio, verdict: None })
}

#[expect(clippy::cast_precision_loss, reason = "2^53 µs are 285 years")]
pub(crate) fn p99_us(run: &StepRun, kind: &str) -> Option<f64> {
    let response = &run.kind(kind)?.response;
    response.known_p99_us().filter(|p99| *p99 > 0).map(|p99| p99 as f64)
}

/// Fills in the verdicts of percentiles that are compared at once, each with its own margin.
pub(crate) fn judge_percentiles(family: &mut [(&mut PercentileRatio, f64)], looks: &[Look]) {
    let compared = family.iter_mut().filter_map(|(found, margin)| {
        let PercentileRatio { ratio, verdict } = &mut **found;
        // The `None` is for the interim analysis that reached the verdict, which is not kept.
        Compared::of(ratio, *margin, verdict, None)
    });
    judge_family(looks, &mut compared.collect::<Vec<_>>());
    // `judge_family` takes every ratio for one of rates, but a percentile is a time.
    for (found, _) in family {
        found.verdict = found.verdict.map(Verdict::of_time);
    }
}

/// Returns the ratio of every compared metric over the blocks in which both runs are valid, or
/// `None` when there is no such block.
pub(crate) fn relative_metrics(runs: &[StepRun], base: &[StepRun]) -> Option<RelativeMetrics> {
    let pairs: Vec<(&StepRun, &StepRun)> = pairs(runs, base).collect();
    pairs.first()?;
    let mut found = RelativeMetrics::default();
    for group in MetricGroup::ALL.iter().filter(|group| group.is_compared) {
        for metric in group.metrics.iter().filter(|metric| metric.better != Better::NotCompared) {
            let value = |run: &StepRun| (group.of)(run)?.value(metric);
            let both = pairs.iter().filter_map(|(run, base)| value(run).zip(value(base)));
            found.0.extend(quotient(&both.collect::<Vec<_>>()).map(|ratio| (metric.id, ratio)));
        }
    }
    Some(found)
}

/// Returns the geometric mean of the blocks' ratios. Unlike a rate, a metric may be 0: 0 ÷ 0 counts
/// as 1, and a block with a 0 on one side makes the mean 0 or infinite. The result is `None` where
/// one block would make the mean 0 and another infinite.
fn quotient(both: &[(f64, f64)]) -> Option<f64> {
    let log = |(new, base): &(f64, f64)| if new == base { 0.0 } else { (new / base).ln() };
    let mean = both.iter().map(log).sum::<f64>() / both.len() as f64;
    Some(mean.exp()).filter(|ratio| !ratio.is_nan())
}

/// A step with its ratio.
type OfStep<'a> = (&'a StepFindings, Ratio);

/// The ratios of one variant in the steps of one group.
#[derive(Debug)]
pub struct GroupRatios<'a> {
    /// Steps with a ratio, in the order of the steps.
    pub counted: Vec<OfStep<'a>>,
    /// Names of the steps that are not counted: the step has no ratio, or the variant or the base
    /// answered nothing in some block, or the plan sets the rate.
    pub without: Vec<&'a str>,
}

impl<'a> GroupRatios<'a> {
    /// Collects the ratios from a group's steps. Each step comes with the variant's comparison
    /// there, which is `None` where the variant did not run.
    pub fn of(
        variant: &str,
        members: impl IntoIterator<Item = (&'a StepFindings, Option<&'a StepComparison>)>,
    ) -> Self {
        let mut found = Self { counted: Vec::new(), without: Vec::new() };
        for (step, against) in members {
            let counted = against.filter(|against| step.is_counted(variant, against));
            match counted.and_then(|against| against.ratio.clone()) {
                Some(ratio) => found.counted.push((step, ratio)),
                None => found.without.push(&step.name),
            }
        }
        found
    }

    /// The ratios without bounds, each as a ratio of rates. A ratio of times is inverted, so
    /// above 1 is faster in every step.
    pub(crate) fn into_speeds(self) -> Self {
        let speed = |(step, ratio): OfStep<'a>| match step.less_is_better {
            true => (step, inverted(ratio)),
            false => (step, ratio),
        };
        let exact = self.counted.into_iter().filter(|(_, ratio)| ratio.bound.is_none());
        Self { counted: exact.map(speed).collect(), ..self }
    }

    fn ratios(&self) -> impl Iterator<Item = &Ratio> {
        self.counted.iter().map(|(_, ratio)| ratio)
    }

    /// Average, median and the others; `None` where no step has a ratio.
    pub fn figures(&self) -> Option<Figures> {
        describe::group(&self.ratios().map(|ratio| ratio.value).collect::<Vec<_>>())
    }

    /// The blocks in which any of the steps has a ratio.
    pub(crate) fn blocks(&self) -> BTreeSet<u32> {
        self.ratios().flat_map(|ratio| &ratio.blocks).map(|(block, _)| *block).collect()
    }

    /// Returns the 95 % interval of a figure, by the jackknife over blocks (Efron and Tibshirani, An
    /// Introduction to the Bootstrap, 1993, chapter 11): the figure is computed again without each
    /// block, and the scatter of these values gives its standard error. The result is `None` for
    /// one block, and where a step has a ratio in a single block.
    ///
    /// One figure per block and their mean would not do for the median: where steps change places
    /// from block to block, the mean of the blocks' medians is another number than the median of
    /// the steps' ratios.
    pub(crate) fn interval_of(&self, figure: GroupFigure) -> Option<Interval> {
        let blocks = self.blocks();
        let without = |left_out: u32| {
            let kept = |ratio: &Ratio| {
                ratio.blocks.iter().filter(|(block, _)| *block != left_out).copied().collect()
            };
            let ratios = self.ratios().map(|ratio| Some(ratio_of_blocks(kept(ratio))?.value));
            figure(&describe::group(&ratios.collect::<Option<Vec<f64>>>()?)?)
        };
        let values = blocks.iter().map(|block| without(*block)).collect::<Option<Vec<f64>>>()?;
        let estimate = Estimate::by_jackknife(figure(&self.figures()?)?, &values)?;
        Some(estimate.interval(CONFIDENCE))
    }

    /// The 95 % interval of the geometric mean; `None` for one block, for bounds, and where not all
    /// steps have the same blocks.
    pub fn interval(&self) -> Option<Interval> {
        interval_of_steps(&self.ratios().collect::<Vec<_>>())
    }

    /// The side of the bound, where any of the ratios is a bound. The means over all steps are then
    /// bounds too.
    pub fn bound(&self) -> Option<Bound> {
        Bound::of_all(self.ratios().filter_map(|ratio| ratio.bound))
    }

    /// The steps with the lowest and the highest ratio.
    pub fn ends(&self) -> Option<[&OfStep<'a>; 2]> {
        let all = || self.counted.iter();
        let lowest = all().min_by(|one, other| one.1.value.total_cmp(&other.1.value))?;
        Some([lowest, all().max_by(|one, other| one.1.value.total_cmp(&other.1.value))?])
    }
}

/// The inverse ratio, which is the base's figure ÷ the variant's.
fn inverted(ratio: Ratio) -> Ratio {
    let blocks = ratio.blocks.into_iter().map(|(block, ratio)| (block, 1.0 / ratio));
    Ratio { value: 1.0 / ratio.value, blocks: blocks.collect(), bound: None, inference: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analyse;
    use crate::compare::verdicts::paired;
    use crate::fixtures::{run_of_pairs, step_run};
    use crate::model::{KindResult, Latency, Validity};
    use crate::simulations::{chance, close, normal, share};

    #[test]
    fn ratios_are_paired_by_block_and_averaged_on_a_log_scale() {
        let base = [step_run(1, 100.0), step_run(2, 200.0)];
        let new = [step_run(2, 100.0), step_run(1, 200.0)];
        // For 2 and 1/2 the geometric mean is 1; the arithmetic mean would be 1.25.
        let ratio = ratio_of_runs(&new, &base).unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12);
        assert_eq!(ratio.blocks, [(2, 0.5), (1, 2.0)]);
    }

    #[test]
    fn a_block_in_which_one_of_the_two_is_missing_or_invalid_is_left_out() {
        let mut base = [step_run(1, 100.0), step_run(2, 100.0), step_run(3, 100.0)];
        base[1].validity = Validity::Interrupted;
        let new = [step_run(2, 500.0), step_run(3, 110.0), step_run(4, 900.0)];
        let ratio = ratio_of_runs(&new, &base).unwrap();
        assert_eq!(ratio.blocks, [(3, 1.1)]);
        assert_eq!(ratio.value, 1.1);
    }

    #[test]
    fn a_time_that_was_cut_off_makes_a_bound_and_two_make_nothing() {
        let cut = |block, seconds| StepRun { cut_off: true, ..step_run(block, seconds) };
        let found = ratio_of_runs(&[cut(1, 7_200.0)], &[step_run(1, 2_400.0)]).unwrap();
        assert_eq!((found.value, found.bound), (3.0, Some(Bound::MoreThan)));
        let found = ratio_of_runs(&[step_run(1, 100.0)], &[cut(1, 200.0)]).unwrap();
        assert_eq!((found.value, found.bound), (0.5, Some(Bound::LessThan)));
        assert!(ratio_of_runs(&[cut(1, 5.0)], &[cut(1, 5.0)]).is_none());
        let found =
            ratio_of_runs(&[cut(1, 5.0), step_run(2, 1.0)], &[step_run(1, 1.0), cut(2, 5.0)]).unwrap();
        assert_eq!((found.value, found.bound), (1.0, Some(Bound::Both)));
    }

    #[test]
    fn without_a_common_block_there_is_no_ratio() {
        assert!(ratio_of_runs(&[step_run(1, 1.0)], &[step_run(2, 1.0)]).is_none());
        assert!(ratio_of_runs(&[step_run(1, 1.0)], &[step_run(1, 0.0)]).is_none());
    }

    proptest! {
        #[test]
        fn swapping_the_two_sides_gives_the_reciprocal_ratio(rates in prop::collection::vec((1.0..1e6_f64, 1.0..1e6_f64), 1..8)) {
            let (a, b): (Vec<_>, Vec<_>) = (1..).zip(&rates).map(|(n, (a, b))| (step_run(n, *a), step_run(n, *b))).unzip();
            let product = ratio_of_runs(&a, &b).unwrap().value * ratio_of_runs(&b, &a).unwrap().value;
            prop_assert!((product - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_interval_of_several_steps_is_that_of_the_blocks_geometric_means() {
        // In the three blocks all ratios are 1 % lower, unchanged, and 1 % higher. These are three
        // observations whose logarithms are known.
        let centre = (0.69_f64 * 0.72 * 0.84).cbrt();
        let of_step = |value: f64| Ratio {
            blocks: (1..).zip([0.99, 1.0, 1.01].map(|factor| factor * value)).collect(),
            ..ratio_of_blocks(vec![(1, value)]).unwrap()
        };
        let steps = [0.69, 0.72, 0.84].map(of_step);
        let logs: Vec<f64> = [0.99, 1.0, 1.01].iter().map(|factor: &f64| (factor * centre).ln()).collect();
        let expected = Estimate::of_mean(&logs).unwrap().interval(0.95).exp();
        let interval = interval_of_steps(&steps.each_ref()).unwrap();
        close(interval.low, expected.low, 1e-9);
        close(interval.high, expected.high, 1e-9);
        let mut others = steps.clone();
        others[0].blocks.pop();
        assert_eq!(interval_of_steps(&others.each_ref()), None, "not all have the same blocks");
    }

    #[test]
    fn the_interval_contains_the_truth_though_steps_share_their_blocks_and_scatter_unequally() {
        // Six steps have different true ratios. Each block has a random shift that is common to all
        // steps, and one for each step. The latter grows from step to step.
        const STUDIES: u64 = 4_000;
        let truth = |step: u64| 0.02 * step as f64;
        let of_step = |study: u64, step: u64, blocks: u64| {
            let log = |block: u64| {
                let own = 0.01 * (1 + step * step) as f64 * normal(study, 100 * step + block + 100);
                truth(step) + 0.03 * normal(study, block) + own
            };
            let blocks = (0..blocks).map(|block| (block as u32, log(block).exp())).collect();
            Ratio { value: 1.0, blocks, bound: None, inference: None }
        };
        let centre = ((0..6).map(truth).sum::<f64>() / 6.0).exp();
        for blocks in [3, 5, 10] {
            let covered = share(STUDIES, |study| {
                let ratios: Vec<Ratio> = (0..6).map(|step| of_step(study, step, blocks)).collect();
                interval_of_steps(&ratios.iter().collect::<Vec<_>>()).unwrap().contains(centre)
            });
            // The tolerance is how far the share of so many studies may lie from 95 % by chance.
            close(covered, 0.95, chance(0.95, STUDIES));
        }
    }

    fn run(block: u32, count: u64, p99_us: u64) -> StepRun {
        let response = Latency { count, p99_us, ..Latency::default() };
        let kinds = vec![KindResult { kind: "query".to_owned(), response, ..KindResult::default() }];
        StepRun { kinds, ..step_run(block, 100.0) }
    }

    /// The verdict on a variant's 99th percentile. Each block is (the base's, the variant's) in µs.
    fn judged(blocks: &[(u64, u64)]) -> Option<Verdict> {
        let runs = |of: &dyn Fn(&(u64, u64)) -> u64| -> Vec<StepRun> {
            (1..).zip(blocks).map(|(block, p99)| run(block, 1_000, of(p99))).collect()
        };
        let mut found = p99_ratio(&runs(&|p99| p99.1), &runs(&|p99| p99.0), "query").expect("has blocks");
        let ratios: Vec<f64> = found.ratio.blocks.iter().map(|(_, ratio)| *ratio).collect();
        found.ratio.inference = paired(&ratios, 0.02, 1);
        judge_percentiles(&mut [(&mut found, 0.02)], &[]);
        found.verdict
    }

    #[test]
    fn a_lower_percentile_is_faster_and_a_higher_one_slower() {
        assert_eq!(judged(&[(1_000, 800), (1_100, 890), (900, 710), (1_000, 805)]), Some(Verdict::Faster));
        assert_eq!(judged(&[(1_000, 1_300), (1_100, 1_420), (900, 1_180)]), Some(Verdict::Slower));
        assert_eq!(
            judged(&[(1_000, 1_001), (1_000, 1_002), (1_000, 999), (1_000, 1_000)]),
            Some(Verdict::Same)
        );
        assert_eq!(judged(&[(1_000, 2_000)]), None, "one block");
    }

    #[test]
    fn blocks_with_few_operations_have_no_percentile() {
        let (few, many) = ([run(1, 99, 500)], [run(1, 100, 500)]);
        assert!(p99_ratio(&few, &many, "query").is_none());
        assert!(p99_ratio(&many, &few, "query").is_none());
        assert_eq!(p99_ratio(&many, &many, "query").map(|found| found.ratio.value), Some(1.0));
        assert!(p99_ratio(&many, &many, "insert").is_none(), "another kind");
    }

    #[test]
    fn few_equal_variants_are_called_different() {
        equal_variants_called_different(200);
    }

    #[test]
    #[ignore = "in cargo xtask test --all: more simulated studies"]
    fn at_most_one_in_twenty_equal_variants_is_called_different() {
        equal_variants_called_different(1_000);
    }

    /// A/A studies: percentiles whose logarithms scatter by 10 % from block to block, as p99 does
    /// on a busy machine.
    fn equal_variants_called_different(trials: u64) {
        let scattered = |study, number| (1_000.0 * (0.1 * normal(study, number)).exp()) as u64;
        let differ = (0..trials)
            .filter(|study| {
                let block = |number: u64| (scattered(*study, 2 * number), scattered(*study, 2 * number + 1));
                let blocks: Vec<(u64, u64)> = (0..5).map(block).collect();
                matches!(judged(&blocks), Some(Verdict::Faster | Verdict::Slower))
            })
            .count();
        let share = differ as f64 / trials as f64;
        assert!(share <= 0.05 + chance(0.05, trials), "{differ} of {trials}");
        assert!(differ > 0, "no study found a difference, so this test would notice nothing");
    }

    fn relative_metrics_run(block: u32, cpupq: Option<f64>, rps: f64) -> StepRun {
        let mut run = step_run(block, 100.0);
        (run.metrics.cpupq, run.metrics.rps) = (cpupq, Some(rps));
        run
    }

    #[test]
    fn figures_are_paired_by_block_and_averaged_on_a_log_scale() {
        let found = relative_metrics(
            &[relative_metrics_run(1, Some(20.0), 1.0), relative_metrics_run(2, Some(5.0), 3.0)],
            &[relative_metrics_run(2, Some(10.0), 1.0), relative_metrics_run(1, Some(10.0), 1.0)],
        )
        .unwrap();
        close(found.0["cpupq"], 1.0, 1e-12);
        close(found.0["rps"], 3.0_f64.sqrt(), 1e-12);
    }

    #[test]
    fn a_zero_in_a_block_makes_the_geometric_mean_zero_or_infinite() {
        let of = |new, base| {
            relative_metrics(&[relative_metrics_run(1, None, new)], &[relative_metrics_run(1, None, base)])
                .unwrap()
                .0
                .get("rps")
                .copied()
        };
        assert_eq!(of(0.0, 0.0), Some(1.0));
        assert_eq!(of(2.0, 0.0), Some(f64::INFINITY));
        assert_eq!(of(0.0, 2.0), Some(0.0));
        let two = |first, second| {
            let base = [relative_metrics_run(1, None, 1.0), relative_metrics_run(2, None, second)];
            relative_metrics(
                &[relative_metrics_run(1, None, first), relative_metrics_run(2, None, 4.0)],
                &base,
            )
            .unwrap()
            .0
            .get("rps")
            .copied()
        };
        close(two(1.0, 1.0).unwrap(), 2.0, 1e-12);
        assert_eq!(two(0.0, 1.0), Some(0.0), "a zero in one block");
        assert_eq!(two(1.0, 0.0), Some(f64::INFINITY));
        assert_eq!(two(0.0, 0.0), None, "one block makes it 0, the other infinite");
    }

    #[test]
    fn a_program_can_tell_an_infinite_ratio_from_one_that_is_not_known() {
        let found =
            relative_metrics(&[relative_metrics_run(1, None, 2.0)], &[relative_metrics_run(1, None, 0.0)])
                .unwrap();
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!((&json["rps"], json.get("cpupq")), (&"infinite".into(), None));
    }

    #[test]
    fn a_metric_that_one_of_the_two_lacks_is_not_available_and_invalid_runs_do_not_count() {
        let found = relative_metrics(
            &[relative_metrics_run(1, None, 1.0)],
            &[relative_metrics_run(1, Some(10.0), 1.0)],
        )
        .unwrap();
        assert!(!found.0.contains_key("cpupq"));
        let mut broken = relative_metrics_run(1, Some(1.0), 1.0);
        broken.validity = Validity::Interrupted;
        assert!(relative_metrics(&[broken], &[relative_metrics_run(1, Some(10.0), 1.0)]).is_none());
    }

    /// Steps in which the rates or times of `b` are these multiples of those of `a`, block by
    /// block.
    fn steps(all: &[(bool, &[u64])]) -> Vec<StepFindings> {
        let of = |(is_time, multiples): &(bool, &[u64])| {
            let pairs: Vec<(u64, u64)> = multiples.iter().map(|multiple| (1_000, 1_000 * multiple)).collect();
            let mut step = analyse(&run_of_pairs("r", &pairs)).workloads[0].steps[0].clone();
            step.less_is_better = *is_time;
            step
        };
        all.iter().map(of).collect()
    }

    fn ratios(steps: &[StepFindings]) -> GroupRatios<'_> {
        GroupRatios::of("b", steps.iter().map(|step| (step, Some(&step.variants[1].to_base))))
    }

    #[test]
    fn speeds_invert_ratios_of_times_and_leave_out_bounds() {
        let mut steps = steps(&[(false, &[2]), (true, &[4]), (true, &[8])]);
        steps[2].variants[1].to_base.ratio.as_mut().unwrap().bound = Some(Bound::MoreThan);
        let figures = ratios(&steps).figures().unwrap();
        assert_eq!((figures.count, figures.min, figures.max), (3, 2.0, 8.0));
        assert_eq!(ratios(&steps).bound(), Some(Bound::MoreThan));
        let figures = ratios(&steps).into_speeds().figures().unwrap();
        assert_eq!((figures.count, figures.min, figures.max), (2, 0.25, 2.0));
    }

    #[test]
    fn a_block_that_one_step_lacks_leaves_the_mean_of_steps_without_an_interval() {
        let mut steps = steps(&[(false, &[1, 2, 3]), (false, &[3, 4, 5])]);
        assert!(ratios(&steps).interval().is_some());
        steps[1].variants[1].to_base.ratio.as_mut().unwrap().blocks.remove(1);
        assert_eq!(ratios(&steps).interval(), None);
        let average = |group: &Figures| Some(group.average);
        assert!(ratios(&steps).interval_of(average).is_some(), "each step has two blocks");
        steps[1].variants[1].to_base.ratio.as_mut().unwrap().blocks.remove(1);
        assert_eq!(ratios(&steps).interval_of(average), None, "one step has a single block");
    }

    /// Three steps that change places from block to block: the median of their ratios is not the
    /// mean of the blocks' medians.
    #[test]
    fn a_median_is_within_its_interval_where_steps_change_places() {
        let steps = steps(&[(false, &[1, 1, 9, 9]), (false, &[9, 9, 1, 1]), (false, &[4, 4, 4, 4])]);
        let ratios = ratios(&steps);
        let median = |group: &Figures| Some(group.median);
        let interval = ratios.interval_of(median).unwrap();
        assert!(interval.contains(ratios.figures().unwrap().median), "{interval:?}");
    }

    #[test]
    fn the_intervals_of_average_and_median_contain_the_truth() {
        const STUDIES: u64 = 2_000;
        let truths = [0.4_f64, 0.6, 0.7, 0.8, 0.9, 1.0, 1.3];
        let one: (bool, &[u64]) = (false, &[1]);
        let steps = steps(&[one; 7]);
        let study = |study: u64, blocks: u64| GroupRatios {
            counted: (0..)
                .zip(&truths)
                .zip(&steps)
                .map(|((step, truth), findings)| {
                    let noise = |block: u64| {
                        0.02 * normal(study, block) + 0.03 * normal(study, 100 * step + block + 100)
                    };
                    let blocks = (0..blocks).map(|block| (block as u32, truth * noise(block).exp()));
                    (findings, ratio_of_blocks(blocks.collect()).unwrap())
                })
                .collect(),
            without: Vec::new(),
        };
        let figures: [GroupFigure; 2] = [|group| Some(group.average), |group| Some(group.median)];
        let truth = describe::group(&truths).unwrap();
        for (blocks, figure) in [3, 7].into_iter().flat_map(|blocks| figures.map(|figure| (blocks, figure))) {
            let truth = figure(&truth).unwrap();
            let covered = share(STUDIES, |at| study(at, blocks).interval_of(figure).unwrap().contains(truth));
            close(covered, 0.95, chance(0.95, STUDIES));
        }
    }
}
