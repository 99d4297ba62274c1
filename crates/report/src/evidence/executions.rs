//! Queries one by one: the seconds of each execution, and figures over all of them.

use dbdyno_analyse::{StepFindings, seconds_text};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{count, fixed};

/// No rows where no time counts by itself.
pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Each execution by itself; > where it was ended at its time limit.";
    let mut labels = run_columns(step);
    labels.push(Column::new("what", "", "A query, or a refresh function."));
    let several = runs(step).any(|(_, run)| run.executions.iter().any(|execution| execution.client > 1));
    if several {
        labels.push(Column::new("stream", "", "Connection."));
    }
    let figures = [("repetition", ""), ("time", "s"), ("rows", "")];
    let figures = figures.map(|(name, unit)| Column::new(name, unit, ""));
    let mut grid = Table::new("Executions", note, labels, figures);
    for (variant, run) in runs(step) {
        for execution in &run.executions {
            let mut row = run_labels(step, variant, run);
            row.push(execution.name.clone());
            if several {
                row.push(execution.client.to_string());
            }
            let sign = if execution.cut_off { "> " } else { "" };
            row.push(execution.repetition.to_string());
            row.push(format!("{sign}{}", seconds_text(execution.seconds)));
            row.push(count(execution.rows));
            grid.push(row);
        }
    }
    grid
}

/// No rows for a step of one query.
pub(super) fn composite(step: &StepFindings) -> Table {
    let note =
        "Over all executions of the step. Derived from TPC-H; not comparable with published TPC-H results.";
    let figures = [
        ("queries", "", "Without refresh functions."),
        ("geometric mean", "s", "Of the seconds of all executions, refresh functions too."),
        ("queries an hour", "", "All queries divided by the step's time."),
        ("cut off", "", "Ended at their time limit: the mean is too low by them."),
    ];
    let figures = figures.map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("All queries together", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let Some(found) = run.composite else { continue };
        let mut row = run_labels(step, variant, run);
        row.push(found.queries.to_string());
        row.push(seconds_text(found.geometric_mean_seconds));
        row.push(fixed(Some(found.queries_per_hour), 0));
        row.push(found.cut_off.to_string());
        grid.push(row);
    }
    grid
}
