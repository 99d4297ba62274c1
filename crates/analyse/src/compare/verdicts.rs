//! The verdict of one comparison, from the test of its ratio and from what both sides did.

use crate::compare::targets::with_fewer_writes;
use crate::compare::undecided::{self, Subject};
use crate::model::{Bound, Ratio, Undecided, Verdict};

/// What is known about a comparison before its verdict.
pub(crate) struct Known<'a> {
    pub(crate) subject: Subject<'a>,
    /// The verdict by the tests, for a rate; `None` for one block, for a bound, and for a rate that
    /// the plan sets.
    pub(crate) by_ratio: Option<Verdict>,
    /// The variant did not keep a background rate that the base kept.
    pub(crate) misses_target: bool,
    /// Where the plan sets the rate and the base kept it, the verdict on whether the variant kept
    /// it too.
    pub(crate) paced: Option<Verdict>,
}

/// `None` where one of the two did not run the step, and for one block.
pub(crate) fn verdict(known: &Known<'_>) -> (Option<Verdict>, Option<Undecided>) {
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
        word = known.paced.or(word);
    }
    if !zero_rates.stalled.is_empty() {
        word = Some(Verdict::Stalled);
    }
    undecided::judged(&known.subject, word)
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
