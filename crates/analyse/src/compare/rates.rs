//! Finds rates whose ratio does not say which variant is faster. They are of three kinds:
//!
//! * Open loops, whose rate the plan sets. Where the schedule was kept, equal rates show nothing,
//!   and response times show which variant is faster.
//! * Background rates that were not kept. A rate with fewer concurrent writes than planned does not
//!   answer the step's question.
//! * Blocks in which a variant or the base answered nothing. They have no ratio, but must not be
//!   left out silently: a server that stalled in two of six blocks is not as fast as the other four
//!   say.

use crate::model::steps::{pairs, valid};
use crate::model::{
    Code, ComparedStep, KindResult, Schedule, StepFindings, StepRun, VariantStep, Verdict, Warning, ZeroRates,
};
use crate::statistics::describe::median;

/// Highest share of the operations due that may be left undone in a schedule that counts as kept.
/// The operations left undone are the slowest ones, and no response time includes them. A server
/// that permanently answers fewer than arrive is overloaded, however small the shortfall.
const MAX_LEFT_SHARE: f64 = 0.01;
/// Number of standard deviations by which the operations under way may exceed their mean number.
const DEVIATIONS: f64 = 3.0;
/// Number of operations that may be under way at the window's end, however fast the answers are.
const MIN_UNDER_WAY: f64 = 3.0;

/// How well a schedule was kept. The figures are medians over the valid blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReachedRate {
    /// Operations per second that the plan asked for; the next field has those that were answered.
    pub asked: f64,
    pub reached: f64,
    /// Share of the operations due that were dropped or failed, or made the queue longer.
    pub left_share: f64,
    /// The part of that share that was dropped.
    pub dropped_share: f64,
    /// How many more operations waited or were under way at the window's end than at its beginning,
    /// as a share of those due. It is 0 where a server that keeps up could have as many under way.
    pub queue_share: f64,
}

impl ReachedRate {
    /// Whether the share of operations that were left is small enough for a schedule that was kept.
    pub fn is_kept(self) -> bool {
        self.left_share <= MAX_LEFT_SHARE
    }
}

/// The figures of one run: (asked, reached, left share, dropped share, queue share).
fn of_run(kind: &KindResult) -> Option<[f64; 5]> {
    let schedule = kind.schedule.as_ref()?;
    let due = schedule.due as f64;
    let share = |operations: f64| if due > 0.0 { operations / due } else { 0.0 };
    let growth = schedule.queue_growth as f64;
    let excess = (growth - max_under_way(kind, schedule)).max(0.0);
    Some([
        schedule.asked_per_second,
        kind.operations_per_second,
        share(excess + (kind.failed + kind.dropped) as f64),
        share(kind.dropped as f64),
        share(if excess > 0.0 { growth } else { 0.0 }),
    ])
}

/// How many operations a server that keeps up may have under way at one moment. Their mean is
/// arrivals per second times service time, by Little's law, and chance adds to it as in a Poisson
/// distribution. In a short window the result could be most of the operations due, and slow answers
/// could not be distinguished from a queue. It is therefore at most half of the operations due, but
/// never below [`MIN_UNDER_WAY`].
fn max_under_way(kind: &KindResult, schedule: &Schedule) -> f64 {
    let mean = schedule.asked_per_second * kind.service.mean_us / 1e6;
    (mean + DEVIATIONS * mean.sqrt()).min(schedule.due as f64 / 2.0).max(MIN_UNDER_WAY)
}

impl StepFindings {
    fn headline<'a>(&self, run: &'a StepRun) -> Option<&'a KindResult> {
        run.kind(&self.headline_kind)
    }

    /// How a variant kept the schedule of the step's headline; `None` for a closed loop, and
    /// without a valid block.
    pub fn reached_rate(&self, variant: &VariantStep) -> Option<ReachedRate> {
        let runs: Vec<[f64; 5]> =
            valid(&variant.runs).filter_map(|run| of_run(self.headline(run)?)).collect();
        let of = |figure: usize| median(&runs.iter().map(|run| run[figure]).collect::<Vec<_>>());
        Some(ReachedRate {
            asked: of(0)?,
            reached: of(1)?,
            left_share: of(2)?,
            dropped_share: of(3)?,
            queue_share: of(4)?,
        })
    }

    fn reached_rate_of(&self, name: &str) -> Option<ReachedRate> {
        self.reached_rate(self.variant(name)?)
    }

    /// Whether `base` kept the step's schedule. Its rate is then the plan's, and does not measure
    /// what the base can do.
    pub fn is_fixed_rate(&self, base: &str) -> bool {
        self.reached_rate_of(base).is_some_and(ReachedRate::is_kept)
    }

    /// Whether the variant of this name did not keep a schedule that `base` kept.
    pub fn only_variant_misses_schedule(&self, base: &str, variant: &str) -> bool {
        self.is_fixed_rate(base)
            && self.reached_rate_of(variant).is_some_and(|reached_rate| !reached_rate.is_kept())
    }

    /// 99th percentile of the headline's response times in one run, in microseconds; `None` where
    /// nothing was answered.
    pub(crate) fn response_p99_us_in(&self, run: &StepRun) -> Option<f64> {
        let answered = self.headline(run).filter(|kind| kind.response.count > 0);
        answered.map(|kind| kind.response.p99_us as f64)
    }
}

/// The verdict for a step whose base kept its schedule.
pub(crate) fn fixed_rate_verdict(new: Option<ReachedRate>) -> Verdict {
    if new.is_some_and(|reached_rate| !reached_rate.is_kept()) {
        Verdict::Missed
    } else {
        Verdict::OnSchedule
    }
}

/// One warning per variant and step that did not keep its schedule.
pub(crate) fn fixed_rate_warnings(step: &StepFindings) -> Vec<Warning> {
    let missed = |variant: &VariantStep| {
        let reached_rate = step.reached_rate(variant).filter(|reached_rate| !reached_rate.is_kept())?;
        let some = |share: f64| (share > 0.0).then_some(share);
        let warning = Warning::new(Code::ScheduleMissed).at(format!("{} {}", variant.variant, step.name));
        let warning = warning.with("reached", reached_rate.reached).with("asked", reached_rate.asked);
        Some(
            warning
                .with_some("dropped", some(reached_rate.dropped_share))
                .with_some("queued", some(reached_rate.queue_share)),
        )
    };
    step.variants.iter().filter_map(missed).collect()
}

/// The notes that a comparison has above its table.
pub(crate) fn fixed_rate_notes(steps: &[ComparedStep]) -> Vec<Warning> {
    let of = |wanted: Verdict| -> Vec<&str> {
        let steps = steps.iter().filter(|step| step.is_fixed_rate && step.to_base.verdict == Some(wanted));
        steps.map(|step| step.step.as_str()).collect()
    };
    let note = |code, verdict| {
        let steps = of(verdict);
        (!steps.is_empty()).then(|| Warning::new(code).at_all(steps))
    };
    let by_schedule = note(Code::BothOnSchedule, Verdict::OnSchedule);
    by_schedule.into_iter().chain(note(Code::NewMissedSchedule, Verdict::Missed)).collect()
}

/// The smallest whole number of rows per second that counts as having kept the target:
/// `round(share * target)`.
pub fn min_accepted(target_rows_per_second: f64, share: f64) -> f64 {
    (share * target_rows_per_second).round()
}

/// Applies the original's service level rule, on rounded figures: a target of 1000 at 95 % is kept
/// by 949.5 and missed by 949.4.
pub fn keeps_target(rows_per_second: f64, target_rows_per_second: f64, share: f64) -> bool {
    rows_per_second.round() >= min_accepted(target_rows_per_second, share)
}

impl StepFindings {
    /// Whether `variant` did not keep the step's background rate. It is `false` for a step without
    /// a target, and where nothing was measured.
    pub fn misses(&self, variant: &VariantStep) -> bool {
        let judged = self.target.zip(variant.judged_background_rate);
        judged.is_some_and(|((target, share), rate)| !keeps_target(rate, target, share))
    }

    /// Whether the variant of this name did not keep a background rate that `base` kept. Its ratio
    /// to the base is then one of rates with unequal writes.
    pub fn only_variant_misses_target(&self, base: &str, variant: &str) -> bool {
        let base_keeps = |base: &VariantStep| base.background_rate.is_some() && !self.misses(base);
        self.variant(base).is_some_and(base_keeps)
            && self.variant(variant).is_some_and(|variant| self.misses(variant))
    }
}

/// The verdict for a variant that did not keep the background rate that the base kept. Slower with
/// fewer writes is still slower, and more blocks may show an undecided comparison to be slower.
pub(crate) fn with_fewer_writes(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Faster | Verdict::Same => Verdict::Missed,
        other => other,
    }
}

/// One warning per variant and step that missed its target, in all blocks or in some.
pub(crate) fn target_warnings(step: &StepFindings) -> Vec<Warning> {
    let missed = |variant: &VariantStep| {
        let place = format!("{} {}", variant.variant, step.name);
        let (some, all) = (variant.target_missed_blocks.len(), valid(&variant.runs).count());
        let blocks = (0 < some && some < all).then_some((some, all));
        let in_blocks = |warning: Warning| {
            let warning = warning.with_some("missed", blocks.map(|(missed, _)| missed));
            warning.with_some("blocks", blocks.map(|(_, all)| all))
        };
        if !step.misses(variant) {
            return blocks.map(|_| in_blocks(Warning::new(Code::TargetMissedInBlocks).at(place)));
        }
        let (target, share) = step.target?;
        let (judged, rate) = (variant.judged_background_rate?, variant.background_rate?);
        let warning = match keeps_target(rate, target, share) {
            true => Warning::new(Code::TargetMissedByClient)
                .with("part", (100.0 * judged / target).floor() / 100.0)
                .with("share", share),
            false => Warning::new(Code::TargetMissed).with("needed", min_accepted(target, share)),
        };
        Some(in_blocks(warning.at(place).with("rate", rate).with("target", target)))
    };
    step.variants.iter().filter_map(missed).collect()
}

impl ZeroRates {
    /// Counts for two lists of runs that are paired by block, over the blocks in which both are
    /// valid.
    pub fn in_pairs(runs: &[StepRun], base: &[StepRun]) -> Self {
        let mut found = Self::default();
        for (run, base) in pairs(runs, base) {
            found.blocks += 1;
            if base.rate <= 0.0 {
                found.base_stalled.push(run.block);
            } else if run.rate <= 0.0 {
                found.stalled.push(run.block);
            }
        }
        found
    }

    /// Counts for two runs, whose blocks are not paired. The side that answered nothing in more of
    /// its blocks counts as stalled.
    pub(crate) fn unpaired(runs: &[StepRun], base: &[StepRun]) -> Self {
        let (of_new, of_base) = (zero_blocks(runs), zero_blocks(base));
        let (all, all_of_base) = (valid(runs).count(), valid(base).count());
        if all == 0 || all_of_base == 0 {
            return Self::default();
        }
        let more = of_new.len() * all_of_base > of_base.len() * all;
        Self { stalled: if more { of_new } else { Vec::new() }, base_stalled: of_base, blocks: all }
    }

    pub fn is_empty(&self) -> bool {
        self.stalled.is_empty() && self.base_stalled.is_empty()
    }
}

fn zero_blocks(runs: &[StepRun]) -> Vec<u32> {
    valid(runs).filter(|run| run.rate <= 0.0).map(|run| run.block).collect()
}

/// One warning per variant and step that has a valid block in which nothing was answered.
pub(crate) fn zero_rate_warnings(step: &StepFindings, base: &str) -> Vec<Warning> {
    let of_variant = |variant: &VariantStep| {
        let zero = zero_blocks(&variant.runs);
        let code = match variant.to_base.zero_rates.stalled.is_empty() {
            _ if zero.is_empty() => return None,
            _ if variant.variant == base && step.variants.len() > 1 => Code::BaseStalled,
            true => Code::ZeroRate,
            false => Code::Stalled,
        };
        let warning = Warning::new(code).at(format!("{} {}", variant.variant, step.name));
        Some(warning.with("blocks", zero.as_slice()).with("of", valid(&variant.runs).count()))
    };
    step.variants.iter().filter_map(of_variant).collect()
}

fn non_empty(blocks: &[u32]) -> Option<&[u32]> {
    (!blocks.is_empty()).then_some(blocks)
}

/// The notes that a comparison has above its table.
pub(crate) fn zero_rate_notes(steps: &[ComparedStep]) -> Vec<Warning> {
    let of_step = |step: &ComparedStep| {
        let found = Some(&step.to_base.zero_rates).filter(|found| !found.is_empty())?;
        let warning = match non_empty(&found.stalled) {
            Some(blocks) => {
                Warning::new(Code::NewAnsweredNothing).with("blocks", blocks).with("of", found.blocks)
            }
            None => Warning::new(Code::BaseAnsweredNothing),
        };
        let warning = warning.at(&step.step).with_some("base_blocks", non_empty(&found.base_stalled));
        Some(warning.with_some("ratio", step.to_base.value()))
    };
    steps.iter().filter_map(of_step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, interval, query_step, run, shown_all};
    use crate::model::Findings;

    /// Three blocks of `qr100` (the target is 200 rows/s, and 190 are enough), with a base of 400
    /// queries/s.
    fn findings(base_writes: u64, queries: u64, writes: u64) -> Findings {
        let cells = (1..=3).flat_map(|block| {
            let base = cell(block, "base", vec![query_step(400 + u64::from(block), base_writes)]);
            [base, cell(block, "new", vec![query_step(queries + u64::from(block), writes)])]
        });
        analyse(&run(&["base", "new"], 3, cells.collect()))
    }

    fn verdict(base_writes: u64, queries: u64, writes: u64) -> Option<Verdict> {
        findings(base_writes, queries, writes).workloads[0].steps[1].variants[1].to_base.verdict
    }

    #[test]
    fn with_fewer_writes_than_the_base_nothing_is_faster_or_the_same() {
        assert_eq!(verdict(200, 600, 200), Some(Verdict::Faster));
        assert_eq!(verdict(200, 600, 150), Some(Verdict::Missed));
        assert_eq!(verdict(200, 401, 150), Some(Verdict::Missed));
        assert_eq!(verdict(200, 300, 150), Some(Verdict::Slower));
    }

    #[test]
    fn where_the_base_missed_its_target_too_rates_are_compared() {
        assert_eq!(verdict(150, 600, 150), Some(Verdict::Faster));
        assert_eq!(verdict(150, 600, 200), Some(Verdict::Faster));
        let step = &findings(150, 600, 150).workloads[0].steps[1];
        assert!(
            !step.only_variant_misses_target("base", "new")
                && !step.only_variant_misses_target("base", "no such")
        );
        assert_eq!(target_warnings(step).len(), 2);
    }

    /// `qr100` with two clients in blocks of 2 s. Each client's target is 100 rows per second. The
    /// first client keeps its target, and `second_client` has the second client's rates.
    fn of_two_clients(second_client: &[u64]) -> Findings {
        let step = |rows: u64| {
            let mut step = query_step(400, 100);
            step.spec.clients = 2;
            step.intervals.push(interval(0, 2_000_000, 2, "insert", 2 * rows / 50, 2 * rows));
            step
        };
        let cells = second_client.iter().zip(1..).map(|(rows, block)| cell(block, "a", vec![step(*rows)]));
        analyse(&run(&["a"], second_client.len() as u32, cells.collect()))
    }

    #[test]
    fn a_slow_client_next_to_one_that_keeps_up_misses_the_target() {
        let findings = of_two_clients(&[92]);
        let step = &findings.workloads[0].steps[1];
        let variant = &step.variants[0];
        assert_eq!((variant.background_rate, variant.judged_background_rate), (Some(192.0), Some(184.0)));
        assert!(keeps_target(192.0, 200.0, 0.95) && step.misses(variant));
        insta::assert_snapshot!(shown_all(&target_warnings(step)), @"target-missed-by-client [a qr100] part: 0.92, rate: 192.0, share: 0.95, target: 200.0");
    }

    #[test]
    fn blocks_that_missed_the_target_are_counted_whatever_the_median_says() {
        let reported =
            |rows: &[u64]| shown_all(&target_warnings(&of_two_clients(rows).workloads[0].steps[1]));
        insta::assert_snapshot!(reported(&[100, 50, 100]), @"target-missed-in-blocks [a qr100] blocks: 3, missed: 1");
        insta::assert_snapshot!(reported(&[50, 100, 50]), @"target-missed [a qr100] blocks: 3, missed: 2, needed: 190.0, rate: 150.0, target: 200.0");
        assert_eq!(reported(&[100, 96, 100]), "");
        let findings = of_two_clients(&[100, 50, 100]);
        assert_eq!(findings.workloads[0].steps[1].variants[0].target_missed_blocks, [2]);
    }

    #[test]
    fn a_step_without_a_target_cannot_miss_it() {
        let mut findings = findings(200, 600, 150);
        let step = &mut findings.workloads[0].steps[1];
        assert!(step.only_variant_misses_target("base", "new"));
        step.target = None;
        assert!(!step.only_variant_misses_target("base", "new"));
    }

    #[test]
    fn the_target_is_judged_on_rounded_figures() {
        assert!(keeps_target(949.5, 1000.0, 0.95));
        assert!(!keeps_target(949.4, 1000.0, 0.95));
        // round(0.95 * 250) = round(237.5) = 238, so 237.4 is below it.
        assert!(!keeps_target(237.4, 250.0, 0.95));
        assert!(keeps_target(237.6, 250.0, 0.95));
    }
}

#[cfg(test)]
#[path = "fixed_rate_tests.rs"]
mod fixed_rate_tests;

#[cfg(test)]
#[path = "zero_rate_tests.rs"]
mod zero_rate_tests;
