//! Table of the control (A/A): the base against itself under a second name, and the differences
//! that the run can detect in spite of its scatter.

use dbdyno_analyse::statistics::power::{USUAL_POWER, margin_for_same};
use dbdyno_analyse::{Inference, LEVEL, Ratio, StepFindings, VariantStep, Verdict, numbered};

use super::Scope;
use super::cells::{absent, number, percent_cell, sign_of};
use crate::document::{Table, TableCell};

/// Makes the table. There is none for a run without a control.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let Some(control) = &scope.run.control else { return Vec::new() };
    let heads = ["ratio", "noise %", "detects %", "equivalence margin %"];
    let row = |step: &StepFindings| {
        let found =
            step.variant(control).and_then(|variant| Some((variant, variant.to_base.ratio.as_ref()?)));
        Some(match found {
            Some((variant, ratio)) => cells(variant, ratio),
            None => {
                let is_cut_off = step.variant(control).is_some_and(|variant| variant.cut_off);
                let why =
                    if is_cut_off { "cut off at the time limit" } else { "no block in which both are valid" };
                heads.iter().map(|_| absent(why)).collect()
            }
        })
    };
    let title = format!("A/A: {} against itself", scope.run.base);
    vec![scope.by_step((&title, &note(scope, control)), &heads, row)]
}

fn cells(variant: &VariantStep, ratio: &Ratio) -> Vec<TableCell> {
    let shown = TableCell {
        interval: ratio.interval(),
        verdict: variant.to_base.verdict,
        bound: ratio.bound,
        ..number(ratio.value, format!("{}{:.3}", sign_of(ratio.bound), ratio.value))
    };
    let seen = ratio.inference.as_ref().and_then(|inference| seen(inference, ratio.blocks.len()));
    let figures = match seen {
        Some(figures) => figures.map(percent_cell),
        None if ratio.bound.is_some() => std::array::from_fn(|_| absent("a bound has no noise")),
        None => std::array::from_fn(|_| absent("one block has no noise")),
    };
    std::iter::once(shown).chain(figures).collect()
}

/// Returns, as fractions, the noise, the smallest difference that the run detects, and the margin
/// within which it can show sameness.
fn seen(inference: &Inference, blocks: usize) -> Option<[f64; 3]> {
    let paired = inference.paired.as_ref()?;
    let same_within = margin_for_same(paired.deviation, u32::try_from(blocks).ok()?, LEVEL, USUAL_POWER)?;
    Some([paired.deviation.exp_m1(), paired.detectable_ratio - 1.0, same_within.exp_m1()])
}

fn note(scope: Scope<'_>, control: &str) -> String {
    let verdicts: Vec<Verdict> =
        scope.steps().filter_map(|step| step.variant(control)?.to_base.verdict).collect();
    let count = |wanted: &[Verdict]| verdicts.iter().filter(|verdict| wanted.contains(verdict)).count();
    let rare = [
        (count(&[Verdict::Invalid]), "invalid"),
        (count(&[Verdict::OnSchedule]), "on schedule"),
        (count(&[Verdict::Missed, Verdict::Stalled]), "that missed its rate or stalled"),
    ];
    let rare = rare.iter().filter(|(count, _)| *count > 0);
    let rare: String = rare.map(|(count, what)| format!(", {count} {what}")).collect();
    let answer = match verdicts.len() {
        0 => String::new(),
        all => format!(
            " False differences: {} of {}; {} same, {} undecided{rare}.",
            count(&[Verdict::Faster, Verdict::Slower]),
            numbered(all, "step"),
            count(&[Verdict::Same]),
            count(&[Verdict::Undecided])
        ),
    };
    format!(
        "A/A: {} ran a second time in every block, as {control}.{answer} noise: standard \
         deviation of a block's ratio. With this noise and number of blocks, 80 % of runs show a \
         difference as large as detects, and equivalence within the equivalence margin.",
        scope.run.base
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{NAMES, of_steps, pair};
    use crate::views::testing::{rows, scope};

    #[test]
    fn the_base_against_itself_counts_false_differences() {
        // The verdicts are undecided, faster, slower and same. The last step has no ratio.
        let steps = [("l.i0", 1.02), ("l.i1", 2.5), ("qr100", 0.8), ("qr500", 1.0), ("qr1000", 1.0)];
        let mut findings = of_steps(steps.map(|(name, ratio)| pair(name, ratio, 3)).to_vec());
        findings.workloads[0].steps[4].variants[1].to_base = Default::default();
        assert!(tables(scope(&findings)).is_empty());
        findings.run.control = Some(NAMES[1].to_owned());
        let table = tables(scope(&findings)).remove(0);
        assert_eq!(table.title, "A/A: rollback against itself");
        let note = &table.note;
        assert!(note.contains(" False differences: 2 of 4 steps; 1 same, 1 undecided."), "{note}");
        insta::assert_snapshot!(rows(&table), @"
        l.i0 | 1.020 | 1.31 | 3.10 | 3.52
        l.i1 | 2.500 | 1.31 | 3.10 | 3.52
        qr100 | 0.800 | 1.31 | 3.10 | 3.52
        qr500 | 1.000 | 1.31 | 3.10 | 3.52
        qr1000 | n/a | n/a | n/a | n/a
        ");
        assert_eq!(table.rows[4][1].note, "no block in which both are valid");
    }
}
