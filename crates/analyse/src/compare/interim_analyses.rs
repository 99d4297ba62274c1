//! Verdicts of a run that was looked at while it went on: how much error each look may spend, and what was decided at which.
//!
//! A run with a budget is looked at after the plan's blocks and after each further block, and stops when all is decided. Each
//! look is a test of its own, so the error of 5 % is shared out over them by the time that had passed (K. K. G. Lan, D. L. DeMets,
//! "Group sequential procedures: calendar versus information time", Statistics in Medicine 8 (1989)), by the spending of
//! `statistics::sequential`. At each look all comparisons of the run are one family; one whose variant had no further block
//! counts there as not found. The false share of all that is found over all looks is then at most the sum of what the looks
//! may spend: V ÷ R ≤ Σ V(k) ÷ R(k), because no look finds more than all looks together.

use dbdyno_record::{Run, RunEvent};

use crate::compare::inference::{p_of_telling, verdict};
use crate::model::{Decided, Inference, LEVEL, Verdict};
use crate::statistics::equivalence::{bounds, p_of_equivalence};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::sequential::levels_at;
use crate::statistics::student::Estimate;
use crate::words::numbered;

/// One look at a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// Blocks that were over.
    pub(crate) blocks: u32,
    /// What this look may spend of [`LEVEL`].
    pub(crate) level: f64,
}

/// A comparison that is judged at looks.
pub(crate) struct Compared<'a> {
    /// (block, ratio)
    pub(crate) blocks: &'a [(u32, f64)],
    pub(crate) margin: f64,
    pub(crate) inference: &'a mut Inference,
    pub(crate) verdict: &'a mut Option<Verdict>,
    pub(crate) decided: &'a mut Option<Decided>,
}

/// The looks that were made at a run; none at one without a budget.
pub(crate) fn looks(run: &Run) -> Vec<Look> {
    let budget_us = run.manifest.experiment.budget_seconds.unwrap_or(0.0) * 1e6;
    let (mut blocks, mut shares) = (Vec::new(), Vec::new());
    for event in &run.events {
        if let RunEvent::Look { blocks: over, elapsed_us, last, .. } = event {
            blocks.push(*over);
            shares.push(if *last { 1.0 } else { *elapsed_us as f64 / budget_us });
        }
    }
    let levels = levels_at(&shares, LEVEL);
    blocks.into_iter().zip(levels).map(|(blocks, level)| Look { blocks, level }).collect()
}

/// What a comparison within a run says of the looks at it.
pub(crate) fn looks_note(looks: &[Look]) -> Option<String> {
    (!looks.is_empty()).then(|| {
        format!(
            "Interim analyses: {}. Verdicts and adjusted p are corrected for them, intervals are not.",
            looks.len()
        )
    })
}

/// What a comparison of two runs says of looks at either of them. Its test is for numbers of blocks that were fixed beforehand.
pub(crate) fn looks_apart_notes(runs: [&Run; 2]) -> Vec<String> {
    let of_run = |run: &Run| {
        let count = looks(run).len();
        (count > 0).then(|| {
            format!(
                "Run {} was analysed {} while it went on, and its own ratios decided its number of \
                 blocks. Figures of two runs are not corrected for that, so false differences are \
                 more likely. Better compare runs without a budget.",
                run.manifest.run_id,
                numbered(count, "time")
            )
        })
    };
    runs.into_iter().filter_map(of_run).collect()
}

/// Fills in adjusted p-values and verdicts. Of each comparison the first verdict holds; its p-values are the least over the
/// looks, each multiplied by 5 % ÷ what its look may spend, so that 0.05 is the limit at every look.
pub(crate) fn judge_at(looks: &[Look], all: &mut [Compared<'_>]) {
    for compared in all.iter_mut() {
        (compared.inference.q_difference, compared.inference.q_same) = (1.0, 1.0);
        (*compared.verdict, *compared.decided) = (Some(Verdict::Undecided), None);
    }
    let mut before = 0;
    for (look, number) in looks.iter().zip(1..) {
        let estimates: Vec<Option<Estimate>> =
            all.iter().map(|compared| estimate(compared.blocks, before, look.blocks)).collect();
        let p = |of: &dyn Fn(Estimate, f64) -> f64| -> Vec<f64> {
            let each = estimates.iter().zip(all.iter());
            let p: Vec<f64> = each
                .map(|(estimate, compared)| estimate.map_or(1.0, |estimate| of(estimate, compared.margin)))
                .collect();
            benjamini_hochberg(&p).into_iter().map(|q| (q * LEVEL / look.level).min(1.0)).collect()
        };
        let differences = p(&p_of_telling);
        let same = p(&|estimate, margin| p_of_equivalence(estimate, bounds(margin)));
        let decided = Decided { look: number, of: looks.len() as u32, blocks: look.blocks };
        for (index, compared) in all.iter_mut().enumerate() {
            let Some(estimate) = estimates[index] else { continue };
            let inference = &mut *compared.inference;
            inference.q_difference = inference.q_difference.min(differences[index]);
            inference.q_same = inference.q_same.min(same[index]);
            let word = verdict(estimate.value.exp(), inference, compared.margin);
            if compared.decided.is_none() && word != Verdict::Undecided {
                (*compared.verdict, *compared.decided) = (Some(word), Some(decided));
            }
        }
        before = look.blocks;
    }
}

/// From all blocks up to `until`; `None` when none of them came after block `before`, so that nothing was added since the
/// last look, and for fewer than two.
fn estimate(blocks: &[(u32, f64)], before: u32, until: u32) -> Option<Estimate> {
    let known = || blocks.iter().filter(|(block, _)| *block <= until);
    if !known().any(|(block, _)| *block > before) {
        return None;
    }
    Estimate::of_mean(&known().map(|(_, ratio)| ratio.ln()).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::inference::of_estimate;
    use crate::simulations::{close, normal};

    /// A simulated comparison: the true log ratio, its variant, and the ratios that were measured.
    struct Simulated {
        truth: f64,
        variant: usize,
        blocks: Vec<(u32, f64)>,
        inference: Inference,
        verdict: Option<Verdict>,
        decided: Option<Decided>,
    }

    impl Simulated {
        fn compared(&mut self, margin: f64) -> Compared<'_> {
            let Self { blocks, inference, verdict, decided, .. } = self;
            Compared { blocks, margin, inference, verdict, decided }
        }
    }

    /// The looks after `blocks` of at most `most`, a budget that is spent evenly.
    fn looks_until(first: u32, blocks: u32, most: u32) -> Vec<Look> {
        let shares: Vec<f64> = (first..=blocks).map(|look| f64::from(look) / f64::from(most)).collect();
        let levels = levels_at(&shares, LEVEL);
        (first..=blocks).zip(levels).map(|(blocks, level)| Look { blocks, level }).collect()
    }

    /// A run with a budget as the conductor makes it: three blocks, then one more of the variants with something undecided, up
    /// to `most`. `truths`: (variant, true log ratio) of each comparison.
    fn run_with_budget(study: u64, truths: &[(usize, f64)], margin: f64, most: u32) -> Vec<Simulated> {
        let nothing = Estimate { value: 0.0, standard_error: 1.0, degrees: 1.0 };
        let start = |(variant, truth): &(usize, f64)| Simulated {
            truth: *truth,
            variant: *variant,
            blocks: Vec::new(),
            inference: of_estimate(nothing, margin),
            verdict: None,
            decided: None,
        };
        let mut all: Vec<Simulated> = truths.iter().map(start).collect();
        for block in 1..=most {
            let open = |variant| {
                let of_variant = |one: &&Simulated| one.variant == variant;
                block <= 3 || all.iter().filter(of_variant).any(|one| one.verdict == Some(Verdict::Undecided))
            };
            let open: Vec<bool> = all.iter().map(|one| open(one.variant)).collect();
            if !open.contains(&true) {
                break;
            }
            for (index, one) in all.iter_mut().enumerate().filter(|(index, _)| open[*index]) {
                let noise = 0.01 * normal(study * 1_000 + index as u64, u64::from(block));
                one.blocks.push((block, (one.truth + noise).exp()));
            }
            if block >= 3 {
                let mut compared: Vec<_> = all.iter_mut().map(|one| one.compared(margin)).collect();
                judge_at(&looks_until(3, block, most), &mut compared);
            }
        }
        all
    }

    fn is_different(one: &&Simulated) -> bool {
        matches!(one.verdict, Some(Verdict::Faster | Verdict::Slower))
    }

    #[test]
    fn a_run_with_a_budget_finds_a_difference_of_equal_variants_in_at_most_5_percent_of_studies() {
        let mut blocks = 0;
        let found = (0..2_500_u64).filter(|study| {
            // A margin of next to nothing, so that only the test keeps a difference from being reported.
            let all = run_with_budget(*study, &[(0, 0.0)], 1e-9, 10);
            blocks += all[0].blocks.len();
            all.iter().any(|one| is_different(&one))
        });
        let found = found.count();
        assert!(found <= 125, "{found} of 2500");
        assert!(found >= 40, "not needlessly strict: {found} of 2500");
        assert!(blocks > 2_500 * 9, "nearly all go on to the end: {blocks}");
    }

    #[test]
    fn same_is_said_of_a_difference_as_great_as_the_margin_in_at_most_5_percent_of_studies() {
        let said = |truth: f64| {
            let studies = (0..2_000_u64).filter(|study| {
                run_with_budget(*study, &[(0, truth)], 0.02, 10)[0].verdict == Some(Verdict::Same)
            });
            studies.count()
        };
        let (outside, equal) = (said(1.02_f64.ln()), said(0.0));
        assert!(outside <= 100, "{outside} of 2000");
        assert!(equal >= 1_900, "and of equal variants it is said: {equal} of 2000");
    }

    #[test]
    fn of_the_differences_told_over_three_variants_and_42_comparisons_at_most_5_percent_are_false() {
        // The last variant equals the base, the others differ by 4 % in half of their steps.
        let truths: Vec<(usize, f64)> = (0..42)
            .map(|index| (index / 14, if index / 14 < 2 && index % 2 == 0 { 0.04 } else { 0.0 }))
            .collect();
        let (mut false_share, mut found) = (0.0, 0);
        for study in 0..100 {
            let all = run_with_budget(study, &truths, 1e-9, 8);
            let told: Vec<&Simulated> = all.iter().filter(is_different).collect();
            let wrong = told.iter().filter(|one| one.truth == 0.0).count();
            false_share += wrong as f64 / told.len().max(1) as f64 / 100.0;
            found += told.len() - wrong;
        }
        assert!(false_share <= 0.05, "{false_share}");
        assert!(found >= 100 * 14 * 9 / 10, "and nearly all that is there is found: {found} of 1400");
    }

    #[test]
    fn a_clear_difference_is_decided_at_the_first_look_and_needs_no_further_block() {
        let all = run_with_budget(3, &[(0, 0.3)], 0.02, 10);
        assert_eq!((all[0].blocks.len(), all[0].verdict), (3, Some(Verdict::Faster)));
        assert_eq!(all[0].decided, Some(Decided { look: 1, of: 1, blocks: 3 }));
    }

    #[test]
    fn the_looks_of_a_run_spend_by_its_time_and_the_last_spends_the_rest() {
        let mut run = crate::fixtures::run(&["a", "b"], 3, Vec::new());
        run.manifest.experiment.budget_seconds = Some(100.0);
        let look = |blocks, seconds: u64, last| RunEvent::Look {
            at: String::new(),
            blocks,
            elapsed_us: seconds * 1_000_000,
            last,
            order: Vec::new(),
        };
        run.events = vec![look(3, 50, false), look(4, 66, false), look(5, 83, true)];
        let looks = looks(&run);
        assert_eq!(looks.iter().map(|look| look.blocks).collect::<Vec<_>>(), [3, 4, 5]);
        // By hand: 0.05 × ln(1 + 1.71828 × 0.5) = 0.031006.
        close(looks[0].level, 0.031_006, 1e-6);
        close(looks.iter().map(|look| look.level).sum(), 0.05, 1e-12);
    }
}
