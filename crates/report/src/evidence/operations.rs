//! What each kind of operation did: counts, pace, failures by class.

use dbdyno_analyse::StepFindings;

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{count, rate};

pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Operations in the window. Dropped: due, but never sent. Retried attempts are not \
                failures.";
    let mut labels = run_columns(step);
    labels.push(Column::new("kind", "", ""));
    labels.push(Column::new(
        "pace",
        "",
        "closed: the next one when the last is answered; else a fixed schedule a connection.",
    ));
    let figures = [
        ("connections", "", "Over all clients."),
        ("operations", "", "Requests answered without an error: a statement, or a transaction of several."),
        ("rows", "", "Rows inserted, deleted, fetched or indexed."),
        ("operations", "1/s", ""),
        ("rows", "1/s", ""),
        ("failed", "", "Operations that ended with an error."),
        ("dropped", "", "Operations that became due and were never sent."),
        ("retry", "errors", "May be sent again: deadlock, lock wait, busy file."),
        ("refused", "errors", "The server refused one operation."),
        ("lost", "errors", "The connection was lost."),
        ("fatal", "errors", "No operation of this kind could succeed."),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut figures = figures.to_vec();
    let several = has_several_statements(step);
    if several {
        let meaning = "Of the operations, BEGIN and COMMIT included; without attempts that were repeated.";
        figures.push(Column::new("statements", "1/s", meaning));
    }
    let mut grid = Table::new("Operations", note, labels, figures);
    for (variant, run) in runs(step) {
        for kind in &run.kinds {
            let mut row = run_labels(step, variant, run);
            row.extend([kind.kind.clone(), kind.pace.clone()]);
            row.extend([u64::from(kind.connections), kind.operations, kind.rows].map(count));
            row.extend([kind.operations_per_second, kind.rows_per_second].map(|value| rate(Some(value))));
            let errors = &kind.errors;
            let counts = [kind.failed, kind.dropped, errors.retry, errors.refused, errors.lost, errors.fatal];
            row.extend(counts.map(count));
            if several {
                row.push(rate(Some(kind.statements_per_second)));
            }
            grid.push(row);
        }
    }
    grid
}

/// Whether any operation of the step is more than one statement.
fn has_several_statements(step: &StepFindings) -> bool {
    runs(step)
        .flat_map(|(_, run)| &run.kinds)
        .any(|kind| kind.statements_per_second > 1.5 * kind.operations_per_second)
}
