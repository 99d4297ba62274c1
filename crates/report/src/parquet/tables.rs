//! What the files hold: rows from findings and histograms.

use dbdyno_analyse::tables::{self as analyse_tables, Key};
use dbdyno_analyse::{
    Agreement, Bound, Cause, Findings, OperationHistogram, RunSummary, StepFindings, StepRun, Validity,
    VariantStep, Verdict, workload_and_setup,
};

use super::file::Table;
use crate::value::Value;

pub(super) fn all(findings: &Findings, histograms: &[OperationHistogram]) -> Vec<Table> {
    let tables = analyse_tables::Tables::of(findings);
    vec![
        observations(findings, &tables),
        comparisons(findings, &tables),
        failures(findings),
        seconds(findings),
        device_seconds(findings),
        of_histograms(findings, histograms),
    ]
}

impl Table {
    fn new(name: &'static str) -> Self {
        Self { name, columns: Vec::new() }
    }

    /// What every file begins with, then these cells. The first row decides which columns there
    /// are.
    fn push(
        &mut self,
        run: &RunSummary,
        place: [(&'static str, Value); 4],
        cells: impl IntoIterator<Item = (&'static str, Value)>,
    ) {
        let of_run = [("run", &run.run_id), ("plan", &run.name), ("started", &run.started)]
            .map(|(name, text)| (name, text.as_str().into()));
        for (at, (name, value)) in of_run.into_iter().chain(place).chain(cells).enumerate() {
            if at == self.columns.len() {
                self.columns.push((name, Vec::new()));
            }
            self.columns[at].1.push(value);
        }
    }
}

/// `workload`: with its set-up.
fn place(workload: &str, step: &str, variant: &str) -> [(&'static str, Value); 4] {
    let (workload, setup) = workload_and_setup(workload);
    of_key(workload, setup, step, variant)
}

fn of_key(workload: &str, setup: Option<&str>, step: &str, variant: &str) -> [(&'static str, Value); 4] {
    [
        ("workload", Some(workload).filter(|name| !name.is_empty()).into()),
        ("setup", setup.into()),
        ("step", step.into()),
        ("variant", variant.into()),
    ]
}

fn all_runs(findings: &Findings) -> impl Iterator<Item = (&str, &StepFindings, &VariantStep, &StepRun)> {
    findings.variants_of_steps().flat_map(|(workload, step, variant)| {
        variant.runs.iter().map(move |run| (workload.name.as_str(), step, variant, run))
    })
}

fn valid(run: &StepRun) -> (&'static str, Value) {
    ("valid", (run.validity == Validity::Valid).into())
}

fn block(run: &StepRun) -> (&'static str, Value) {
    ("block", run.block.into())
}

fn key_columns(key: &Key<'_>) -> [(&'static str, Value); 4] {
    [
        ("connections", key.connections.into()),
        ("block", key.block.into()),
        ("machine", key.machine.into()),
        ("source", key.source.name().into()),
    ]
}

fn observations(findings: &Findings, tables: &analyse_tables::Tables<'_>) -> Table {
    let mut rows = Table::new("observations");
    for one in &tables.observations {
        let columns = [
            ("valid", one.validity.map(|validity| *validity == Validity::Valid).into()),
            ("state", one.validity.map(Validity::state).into()),
            ("metric", one.metric.as_ref().into()),
            ("unit", one.unit.into()),
            ("value", one.value.into()),
        ];
        let key = &one.key;
        let columns = key_columns(key).into_iter().chain(columns);
        rows.push(&findings.run, of_key(key.workload, key.setup, key.step, key.variant), columns);
    }
    rows
}

fn comparisons(findings: &Findings, tables: &analyse_tables::Tables<'_>) -> Table {
    let mut rows = Table::new("comparisons");
    for one in &tables.comparisons {
        let columns = [
            ("base", one.base.into()),
            ("metric", one.metric.into()),
            ("ratio", one.ratio.into()),
            ("bound", one.bound.map(Bound::name).into()),
            ("low", one.interval.map(|interval| interval.low).into()),
            ("high", one.interval.map(|interval| interval.high).into()),
            ("p", one.p().into()),
            ("verdict", one.verdict.map(Verdict::word).into()),
            ("cause", one.cause.map(Cause::name).into()),
            ("agreement", one.agreement.map(Agreement::name).into()),
        ];
        let key = &one.key;
        let columns = key_columns(key).into_iter().chain(columns);
        rows.push(&findings.run, of_key(key.workload, key.setup, key.step, key.variant), columns);
    }
    rows
}

/// Cells that failed: of those that did not come to a step there is no other row.
fn failures(findings: &Findings) -> Table {
    let mut rows = Table::new("failures");
    for failure in &findings.failures {
        let (workload, setup) = workload_and_setup(&failure.workload);
        let columns = [("block", failure.block.into()), ("message", failure.message.as_str().into())];
        let place = [
            ("workload", workload.into()),
            ("setup", setup.into()),
            ("step", None::<&str>.into()),
            ("variant", failure.variant.as_str().into()),
        ];
        rows.push(&findings.run, place, columns);
    }
    rows
}

fn seconds(findings: &Findings) -> Table {
    let mut rows = Table::new("seconds");
    for (workload, step, variant, run) in all_runs(findings) {
        for point in &run.seconds {
            let columns = [
                block(run),
                valid(run),
                ("kind", point.kind.as_str().into()),
                ("second", point.second.into()),
                ("rate", point.rate.into()),
                ("service_max_us", point.service_max_us.into()),
                ("response_max_us", point.response_max_us.into()),
            ];
            rows.push(&findings.run, place(workload, &step.name, &variant.variant), columns);
        }
    }
    rows
}

fn device_seconds(findings: &Findings) -> Table {
    let mut rows = Table::new("device_seconds");
    for (workload, step, variant, run) in all_runs(findings) {
        for second in &run.device_seconds {
            let columns = [
                block(run),
                valid(run),
                ("second", second.second.into()),
                ("read_kib_per_second", second.read_kib_per_second.into()),
                ("written_kib_per_second", second.written_kib_per_second.into()),
                ("await_ms", second.await_ms.into()),
                ("queue_depth", second.queue_depth.into()),
            ];
            rows.push(&findings.run, place(workload, &step.name, &variant.variant), columns);
        }
    }
    rows
}

/// A row for each range of times of each histogram.
fn of_histograms(findings: &Findings, histograms: &[OperationHistogram]) -> Table {
    let mut rows = Table::new("histograms");
    for histogram in histograms {
        for (from_us, to_us, count) in &histogram.counts {
            let columns = [
                ("block", histogram.block.into()),
                ("kind", histogram.kind.as_str().into()),
                ("clock", histogram.clock.into()),
                ("from_us", (*from_us).into()),
                ("to_us", (*to_us).into()),
                ("count", (*count).into()),
            ];
            rows.push(
                &findings.run,
                place(&histogram.workload, &histogram.step, &histogram.variant),
                columns,
            );
        }
    }
    rows
}
