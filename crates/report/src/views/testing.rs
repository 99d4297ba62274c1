//! Small tables for the tests of views, from a run of `insert-benchmark` whose base is `old`. Other
//! functions return the texts of tables for these tests.

use std::borrow::Cow;

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::tables::{ComparisonRow, Key, Observation, ValueSource};
use dbdyno_analyse::{Findings, MetricGroup, Verdict};

use super::Scope;
use crate::document::{Column, Table};

/// Returns the key of a variant in a step, over all blocks.
fn key((step, variant): (&'static str, &'static str)) -> Key<'static> {
    Key {
        workload: "insert-benchmark",
        setup: None,
        step,
        connections: Some(1),
        variant,
        block: None,
        machine: None,
        source: ValueSource::Run,
    }
}

pub(super) fn observation(
    place: (&'static str, &'static str),
    metric: &'static str,
    value: f64,
) -> Observation<'static> {
    let (metric, entry) = (Cow::Borrowed(metric), entry(metric));
    Observation { key: key(place), metric, unit: "", value, validity: None, entry }
}

pub(super) fn comparison(
    place: (&'static str, &'static str),
    metric: &'static str,
    ratio: f64,
) -> ComparisonRow<'static> {
    ComparisonRow {
        key: key(place),
        base: "old",
        metric,
        ratio: Some(ratio),
        bound: None,
        interval: None,
        inference: None,
        verdict: Some(Verdict::Undecided),
        cause: None,
        agreement: None,
        details: None,
        entry: entry(metric),
    }
}

pub(super) fn entry(id: &str) -> Option<&'static Metric> {
    MetricGroup::ALL.iter().flat_map(|group| group.metrics).find(|metric| metric.id == id)
}

/// Returns the scope of findings that have one workload.
pub(super) fn scope(findings: &Findings) -> Scope<'_> {
    Scope::of(findings, &findings.workloads[0])
}

/// Returns a table's texts, with one line per row.
pub(super) fn rows(table: &Table) -> String {
    table.rows.iter().map(|row| row.join(" | ").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Returns the name and the unit of each column.
pub(super) fn heads(table: &Table) -> Vec<String> {
    let head = |column: &Column| format!("{} {}", column.name, column.unit).trim_end().to_owned();
    table.columns.iter().map(head).collect()
}
