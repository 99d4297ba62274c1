//! Blocks in which a variant or the base answered nothing. They have no ratio, but they must not
//! disappear for that: a server that stalled in two of six blocks is not as fast as the other four
//! say.

use crate::model::runs::{pairs, valid};
use crate::model::{Code, ComparedStep, StepFindings, StepRun, VariantStep, Warning, ZeroRates};

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
    pub(crate) fn apart(runs: &[StepRun], base: &[StepRun]) -> Self {
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
pub(crate) fn warnings(step: &StepFindings, base: &str) -> Vec<Warning> {
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

fn some(blocks: &[u32]) -> Option<&[u32]> {
    (!blocks.is_empty()).then_some(blocks)
}

/// The notes that a comparison has above its table.
pub(crate) fn notes(steps: &[ComparedStep]) -> Vec<Warning> {
    let of_step = |step: &ComparedStep| {
        let found = Some(&step.to_base.zero_rates).filter(|found| !found.is_empty())?;
        let warning = match some(&found.stalled) {
            Some(blocks) => {
                Warning::new(Code::NewAnsweredNothing).with("blocks", blocks).with("of", found.blocks)
            }
            None => Warning::new(Code::BaseAnsweredNothing),
        };
        let warning = warning.at(&step.step).with_some("base_blocks", some(&found.base_stalled));
        Some(warning.with_some("ratio", step.to_base.value()))
    };
    steps.iter().filter_map(of_step).collect()
}

#[cfg(test)]
#[path = "zero_rate_tests.rs"]
mod tests;
