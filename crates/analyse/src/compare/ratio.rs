//! The ratio of a variant to the base over several blocks, paired by block.

use std::collections::BTreeMap;

use crate::model::runs::pairs;
use crate::model::{Bound, CONFIDENCE, Ratio, StepRun};
use crate::statistics::Interval;
use crate::statistics::student::Estimate;

/// Returns the headline ÷ the base's headline, block by block, over the blocks in which both are
/// valid.
///
/// Pairing removes what differs between blocks (a warmer disk, a noisy neighbour). With the
/// geometric mean, the ratio of a to b is the reciprocal of the ratio of b to a. A block in which
/// one of the two answered nothing has no ratio; it is one of the blocks with a rate of zero. The
/// result is `None` when no block has both. Where one of the two times was cut off, the ratio is a
/// bound. Where both were, the block has none.
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

/// Returns the geometric mean of the blocks' ratios, each given with its block, or `None` without
/// one.
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
pub(crate) fn interval_of_steps(ratios: &[&Ratio]) -> Option<Interval> {
    let blocks: Vec<u32> = ratios.first()?.blocks.iter().map(|(block, _)| *block).collect();
    let same = |ratio: &&Ratio| ratio.blocks.iter().map(|(block, _)| *block).eq(blocks.iter().copied());
    if !ratios.iter().all(same) || ratios.iter().any(|ratio| ratio.bound.is_some()) {
        return None;
    }
    let of_block = |at: usize| ratios.iter().map(|ratio| ratio.blocks[at].1.ln()).sum::<f64>();
    let logs: Vec<f64> = (0..blocks.len()).map(|at| of_block(at) / ratios.len() as f64).collect();
    Estimate::of_mean(&logs).map(|estimate| estimate.interval(CONFIDENCE).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::step_run as run;
    use crate::model::Validity;
    use crate::simulations::{chance, close, normal, share};

    #[test]
    fn ratios_are_paired_by_block_and_averaged_on_a_log_scale() {
        let base = [run(1, 100.0), run(2, 200.0)];
        let new = [run(2, 100.0), run(1, 200.0)];
        // For 2 and 1/2 the geometric mean is 1; the arithmetic mean would be 1.25.
        let ratio = ratio_of_runs(&new, &base).unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12);
        assert_eq!(ratio.blocks, [(2, 0.5), (1, 2.0)]);
    }

    #[test]
    fn a_block_in_which_one_of_the_two_is_missing_or_invalid_is_left_out() {
        let mut base = [run(1, 100.0), run(2, 100.0), run(3, 100.0)];
        base[1].validity = Validity::Interrupted;
        let new = [run(2, 500.0), run(3, 110.0), run(4, 900.0)];
        let ratio = ratio_of_runs(&new, &base).unwrap();
        assert_eq!(ratio.blocks, [(3, 1.1)]);
        assert_eq!(ratio.value, 1.1);
    }

    #[test]
    fn a_time_that_was_cut_off_makes_a_bound_and_two_make_nothing() {
        let cut = |block, seconds| StepRun { cut_off: true, ..run(block, seconds) };
        let found = ratio_of_runs(&[cut(1, 7_200.0)], &[run(1, 2_400.0)]).unwrap();
        assert_eq!((found.value, found.bound), (3.0, Some(Bound::MoreThan)));
        let found = ratio_of_runs(&[run(1, 100.0)], &[cut(1, 200.0)]).unwrap();
        assert_eq!((found.value, found.bound), (0.5, Some(Bound::LessThan)));
        assert!(ratio_of_runs(&[cut(1, 5.0)], &[cut(1, 5.0)]).is_none());
        let found = ratio_of_runs(&[cut(1, 5.0), run(2, 1.0)], &[run(1, 1.0), cut(2, 5.0)]).unwrap();
        assert_eq!((found.value, found.bound), (1.0, Some(Bound::Both)));
    }

    #[test]
    fn no_common_block_is_no_ratio() {
        assert!(ratio_of_runs(&[run(1, 1.0)], &[run(2, 1.0)]).is_none());
        assert!(ratio_of_runs(&[run(1, 1.0)], &[run(1, 0.0)]).is_none());
    }

    proptest! {
        #[test]
        fn turning_a_ratio_round_gives_its_reciprocal(rates in prop::collection::vec((1.0..1e6_f64, 1.0..1e6_f64), 1..8)) {
            let (a, b): (Vec<_>, Vec<_>) = (1..).zip(&rates).map(|(n, (a, b))| (run(n, *a), run(n, *b))).unzip();
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
    fn the_interval_holds_the_truth_though_steps_share_their_blocks_and_scatter_unequally() {
        // Six steps have different true ratios. A block moves all of them together, and also each
        // by itself, one of them far more than the others.
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
            close(covered, 0.95, chance(0.95, STUDIES));
        }
    }
}
