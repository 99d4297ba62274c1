//! Tables of operations that servers answered with an error, by step and variant: deadlocks, lost
//! connections, and other errors that a comparison under contention must not hide.

use dbdyno_analyse::{KindResult, StepFindings, VariantStep};

use super::Scope;
use super::cells::{fixed_cell, number};
use crate::document::{Column, Table, TableCell};
use crate::number::count;

/// A function that gives a count for one kind of operation in one block.
type Count = fn(&KindResult) -> u64;

/// Each column's name, meaning and value.
const COUNTS: [(&str, &str, Count); 6] = [
    ("retry", "May be sent again: deadlock, lock wait, busy file.", |kind| kind.errors.retry),
    ("refused", "The server refused the statement.", |kind| kind.errors.refused),
    ("lost", "The connection was lost.", |kind| kind.errors.lost),
    ("fatal", "Any other error.", |kind| kind.errors.fatal),
    ("failed", "Operations that ended with an error.", |kind| kind.failed),
    ("dropped", "Operations that became due and were never sent.", |kind| kind.dropped),
];

/// Makes the tables. There are none for a workload without errors. An error that never happened has
/// no column.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let all: Vec<(&StepFindings, &VariantStep)> =
        scope.steps().flat_map(of_step).filter(|(_, variant)| has_any(variant)).collect();
    let happened = |(.., of): &&(&str, &str, Count)| all.iter().any(|(_, variant)| sum(variant, *of) > 0);
    let counts: Vec<_> = COUNTS.iter().filter(happened).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let note = "Errors and operations that failed, over all kinds of operations and all blocks. Attempts that are \
                sent again are no failures.";
    let heads = counts.iter().map(|(name, meaning, _)| Column::new(name, "", meaning));
    let share = Column::new("errors", "per 1,000 op.", "Errors per 1,000 operations that were answered.");
    let labels = vec![Column::new("step", "", ""), Column::new("variant", "", "")];
    let mut table = Table::new("Errors", note, labels, heads.chain([share]));
    for (step, variant) in all {
        let label = [step.name.as_str(), variant.variant.as_str()].map(TableCell::from);
        let sums = counts.iter().map(|(.., of)| sum(variant, *of)).map(|sum| number(sum as f64, count(sum)));
        let errors = sum(variant, |kind| kind.errors.total());
        let answered = sum(variant, |kind| kind.operations);
        let share = fixed_cell(1e3 * errors as f64 / answered.max(1) as f64, 3);
        table.push(label.into_iter().chain(sums).chain([share]));
    }
    vec![table]
}

fn of_step(step: &StepFindings) -> impl Iterator<Item = (&StepFindings, &VariantStep)> {
    step.variants.iter().map(move |variant| (step, variant))
}

fn has_any(variant: &VariantStep) -> bool {
    COUNTS.iter().any(|(.., of)| sum(variant, *of) > 0)
}

fn sum(variant: &VariantStep, of: Count) -> u64 {
    variant.runs.iter().flat_map(|run| &run.kinds).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing::{rows, scope};

    #[test]
    fn only_steps_with_errors_have_a_row_with_the_sums_of_all_blocks() {
        let mut findings = of_steps(vec![pair("l.i0", 1.0, 3), pair("l.i1", 1.0, 3)]);
        let steps = &mut findings.workloads[0].steps;
        let runs = steps.iter_mut().flat_map(|step| &mut step.variants).flat_map(|variant| &mut variant.runs);
        for kind in runs.flat_map(|run| &mut run.kinds) {
            (kind.failed, kind.dropped, kind.errors) = (0, 0, Default::default());
        }
        assert!(tables(scope(&findings)).is_empty());
        for run in &mut findings.workloads[0].steps[1].variants[1].runs {
            (run.kinds[0].errors.retry, run.kinds[0].operations) = (5, 2_000);
        }
        let tables = tables(scope(&findings));
        assert_eq!(tables.iter().map(rows).collect::<Vec<_>>(), ["l.i1 | <b>&\" | 15 | 2.500"]);
    }
}
