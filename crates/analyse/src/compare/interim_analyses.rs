//! Verdicts for a run that was analysed before it ended: the p-values over several looks, and the
//! look at which each comparison was decided.
//!
//! A run with a budget is analysed (looked at) after the plan's blocks and after each further
//! block, and stops when all comparisons are decided. Each comparison has a p-value that is valid
//! whichever look is the last (`statistics::repeated_t`). It is the smallest p-value over the looks
//! so far, each of which uses the number of blocks that this comparison had at that look. At each
//! look, the p-values of all comparisons in the run are one family. A verdict that a look has
//! reached is never taken back.

use dbdyno_record::{Run, RunEvent};

use crate::compare::verdicts::{adjust, is_within, verdict_of_inference};
use crate::model::{CONFIDENCE, Code, Decided, Inference, Ratio, Verdict, Warning};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::repeated_t::{self, At};
use crate::statistics::student::{Estimate, equivalence_bounds};

/// Smallest number of blocks for a look, except for the last look. With fewer blocks, a look would
/// find almost nothing.
const MIN_BLOCKS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// Number of blocks that had ended.
    pub(crate) blocks: u32,
    pub(crate) is_last: bool,
}

/// A comparison that is judged together with others.
pub(crate) struct Compared<'a> {
    pub(crate) ratio: f64,
    /// The ratios as (block, ratio).
    pub(crate) blocks: &'a [(u32, f64)],
    pub(crate) margin: f64,
    pub(crate) inference: &'a mut Inference,
    pub(crate) verdict: &'a mut Option<Verdict>,
    /// Receives the look at which the verdict was reached.
    pub(crate) decided: Option<&'a mut Option<Decided>>,
}

impl<'a> Compared<'a> {
    /// Makes the entry; `None` for a ratio of one block, or one that is a bound.
    pub(crate) fn of(
        ratio: &'a mut Ratio,
        margin: f64,
        verdict: &'a mut Option<Verdict>,
        decided: Option<&'a mut Option<Decided>>,
    ) -> Option<Self> {
        let inference = ratio.inference.as_mut()?;
        Some(Self { ratio: ratio.value, blocks: &ratio.blocks, margin, inference, verdict, decided })
    }
}

/// The looks at a run; empty for a run without a budget.
pub(crate) fn looks(run: &Run) -> Vec<Look> {
    let look = |event: &RunEvent| match event {
        RunEvent::Look { blocks, last, .. } => Some(Look { blocks: *blocks, is_last: *last }),
        _ => None,
    };
    run.events.iter().filter_map(look).collect()
}

/// The note on the looks at a run, for a comparison within that run.
pub(crate) fn looks_note(looks: &[Look]) -> Option<Warning> {
    (!looks.is_empty()).then(|| Warning::new(Code::InterimAnalyses).with("looks", looks.len()))
}

/// The notes on the looks at either run, for a comparison of two runs. That comparison's test
/// assumes that the numbers of blocks were fixed beforehand.
pub(crate) fn unpaired_looks_notes(runs: [&Run; 2]) -> Vec<Warning> {
    let of_run = |run: &Run| {
        let count = looks(run).len();
        let warning = Warning::new(Code::AnalysedWhileGoingOn).with("run", run.manifest.run_id.as_str());
        (count > 0).then(|| warning.with("looks", count))
    };
    runs.into_iter().filter_map(of_run).collect()
}

/// What the looks so far have shown about a comparison.
#[derive(Clone, Copy)]
struct SoFar {
    /// Number of the comparison's blocks at its first look with three blocks or more.
    first: Option<u32>,
    /// Estimate over all blocks so far; `None` for fewer than two.
    estimate: Option<Estimate>,
    p_difference: f64,
    p_same: f64,
    decided: Option<Decided>,
}

/// Adjusts the p-values of comparisons that are made at once, and sets their verdicts. Without
/// looks, the comparisons are judged once, at the run's end.
pub(crate) fn judge_family(looks: &[Look], all: &mut [Compared<'_>]) {
    if !looks.is_empty() {
        return judge_at(looks, all);
    }
    adjust(&mut all.iter_mut().map(|compared| &mut *compared.inference).collect::<Vec<_>>());
    for compared in all {
        *compared.verdict = Some(verdict_of_inference(compared.ratio, compared.inference, compared.margin));
    }
}

/// Fills in adjusted p-values, verdicts and intervals. Each comparison keeps the first verdict
/// other than undecided.
fn judge_at(looks: &[Look], all: &mut [Compared<'_>]) {
    for compared in all.iter_mut() {
        (compared.inference.q_difference, compared.inference.q_same) = (1.0, 1.0);
        *compared.verdict = Some(Verdict::Undecided);
    }
    let nothing = SoFar { first: None, estimate: None, p_difference: 1.0, p_same: 1.0, decided: None };
    let mut so_far = vec![nothing; all.len()];
    let mut before = 0;
    for (look, number) in looks.iter().zip(1..) {
        for (so_far, compared) in so_far.iter_mut().zip(all.iter_mut()) {
            so_far.look(compared, before, *look);
        }
        let adjusted = |p: &dyn Fn(&SoFar) -> f64| -> Vec<f64> {
            benjamini_hochberg(&so_far.iter().map(p).collect::<Vec<_>>())
        };
        let differences = adjusted(&|so_far| so_far.p_difference);
        let same = adjusted(&|so_far| so_far.p_same);
        let decided = Decided { look: number, of: looks.len() as u32, blocks: look.blocks };
        for (index, compared) in all.iter_mut().enumerate() {
            let Some(estimate) = so_far[index].estimate else { continue };
            let inference = &mut *compared.inference;
            inference.q_difference = inference.q_difference.min(differences[index]);
            inference.q_same = inference.q_same.min(same[index]);
            let word = verdict_of_inference(estimate.value.exp(), inference, compared.margin);
            if so_far[index].decided.is_none() && word != Verdict::Undecided {
                (*compared.verdict, so_far[index].decided) = (Some(word), Some(decided));
            }
        }
        before = look.blocks;
    }
    for (compared, so_far) in all.iter_mut().zip(so_far) {
        if let Some(decided) = &mut compared.decided {
            **decided = so_far.decided;
        }
    }
}

impl SoFar {
    /// Updates the values with the blocks of one look. `before` is the last block of the previous
    /// look.
    fn look(&mut self, compared: &mut Compared<'_>, before: u32, Look { blocks, is_last }: Look) {
        let known: Vec<(u32, f64)> =
            compared.blocks.iter().copied().filter(|(block, _)| *block <= blocks).collect();
        if known.iter().all(|(block, _)| *block <= before) {
            return;
        }
        self.estimate = Estimate::of_mean(&known.iter().map(|(_, ratio)| ratio.ln()).collect::<Vec<_>>());
        let (Some(estimate), blocks) = (self.estimate, known.len() as u32) else { return };
        if blocks >= MIN_BLOCKS {
            self.first.get_or_insert(blocks);
        }
        let at = At { first: self.first.unwrap_or(blocks), blocks, is_last };
        if !is_within(estimate, compared.margin) {
            self.p_difference = self.p_difference.min(repeated_t::p_of_difference(at, estimate));
        }
        let same = repeated_t::p_of_equivalence(at, estimate, equivalence_bounds(compared.margin));
        self.p_same = self.p_same.min(same);
        compared.inference.interval = repeated_t::interval(at, estimate, CONFIDENCE).exp();
    }
}

#[cfg(test)]
#[path = "interim_analyses_tests.rs"]
mod tests;
