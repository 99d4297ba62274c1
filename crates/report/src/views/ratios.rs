//! Makes the table of ratios to the base, with their intervals and verdicts, and the note that
//! explains them.

use dbdyno_analyse::{CONFIDENCE, LEVEL, StepFindings, Verdict};
use dbdyno_model::Colours;

use super::cells::variant_cell;
use super::{Scope, explained, of_ratios};
use crate::document::{Table, Tone};
use crate::words::{RATIO_TABLES, TIMES_TABLE, listed};

/// Makes the table, or none for a single variant, whose only ratio would be to itself.
pub(crate) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let variants = scope.variants();
    if variants.len() < 2 {
        return Vec::new();
    }
    let row = |step: &StepFindings| {
        Some(step.variants.iter().map(|variant| variant_cell(scope, step, variant)).collect())
    };
    let title = RATIO_TABLES[usize::from(scope.are_times())];
    let table = scope.by_step((title, &note(scope)), &variants, row);
    let stalled = (Tone::Lowest, "answered nothing in a block in which the base answered");
    vec![explained(table, &[of_ratios(scope), vec![stalled]].concat())]
}

/// Explains what the ratios are, over how many blocks, and what their intervals and verdicts mean.
fn note(scope: Scope<'_>) -> String {
    let variants = || scope.steps().flat_map(|step| &step.variants);
    let ratios = variants().filter_map(|variant| variant.to_base.ratio.as_ref());
    let blocks: Vec<usize> =
        ratios.filter(|ratio| ratio.inference.is_some()).map(|ratio| ratio.blocks.len()).collect();
    let what = match scope.are_times() {
        true => format!(
            "Seconds divided by the seconds of {} in the same block: below 1 is faster; > and < are bounds, where a \
             time limit cut off one of the two, ≷ where each of them was cut off in some blocks",
            scope.run.base
        ),
        false => format!("Rate divided by the rate of {} in the same block", scope.run.base),
    };
    let mut text = match (blocks.iter().min(), blocks.iter().max()) {
        (Some(min), Some(max)) => {
            let count = if min == max { format!("{max}") } else { format!("{min} to {max}") };
            format!(
                "{what}; geometric mean of {count} blocks with its {:.0} % interval, paired by block. \
                 faster, slower: the difference is significant and the ratio is beyond the margin of {}. \
                 same: shown to be within the margin. False discovery rate {:.0} %, for differences and \
                 for equivalences.",
                100.0 * CONFIDENCE,
                margins(scope),
                100.0 * LEVEL
            )
        }
        _ => format!("{what}; the geometric mean where there are several blocks."),
    };
    let has = |verdict| variants().any(|variant| variant.to_base.verdict == Some(verdict));
    if scope.run.colours == Colours::Threshold && has(Verdict::Undecided) {
        text.push_str(" Colours show the ratio alone; ? marks the undecided.");
    }
    if has(Verdict::Missed) {
        text.push_str(" missed: not slower, but it missed the planned rate, which the base kept.");
    }
    if has(Verdict::Stalled) {
        text.push_str(
            " stalled: it answered nothing in a block in which the base answered; the ratio is that of \
             the other blocks.",
        );
    }
    if has(Verdict::OnSchedule) {
        text.push_str(&format!(
            " on schedule: the plan fixes the rate and it was kept; compare response times in the step's \
             table {TIMES_TABLE}."
        ));
    }
    if let Some(budget) = scope.run.budget.filter(|budget| budget.looks > 0 && !blocks.is_empty()) {
        text.push_str(&format!(
            " Interim analyses: {}; verdicts, adjusted p and intervals are corrected for them.",
            budget.looks
        ));
    }
    text
}

/// Returns the margins, such as `2 %`, or `2 % (5 % in scan, scan.post)`.
fn margins(scope: Scope<'_>) -> String {
    let percent = |margin: f64| format!("{} %", (1e4 * margin).round() / 100.0);
    let general = scope.run.margin;
    let mut others: Vec<(f64, Vec<&str>)> = Vec::new();
    for step in scope.steps().filter(|step| step.margin != general) {
        match others.iter_mut().find(|(margin, _)| *margin == step.margin) {
            Some((_, names)) => names.push(&step.name),
            None => others.push((step.margin, vec![&step.name])),
        }
    }
    if others.is_empty() {
        return percent(general);
    }
    let others: Vec<String> =
        others.iter().map(|(margin, names)| format!("{} in {}", percent(*margin), listed(names))).collect();
    format!("{} ({})", percent(general), others.join("; "))
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, ZeroRates};

    use super::*;
    use crate::document::TableCell;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing::scope;

    /// Makes findings of two variants. Each step has one of `ratios` as the second variant's ratio.
    fn findings(ratios: &[f64], blocks: usize) -> Findings {
        of_steps(ratios.iter().map(|ratio| pair("l.i0", *ratio, blocks)).collect())
    }

    fn table(findings: &Findings) -> Table {
        tables(scope(findings)).remove(0)
    }

    /// Returns the second variant's table cell for the first step.
    fn cell(findings: &Findings) -> TableCell {
        table(findings).rows[0][2].clone()
    }

    #[test]
    fn ratios_are_coloured_by_verdict_or_by_threshold() {
        let tones = |blocks, colours| {
            // The ratios are undecided, faster, undecided and slower.
            let mut findings = findings(&[1.02, 2.5, 1.04, 0.8], blocks);
            findings.run.colours = colours;
            table(&findings).rows.iter().map(|row| row[2].tone).collect::<Vec<_>>()
        };
        let (plain, above, below) = (Tone::Plain, Tone::Above, Tone::Below);
        assert_eq!(tones(3, Colours::Verdict), [plain, above, plain, below]);
        assert_eq!(tones(1, Colours::Verdict), [plain; 4], "one block decides nothing");
        let (green, grey, red) = (Tone::Highest, Tone::Missed, Tone::Lowest);
        assert_eq!(tones(1, Colours::Threshold), [grey, green, grey, red]);
    }

    #[test]
    fn a_stalled_variant_is_red_and_its_note_names_the_blocks() {
        let mut findings = findings(&[1.3, 2.5, 0.8], 3);
        let to_base = &mut findings.workloads[0].steps[0].variants[1].to_base;
        to_base.zero_rates = ZeroRates { stalled: vec![2, 3], base_stalled: Vec::new(), blocks: 5 };
        to_base.verdict = Some(Verdict::Stalled);
        let found = cell(&findings);
        assert_eq!((found.tone, found.text.as_str()), (Tone::Lowest, "1.30"));
        let note = "answered nothing in blocks 2 and 3 of 5, in which rollback answered; the ratio is that of the other blocks";
        assert_eq!(found.note, note);
        let table = table(&findings);
        assert!(table.note.contains(" stalled: it answered nothing"), "{}", table.note);
        assert_eq!(table.legend.len(), 3);
    }

    #[test]
    fn a_rate_without_a_ratio_is_not_called_invalid() {
        let mut findings = findings(&[1.0], 1);
        findings.workloads[0].steps[0].variants[1].to_base.ratio = None;
        let found = cell(&findings);
        assert_eq!([found.text, found.note], ["n/a", "no block in which rollback is valid too"]);
    }

    #[test]
    fn margins_of_single_steps_are_named() {
        let of = |(name, margin)| StepFindings { margin, ..pair(name, 1.0, 3) };
        let steps = [("l.i0", 0.02), ("l.x", 0.05), ("l.i1", 0.05)].map(of);
        let note = table(&of_steps(steps.to_vec())).note;
        assert!(note.contains(" beyond the margin of 2 % (5 % in l.x and l.i1)."), "{note}");
    }
}
