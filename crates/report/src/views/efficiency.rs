//! Tables of hardware efficiency: one table per metric, absolute and relative to the base.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{MetricGroup, StepFindings, StepRun, VariantStep};

use super::Scope;
use super::cells::number;
use crate::document::{Cell, Table};
use crate::evidence::relative::{ZEROS, ratio_text};
use crate::number::{NOT_AVAILABLE, fixed};

/// The metrics of each group that reports of microbenchmarks show. A group without names shows all
/// of its metrics.
const SHOWN: [(&str, &[&str]); 3] = [
    ("efficiency", &[]),
    ("metrics", &[READS]),
    ("cost", &["server_cpu_us", "client_cpu_us", "fsyncs_per_commit", "write_amplification"]),
];

/// What scans read per second. For tables in memory it is zero, and is not shown.
const READS: &str = "rmbps";

/// The tables, for metrics that any step has.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let steps: Vec<&StepFindings> = scope.steps().collect();
    let of_group = |(name, ids): (&'static str, &'static [&'static str])| {
        let groups = MetricGroup::ALL.iter().filter(move |group| group.name == name);
        let metrics = groups.flat_map(|group| group.in_tables().map(move |metric| (group, metric)));
        metrics.filter(move |(_, metric)| ids.is_empty() || ids.contains(&metric.id))
    };
    let shown = SHOWN.into_iter().flat_map(of_group);
    let tables = shown.map(|(group, metric)| of_metric(&steps, &scope.run.base, group, metric));
    tables.filter(|table| !table.rows.is_empty()).collect()
}

/// One row per step, with the medians of the valid blocks and then the ratios to the base.
fn of_metric(steps: &[&StepFindings], base: &str, group: &MetricGroup, metric: &Metric) -> Table {
    let of = |run: &StepRun| {
        let figure = (group.of)(run)?.value(metric)?;
        (metric.id != READS || figure > 0.0).then_some(figure)
    };
    let relative = |variant: &VariantStep| {
        let (of, _) = group.relative?;
        of(variant.to_base.relative.as_ref()?).value(metric)
    };
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
        let figure = |name: &&str| step.variant(name)?.median(of);
        let figures: Vec<Option<f64>> = variants.iter().map(figure).collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let scaled = figures.iter().map(|value| value.map(|value| metric.factor * value));
        let cells = scaled.map(|value| cell(value, fixed(value, metric.decimals)));
        let ratios = others().map(|name| step.variant(name).and_then(relative));
        let ratios = ratios.map(|ratio| cell(ratio, ratio_text(ratio)));
        table.push(std::iter::once(Cell::from(step.name.as_str())).chain(cells).chain(ratios));
    }
    table
}

fn cell(value: Option<f64>, text: String) -> Cell {
    value.map_or_else(|| Cell::from(NOT_AVAILABLE), |value| number(value, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_metric_has_the_medians_of_all_variants_and_the_ratios_of_all_but_the_base() {
        let findings = fixture::with_blocks(3);
        let tables = tables(Scope::of(&findings, &findings.workloads[0]));
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
