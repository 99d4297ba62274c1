//! Table of two variants, of one run or of two, step by step: rates, ratio with its verdict,
//! response times.

use dbdyno_analyse::{ComparedStep, Comparison, PercentileRatio, Verdict, p_text};

use super::answer::{NONE, arrow};
use crate::document::{Column, Table, Tone};
use crate::number::{NOT_AVAILABLE, interval_text, milliseconds, rate_or_seconds, ratio, shared_unit};

/// Name, unit and rank of the columns. On a narrow terminal, columns with a higher rank are left
/// out first.
const HEADS: [(&str, &str, u8); 10] = [
    ("step", "", 0),
    ("base", "", 1),
    ("new", "", 1),
    ("unit", "", 1),
    ("ratio", "", 0),
    ("95 %", "interval", 1),
    ("verdict", "", 0),
    ("adjusted p", "", 4),
    ("p99", "base → new, ms", 2),
    ("p99 ratio", "", 4),
];
/// Index of the column with the rates' unit. Where all rates have the same unit, the note says it
/// and the column is left out.
const UNIT: usize = 3;
/// Index of the column that is coloured.
const VERDICT: usize = 6;
/// Makes the table for these steps.
pub(crate) fn table(comparison: &Comparison, steps: &[&ComparedStep]) -> Table {
    let units = comparison.steps.iter().map(|step| step.rate_label.as_str());
    let unit = shared_unit(units).filter(|unit| !unit.is_empty());
    let note = rates_and_ratios(comparison, unit);
    let columns = HEADS.iter().map(|(head, unit, rank)| Column::ranked(head, unit, *rank)).collect();
    let mut table = Table { note, labels: 1, columns, ..Table::default() };
    for step in steps {
        table.push(row(comparison, step));
        if let Some(cell) = table.rows.last_mut().and_then(|row| row.get_mut(VERDICT)) {
            cell.tone = Tone::of(step.to_base.verdict);
        }
    }
    if unit.is_some() {
        table.columns.remove(UNIT);
        table.rows.iter_mut().for_each(|row| drop(row.remove(UNIT)));
    }
    table
}

/// Returns the step's name, with its workload's name before it where there are several workloads.
pub(crate) fn step_name(comparison: &Comparison, step: &ComparedStep) -> String {
    let several = comparison.steps.iter().any(|other| other.workload != step.workload);
    if several { format!("{} {}", step.workload, step.step) } else { step.step.clone() }
}

/// Returns the texts of a row, with the unit.
pub(crate) fn row(comparison: &Comparison, step: &ComparedStep) -> [String; HEADS.len()] {
    let none = || NOT_AVAILABLE.to_owned();
    let (ratio_to_base, inference) = (step.to_base.ratio.as_ref(), step.to_base.inference());
    [
        step_name(comparison, step),
        rate_or_seconds(step.base_rate, step.less_is_better),
        rate_or_seconds(step.new_rate, step.less_is_better),
        step.rate_label.clone(),
        ratio(ratio_to_base.map(|found| found.value), 3),
        inference.map_or_else(none, |inference| interval_text(inference.interval)),
        step.to_base.verdict.map_or("none", Verdict::word).to_owned(),
        inference.map_or_else(none, |inference| p_text(inference.q_difference)),
        p99(step),
        step.to_base.p99.as_ref().map_or(NONE.to_owned(), p99_ratio),
    ]
}

/// Returns words such as `1.250 1.102–1.418 slower`.
fn p99_ratio(found: &PercentileRatio) -> String {
    let value = Some(ratio(Some(found.ratio.value), 3));
    let interval = found.ratio.interval().map(interval_text);
    let verdict = found.verdict.map(|verdict| verdict.word().to_owned());
    value.into_iter().chain(interval).chain(verdict).collect::<Vec<_>>().join(" ")
}

/// Returns both percentiles, and the direction where they certainly differ.
fn p99(step: &ComparedStep) -> String {
    let text = |p99: Option<u64>| p99.map_or(NONE.to_owned(), milliseconds);
    match (step.base_p99_us, step.new_p99_us) {
        (None, None) => NONE.to_owned(),
        (base, new) => {
            let verdict = step.to_base.p99.as_ref().and_then(|found| found.verdict);
            format!("{} → {}{}", text(base), text(new), arrow(verdict))
        }
    }
}

/// Says what the columns of rates contain, and why their quotient is not the ratio.
fn rates_and_ratios(comparison: &Comparison, unit: Option<&str>) -> String {
    let most = comparison.steps.iter().map(|step| step.base_blocks.max(step.new_blocks)).max();
    let what = match (comparison.paired, most.unwrap_or(0)) {
        (_, 0 | 1) => "rate of the one block. Ratio: new ÷ base.",
        (true, _) => {
            "median rate of the blocks. Ratio: new ÷ base of each block, geometric mean over the \
             blocks. It may differ from the quotient of the two medians."
        }
        (false, _) => {
            "median rate of the blocks. Ratio: geometric mean of new's blocks ÷ that of base's. It \
             may differ from the quotient of the two medians."
        }
    };
    let unit = unit.map_or_else(String::new, |unit| format!(" in {unit}"));
    format!("Base and new{unit}: {what}")
}
