//! Tables of hardware efficiency over all steps: one table per metric, with the variants' medians
//! and their ratios to the base.

use dbdyno_analyse::MetricGroup;
use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::tables::Tables;

use super::Scope;
use super::cells::{Pivot, known, steps, variants};
use super::details::metrics::{ZEROS, ratio_text};
use crate::document::{Table, TableCell};
use crate::number::fixed;

/// Metric of the MB that scans read per second. It is zero for tables in memory, and then not
/// shown.
const READS: &str = "rmbps";

/// Makes the tables of the metrics that reports on microbenchmarks have. The first table says how
/// all of their figures are formed.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let tables = scope.tables();
    // The order is as published: the cost of an operation on the host, then reads, then the metrics
    // that dbdyno adds.
    let mut groups: Vec<&MetricGroup> = MetricGroup::ALL.iter().collect();
    groups.sort_by_key(|group| group.name != "efficiency");
    let shown = groups.into_iter().flat_map(MetricGroup::in_tables).filter(|metric| metric.is_published);
    let all = shown.map(|metric| of_metric(&tables, &scope.run.base, metric));
    let mut all: Vec<Table> = all.filter(|table| !table.rows.is_empty()).collect();
    if let Some(first) = all.first_mut() {
        let rule = format!("Median of the valid blocks; ratio: geometric mean over the blocks; {ZEROS}.");
        first.note = format!("{} {rule}", first.note);
    }
    all
}

/// Makes a metric's table, with one row per step in which any variant has the metric.
fn of_metric(tables: &Tables<'_>, base: &str, metric: &Metric) -> Table {
    let pivot = Pivot::of(tables, metric.id);
    let variants = variants(tables);
    let others = || variants.iter().filter(|name| **name != base);
    let columns = variants.iter().map(|name| (*name, metric.unit, ""));
    let columns = columns.chain(others().map(|name| (*name, "÷ base", "")));
    let title = format!("{} of all steps", metric.name);
    let mut table = Table::new(&title, metric.meaning, ["step"], columns);
    for step in steps(tables) {
        let values: Vec<Option<f64>> = variants.iter().map(|variant| pivot.value(step, variant)).collect();
        let is_shown = |value: &f64| metric.id != READS || *value > 0.0;
        if !values.iter().flatten().any(is_shown) {
            continue;
        }
        let scaled = values.iter().map(|value| value.map(|value| metric.factor * value));
        let cells = scaled.map(|value| known(value, fixed(value, metric.decimals)));
        let ratios = others().map(|variant| {
            let ratio = pivot.comparison(step, variant).and_then(|found| found.ratio);
            known(ratio, ratio_text(ratio))
        });
        table.push(std::iter::once(TableCell::from(step)).chain(cells).chain(ratios));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::testing::{comparison, entry, heads, observation, rows};

    #[test]
    fn a_row_has_the_values_of_all_variants_and_the_ratios_of_all_but_the_base() {
        let observations = vec![
            observation(("l.i0", "old"), "cpu_o", 0.5),
            observation(("l.i0", "new"), "cpu_o", 0.25),
            observation(("l.x", "new"), "cpu_o", 0.0),
            observation(("l.i1", "new"), "cpu_o", 2.0),
            observation(("l.i1", "new"), "r_o", 7.0),
        ];
        let comparisons =
            vec![comparison(("l.i0", "new"), "cpu_o", 0.5), comparison(("l.i0", "new"), "r_o", 3.0)];
        let table =
            of_metric(&Tables { observations, comparisons }, "old", entry("cpu_o").expect("it is listed"));
        assert_eq!(heads(&table), ["step", "old %·s/op", "new %·s/op", "new ÷ base"]);
        insta::assert_snapshot!(rows(&table), @"
        l.i0 | 0.500000 | 0.250000 | 0.50
        l.x | NA | 0.000000 | NA
        l.i1 | NA | 2.000000 | NA
        ");
        assert_eq!(table.rows[0][3].value, Some(0.5));
    }
}
