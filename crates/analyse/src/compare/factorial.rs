//! Computes the effects of single settings, where the variants combine the settings in every way (a
//! full factorial design), such as doublewrite × binlog.
//!
//! The design has factors with levels, and one variant for each combination. All variants name a
//! level of every factor, so that an effect rests on all of them and not on one pair. Effects are
//! computed block by block on log rates, as contrasts of cell means (Box, Hunter and Hunter,
//! *Statistics for Experimenters*, 2nd edition, 2005, chapter 5), and given as ratios. Levels are
//! compared with the base's level.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{VariantInfo, parallel};

use crate::compare::interim_analyses::{Compared, Look, judge_family};
use crate::compare::verdicts::paired;
use crate::model::steps::valid;
use crate::model::{DesignFault, Effect, Ratio, StepFindings, Verdict};

/// The levels of each variant, if the variants are a full factorial design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Design {
    /// The base's levels.
    base: BTreeMap<String, String>,
    levels: BTreeMap<String, BTreeSet<String>>,
    variants: Vec<(String, BTreeMap<String, String>)>,
}

/// A weighted sum of log rates: variants with their weights.
type Contrast = Vec<(String, f64)>;

impl Design {
    /// Finds the design; `Ok(None)` when no variant has factors. `control` is the name of the
    /// control, which is another variant under a second name and not a combination of its own.
    pub(crate) fn of(
        variants: &[VariantInfo],
        base: &str,
        control: Option<&str>,
    ) -> Result<Option<Self>, DesignFault> {
        let has_part =
            |variant: &&VariantInfo| !variant.factors.is_empty() && control != Some(variant.name.as_str());
        let with: Vec<&VariantInfo> = variants.iter().filter(has_part).collect();
        if with.is_empty() {
            return Ok(None);
        }
        let Some(of_base) = with.iter().find(|variant| variant.name == base) else {
            return Err(DesignFault::BaseWithoutFactors { base: base.to_owned() });
        };
        let mut levels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for variant in &with {
            if !variant.factors.keys().eq(of_base.factors.keys()) {
                let (variant, base) = (variant.name.clone(), base.to_owned());
                return Err(DesignFault::OtherFactors { variant, base });
            }
            for (factor, level) in &variant.factors {
                levels.entry(factor.clone()).or_default().insert(level.clone());
            }
        }
        if let Some((factor, _)) = levels.iter().find(|(_, levels)| levels.len() < 2) {
            return Err(DesignFault::OneLevel { factor: factor.clone() });
        }
        let combinations: BTreeSet<_> = with.iter().map(|variant| &variant.factors).collect();
        let (variants, different) = (with.len(), combinations.len());
        let all: usize = levels.values().map(BTreeSet::len).product();
        if different != variants || all != variants {
            return Err(DesignFault::Combinations { variants, different, all });
        }
        let variants = with.iter().map(|variant| (variant.name.clone(), variant.factors.clone())).collect();
        Ok(Some(Self { base: of_base.factors.clone(), levels, variants }))
    }

    /// Every main effect, then every interaction of two factors.
    fn contrasts(&self) -> Vec<(String, Contrast)> {
        let changes: Vec<(&str, &str)> = self
            .levels
            .iter()
            .flat_map(|(factor, levels)| levels.iter().map(move |level| (factor.as_str(), level.as_str())))
            .filter(|(factor, level)| self.base[*factor] != *level)
            .collect();
        let main = changes.iter().map(|change| {
            let (factor, level) = change;
            (format!("{factor}: {level} against {}", self.base[*factor]), self.contrast(&[*change]))
        });
        let pairs = changes.iter().enumerate().flat_map(|(index, one)| {
            changes[index + 1..].iter().filter(|two| two.0 != one.0).map(move |two| (*one, *two))
        });
        let interactions = pairs.map(|(one, two)| {
            (format!("{} {} × {} {}", one.0, one.1, two.0, two.1), self.contrast(&[one, two]))
        });
        main.chain(interactions).collect()
    }

    /// Weights of the variants. A variant has +1 for a changed level, −1 for the base's and 0 for
    /// any other, multiplied over the factors. They are divided among the combinations of the other
    /// factors.
    fn contrast(&self, changes: &[(&str, &str)]) -> Contrast {
        let sign = |levels: &BTreeMap<String, String>| -> f64 {
            let of = |(factor, level): &(&str, &str)| match levels[*factor].as_str() {
                is if is == *level => 1.0,
                is if is == self.base[*factor] => -1.0,
                _ => 0.0,
            };
            changes.iter().map(of).product()
        };
        let others: usize = self
            .levels
            .iter()
            .filter(|(factor, _)| !changes.iter().any(|change| change.0 == factor.as_str()))
            .map(|(_, levels)| levels.len())
            .product();
        let weighted =
            self.variants.iter().map(|(name, levels)| (name.clone(), sign(levels) / others as f64));
        weighted.filter(|(_, weight)| *weight != 0.0).collect()
    }
}

/// Fills in the effects of all steps. They are their own family of comparisons.
pub(crate) fn judge_effects(
    steps: &mut [&mut StepFindings],
    design: &Design,
    (base, seed): (&str, u64),
    looks: &[Look],
) {
    let contrasts = design.contrasts();
    let effects = parallel::map(steps, |step| {
        let of_contrast = |(name, contrast): &(String, Contrast)| {
            let mut effect = effect(step, name, contrast)?;
            let ratios: Vec<f64> = effect.ratio.blocks.iter().map(|(_, ratio)| *ratio).collect();
            effect.ratio.inference = paired(&ratios, step.margin, seed);
            Some(effect)
        };
        // Where the plan sets the rate, no setting has an effect on it.
        let contrasts = if step.is_fixed_rate(base) { &[][..] } else { &contrasts };
        contrasts.iter().filter_map(of_contrast).collect::<Vec<_>>()
    });
    for (step, effects) in steps.iter_mut().zip(effects) {
        step.effects = effects;
    }
    let mut family: Vec<Compared<'_>> = Vec::new();
    for step in steps.iter_mut() {
        let margin = step.margin;
        family.extend(step.effects.iter_mut().filter_map(|effect| {
            let Effect { ratio, verdict, .. } = effect;
            Compared::of(ratio, margin, verdict, None)
        }));
    }
    judge_family(looks, &mut family);
    adjust_verdicts(steps);
}

/// Swaps faster and slower where the headline is a time, and makes an effect undecided where
/// something other than its factors may have changed the rates. There are three such cases: a
/// variant answered nothing in a block, so the effect is from the other blocks only; the variants
/// had unequal background writes; or other programs ran next to some variants.
fn adjust_verdicts(steps: &mut [&mut StepFindings]) {
    for step in steps.iter_mut().filter(|step| step.less_is_better) {
        for effect in &mut step.effects {
            effect.verdict = effect.verdict.map(Verdict::of_time);
        }
    }
    for step in steps.iter_mut() {
        let has_foreign_load = step.variants.iter().any(|variant| variant.to_base.foreign_load.is_some());
        let is_unlike =
            |effect: &Effect| has_foreign_load || !effect.stalled.is_empty() || !effect.missed.is_empty();
        for effect in step.effects.iter_mut().filter(|effect| is_unlike(effect)) {
            effect.verdict = effect.verdict.map(|_| Verdict::Undecided);
        }
    }
}

/// The effect over the blocks in which every variant of the contrast is valid; `None` when there is
/// no such block.
fn effect(step: &StepFindings, name: &str, contrast: &Contrast) -> Option<Effect> {
    // The logarithm of the effect in one block is −∞, ∞ or not a number where a variant answered
    // nothing.
    let in_block = |block: u32| -> Option<f64> {
        let log = |(variant, weight): &(String, f64)| {
            let rate = valid(step.runs_of(variant)).find(|run| run.block == block)?.rate;
            Some(weight * rate.ln())
        };
        contrast.iter().map(log).sum()
    };
    let numbers: BTreeSet<u32> =
        step.variants.iter().flat_map(|variant| &variant.runs).map(|run| run.block).collect();
    let found: Vec<(u32, f64)> =
        numbers.into_iter().filter_map(|block| Some((block, in_block(block)?))).collect();
    let (known, without): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, log)| log.is_finite());
    let blocks: Vec<(u32, f64)> = known.into_iter().map(|(block, log)| (block, log.exp())).collect();
    let stalled = without.into_iter().map(|(block, _)| block).collect();
    let logs: f64 = blocks.iter().map(|(_, ratio)| ratio.ln()).sum();
    let value = (!blocks.is_empty()).then(|| (logs / blocks.len() as f64).exp())?;
    let ratio = Ratio { value, blocks, bound: None, inference: None };
    Some(Effect { name: name.to_owned(), ratio, stalled, missed: missed(step, contrast), verdict: None })
}

/// Variants of the contrast that did not keep the background rate; empty where none of the
/// contrast's variants kept it.
fn missed(step: &StepFindings, contrast: &Contrast) -> Vec<String> {
    let has_part = |name: &str| contrast.iter().any(|(variant, _)| variant == name);
    let own =
        step.variants.iter().filter(|found| has_part(&found.variant) && found.background_rate.is_some());
    let (missed, kept): (Vec<_>, Vec<_>) = own.partition(|found| step.misses(found));
    if kept.is_empty() {
        return Vec::new();
    }
    missed.into_iter().map(|found| found.variant.clone()).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CellRecord;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, query_step, run};
    use crate::model::Findings;

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    /// Findings for variants `a` to `d`, which have neither setting, binlog, doublewrite, and both.
    fn found(blocks: &[[u64; 4]]) -> Findings {
        let cells = blocks.iter().zip(1..).flat_map(|(rates, block)| {
            NAMES.iter().zip(rates).map(move |(name, rate)| cell(block, name, vec![load_step(*rate)]))
        });
        found_in(cells.collect(), blocks.len() as u32)
    }

    fn found_in(cells: Vec<CellRecord>, blocks: u32) -> Findings {
        let mut run = run(&NAMES, blocks, cells);
        let levels = [("off", "off"), ("on", "off"), ("off", "on"), ("on", "on")];
        for (variant, (binlog, doublewrite)) in run.manifest.variants.iter_mut().zip(levels) {
            variant.factors = factors(&[("binlog", binlog), ("doublewrite", doublewrite)]);
        }
        analyse(&run)
    }

    fn factors(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(factor, level)| ((*factor).to_owned(), (*level).to_owned())).collect()
    }

    fn effects(findings: &Findings) -> Vec<String> {
        let text = |effect: &Effect| {
            let verdict = effect.verdict.map_or("-", Verdict::word);
            format!("{} {:.3} {verdict}", effect.name, effect.ratio.value)
        };
        findings.workloads[0].steps[0].effects.iter().map(text).collect()
    }

    #[test]
    fn factors_that_do_not_interact_have_main_effects_only() {
        // binlog costs 20 %, doublewrite 10 %, and both 28 %. Every second block is 1 % faster.
        let blocks = [[100_000, 80_000, 90_000, 72_000], [101_000, 80_800, 90_900, 72_720]].repeat(2);
        insta::assert_snapshot!(effects(&found(&blocks)).join("\n"), @r"
        binlog: on against off 0.800 slower
        doublewrite: on against off 0.900 slower
        binlog on × doublewrite on 1.000 same
        ");
    }

    #[test]
    fn an_interaction_is_how_one_factor_changes_the_others_ratio() {
        // Alone either costs 20 %, and together they cost no more: with the binlog, doublewrite is
        // free.
        insta::assert_snapshot!(effects(&found(&[[100_000, 80_000, 80_000, 80_000]])).join("\n"), @r"
        binlog: on against off 0.894 -
        doublewrite: on against off 0.894 -
        binlog on × doublewrite on 1.250 -
        ");
    }

    #[test]
    fn rates_with_missed_background_writes_have_no_effect_with_a_verdict() {
        // The binlog costs a quarter of the queries. The target is 200 rows/s, and 190 are enough.
        let of_writes = |writes: [u64; 4]| {
            let cells = (1..=3).flat_map(|block| {
                let query =
                    move |at: usize| query_step([400, 300, 400, 300][at] + u64::from(block), writes[at]);
                (0..4).map(move |at| cell(block, NAMES[at], vec![query(at)]))
            });
            let findings = found_in(cells.collect(), 3);
            let effect = &findings.workloads[0].steps[1].effects[0];
            (effect.verdict, effect.missed.clone())
        };
        assert_eq!(of_writes([200; 4]), (Some(Verdict::Slower), Vec::new()));
        assert_eq!(of_writes([200, 200, 200, 150]), (Some(Verdict::Undecided), vec!["d".to_owned()]));
        assert_eq!(of_writes([150; 4]), (Some(Verdict::Slower), Vec::new()), "none kept it");
    }

    #[test]
    fn three_levels_are_compared_with_the_bases() {
        let variant = |name: &str, level: &str| VariantInfo {
            name: name.to_owned(),
            factors: factors(&[("flush", level)]),
            ..crate::fixtures::variant(name)
        };
        let design = Design::of(&[variant("x", "1"), variant("y", "0"), variant("z", "2")], "x", None)
            .unwrap()
            .unwrap();
        let names: Vec<String> = design.contrasts().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["flush: 0 against 1", "flush: 2 against 1"]);
        assert_eq!(design.contrasts()[0].1, [("x".to_owned(), -1.0), ("y".to_owned(), 1.0)]);
    }

    #[test]
    fn the_base_under_a_second_name_is_no_combination_of_its_own() {
        let variant = |name: &str, level: &str| VariantInfo {
            name: name.to_owned(),
            factors: factors(&[("flush", level)]),
            ..crate::fixtures::variant(name)
        };
        let all = [variant("x", "1"), variant("x~control", "1"), variant("y", "0")];
        let without = [all[0].clone(), all[2].clone()];
        assert_eq!(Design::of(&all, "x", Some("x~control")), Design::of(&without, "x", None));
        assert!(Design::of(&all, "x", None).is_err());
    }

    #[test]
    fn variants_that_are_no_full_factorial_design_have_a_fault() {
        let variant = |name: &str, pairs: &[(&str, &str)]| VariantInfo {
            factors: factors(pairs),
            ..crate::fixtures::variant(name)
        };
        let problem = |variants: &[VariantInfo]| Design::of(variants, "x", None).unwrap_err();
        let x = variant("x", &[("a", "1"), ("b", "1")]);
        let alike = variant("y", &[("a", "1"), ("b", "2")]);
        assert_eq!(problem(&[x.clone(), alike]), DesignFault::OneLevel { factor: "a".to_owned() });
        let corner = variant("y", &[("a", "2"), ("b", "2")]);
        let combinations = DesignFault::Combinations { variants: 2, different: 2, all: 4 };
        assert_eq!(problem(&[x.clone(), corner]), combinations);
        let (y, base) = (variant("y", &[("a", "2")]), || "x".to_owned());
        let other = DesignFault::OtherFactors { variant: "y".to_owned(), base: base() };
        assert_eq!(problem(&[x, y.clone()]), other);
        assert_eq!(problem(&[variant("x", &[]), y]), DesignFault::BaseWithoutFactors { base: base() });
        assert_eq!(Design::of(&[variant("x", &[])], "x", None), Ok(None));
    }
}
