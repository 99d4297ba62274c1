//! Writes findings as a table for spreadsheets and statistics, with one row per block, variant and
//! step.

use std::collections::BTreeMap;

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{Findings, MetricGroup, StepFindings, StepRun, VariantStep, WorkloadFindings};

use crate::evidence::rates::block_ratio;
use crate::evidence::{reason, state};
use crate::figures::{figures, over_blocks};
use crate::number::NOT_AVAILABLE;
use crate::value::Value;

/// A column's name and its value in one row.
type Cell = (String, Value);

/// The CSV report (RFC 4180 quoting, lines end in `\n`). Numbers are not rounded, and a missing
/// value is `NA`.
pub(crate) fn csv(findings: &Findings) -> String {
    let of_variant = |(workload, step, variant): (_, _, _)| of_variant(findings, workload, step, variant);
    let rows: Vec<Vec<Cell>> = findings.variants_of_steps().flat_map(of_variant).collect();
    let (mut heads, mut places): (Vec<&str>, BTreeMap<&str, usize>) = Default::default();
    for (name, _) in rows.iter().flatten() {
        places.entry(name).or_insert_with(|| {
            heads.push(name);
            heads.len() - 1
        });
    }
    let mut text = line(heads.iter().map(|head| (*head).to_owned()));
    for row in &rows {
        let mut fields = vec![NOT_AVAILABLE.to_owned(); heads.len()];
        row.iter().for_each(|(name, value)| fields[places[name.as_str()]] = value.to_string());
        text.push_str(&line(fields.into_iter()));
    }
    text
}

/// One row per run of the variant: what the run is, what all blocks say together, and its figures.
fn of_variant(
    findings: &Findings,
    workload: &WorkloadFindings,
    step: &StepFindings,
    variant: &VariantStep,
) -> Vec<Vec<Cell>> {
    // What all blocks say together is the same in each row.
    let over_blocks = over_blocks(&findings.run.base, step, variant).into_iter();
    let over_blocks: Vec<Cell> =
        over_blocks.map(|(name, value)| (format!("{name}_over_blocks"), value)).collect();
    let others = relative(variant).into_iter().chain(groups(step)).chain(settings(findings, variant));
    let others: Vec<Cell> = others.collect();
    let of_run = |run: &StepRun| {
        let place: [(&str, Value); 8] = [
            ("run", findings.run.run_id.as_str().into()),
            ("workload", workload.name.as_str().into()),
            ("block", run.block.into()),
            ("variant", variant.variant.as_str().into()),
            ("step", step.name.as_str().into()),
            ("state", state(&run.validity).into()),
            ("reason", reason(&run.validity).into()),
            ("ratio_to_base", block_ratio(variant, run.block).into()),
        ];
        let place = place.into_iter().map(|(name, value)| (name.to_owned(), value));
        let figures = figures(step, run).into_iter().map(|figure| (figure.full_name(), figure.value));
        place.chain(over_blocks.clone()).chain(figures).chain(others.clone()).collect()
    };
    variant.runs.iter().map(of_run).collect()
}

/// Metrics over all blocks ÷ the base's.
fn relative(variant: &VariantStep) -> Vec<Cell> {
    let relative = variant.to_base.relative.as_ref();
    let mut cells = Vec::new();
    for (group, (of, _)) in MetricGroup::ALL.iter().filter_map(|group| Some((group, group.relative?))) {
        let of = relative.map(of);
        let cell = |metric: &'static Metric| {
            let value = of.and_then(|of| of.value(metric));
            (format!("{}_to_base_over_blocks", metric.id), value.into())
        };
        cells.extend(group.in_tables().map(cell));
    }
    cells
}

/// The step's group in each grouping of published tables.
fn groups(step: &StepFindings) -> impl Iterator<Item = Cell> {
    step.groups.iter().map(|(grouping, group)| (format!("group_{grouping}"), group.as_str().into()))
}

/// Classes of settings in which the variant differs from the base, intended or not.
fn settings(findings: &Findings, variant: &VariantStep) -> Option<Cell> {
    let differences = findings.parity.as_ref()?.differences(&findings.run.base, &variant.variant);
    let classes = differences.into_iter().map(|found| found.class).collect::<Vec<_>>().join(" ");
    Some(("settings_unlike_base".to_owned(), classes.into()))
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_field_is_quoted_only_when_it_must_be() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
    }

    /// The texts below a head, in the order of the rows.
    fn below(text: &str, head: &str) -> Vec<String> {
        // In the fixture, no name and no text before these columns holds a comma or a line feed.
        let column = text.lines().next().and_then(|heads| heads.split(',').position(|name| name == head));
        let column = column.unwrap_or_else(|| panic!("no column {head}"));
        let cell = |line: &str| line.split(',').nth(column).unwrap_or_default().to_owned();
        text.lines().skip(1).take(2).map(cell).collect()
    }

    #[test]
    fn rows_have_their_group_their_target_and_relative_metrics() {
        let text = csv(&fixture::with_groups());
        assert_eq!(below(&text, "group_2024"), ["writes", "writes"]);
        let text: String =
            text.lines().filter(|line| !line.contains(",rollback,l.")).map(|l| format!("{l}\n")).collect();
        assert_eq!(below(&text, "ips_to_base_over_blocks"), ["1.02", "1.02"]);
        assert_eq!(below(&text, "rps_to_base_over_blocks"), ["inf", "inf"]);
        assert_eq!(below(&text, "host_check_unexplained_us"), ["5", "5"]);
        assert_eq!(below(&text, "target_over_blocks"), ["NA", "NA"], "l.i0 has none");
        assert_eq!(below(&text, "lookup_min_id_count"), ["8", "8"]);
        assert_eq!(below(&text, "lookup_min_id_mean_seconds"), ["0.0015", "0.0015"]);
        assert_eq!(below(&text, "lookup_insert_seconds"), ["NA", "NA"], "of l.x only");
    }

    #[test]
    fn the_table_of_the_fixture() {
        let text = csv(&fixture::findings());
        assert_eq!(text.lines().count(), 1 + 20);
        insta::assert_snapshot!("csv", text);
    }
}
