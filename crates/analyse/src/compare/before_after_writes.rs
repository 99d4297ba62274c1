//! What writing does to reads: the rate of each test after the steps that write ÷ its rate before
//! them.

use crate::compare::ratio::{interval_of_blocks, ratio};
use crate::model::{BeforeAfterVariant, BeforeAfterWrites, StepFindings, VariantStep, ZeroRates};

/// What the name of a step has after its test's that runs before the steps that write.
const BEFORE: &str = ".pre";

/// All tests with both steps, in the order of the first.
pub(crate) fn before_after_writes(steps: &[StepFindings]) -> Vec<BeforeAfterWrites> {
    let of_step = |before: &StepFindings| {
        let name = step_after(&before.name)?;
        let after = steps.iter().find(|step| step.name == name)?;
        let in_both = |later: &VariantStep| {
            let earlier = before.variant(&later.variant)?;
            Some(of_variant(earlier, later))
        };
        Some(BeforeAfterWrites {
            before: before.name.clone(),
            after: name,
            // A step that no variant came to knows of no connection.
            connections: before.connections.max(after.connections),
            variants: after.variants.iter().filter_map(in_both).collect(),
        })
    };
    steps.iter().filter_map(of_step).collect()
}

/// The name of the same step after the writes: of `random-points.pre_range=10.c4` it is
/// `random-points_range=10.c4`. `None` for another step.
fn step_after(name: &str) -> Option<String> {
    let (test, rest) = name.split_once(BEFORE)?;
    let ends = rest.is_empty() || rest.starts_with(['.', '_']);
    ends.then(|| format!("{test}{rest}"))
}

fn of_variant(before: &VariantStep, after: &VariantStep) -> BeforeAfterVariant {
    // What a base is to a variant, the step before the writes is to the one after them.
    let found = ratio(&after.runs, &before.runs);
    let zero_rates = ZeroRates::in_pairs(&after.runs, &before.runs);
    let mut without = [zero_rates.stalled, zero_rates.base_stalled].concat();
    without.sort_unstable();
    let blocks = found.as_ref().map_or_else(Vec::new, |found| found.blocks.clone());
    BeforeAfterVariant {
        variant: after.variant.clone(),
        ratio: found.map(|found| found.value),
        interval: interval_of_blocks(&blocks),
        blocks,
        without,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Run, StepEvent, StepRecord};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};
    use crate::simulations::close;

    fn step(name: &str, rate: u64) -> StepRecord {
        let mut step = load_step(rate);
        step.name = name.to_owned();
        step.spec.name = name.to_owned();
        step
    }

    /// Rates before and after of `a`, a pair a block.
    fn blocks(rates: &[(u64, u64)]) -> Run {
        let cells = (1..).zip(rates).map(|(block, (before, after))| {
            cell(block, "a", vec![step("ro.pre", *before), step("write", 500), step("ro", *after)])
        });
        run(&["a"], u32::try_from(rates.len()).unwrap(), cells.collect())
    }

    fn found(run: &Run) -> Vec<BeforeAfterWrites> {
        analyse(run).workloads[0].aging.clone()
    }

    #[test]
    fn the_step_after_the_writes_has_the_name_without_pre() {
        let of = |name| step_after(name);
        assert_eq!(of("point-query.pre").as_deref(), Some("point-query"));
        assert_eq!(of("point-query.pre.c16").as_deref(), Some("point-query.c16"));
        assert_eq!(of("random-points.pre_range=10.c4").as_deref(), Some("random-points_range=10.c4"));
        assert_eq!([of("point-query"), of("scan.warmpre"), of("a.preface")], [None, None, None]);
    }

    #[test]
    fn rates_are_divided_within_their_block_and_averaged_on_a_log_scale() {
        // 0.8 and 0.2: their geometric mean is 0.4. The ratio of the medians would be 0.5.
        let found = found(&blocks(&[(10_000, 8_000), (20_000, 4_000)]));
        assert_eq!((found.len(), found[0].before.as_str(), found[0].after.as_str()), (1, "ro.pre", "ro"));
        let variant = &found[0].variants[0];
        close(variant.ratio.unwrap(), 0.4, 1e-12);
        assert_eq!(variant.blocks, [(1, 0.8), (2, 0.2)]);
        // Student's t of two observations that lie ln 2 from their mean: 12.706 × ln 2 × √2 ÷ √2.
        let interval = variant.interval.unwrap();
        close((interval.high / 0.4).ln(), 12.706_204_736 * 2.0_f64.ln(), 1e-6);
        close((0.4 / interval.low).ln(), 12.706_204_736 * 2.0_f64.ln(), 1e-6);
    }

    #[test]
    fn one_block_has_a_ratio_and_no_interval() {
        let variant = &found(&blocks(&[(10_000, 9_000)]))[0].variants[0];
        assert_eq!((variant.ratio, variant.interval), (Some(0.9), None));
    }

    #[test]
    fn a_block_with_an_invalid_step_and_one_that_stood_still_are_left_out() {
        let mut run = blocks(&[(10_000, 8_000), (10_000, 8_000), (10_000, 0)]);
        run.cells[0].steps[0].events.push(StepEvent::Invalid { reason: "clock jumped".to_owned() });
        let variant = &found(&run)[0].variants[0];
        assert_eq!((variant.blocks.as_slice(), variant.without.as_slice()), (&[(2, 0.8)][..], &[3][..]));
    }

    #[test]
    fn rungs_have_their_own_and_steps_without_the_other_have_none() {
        let names = ["ro.pre.c1", "ro.pre.c4", "only.pre.c1", "w.c1", "ro.c1", "ro.c4", "hot.c1"];
        let steps = names.iter().zip(1..).map(|(name, n)| step(name, 1_000 * n)).collect();
        let pairs: Vec<String> = found(&run(&["a"], 1, vec![cell(1, "a", steps)]))
            .iter()
            .map(|aging| format!("{} {} {:?}", aging.before, aging.after, aging.variants[0].ratio))
            .collect();
        assert_eq!(pairs, ["ro.pre.c1 ro.c1 Some(5.0)", "ro.pre.c4 ro.c4 Some(3.0)"]);
    }
}
