//! Background rates that were not kept: a rate beside fewer writes than planned is no answer to the step's question.

use crate::colours::missed_note;
use crate::rates::keeps_target;
use crate::verdict::Verdict;
use crate::{StepFindings, VariantStep};

impl StepFindings {
    /// Whether `variant` did not keep the step's background rate. `false` for a step without one, and where nothing was measured.
    pub(crate) fn misses(&self, variant: &VariantStep) -> bool {
        let judged = self.target.zip(variant.background_rate);
        judged.is_some_and(|((target, share), rate)| !keeps_target(rate, target, share))
    }

    /// Whether the variant of this name did not keep a background rate that `base` kept: its ratio to the base is that of rates
    /// beside unequal writes.
    pub fn misses_target_of(&self, base: &str, variant: &str) -> bool {
        let named = |name: &str| self.variants.iter().find(|variant| variant.variant == name);
        let base_keeps = |base: &VariantStep| base.background_rate.is_some() && !self.misses(base);
        named(base).is_some_and(base_keeps) && named(variant).is_some_and(|variant| self.misses(variant))
    }

    /// How far below its background rate a variant stayed; `None` where it kept it.
    pub(crate) fn missed_text(&self, variant: &VariantStep) -> Option<String> {
        let (target, rate) = self.target.zip(variant.background_rate).filter(|_| self.misses(variant))?;
        Some(missed_note(rate, target))
    }
}

/// The word for a variant that did not keep the background rate that the base kept. To be slower beside fewer writes is slower all
/// the same, and what is undecided more blocks may show to be slower.
pub(crate) fn beside_fewer_writes(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Faster | Verdict::Same => Verdict::Missed,
        other => other,
    }
}

/// One warning for each variant and step that missed its target.
pub(crate) fn warnings(step: &StepFindings) -> Vec<String> {
    let missed = |variant: &VariantStep| {
        let missed = step.missed_text(variant)?;
        let beside = "its queries ran beside fewer writes than planned";
        Some(format!("{} {}: {missed}; {beside}.", variant.variant, step.name))
    };
    step.variants.iter().filter_map(missed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, query_step, run};
    use crate::{Findings, analyse};

    /// Three blocks of `qr100` (200 rows/s are to be written, 190 are enough) with a base of 400 queries/s.
    fn findings(base_writes: u64, queries: u64, writes: u64) -> Findings {
        let cells = (1..=3).flat_map(|block| {
            let base = cell(block, "base", vec![query_step(400 + u64::from(block), base_writes)]);
            [base, cell(block, "new", vec![query_step(queries + u64::from(block), writes)])]
        });
        analyse(&run(&["base", "new"], 3, cells.collect()))
    }

    fn verdict(base_writes: u64, queries: u64, writes: u64) -> Option<Verdict> {
        findings(base_writes, queries, writes).workloads[0].steps[1].variants[1].verdict
    }

    #[test]
    fn beside_fewer_writes_than_the_base_nothing_is_faster_or_the_same() {
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
        assert!(!step.misses_target_of("base", "new") && !step.misses_target_of("base", "nobody"));
        assert_eq!(warnings(step).len(), 2);
    }

    #[test]
    fn a_step_without_a_target_cannot_miss_it() {
        let mut findings = findings(200, 600, 150);
        let step = &mut findings.workloads[0].steps[1];
        assert!(step.misses_target_of("base", "new"));
        step.target = None;
        assert!(!step.misses_target_of("base", "new"));
    }
}
