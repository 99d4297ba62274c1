//! Hardware efficiency of all steps: a table for each metric, absolute and relative to the base.

use dbdyno_analyse::metrics::{Cost, Efficiency, Figures, Metric, MetricRow};
use dbdyno_analyse::statistics::describe::median;
use dbdyno_analyse::{StepFindings, StepRun, Validity, VariantStep};

use crate::document::{Cell, Table};
use crate::evidence::relative::{ZEROS, ratio_text};
use crate::number::fixed;

/// Of the costs, those that reports of microbenchmarks have as well.
const COSTS: [&str; 4] = ["server_cpu_us", "client_cpu_us", "fsyncs_per_commit", "write_amplification"];

/// Tables of metrics that any step has.
pub(crate) fn efficiency_of_all(steps: &[&StepFindings], base: &str) -> Vec<Table> {
    let of_hosts = Efficiency::in_tables().map(|metric| {
        let of = |run: &StepRun| run.efficiency.value(metric);
        let relative = |variant: &VariantStep| variant.relative.as_ref()?.efficiency.value(metric);
        of_metric(steps, base, metric, &of, &relative)
    });
    // What scans read a second; of tables in memory it is nothing.
    let reads = MetricRow::in_tables().filter(|metric| metric.id == "rmbps").map(|metric| {
        let of = |run: &StepRun| run.metrics.value(metric).filter(|figure| *figure > 0.0);
        let relative = |variant: &VariantStep| variant.relative.as_ref()?.metrics.value(metric);
        of_metric(steps, base, metric, &of, &relative)
    });
    let costs = Cost::in_tables().filter(|metric| COSTS.contains(&metric.id)).map(|metric| {
        let of = |run: &StepRun| run.cost.value(metric);
        let relative = |variant: &VariantStep| variant.relative.as_ref()?.cost.value(metric);
        of_metric(steps, base, metric, &of, &relative)
    });
    of_hosts.chain(reads).chain(costs).filter(|table| !table.rows.is_empty()).collect()
}

/// A row a step: the medians of the valid blocks, then the ratios to the base.
fn of_metric(
    steps: &[&StepFindings],
    base: &str,
    metric: &Metric,
    of: &dyn Fn(&StepRun) -> Option<f64>,
    relative: &dyn Fn(&VariantStep) -> Option<f64>,
) -> Table {
    let variants: Vec<&str> = steps
        .first()
        .map_or_else(Vec::new, |step| step.variants.iter().map(|variant| variant.variant.as_str()).collect());
    let others = || variants.iter().filter(|name| **name != base);
    let columns = variants.iter().map(|name| (*name, metric.unit, ""));
    let columns = columns.chain(others().map(|name| (*name, "÷ base", "")));
    let title = format!("{} of all steps", metric.name);
    let rule = format!("Median of the valid blocks; ratio: geometric mean over the blocks; {ZEROS}.");
    let note = format!("{} {rule}", metric.meaning);
    let mut table = Table::new(&title, &note, ["step"], columns);
    for step in steps {
        let found = |name: &str| step.variants.iter().find(|variant| variant.variant == name);
        let figure = |name: &&str| {
            let runs = found(name).map_or(&[][..], |variant| &variant.runs);
            let valid = runs.iter().filter(|run| run.validity == Validity::Valid);
            median(&valid.filter_map(of).collect::<Vec<_>>())
        };
        let figures: Vec<Option<f64>> = variants.iter().map(figure).collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let texts = figures
            .iter()
            .map(|value| Cell::from(fixed(value.map(|value| metric.factor * value), metric.decimals)));
        let ratios = others().map(|name| Cell::from(ratio_text(found(name).and_then(relative))));
        table.push(std::iter::once(Cell::from(step.name.as_str())).chain(texts).chain(ratios));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_metric_has_the_medians_of_all_variants_and_the_ratios_of_all_but_the_base() {
        let findings = fixture::with_blocks(3);
        let steps: Vec<&StepFindings> = findings.workloads[0].steps.iter().collect();
        let tables = efficiency_of_all(&steps, "rollback");
        let table = tables.iter().find(|table| table.title == "cpu/o of all steps").expect("in the fixture");
        let heads: Vec<_> =
            table.columns.iter().map(|column| (column.name.as_str(), column.unit.as_str())).collect();
        assert_eq!(heads, [("step", ""), ("rollback", "%·s/op"), ("<b>&\"", "%·s/op"), ("<b>&\"", "÷ base")]);
        let run = &findings.workloads[0].steps[0].variants[0].runs[0];
        let texts: Vec<&str> = table.rows[0].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!((texts[0], texts[1]), ("l.i0", fixed(run.efficiency.cpu_o, 6).as_str()));
        assert_eq!(texts[3], "0.98");
    }
}
