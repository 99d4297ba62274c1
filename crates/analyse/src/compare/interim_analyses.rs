//! Verdicts of a run that was looked at while it went on: how much error each look may spend, and
//! what was decided at which.
//!
//! A run with a budget is looked at after the plan's blocks and after each further block, and stops
//! when all is decided. Each comparison has a p-value that holds at whatever look the run ends
//! (`statistics::repeated_t`): the least over its looks so far, by the number of its own blocks. At
//! each look those of all comparisons of the run are one family, and what is found remains.
//!
//! Runs whose record names no rule spent the error of 5 % by the time that had passed (K. K. G.
//! Lan, D. L. DeMets, "Group sequential procedures: calendar versus information time", Statistics
//! in Medicine 8 (1989)), and are judged so.

use dbdyno_record::{Run, RunEvent};

use crate::compare::inference::{adjust, is_within, p_of_telling, verdict};
use crate::model::{CONFIDENCE, Code, Decided, Inference, LEVEL, Notice, Ratio, Verdict};
use crate::statistics::equivalence::{bounds, p_of_equivalence};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::repeated_t::{self, At};
use crate::statistics::sequential::levels_at;
use crate::statistics::student::Estimate;

/// Fewer have no look, but the last: they could find next to nothing.
const LEAST_BLOCKS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// Blocks that were over.
    pub(crate) blocks: u32,
    pub(crate) spends: Spends,
}

/// What a look may spend of [`LEVEL`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spends {
    /// By the blocks of each comparison.
    ByBlocks { is_last: bool },
    /// This, of all comparisons alike.
    ByTime(f64),
}

/// A comparison that is judged together with others.
pub(crate) struct Compared<'a> {
    pub(crate) ratio: f64,
    /// (block, ratio)
    pub(crate) blocks: &'a [(u32, f64)],
    pub(crate) margin: f64,
    pub(crate) inference: &'a mut Inference,
    pub(crate) verdict: &'a mut Option<Verdict>,
    /// Where it is kept at which look that was.
    pub(crate) decided: Option<&'a mut Option<Decided>>,
}

impl<'a> Compared<'a> {
    /// `None` for a ratio of one block, or one that is a bound.
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

/// The looks that were made at a run; none at one without a budget.
pub(crate) fn looks(run: &Run) -> Vec<Look> {
    let experiment = &run.manifest.experiment;
    let budget_us = experiment.budget_seconds.unwrap_or(0.0) * 1e6;
    let made = run.events.iter().filter_map(|event| match event {
        RunEvent::Look { blocks, elapsed_us, last, .. } => Some((*blocks, *elapsed_us, *last)),
        _ => None,
    });
    let made: Vec<(u32, u64, bool)> = made.collect();
    let share = |(_, elapsed_us, is_last): &(u32, u64, bool)| {
        if *is_last { 1.0 } else { *elapsed_us as f64 / budget_us }
    };
    let levels = levels_at(&made.iter().map(share).collect::<Vec<_>>(), LEVEL);
    let by_blocks = experiment.interim_rule.is_some();
    let look = |((blocks, _, is_last), level): ((u32, u64, bool), f64)| Look {
        blocks,
        spends: if by_blocks { Spends::ByBlocks { is_last } } else { Spends::ByTime(level) },
    };
    made.into_iter().zip(levels).map(look).collect()
}

/// Whether intervals hold at all looks together.
pub(crate) fn corrects_intervals(looks: &[Look]) -> bool {
    matches!(looks, [Look { spends: Spends::ByBlocks { .. }, .. }, ..])
}

/// What a comparison within a run says of the looks at it.
pub(crate) fn looks_note(looks: &[Look]) -> Option<Notice> {
    let code = match corrects_intervals(looks) {
        true => Code::InterimAnalyses,
        false => Code::InterimAnalysesOfVerdicts,
    };
    (!looks.is_empty()).then(|| Notice::new(code).with("looks", looks.len()))
}

/// What a comparison of two runs says of looks at either of them. Its test is for numbers of blocks
/// that were fixed beforehand.
pub(crate) fn looks_apart_notes(runs: [&Run; 2]) -> Vec<Notice> {
    let of_run = |run: &Run| {
        let count = looks(run).len();
        let notice = Notice::new(Code::AnalysedWhileGoingOn).with("run", run.manifest.run_id.as_str());
        (count > 0).then(|| notice.with("looks", count))
    };
    runs.into_iter().filter_map(of_run).collect()
}

/// What the looks until now have shown of a comparison.
#[derive(Clone, Copy)]
struct SoFar {
    /// Its blocks at its first look of three or more.
    first: Option<u32>,
    /// Of all blocks until now; `None` for fewer than two.
    estimate: Option<Estimate>,
    p_difference: f64,
    p_same: f64,
    decided: Option<Decided>,
}

/// Adjusts the p-values of comparisons that are made at once, at one end or at several looks, and
/// finds the words.
pub(crate) fn judge_family(looks: &[Look], all: &mut [Compared<'_>]) {
    if !looks.is_empty() {
        return judge_at(looks, all);
    }
    adjust(&mut all.iter_mut().map(|compared| &mut *compared.inference).collect::<Vec<_>>());
    for compared in all {
        *compared.verdict = Some(verdict(compared.ratio, compared.inference, compared.margin));
    }
}

/// Fills in adjusted p-values, verdicts and, where they are corrected, intervals. Of each
/// comparison the first verdict holds.
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
            let scale = if let Spends::ByTime(level) = look.spends { LEVEL / level } else { 1.0 };
            let adjusted = benjamini_hochberg(&so_far.iter().map(p).collect::<Vec<_>>());
            adjusted.into_iter().map(|q| (q * scale).min(1.0)).collect()
        };
        let differences = adjusted(&|so_far| so_far.p_difference);
        let same = adjusted(&|so_far| so_far.p_same);
        let decided = Decided { look: number, of: looks.len() as u32, blocks: look.blocks };
        for (index, compared) in all.iter_mut().enumerate() {
            let Some(estimate) = so_far[index].estimate else { continue };
            let inference = &mut *compared.inference;
            inference.q_difference = inference.q_difference.min(differences[index]);
            inference.q_same = inference.q_same.min(same[index]);
            let word = verdict(estimate.value.exp(), inference, compared.margin);
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
    /// `before`: the block of the look before this one.
    fn look(&mut self, compared: &mut Compared<'_>, before: u32, look: Look) {
        let known = || compared.blocks.iter().filter(|(block, _)| *block <= look.blocks);
        let has_more = known().any(|(block, _)| *block > before);
        match look.spends {
            Spends::ByBlocks { is_last } if has_more => {
                self.estimate = Estimate::of_mean(&known().map(|(_, ratio)| ratio.ln()).collect::<Vec<_>>());
                self.by_blocks(known().count() as u32, is_last, compared);
            }
            Spends::ByBlocks { .. } => {}
            Spends::ByTime(_) => {
                let logs: Vec<f64> = known().map(|(_, ratio)| ratio.ln()).collect();
                // Without a further block it counts as not found.
                self.estimate = Estimate::of_mean(&logs).filter(|_| has_more);
                let p = |of: &dyn Fn(Estimate) -> f64| self.estimate.map_or(1.0, of);
                let difference = p(&|estimate| p_of_telling(estimate, compared.margin));
                let same = p(&|estimate| p_of_equivalence(estimate, bounds(compared.margin)));
                (self.p_difference, self.p_same) = (difference, same);
            }
        }
    }

    fn by_blocks(&mut self, blocks: u32, is_last: bool, compared: &mut Compared<'_>) {
        let Some(estimate) = self.estimate else { return };
        if blocks >= LEAST_BLOCKS {
            self.first.get_or_insert(blocks);
        }
        let at = At { first: self.first.unwrap_or(blocks), blocks, is_last };
        if !is_within(estimate, compared.margin) {
            self.p_difference = self.p_difference.min(repeated_t::p_of_difference(at, estimate));
        }
        let same = repeated_t::p_of_equivalence(at, estimate, bounds(compared.margin));
        self.p_same = self.p_same.min(same);
        compared.inference.interval = repeated_t::interval(at, estimate, CONFIDENCE).exp();
    }
}

#[cfg(test)]
#[path = "interim_analyses_tests.rs"]
mod tests;
