//! Cells of the summary tables: rates, and what is shown where there is none.

use dbdyno_record::{CellRecord, Outcome};

use crate::model::failure::{end_message, words};
use crate::model::{Cell, Colour, StepFindings, TableRow, Validity, VariantStep};

/// Turns columns into rows labelled with the variants' names.
pub(crate) fn rows(steps: &[StepFindings], columns: Vec<Vec<Cell>>) -> Vec<TableRow> {
    let variants = steps.first().map_or(&[][..], |step| step.variants.as_slice());
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let row = |variant: &VariantStep| TableRow {
        label: variant.variant.clone(),
        is_target: false,
        cells: columns.iter_mut().filter_map(Iterator::next).collect(),
    };
    variants.iter().map(row).collect()
}

/// The cell of a variant that has no valid run of a step: the worst that happened, and what it was.
pub(crate) fn missing(variant: &VariantStep, cells: &[&CellRecord]) -> Cell {
    let find =
        |text: fn(&Validity) -> Option<String>| variant.runs.iter().find_map(|run| text(&run.validity));
    if let Some(message) = find(|validity| match validity {
        Validity::Failed { message } => Some(message.clone()),
        _ => None,
    }) {
        return absent("failed", words(&message));
    }
    if let Some(reasons) = find(|validity| match validity {
        Validity::Invalid { reasons } => Some(reasons.join("; ")),
        _ => None,
    }) {
        return absent("invalid", reasons);
    }
    let mut own = cells.iter().filter(|cell| cell.id.variant == variant.variant);
    match own.find(|cell| cell.outcome() == Some(Outcome::Failed)) {
        Some(cell) => {
            absent("failed", format!("the cell failed before or in this step: {}", words(&end_message(cell))))
        }
        None if variant.runs.is_empty() => absent("n/a", "did not run".to_owned()),
        None => absent("n/a", "interrupted".to_owned()),
    }
}

pub(crate) fn absent(text: &str, note: String) -> Cell {
    Cell {
        value: None,
        text: text.to_owned(),
        colour: Colour::None,
        interval: None,
        verdict: None,
        misses_target: false,
        note,
    }
}

/// Whole numbers as in the original; decimals only where a slow step would lose its figures.
pub(crate) fn rate_text(rate: f64) -> String {
    match rate {
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}
