//! Finds a comparison's verdict from its ratio over the blocks and from what both sides did:
//! faster, slower, same, missed, on schedule, stalled, undecided or invalid.
//!
//! A verdict needs two things. One is a p-value, adjusted over all comparisons that are made at
//! once, so that at most 5 % of the reported differences are false. The other is a margin, below
//! which a difference does not matter. docs/concepts/statistics.md explains both. Some comparisons
//! are undecided for a stated reason, whatever their ratio and interval say. No other module takes
//! a comparison's verdict back.
//!
//! One such reason is that other programs took a part f of the CPU time that server or client could
//! have had. Without those programs, a rate could have been up to 1 ÷ (1 − f) times as high. Where
//! that is within the margin, it changes no verdict. Beyond the margin, a difference counts only if
//! it is larger by as much. Where others had half of the time or more, no difference counts:
//! threads that wait for each other lose more than their part.

use crate::compare::rates::with_fewer_writes;
use crate::model::steps::valid;
use crate::model::{
    Bound, CONFIDENCE, Code, ComparedStep, ForeignLoad, Inference, LEVEL, Paired, Ratio, StepFindings,
    StepRun, Undecided, Verdict, Warning, ZeroRates,
};
use crate::statistics::describe::deviation;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::power::{USUAL_POWER, blocks_needed, detectable};
use crate::statistics::ranks::hodges_lehmann;
use crate::statistics::resampling::bca;
use crate::statistics::student::{Estimate, equivalence_bounds, p_of_equivalence};

/// What is known about a comparison before its verdict.
pub(crate) struct VerdictInput<'a> {
    pub(crate) subject: Subject<'a>,
    /// The verdict by the tests, for a rate; `None` for one block, for a bound, and for a rate that
    /// the plan sets.
    pub(crate) by_ratio: Option<Verdict>,
    /// The variant did not keep a background rate that the base kept.
    pub(crate) misses_target: bool,
    /// Where the plan sets the rate and the base kept it, the verdict on whether the variant kept
    /// it too.
    pub(crate) by_schedule: Option<Verdict>,
}

/// Returns the verdict, and why it is undecided where a rule says so. The verdict is `None` where
/// one of the two did not run the step, and for one block.
pub(crate) fn verdict(known: &VerdictInput<'_>) -> (Option<Verdict>, Option<Undecided>) {
    let Subject { step, runs, base_runs, ratio, zero_rates, .. } = known.subject;
    let mut word = match ratio {
        None => (!runs.is_empty() && !base_runs.is_empty()).then_some(Verdict::Invalid),
        Some(ratio) if ratio.bound.is_some() => of_bound(ratio, step.margin),
        Some(_) if step.less_is_better => known.by_ratio.map(Verdict::of_time),
        Some(_) => known.by_ratio,
    };
    if known.misses_target {
        word = word.map(with_fewer_writes);
    }
    if ratio.is_some() {
        word = known.by_schedule.or(word);
    }
    if !zero_rates.stalled.is_empty() {
        word = Some(Verdict::Stalled);
    }
    judged(&known.subject, word)
}

/// The verdict where times were cut off. Several blocks decide if each of their bounds lies beyond
/// the margin.
fn of_bound(ratio: &Ratio, margin: f64) -> Option<Verdict> {
    let beyond = |is_beyond: &dyn Fn(f64) -> bool| ratio.blocks.iter().all(|(_, ratio)| is_beyond(*ratio));
    let word = match ratio.bound? {
        Bound::MoreThan if beyond(&|ratio| ratio > 1.0 + margin) => Verdict::Slower,
        Bound::LessThan if beyond(&|ratio| ratio < 1.0 / (1.0 + margin)) => Verdict::Faster,
        _ => Verdict::Undecided,
    };
    (ratio.blocks.len() > 1).then_some(word)
}

/// Shortest time that is compared, in seconds. Records hold the times of executions in whole
/// microseconds. Below a hundred of them the last one is more than 1 % of the time, and a cache has
/// most likely answered.
pub const MIN_SECONDS: f64 = 0.000_1;

/// The input of a rule.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) step: &'a StepFindings,
    pub(crate) runs: &'a [StepRun],
    pub(crate) base_runs: &'a [StepRun],
    pub(crate) ratio: Option<&'a Ratio>,
    pub(crate) zero_rates: &'a ZeroRates,
    pub(crate) foreign_load: Option<ForeignLoad>,
}

/// A rule finds its reason in a comparison, and then the comparison is undecided.
type UndecidedRule = fn(&Subject<'_>, Option<Verdict>) -> Option<Undecided>;

/// All rules. The first that finds a reason counts.
const UNDECIDED_RULES: &[UndecidedRule] = &[below_clock, too_few_operations, foreign_load, base_stalled];

/// The verdict, and why it is undecided where a rule says so. No rule takes back that a variant
/// stalled, missed its rate or has no valid block, because these are facts.
pub(crate) fn judged(
    subject: &Subject<'_>,
    verdict: Option<Verdict>,
) -> (Option<Verdict>, Option<Undecided>) {
    if matches!(verdict, Some(Verdict::Stalled | Verdict::Missed)) {
        return (verdict, None);
    }
    match UNDECIDED_RULES.iter().find_map(|rule| rule(subject, verdict)) {
        Some(why) => (Some(Verdict::Undecided), Some(why)),
        None => (verdict, None),
    }
}

/// Whether a valid run of either took less time than the clock resolves.
pub(crate) fn is_below_clock_resolution(
    step: &StepFindings,
    runs: &[StepRun],
    base_runs: &[StepRun],
) -> bool {
    let mut all = valid(runs).chain(valid(base_runs));
    step.less_is_better && all.any(|run| !run.executions.is_empty() && run.rate < MIN_SECONDS)
}

fn below_clock(subject: &Subject<'_>, _: Option<Verdict>) -> Option<Undecided> {
    let has_both = valid(subject.runs).next().is_some() && valid(subject.base_runs).next().is_some();
    (has_both && is_below_clock_resolution(subject.step, subject.runs, subject.base_runs))
        .then_some(Undecided::BelowClock)
}

/// A rate of a few operations decides nothing, however well its blocks agree.
fn too_few_operations(subject: &Subject<'_>, verdict: Option<Verdict>) -> Option<Undecided> {
    if !matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Same | Verdict::Undecided)) {
        return None;
    }
    let all = valid(subject.runs).chain(valid(subject.base_runs));
    let fewest = all
        .filter_map(|run| run.too_few)
        .min_by(|one, other| (one.operations / one.needed).total_cmp(&(other.operations / other.needed)));
    fewest.map(Undecided::TooFewOperations)
}

/// A difference that the CPU time of other programs may explain is undecided.
fn foreign_load(subject: &Subject<'_>, verdict: Option<Verdict>) -> Option<Undecided> {
    let (load, ratio) = (subject.foreign_load?, subject.ratio?);
    let Subject { step, .. } = subject;
    is_explained_by_others(load, verdict?, ratio, (step.margin, step.less_is_better))
        .then_some(Undecided::ForeignLoad(load))
}

/// A variant cannot be shown to be faster than a base that stalled, or the same.
fn base_stalled(subject: &Subject<'_>, verdict: Option<Verdict>) -> Option<Undecided> {
    let is_taken_back =
        matches!(verdict, Some(Verdict::Faster | Verdict::Same | Verdict::OnSchedule | Verdict::Invalid));
    (is_taken_back && !subject.zero_rates.base_stalled.is_empty()).then_some(Undecided::BaseStalled)
}

/// What the ratios of several blocks say together, with `q` not adjusted yet. `None` for fewer than
/// two blocks.
pub(crate) fn paired(ratios: &[f64], margin: f64, seed: u64) -> Option<Inference> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let inference = of_estimate(Estimate::of_mean(&logs)?, margin);
    let deviation = deviation(&logs)?;
    let robust = hodges_lehmann(&logs, CONFIDENCE)?;
    let blocks = u32::try_from(logs.len()).unwrap_or(u32::MAX);
    let paired = Paired {
        deviation,
        bootstrap: bca(&logs, CONFIDENCE, seed)?.exp(),
        robust_value: robust.value.exp(),
        robust_interval: robust.interval.exp(),
        robust_confidence: robust.confidence,
        detectable_ratio: detectable(equivalence_bounds(margin).high, deviation, blocks, LEVEL, USUAL_POWER)?
            .exp(),
        blocks_for_twice_margin: blocks_needed(
            (2.0 * margin).ln_1p(),
            equivalence_bounds(margin).high,
            deviation,
            LEVEL,
            USUAL_POWER,
        ),
    };
    Some(Inference { paired: Some(paired), ..inference })
}

/// What rates that were measured in two runs say about their ratio. `None` when a run has fewer
/// than two valid blocks.
pub(crate) fn unpaired(base_rates: &[f64], new_rates: &[f64], margin: f64) -> Option<Inference> {
    let logs = |rates: &[f64]| rates.iter().map(|rate| rate.ln()).collect::<Vec<f64>>();
    Some(of_estimate(Estimate::of_difference(&logs(base_rates), &logs(new_rates))?, margin))
}

pub(crate) fn of_estimate(estimate: Estimate, margin: f64) -> Inference {
    let p_difference = estimate.p_of_difference();
    let p_same = p_of_equivalence(estimate, equivalence_bounds(margin));
    Inference {
        interval: estimate.interval(CONFIDENCE).exp(),
        p_difference,
        q_difference: p_difference,
        p_same,
        q_same: p_same,
        is_within_margin: is_within(estimate, margin),
        paired: None,
    }
}

pub(crate) fn is_within(estimate: Estimate, margin: f64) -> bool {
    let within = equivalence_bounds(margin);
    within.low <= estimate.value && estimate.value <= within.high
}

/// Adjusts the p-values of all comparisons that are made at once. Differences that would be
/// reported are one family, and sameness is another. A difference that lies inside the margin has
/// p = 1. If such differences counted as found, they would lower the bar for the others, and more
/// than 5 % of the reported ones could be false.
pub(crate) fn adjust(all: &mut [&mut Inference]) {
    let p =
        |inference: &&mut Inference| if inference.is_within_margin { 1.0 } else { inference.p_difference };
    let differences: Vec<f64> = all.iter().map(p).collect();
    let same: Vec<f64> = all.iter().map(|inference| inference.p_same).collect();
    let adjusted = benjamini_hochberg(&differences).into_iter().zip(benjamini_hochberg(&same));
    for (inference, (q_difference, q_same)) in all.iter_mut().zip(adjusted) {
        (inference.q_difference, inference.q_same) = (q_difference, q_same);
    }
}

/// The verdict for a ratio whose p-values are adjusted.
///
/// A difference that is certain but smaller than the margin, where the ratio is not yet shown to be
/// within it, is undecided. More blocks will make it `same`, or show that it is larger.
pub(crate) fn verdict_of_inference(ratio: f64, inference: &Inference, margin: f64) -> Verdict {
    let within = equivalence_bounds(margin).exp();
    match ratio {
        _ if inference.q_same <= LEVEL => Verdict::Same,
        ratio if inference.q_difference <= LEVEL && ratio > within.high => Verdict::Faster,
        ratio if inference.q_difference <= LEVEL && ratio < within.low => Verdict::Slower,
        _ => Verdict::Undecided,
    }
}

/// A probability with three decimals. A small one is given as a bound, because it is never 0.
pub fn p_text(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Share of the CPU time taken by other programs from which on no difference is decided.
const MAX_FOREIGN_SHARE: f64 = 0.5;

impl ForeignLoad {
    /// The foreign load over the valid runs of both; `None` where it changes no verdict.
    pub(crate) fn between(new: &[StepRun], base: &[StepRun], margin: f64) -> Option<Self> {
        let found = Self { base_share: mean_share(base), new_share: mean_share(new) };
        (found.slowed([found.base_share, found.new_share].into_iter().fold(0.0, f64::max)) > margin.ln_1p())
            .then_some(found)
    }

    /// The logarithm of the factor by which a rate may have been slowed.
    fn slowed(self, share: f64) -> f64 {
        -(-share).ln_1p()
    }

    /// The verdict for rates or times, given the ratio's own verdict and its log interval
    /// `low..high`.
    fn judged(self, verdict: Verdict, (low, high): (f64, f64), margin: f64, is_time: bool) -> Verdict {
        // From here on the logarithms are those of a rate, for which more is better.
        let (low, high) = if is_time { (-high, -low) } else { (low, high) };
        let holds = match verdict {
            Verdict::Faster => low - self.slowed(self.base_share) > margin.ln_1p(),
            Verdict::Slower => high + self.slowed(self.new_share) < -margin.ln_1p(),
            Verdict::Same | Verdict::Missed => false,
            // A stall, or a rate that the plan sets, does not depend on a comparison of rates.
            Verdict::Stalled | Verdict::OnSchedule | Verdict::Undecided | Verdict::Invalid => return verdict,
        };
        let is_less = self.base_share < MAX_FOREIGN_SHARE && self.new_share < MAX_FOREIGN_SHARE;
        if holds && is_less { verdict } else { Verdict::Undecided }
    }

    /// The verdict for a response time. It is always undecided, because a wait for a CPU lasts
    /// longer than most answers take.
    pub(crate) fn percentile_verdict(verdict: Option<Verdict>) -> Option<Verdict> {
        verdict.map(|_| Verdict::Undecided)
    }
}

/// Geometric mean of the factors by which rates may have been slowed, as a share of CPU time.
fn mean_share(runs: &[StepRun]) -> f64 {
    let shares: Vec<f64> =
        valid(runs).map(|run| run.cost.foreign_cpu_share.unwrap_or(0.0).clamp(0.0, 0.999)).collect();
    let logs: f64 = shares.iter().map(|share| (-share).ln_1p()).sum();
    1.0 - (logs / shares.len().max(1) as f64).exp()
}

/// The logarithms between which a ratio lies.
fn interval_of_ratio(ratio: &Ratio) -> (f64, f64) {
    match ratio.interval() {
        Some(interval) => (interval.low.ln(), interval.high.ln()),
        None => (ratio.value.ln(), ratio.value.ln()),
    }
}

/// Whether a ratio's verdict does not hold, given the CPU time that other programs took.
fn is_explained_by_others(
    load: ForeignLoad,
    verdict: Verdict,
    ratio: &Ratio,
    (margin, is_time): (f64, bool),
) -> bool {
    load.judged(verdict, interval_of_ratio(ratio), margin, is_time) != verdict
}

/// One warning for all steps of a run in which foreign load may explain a difference, the worst
/// step first.
pub(crate) fn foreign_load_warning<'a>(steps: impl Iterator<Item = &'a StepFindings>) -> Option<Warning> {
    let of_step = |step: &'a StepFindings| {
        let found = step.variants.iter().filter_map(|variant| Some((variant, variant.to_base.foreign_load?)));
        found.map(move |(variant, found)| (format!("{} {}", variant.variant, step.name), found))
    };
    found_foreign_load(steps.flat_map(of_step).collect())
}

/// The note that a comparison has above its table.
pub(crate) fn foreign_load_note(steps: &[ComparedStep]) -> Option<Warning> {
    found_foreign_load(
        steps.iter().filter_map(|step| Some((step.step.clone(), step.to_base.foreign_load?))).collect(),
    )
}

fn found_foreign_load(mut found: Vec<(String, ForeignLoad)>) -> Option<Warning> {
    let max = |load: &ForeignLoad| load.base_share.max(load.new_share);
    found.sort_by(|(_, one), (_, other)| max(other).total_cmp(&max(one)));
    let (_, worst) = *found.first().as_ref()?;
    let (base, new) = (worst.base_share, worst.new_share);
    let warning = Warning::new(Code::ForeignLoad).at_all(found.into_iter().map(|(place, _)| place));
    Some(warning.with("base_share", base).with("new_share", new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::compare::comparison::{CompareChoices, compare};
    use crate::fixtures::{cell, load_step, run, series, shown_all, step_run, texts};
    use crate::metrics::Cost;
    use crate::model::Side;
    use crate::simulations::close;
    use crate::window::counters::HOST_BUSY;

    fn word(ratios: &[f64]) -> Verdict {
        let value = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        verdict_of_inference(value, &paired(ratios, 0.02, 1).unwrap(), 0.02)
    }

    #[test]
    fn each_verdict_has_its_case() {
        assert_eq!(word(&[1.08, 1.07, 1.09, 1.08, 1.085]), Verdict::Faster);
        assert_eq!(word(&[0.92, 0.91, 0.93, 0.92, 0.915]), Verdict::Slower);
        assert_eq!(word(&[1.003, 0.998, 1.001, 1.002, 0.999]), Verdict::Same);
        assert_eq!(word(&[1.08, 0.95, 1.02, 0.99, 1.05]), Verdict::Undecided);
    }

    #[test]
    fn a_certain_difference_below_the_margin_is_same() {
        let ratios = [1.005, 1.006, 1.005, 1.004, 1.005];
        assert!(paired(&ratios, 0.02, 1).unwrap().p_difference < 0.001);
        assert_eq!(word(&ratios), Verdict::Same);
    }

    #[test]
    fn a_certain_difference_of_about_the_margin_is_undecided() {
        assert_eq!(word(&[1.017, 1.019, 1.022, 1.018, 1.021]), Verdict::Undecided);
    }

    #[test]
    fn swapping_the_two_sides_turns_faster_into_slower() {
        for ratios in [[1.03, 1.04, 1.035], [1.019, 1.021, 1.02], [0.99, 1.0, 1.01]] {
            let turned = ratios.map(|ratio| 1.0 / ratio);
            let expected = match word(&ratios) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            assert_eq!(word(&turned), expected);
        }
    }

    #[test]
    fn the_interval_is_students_on_log_ratios() {
        // The log ratios 0.01, 0.02, 0.03 have the mean 0.02 and the standard error 0.01 ÷ √3;
        // t(0.975, 2) = 4.302653.
        let ratios = [0.01, 0.02, 0.03].map(f64::exp);
        let found = paired(&ratios, 0.02, 1).unwrap();
        close(found.interval.low, (0.02_f64 - 4.302_653 * 0.01 / 3_f64.sqrt()).exp(), 1e-7);
        close(found.interval.high, (0.02_f64 + 4.302_653 * 0.01 / 3_f64.sqrt()).exp(), 1e-7);
        close(found.paired.unwrap().deviation, 0.01, 1e-12);
    }

    #[test]
    fn one_block_says_nothing() {
        assert!(paired(&[1.5], 0.02, 1).is_none());
        assert!(unpaired(&[100.0], &[100.0, 101.0], 0.02).is_none());
    }

    #[test]
    fn adjusting_makes_one_of_many_chance_findings_undecided() {
        let mut all: Vec<Inference> =
            (0..20).map(|_| paired(&[1.08, 0.99, 1.04], 0.02, 1).unwrap()).collect();
        all[3].p_difference = 0.01;
        adjust(&mut all.iter_mut().collect::<Vec<_>>());
        close(all[3].q_difference, 0.2, 1e-12);
        assert_eq!(verdict_of_inference(1.05, &all[3], 0.02), Verdict::Undecided);
    }

    #[test]
    fn differences_inside_the_margin_do_not_make_other_differences_more_likely() {
        let small = || paired(&[1.010, 1.011, 1.009], 0.02, 1).unwrap();
        let mut all: Vec<Inference> = (0..20).map(|_| small()).collect();
        assert!(small().p_difference < 0.01);
        all[3] = Inference { p_difference: 0.01, ..paired(&[1.08, 0.99, 1.04], 0.02, 1).unwrap() };
        adjust(&mut all.iter_mut().collect::<Vec<_>>());
        close(all[3].q_difference, 0.2, 1e-12);
        close(all[4].q_difference, 1.0, 1e-12);
    }

    const MARGIN: f64 = 0.05;

    fn runs(shares: &[f64]) -> Vec<StepRun> {
        let cost = |share| Cost { foreign_cpu_share: Some(share), ..Cost::default() };
        shares.iter().map(|share| StepRun { cost: cost(*share), ..step_run(1, 100.0) }).collect()
    }

    /// The verdict for a ratio from `low` to `high`, where others had these parts of the CPU time.
    fn foreign_load_word(verdict: Verdict, (low, high): (f64, f64), base: f64, new: f64) -> Verdict {
        match ForeignLoad::between(&runs(&[new]), &runs(&[base]), MARGIN) {
            Some(found) => found.judged(verdict, (f64::ln(low), f64::ln(high)), MARGIN, false),
            None => verdict,
        }
    }

    #[test]
    fn a_difference_that_foreign_load_may_explain_is_undecided_and_a_larger_one_is_not() {
        assert_eq!(foreign_load_word(Verdict::Slower, (0.70, 0.76), 0.0, 0.2), Verdict::Slower);
        // Without the others the ratio could be 0.80 ÷ 0.8.
        assert_eq!(foreign_load_word(Verdict::Slower, (0.70, 0.80), 0.0, 0.2), Verdict::Undecided);
        assert_eq!(foreign_load_word(Verdict::Faster, (1.20, 1.30), 0.2, 0.0), Verdict::Undecided);
        assert_eq!(foreign_load_word(Verdict::Faster, (1.35, 1.40), 0.2, 0.0), Verdict::Faster);
        assert_eq!(
            foreign_load_word(Verdict::Faster, (1.20, 1.30), 0.0, 0.2),
            Verdict::Faster,
            "it was held up itself"
        );
        assert_eq!(foreign_load_word(Verdict::Same, (0.99, 1.01), 0.2, 0.2), Verdict::Undecided);
    }

    #[test]
    fn where_others_had_half_of_the_time_nothing_is_decided() {
        assert_eq!(foreign_load_word(Verdict::Slower, (0.08, 0.10), 0.0, 0.6), Verdict::Undecided);
        assert_eq!(foreign_load_word(Verdict::Faster, (10.0, 11.0), 0.0, 0.6), Verdict::Undecided);
        assert_eq!(foreign_load_word(Verdict::Stalled, (1.0, 1.0), 0.6, 0.6), Verdict::Stalled);
    }

    #[test]
    fn foreign_load_within_the_margin_changes_nothing() {
        assert_eq!(foreign_load_word(Verdict::Same, (0.99, 1.01), 0.04, 0.04), Verdict::Same);
        assert_eq!(foreign_load_word(Verdict::Slower, (0.90, 0.94), 0.0, 0.04), Verdict::Slower);
        assert!(ForeignLoad::between(&runs(&[0.1, 0.0]), &runs(&[0.0]), MARGIN).is_some(), "5.1 %");
        assert_eq!(ForeignLoad::between(&runs(&[0.1, 0.0, 0.0]), &runs(&[0.0]), MARGIN), None);
    }

    #[test]
    fn a_longer_time_may_be_due_to_other_programs() {
        let found = ForeignLoad { base_share: 0.0, new_share: 0.2 };
        let word = |low: f64, high: f64| found.judged(Verdict::Slower, (low.ln(), high.ln()), MARGIN, true);
        assert_eq!((word(1.20, 1.30), word(1.35, 1.40)), (Verdict::Undecided, Verdict::Slower));
    }

    /// Three blocks with 2 s of CPU time each. Next to `b`, others took `others_us` more.
    fn loaded(others_us: i64) -> dbdyno_record::Run {
        let step = |rate, others_us| {
            let two = |values: &[i64]| [(0, vec![0; values.len()]), (2_000_000, values.to_vec())];
            let mut step = load_step(rate);
            step.counters.extend(series("server", &["cpu_us"], &two(&[1_500_000])));
            step.counters.extend(series("client", &["cpu_us"], &two(&[500_000])));
            let all_us = 2_000_000 + others_us;
            let keys = ["cpu_us", "kernel_threads_cpu_us"];
            step.counters.extend(series("processes", &keys, &two(&[all_us, 0])));
            step.counters.extend(series("host", &HOST_BUSY, &two(&[all_us, 0, 0, 0, 0])));
            step
        };
        let of_block = |block| {
            let rate = |rate| rate + 10 * u64::from(block);
            let b = cell(block, "b", vec![step(rate(80_000), others_us)]);
            [cell(block, "a", vec![step(rate(100_000), 0)]), b]
        };
        run(&["a", "b"], 3, (1..=3).flat_map(of_block).collect())
    }

    #[test]
    fn a_run_next_to_other_programs_says_so_in_its_report_and_in_its_comparison() {
        let idle = loaded(30_000);
        let found = analyse(&idle);
        assert_eq!(found.workloads[0].steps[0].variants[1].to_base.verdict, Some(Verdict::Slower));
        assert_eq!(texts(&found), Vec::<String>::new());
        let busy = loaded(2_030_000);
        let found = analyse(&busy);
        assert_eq!(found.workloads[0].steps[0].variants[1].to_base.verdict, Some(Verdict::Undecided));
        let reported = texts(&found).join("\n");
        assert!(reported.contains("foreign-load [b l.i0] base_share: 0.0, new_share: 0.25"), "{reported}");
        assert!(reported.contains("foreign-cpu [block 3 b l.i0] all: 6, limit: 0.02, runs: 3"), "{reported}");
        let side = |variant| Side { run: &busy, variant };
        let compared = compare(side("a"), side("b"), CompareChoices::default()).unwrap();
        assert_eq!(compared.steps[0].to_base.verdict, Some(Verdict::Undecided));
        let notes = shown_all(&compared.notes);
        assert!(notes.contains("foreign-load [l.i0] base_share: 0.0, new_share: 0.25"), "{notes}");
    }
}
