//! Verdicts of a whole run: every variant against the base in every step, judged together.

use std::collections::BTreeSet;

use dbdyno_record::parallel;

use crate::compare::inference::paired;
use crate::compare::interim_analyses::{Compared, Look, judge_family};
use crate::compare::margins::Margins;
use crate::compare::targets::with_fewer_writes;
use crate::compare::{fixed_rate, foreign_load};
use crate::model::runs::valid;
use crate::model::{Bound, Code, LEVEL, Notice, Ratio, StepFindings, VariantStep, Verdict, WorkloadFindings};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::kendall::{Trend, trend};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) base: &'a str,
    /// The base under a second name, if the run has it.
    pub(crate) again: Option<&'a str>,
    pub(crate) margins: Margins<'a>,
    pub(crate) seed: u64,
    /// Looks at a run with a budget; empty for one that is judged once, at its end.
    pub(crate) looks: &'a [Look],
}

/// Fills in inference, verdict and drift of all steps of a run. Its comparisons are one family: the
/// more of them there are, the surer each must be. The base under its second name is a family of
/// its own: it is the test of the others.
pub(crate) fn judge(steps: &mut [&mut StepFindings], rules: Rules<'_>) {
    // Intervals and power are most of the work of judging, and no comparison needs another.
    let mut inferences =
        parallel::map(&ratios_of(steps, rules.base), |(ratios, margin)| paired(ratios, *margin, rules.seed))
            .into_iter();
    for step in steps.iter_mut() {
        let is_fixed_rate = step.is_fixed_rate(rules.base);
        let base_ran =
            step.variants.iter().any(|variant| variant.variant == rules.base && !variant.runs.is_empty());
        for variant in &mut step.variants {
            let rates: Vec<f64> = valid(&variant.runs).map(|run| run.rate).collect();
            variant.drift = trend(&rates);
            if variant.variant == rules.base {
                continue;
            }
            match &mut variant.ratio {
                Some(ratio) if is_fixed_rate || ratio.bound.is_some() => {}
                Some(ratio) => ratio.inference = inferences.next().flatten(),
                None if base_ran && !variant.runs.is_empty() => variant.verdict = Some(Verdict::Invalid),
                None => {}
            }
        }
    }
    for is_again in [false, true] {
        let of_family =
            |variant: &&mut VariantStep| (rules.again == Some(variant.variant.as_str())) == is_again;
        let mut family: Vec<Compared<'_>> = steps
            .iter_mut()
            .flat_map(|step| {
                let margin = step.margin;
                step.variants.iter_mut().filter(of_family).filter_map(move |variant| {
                    let VariantStep { ratio, verdict, decided, .. } = variant;
                    Compared::of(ratio.as_mut()?, margin, verdict, Some(decided))
                })
            })
            .collect();
        judge_family(rules.looks, &mut family);
    }
    for step in steps.iter_mut() {
        judge_times(step);
        judge_targets(step, rules);
        judge_paced(step, rules.base);
        judge_zero_rates(step, rules.base);
        foreign_load::judge(step, rules.base);
    }
}

/// Of times less is better; and where some were cut off, several blocks decide if each of their
/// bounds lies beyond the margin.
fn judge_times(step: &mut StepFindings) {
    let margin = step.margin;
    if !step.less_is_better {
        return;
    }
    for variant in &mut step.variants {
        match &variant.ratio {
            Some(ratio) if ratio.bound.is_some() => variant.verdict = of_bound(ratio, margin),
            _ => variant.verdict = variant.verdict.map(Verdict::of_time),
        }
    }
}

fn of_bound(ratio: &Ratio, margin: f64) -> Option<Verdict> {
    let beyond = |is_beyond: &dyn Fn(f64) -> bool| ratio.blocks.iter().all(|(_, ratio)| is_beyond(*ratio));
    let word = match ratio.bound? {
        Bound::MoreThan if beyond(&|ratio| ratio > 1.0 + margin) => Verdict::Slower,
        Bound::LessThan if beyond(&|ratio| ratio < 1.0 / (1.0 + margin)) => Verdict::Faster,
        _ => Verdict::Undecided,
    };
    (ratio.blocks.len() > 1).then_some(word)
}

/// Variants of a step whose rate is the plan's.
fn judge_paced(step: &mut StepFindings, base: &str) {
    if !step.is_fixed_rate(base) {
        return;
    }
    let words: Vec<Verdict> =
        step.variants.iter().map(|variant| fixed_rate::word(step.pace(variant))).collect();
    let judged = step.variants.iter_mut().zip(words).filter(|(variant, _)| variant.variant != base);
    for (variant, word) in judged.filter(|(variant, _)| variant.ratio.is_some()) {
        variant.verdict = Some(word);
    }
}

/// Variants that answered nothing in a block, or whose base did. The base under its second name is
/// not spared: if that stood still, the machine is not fit to compare on.
fn judge_zero_rates(step: &mut StepFindings, base: &str) {
    let others = step.variants.iter_mut().filter(|variant| variant.variant != base);
    for variant in others.filter(|variant| !variant.zero_rates.is_empty()) {
        let judged = variant.zero_rates.judged(variant.verdict);
        if judged != variant.verdict {
            (variant.verdict, variant.decided) = (judged, None);
        }
    }
}

/// Variants that did not keep the background rate that the base kept. The base under its second
/// name is no subject of the comparison, but its test.
fn judge_targets(step: &mut StepFindings, rules: Rules<'_>) {
    let names = step.variants.iter().map(|variant| &variant.variant);
    let missed: Vec<bool> = names
        .map(|name| rules.again != Some(name.as_str()) && step.misses_target_of(rules.base, name))
        .collect();
    for (variant, _) in step.variants.iter_mut().zip(missed).filter(|(_, missed)| *missed) {
        variant.verdict = variant.verdict.map(with_fewer_writes);
    }
}

/// The blocks' ratios of every variant but the base, with the step's margin; not of steps whose
/// rate is the plan's.
fn ratios_of(steps: &[&mut StepFindings], base: &str) -> Vec<(Vec<f64>, f64)> {
    let of_step = |step: &StepFindings| {
        let others = step.variants.iter().filter(|variant| variant.variant != base);
        let ratios = others.filter_map(|variant| variant.ratio.as_ref());
        ratios
            .filter(|ratio| ratio.bound.is_none())
            .map(|ratio| (ratio.blocks.iter().map(|(_, ratio)| *ratio).collect(), step.margin))
            .collect::<Vec<_>>()
    };
    steps.iter().filter(|step| !step.is_fixed_rate(base)).flat_map(|step| of_step(step)).collect()
}

/// Rates that rise or fall from block to block, adjusted over all steps and variants of the run.
pub(crate) fn drift_notices(workloads: &[WorkloadFindings]) -> Vec<Notice> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps);
    let all: Vec<_> = steps
        .flat_map(|step| {
            step.variants.iter().filter_map(move |variant| Some((step, variant, variant.drift?)))
        })
        .collect();
    let adjusted = benjamini_hochberg(&all.iter().map(|(_, _, trend)| trend.p).collect::<Vec<_>>());
    let common = common_trend(workloads).filter(|trend| trend.p <= LEVEL).map(|trend| {
        let code = if trend.tau > 0.0 { Code::RatesRise } else { Code::RatesFall };
        Notice::new(code).with("tau", trend.tau).with("p", trend.p)
    });
    let reported = all.iter().zip(adjusted).filter(|(_, adjusted)| *adjusted <= LEVEL);
    let of_steps = reported.map(|((step, variant, trend), adjusted)| {
        let code = if trend.tau > 0.0 { Code::RateRises } else { Code::RateFalls };
        let notice = Notice::new(code).at(format!("{} {}", variant.variant, step.name));
        notice.with("tau", trend.tau).with("adjusted_p", adjusted)
    });
    common.into_iter().chain(of_steps).collect()
}

/// The trend of the blocks' mean log rates over all steps and variants that are valid in every
/// block: one test of what they have in common, where so few blocks can show nothing of each of
/// many steps.
fn common_trend(workloads: &[WorkloadFindings]) -> Option<Trend> {
    let variants = || workloads.iter().flat_map(|workload| &workload.steps).flat_map(|step| &step.variants);
    let blocks: BTreeSet<u32> = variants().flat_map(|variant| &variant.runs).map(|run| run.block).collect();
    let series: Vec<Vec<f64>> = variants()
        .map(|variant| valid(&variant.runs).map(|run| run.rate.ln()).collect::<Vec<f64>>())
        .filter(|logs| logs.len() == blocks.len() && logs.iter().all(|log| log.is_finite()))
        .collect();
    // A single series has its own test.
    (series.len() > 1).then_some(())?;
    let of_block = |at: usize| series.iter().map(|logs| logs[at]).sum::<f64>() / series.len() as f64;
    trend(&(0..blocks.len()).map(of_block).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run, texts};
    use crate::model::Findings;

    /// Rates of `a` and `b` in `l.i0`, a pair a block.
    fn found(blocks: &[(u64, u64)]) -> Findings {
        let cells = blocks.iter().zip(1..).flat_map(|((a, b), block)| {
            [cell(block, "a", vec![load_step(*a)]), cell(block, "b", vec![load_step(*b)])]
        });
        analyse(&run(&["a", "b"], blocks.len() as u32, cells.collect()))
    }

    fn step(findings: &Findings) -> &VariantStep {
        &findings.workloads[0].steps[0].variants[1]
    }

    #[test]
    fn several_blocks_have_an_interval_and_a_verdict_and_the_base_has_none() {
        let findings = found(&[(100_000, 108_000), (90_000, 97_000), (110_000, 119_000), (100_000, 108_500)]);
        let step = step(&findings);
        assert_eq!(step.verdict, Some(Verdict::Faster));
        let interval = step.ratio.as_ref().unwrap().inference.as_ref().unwrap().interval;
        assert!(1.07 < interval.low && interval.high < 1.09, "{interval:?}");
        let base = &findings.workloads[0].steps[0].variants[0];
        assert_eq!((base.verdict, base.ratio.as_ref().unwrap().inference.is_none()), (None, true));
    }

    #[test]
    fn one_block_has_a_ratio_and_nothing_more() {
        let findings = found(&[(100_000, 150_000)]);
        let step = step(&findings);
        assert_eq!((step.verdict, step.ratio.as_ref().unwrap().value), (None, 1.5));
        assert!(step.ratio.as_ref().unwrap().inference.is_none());
    }

    #[test]
    fn no_block_in_which_both_are_valid_is_invalid_and_a_step_that_did_not_run_is_nothing() {
        let cells = vec![cell(1, "a", vec![load_step(1_000)]), cell(2, "b", vec![load_step(1_000)])];
        let findings = analyse(&run(&["a", "b"], 2, cells));
        let verdicts = |step: usize| findings.workloads[0].steps[step].variants[1].verdict;
        assert_eq!((verdicts(0), verdicts(1)), (Some(Verdict::Invalid), None));
    }

    #[test]
    fn a_trend_that_is_in_all_steps_together_is_reported_where_none_shows_it_alone() {
        let rates =
            [(100_000, 100_000), (97_000, 98_000), (98_000, 94_000), (91_000, 95_000), (90_000, 80_000)];
        let reported: Vec<String> =
            texts(&found(&rates)).into_iter().filter(|warning| warning.starts_with("rate")).collect();
        assert_snapshot!(reported.join("\n"), @"rates-fall p: 0.016666666666666666, tau: -1.0");
    }

    #[test]
    fn rates_that_fall_in_every_block_are_reported_and_do_not_touch_the_ratio() {
        let blocks: Vec<(u64, u64)> =
            (0..7).map(|block| (100_000 - 3_000 * block, 100_000 - 3_000 * block)).collect();
        let findings = found(&blocks);
        assert_eq!(step(&findings).verdict, Some(Verdict::Same));
        assert_snapshot!(texts(&findings).join("\n"), @r"
        rates-fall p: 0.0003968253968253968, tau: -1.0
        rate-falls [a l.i0] adjusted_p: 0.0003968253968253968, tau: -1.0
        rate-falls [b l.i0] adjusted_p: 0.0003968253968253968, tau: -1.0
        ");
    }
}
