//! Which operators took the time of a query: of its execution that counted rows and times.

use dbdyno_analyse::{ExecutedPlan, StepFindings, seconds_text};

use crate::document::{Column, Table};
use crate::number::fixed;

/// Of the first block. No rows where queries were not executed once more.
pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Of an execution of its own after the step, in the first block: counting rows and times costs time. Times of \
                parallel workers are added up.";
    let labels = [
        ("statement", ""),
        ("variant", ""),
        ("operator", "Those that it reads from are below it, further to the right."),
    ];
    let labels = labels.map(|(name, meaning)| Column::new(name, "", meaning));
    let figures = [
        ("own time", "s", "Without the operators below it."),
        ("share", "%", "Of the own times of all operators."),
        ("rows", "", "That it gave, over all loops."),
        ("loops", "", ""),
    ];
    let figures = figures.map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Operators", note, labels.to_vec(), figures);
    for variant in &step.variants {
        let first = variant.executed_plans.first().map(|plan| plan.block);
        for plan in variant.executed_plans.iter().filter(|plan| Some(plan.block) == first) {
            push(&mut grid, &variant.variant, plan);
        }
    }
    grid
}

fn push(grid: &mut Table, variant: &str, plan: &ExecutedPlan) {
    let all: f64 = plan.operators.iter().filter_map(|operator| operator.own_seconds).sum();
    for operator in &plan.operators {
        let own = operator.own_seconds;
        let share = own.filter(|_| all > 0.0).map(|own| 100.0 * own / all);
        grid.push([
            plan.statement.clone(),
            variant.to_owned(),
            format!("{}{}", "· ".repeat(operator.depth), operator.name),
            own.map_or_else(|| "n/a".to_owned(), seconds_text),
            fixed(share, 1),
            operator.rows.map_or_else(|| "n/a".to_owned(), |rows| fixed(Some(rows), 0)),
            fixed(Some(operator.loops), 0),
        ]);
    }
}
