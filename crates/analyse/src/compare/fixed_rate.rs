//! Open loops, whose rate the plan sets. Where the schedule was kept, equal rates show nothing, and
//! response times show which variant is faster.

use crate::model::runs::valid;
use crate::model::{
    Code, ComparedStep, KindResult, Schedule, StepFindings, StepRun, VariantStep, Verdict, Warning,
};
use crate::statistics::describe::median;

/// Highest share of the operations due that may be left where a schedule counts as kept. Operations
/// that are left are the slowest ones, and are in no response time. A server that permanently
/// answers fewer than arrive is overloaded, however small the shortfall.
const MOST_LEFT: f64 = 0.01;
/// By how many standard deviations of their number the operations under way may exceed their mean.
const DEVIATIONS: f64 = 3.0;
/// Number of operations that may be under way at the window's end, however fast the answers are.
const LEAST_ON_ITS_WAY: f64 = 3.0;

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
    /// as a share of those due. It is 0 where it is no more than a server that keeps up has under
    /// way.
    pub queue_share: f64,
}

impl ReachedRate {
    /// Whether hardly any operations were left.
    pub fn is_kept(self) -> bool {
        self.left_share <= MOST_LEFT
    }
}

/// The figures of one run: (asked, reached, left share, dropped share, queue share).
fn of_run(kind: &KindResult) -> Option<[f64; 5]> {
    let schedule = kind.schedule.as_ref()?;
    let due = schedule.due as f64;
    let share = |operations: f64| if due > 0.0 { operations / due } else { 0.0 };
    let growth = schedule.queue_growth as f64;
    let arrears = (growth - on_its_way(kind, schedule)).max(0.0);
    Some([
        schedule.asked_per_second,
        kind.operations_per_second,
        share(arrears + (kind.failed + kind.dropped) as f64),
        share(kind.dropped as f64),
        share(if arrears > 0.0 { growth } else { 0.0 }),
    ])
}

/// How many operations a server that keeps up may have under way at one moment. Their mean is
/// arrivals per second times service time, by Little's law, and chance adds to it as in a Poisson
/// distribution. In a short window the result could be most of what was due, and slow answers
/// cannot be told from a queue. It is therefore at most half of what was due.
fn on_its_way(kind: &KindResult, schedule: &Schedule) -> f64 {
    let mean = schedule.asked_per_second * kind.service.mean_us / 1e6;
    (mean + DEVIATIONS * mean.sqrt()).min(schedule.due as f64 / 2.0).max(LEAST_ON_ITS_WAY)
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
    pub fn misses_schedule_of(&self, base: &str, variant: &str) -> bool {
        self.is_fixed_rate(base)
            && self.reached_rate_of(variant).is_some_and(|reached_rate| !reached_rate.is_kept())
    }

    /// 99th percentile of the headline's response times in one run, in microseconds; `None` where
    /// nothing was answered.
    pub(crate) fn response_p99_us_in(&self, run: &StepRun) -> Option<f64> {
        let answered = self.headline(run).filter(|kind| kind.response.count > 0);
        answered.map(|kind| kind.response.p99_us as f64)
    }

    /// Median over the valid blocks of the 99th percentile of the headline's response times, in
    /// microseconds.
    pub fn response_p99_us(&self, variant: &VariantStep) -> Option<f64> {
        variant.median(|run| self.response_p99_us_in(run))
    }
}

/// The verdict for a step whose base kept its schedule.
pub(crate) fn word(new: Option<ReachedRate>) -> Verdict {
    if new.is_some_and(|reached_rate| !reached_rate.is_kept()) { Verdict::Missed } else { Verdict::Paced }
}

/// One warning per variant and step that did not keep its schedule.
pub(crate) fn warnings(step: &StepFindings) -> Vec<Warning> {
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
pub(crate) fn notes(steps: &[ComparedStep]) -> Vec<Warning> {
    let of = |wanted: Verdict| -> Vec<&str> {
        let steps = steps.iter().filter(|step| step.is_fixed_rate && step.to_base.verdict == Some(wanted));
        steps.map(|step| step.step.as_str()).collect()
    };
    let note = |code, verdict| {
        let steps = of(verdict);
        (!steps.is_empty()).then(|| Warning::new(code).at_all(steps))
    };
    let paced = note(Code::BothPaced, Verdict::Paced);
    paced.into_iter().chain(note(Code::NewMissedSchedule, Verdict::Missed)).collect()
}

#[cfg(test)]
#[path = "fixed_rate_tests.rs"]
mod tests;
