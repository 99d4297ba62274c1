//! Verdicts for response times: the 99th percentile against the base's, by block, judged in the
//! same way as rates.

use crate::compare::inference::unpaired;
use crate::compare::interim_analyses::{Compared, Look, judge_family};
use crate::compare::ratio::ratio_of_blocks;
use crate::model::runs::{pairs, valid};
use crate::model::{PercentileRatio, Ratio, StepRun, Verdict};
use crate::statistics::describe::geometric_mean;

/// The ratio of the 99th percentiles for `kind`'s response times, over the blocks in which both are
/// valid.
pub(crate) fn p99_ratio(runs: &[StepRun], base: &[StepRun], kind: &str) -> Option<PercentileRatio> {
    let of_block =
        |(run, base): (&StepRun, &StepRun)| Some((run.block, p99_us(run, kind)? / p99_us(base, kind)?));
    let ratio = ratio_of_blocks(pairs(runs, base).filter_map(of_block).collect())?;
    Some(PercentileRatio { ratio, verdict: None })
}

/// Form of [`p99_ratio`] for two runs, whose blocks are not paired.
pub(crate) fn p99_ratio_apart(
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
        Compared::of(ratio, *margin, verdict, None)
    });
    judge_family(looks, &mut compared.collect::<Vec<_>>());
    for (found, _) in family {
        found.verdict = found.verdict.map(Verdict::of_time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::inference::paired;
    use crate::fixtures::step_run;
    use crate::model::{KindResult, Latency};
    use crate::simulations::{chance, normal};

    fn run(block: u32, count: u64, p99_us: u64) -> StepRun {
        let response = Latency { count, p99_us, ..Latency::default() };
        let kinds = vec![KindResult { kind: "query".to_owned(), response, ..KindResult::default() }];
        StepRun { kinds, ..step_run(block, 100.0) }
    }

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
    fn of_equal_variants_few_are_called_different() {
        called_different_of(200);
    }

    #[test]
    #[ignore = "in cargo xtask test --all: more simulated studies"]
    fn of_equal_variants_at_most_one_in_twenty_is_called_different() {
        called_different_of(1_000);
    }

    /// A/A studies: percentiles whose logarithms scatter by 10 % from block to block, as p99 does
    /// on a busy machine.
    fn called_different_of(trials: u64) {
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
        assert!(differ > 0, "the test would see none");
    }
}
