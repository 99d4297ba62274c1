//! Table of CPU and IO per operation by who used them, with one row per variant. The chart of costs
//! draws the same table.

use dbdyno_analyse::{StepFindings, StepRun, VariantStep};

use crate::document::{Cell, Column, Table};
use crate::number::fixed;
use crate::views::cells::known;

/// Name of a part, and the function that gives it per operation.
type Part = (&'static str, fn(&StepRun) -> Option<f64>);

pub(crate) const CPU_UNIT: &str = "µs/op";
pub(crate) const IO_UNIT: &str = "KiB/op";

const CPU: [Part; 5] = [
    ("server, user", |run| run.cost.server_user_us),
    ("server, kernel", |run| run.cost.server_kernel_us),
    // For an embedded database this includes the database.
    ("client", |run| run.cost.client_cpu_us),
    ("rest of the host", |run| run.cost.rest_cpu_us),
    ("IO wait", |run| run.cost.host_iowait_us),
];
const IO: [Part; 3] = [
    ("read by the server", |run| run.cost.server_read_kib),
    ("read by others", StepRun::others_read_kib),
    ("written", |run| run.written_kib),
];

/// Makes the table. Parts that nobody used have no column. It has no rows where nothing was sampled.
pub(crate) fn table(step: &StepFindings) -> Table {
    let is_measured = |variant: &&VariantStep| variant.valid_runs().next().is_some();
    let variants: Vec<&VariantStep> = step.variants.iter().filter(is_measured).collect();
    let all = CPU.iter().map(|part| (CPU_UNIT, part)).chain(IO.iter().map(|part| (IO_UNIT, part)));
    let medians = |of: fn(&StepRun) -> Option<f64>| variants.iter().map(move |variant| variant.median(of));
    let shown: Vec<(Column, Vec<Option<f64>>)> = all
        .map(|(unit, (name, of))| (Column::new(name, unit, ""), medians(*of).collect::<Vec<_>>()))
        .filter(|(_, values)| values.iter().flatten().any(|value| *value > 0.0))
        .collect();
    let heads = shown.iter().map(|(column, _)| column.clone());
    let mut table =
        Table::new("CPU and IO by who used it", "Medians of the valid blocks.", ["variant"], heads);
    for (at, variant) in variants.iter().enumerate().filter(|_| !shown.is_empty()) {
        let cells = shown.iter().map(|(column, values)| {
            let decimals = if column.unit == IO_UNIT { 3 } else { 2 };
            known(values[at], fixed(values[at], decimals))
        });
        table.push(std::iter::once(Cell::from(variant.variant.as_str())).chain(cells));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pair;
    use crate::views::small::{heads, rows};

    #[test]
    fn parts_that_nobody_used_have_no_column_and_variants_without_a_valid_run_no_row() {
        let mut step = pair("l.i0", 1.0, 3);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.cost.host_iowait_us = Some(0.0);
        }
        step.variants[1].runs.clear();
        let table = table(&step);
        insta::assert_snapshot!(heads(&table).join(" | "), @"variant | client µs/op | rest of the host µs/op | written KiB/op");
        insta::assert_snapshot!(rows(&table), @"rollback | 7.50 | 1.75 | 185.385");
    }
}
