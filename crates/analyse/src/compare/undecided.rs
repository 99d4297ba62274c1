//! Comparisons that are undecided for a stated reason, whatever their ratio and interval say. No
//! other place takes a verdict back.

use crate::compare::foreign_load::is_explained;
use crate::model::runs::valid;
use crate::model::{ForeignLoad, Ratio, StepFindings, StepRun, Undecided, Verdict, ZeroRates};

/// Shortest time that is compared, in seconds. Records hold the times of executions in whole
/// microseconds. Below a hundred of them the last one is more than 1 % of the time, and a cache has
/// most likely answered.
pub const LEAST_SECONDS: f64 = 0.000_1;

/// What a rule may look at.
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
type Rule = fn(&Subject<'_>, Option<Verdict>) -> Option<Undecided>;

/// All rules. The first that finds a reason counts.
const RULES: &[Rule] = &[below_clock, too_few_operations, foreign_load, base_stalled];

/// The verdict, and why it is undecided where a rule says so. No rule takes back that a variant
/// stalled, missed its rate or has no valid block, because these are facts.
pub(crate) fn judged(
    subject: &Subject<'_>,
    verdict: Option<Verdict>,
) -> (Option<Verdict>, Option<Undecided>) {
    if matches!(verdict, Some(Verdict::Stalled | Verdict::Missed)) {
        return (verdict, None);
    }
    match RULES.iter().find_map(|rule| rule(subject, verdict)) {
        Some(why) => (Some(Verdict::Undecided), Some(why)),
        None => (verdict, None),
    }
}

/// Whether a valid run of either took less time than the clock resolves.
pub(crate) fn is_below_clock(step: &StepFindings, runs: &[StepRun], base_runs: &[StepRun]) -> bool {
    let mut all = valid(runs).chain(valid(base_runs));
    step.less_is_better && all.any(|run| !run.executions.is_empty() && run.rate < LEAST_SECONDS)
}

fn below_clock(subject: &Subject<'_>, _: Option<Verdict>) -> Option<Undecided> {
    let has_both = valid(subject.runs).next().is_some() && valid(subject.base_runs).next().is_some();
    (has_both && is_below_clock(subject.step, subject.runs, subject.base_runs))
        .then_some(Undecided::BelowClock)
}

/// A rate of a few operations decides nothing, however well its blocks agree.
fn too_few_operations(subject: &Subject<'_>, verdict: Option<Verdict>) -> Option<Undecided> {
    if !matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Same | Verdict::Undecided)) {
        return None;
    }
    let all = valid(subject.runs).chain(valid(subject.base_runs));
    let least = all
        .filter_map(|run| run.too_few)
        .min_by(|one, other| (one.operations / one.least).total_cmp(&(other.operations / other.least)));
    least.map(Undecided::TooFewOperations)
}

/// A difference that the CPU time of other programs may explain is undecided.
fn foreign_load(subject: &Subject<'_>, verdict: Option<Verdict>) -> Option<Undecided> {
    let (load, ratio) = (subject.foreign_load?, subject.ratio?);
    let Subject { step, .. } = subject;
    is_explained(load, verdict?, ratio, (step.margin, step.less_is_better))
        .then_some(Undecided::ForeignLoad(load))
}

/// A variant cannot be shown to be faster than a base that stalled, or the same.
fn base_stalled(subject: &Subject<'_>, verdict: Option<Verdict>) -> Option<Undecided> {
    let is_taken_back =
        matches!(verdict, Some(Verdict::Faster | Verdict::Same | Verdict::Paced | Verdict::Invalid));
    (is_taken_back && !subject.zero_rates.base_stalled.is_empty()).then_some(Undecided::BaseStalled)
}
