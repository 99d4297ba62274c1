//! The table of ratios to the base, with intervals, verdicts, and the words that explain them.

use dbdyno_record::CellRecord;

use crate::compare::fixed_rate::{self, Pace};
use crate::compare::inference::p_text;
use crate::compare::interim_analyses::{Look, corrected};
use crate::compare::ratio::ratio_text;
use crate::compare::verdicts::Rules;
use crate::model::{
    CONFIDENCE, Cell, Colour, Decided, Inference, LEVEL, Ratio, StepFindings, Table, VariantStep, Verdict,
};
use crate::tables::cells::{absent, missing, rows};
use crate::tables::colours;
use crate::words::listed;

pub(crate) fn relative(steps: &[StepFindings], cells: &[&CellRecord], rules: Rules<'_>) -> Table {
    let base = rules.base;
    let cell = |step: &StepFindings, variant: &VariantStep| match &variant.ratio {
        Some(ratio) => {
            let mut cell = judged_cell(ratio, variant.verdict, variant.decided, base);
            if step.misses_target_of(base, &variant.variant) {
                let notes = [Some(cell.note), step.missed_text(variant)].into_iter().flatten();
                cell.note = notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ");
            }
            paced_cell(step, variant, base, &mut cell);
            stalled_cell(variant, base, &mut cell);
            cell
        }
        None if !variant.standstills.is_empty() => {
            let mut cell = absent("n/a", String::new());
            cell.verdict = variant.verdict;
            stalled_cell(variant, base, &mut cell);
            cell
        }
        None if variant.rate == Some(0.0) => absent("n/a", "nothing was done".to_owned()),
        None if variant.rate.is_some() => absent("n/a", format!("no block in which {base} is valid too")),
        None => missing(variant, cells),
    };
    Table {
        title: "Relative throughput".to_owned(),
        caption: relative_caption(steps, rules),
        columns: steps.iter().map(|step| step.name.clone()).collect(),
        rows: rows(
            steps,
            steps.iter().map(|step| step.variants.iter().map(|one| cell(step, one)).collect()).collect(),
        ),
    }
}

/// How a schedule was kept that the base kept.
fn paced_cell(step: &StepFindings, variant: &VariantStep, base: &str, cell: &mut Cell) {
    if step.misses_schedule_of(base, &variant.variant) {
        cell.note = step.pace(variant).map_or_else(String::new, Pace::text);
    } else if variant.verdict == Some(Verdict::Paced) {
        cell.note = "the rate is the plan's".to_owned();
    }
}

/// What a ratio leaves out, or why there is none. A variant that stalled has no other colour.
fn stalled_cell(variant: &VariantStep, base: &str, cell: &mut Cell) {
    let Some(text) = variant.standstills.text(base) else { return };
    let others = cell.value.map(|_| "the ratio is that of the other blocks".to_owned());
    if variant.verdict == Some(Verdict::Stalled) {
        (cell.colour, cell.note) = (Colour::Red, String::new());
    }
    let notes = [Some(text), others, Some(std::mem::take(&mut cell.note))].into_iter().flatten();
    cell.note = notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ");
}

/// A ratio to `base` with its interval and verdict.
pub(crate) fn judged_cell(
    ratio: &Ratio,
    verdict: Option<Verdict>,
    decided: Option<Decided>,
    base: &str,
) -> Cell {
    let colour = colours::relative(ratio.value);
    let mut notes = vec![colours::relative_note(colour, base)];
    notes.extend(ratio.inference.as_ref().map(|inference| inference_note(ratio, inference)));
    notes.extend(decided.map(|at| format!("decided at interim analysis {} of {}", at.look, at.of)));
    notes.retain(|note| !note.is_empty());
    Cell {
        value: Some(ratio.value),
        text: ratio_text(ratio.value, 2),
        colour,
        interval: ratio.inference.as_ref().map(|inference| inference.interval),
        verdict,
        misses_target: false,
        note: notes.join("; "),
    }
}

fn inference_note(ratio: &Ratio, inference: &Inference) -> String {
    format!(
        "{} blocks; adjusted p of a difference {}, of equivalence {}",
        ratio.blocks.len(),
        p_text(inference.q_difference),
        p_text(inference.q_same)
    )
}

/// What the ratios are, over how many blocks, and what their intervals and verdicts mean.
fn relative_caption(steps: &[StepFindings], rules: Rules<'_>) -> String {
    let judged = steps.iter().flat_map(|step| &step.variants).filter_map(|variant| variant.ratio.as_ref());
    let blocks: Vec<usize> =
        judged.filter(|ratio| ratio.inference.is_some()).map(|ratio| ratio.blocks.len()).collect();
    let what = format!("Rate divided by the rate of {} in the same block", rules.base);
    let (Some(least), Some(most)) = (blocks.iter().min(), blocks.iter().max()) else {
        let words = [missed_text(steps), stalled_text(steps), &fixed_rate::relative_text(steps)].concat();
        return format!("{what}; the geometric mean where there are several blocks.{words}");
    };
    let count = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    format!(
        "{what}; geometric mean of {count} blocks with its {:.0} % interval, paired by block. \
         faster, slower: the difference is significant and the ratio is beyond the margin of {}. \
         same: shown to be within the margin. False discovery rate {:.0} %, for differences and \
         for equivalences.{}{}{}{}",
        100.0 * CONFIDENCE,
        margins_text(steps, rules.margins.general()),
        100.0 * LEVEL,
        missed_text(steps),
        stalled_text(steps),
        fixed_rate::relative_text(steps),
        looks_text(rules)
    )
}

/// What a word means that few runs need.
fn missed_text(steps: &[StepFindings]) -> &'static str {
    let of_step = |step: &StepFindings| -> Vec<bool> {
        let missed = step.variants.iter().filter(|variant| variant.verdict == Some(Verdict::Missed));
        missed.map(|variant| step.pace(variant).is_some()).collect()
    };
    let are_schedules: Vec<bool> = steps.iter().flat_map(of_step).collect();
    match (are_schedules.contains(&false), are_schedules.contains(&true)) {
        (false, false) => "",
        (true, false) => {
            " missed: not slower, but it missed the planned background rate, which the base kept."
        }
        (false, true) => " missed: it missed the planned rate, which the base kept.",
        (true, true) => {
            " missed: not slower, but it missed the planned background rate, which the base kept; \
             or it missed the planned rate, which the base kept."
        }
    }
}

/// Like it.
fn stalled_text(steps: &[StepFindings]) -> &'static str {
    let mut variants = steps.iter().flat_map(|step| &step.variants);
    if variants.any(|variant| variant.verdict == Some(Verdict::Stalled)) {
        " stalled: it answered nothing in a block in which the base answered; the ratio is that of \
         the other blocks."
    } else {
        ""
    }
}

/// `2 %`, or `2 % (5 % in scan, scan.post)`.
fn margins_text(steps: &[StepFindings], general: f64) -> String {
    let percent = |margin: f64| format!("{} %", (1e4 * margin).round() / 100.0);
    let mut others: Vec<(f64, Vec<&str>)> = Vec::new();
    for step in steps.iter().filter(|step| step.margin != general) {
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

/// What looking more than once does to the numbers.
fn looks_text(rules: Rules<'_>) -> String {
    match rules.looks {
        [] => String::new(),
        looks => format!(" Interim analyses after {} blocks: {}.", blocks_text(looks), corrected(looks)),
    }
}

fn blocks_text(looks: &[Look]) -> String {
    let blocks: Vec<String> = looks.iter().map(|look| look.blocks.to_string()).collect();
    listed(&blocks.iter().map(String::as_str).collect::<Vec<_>>())
}
