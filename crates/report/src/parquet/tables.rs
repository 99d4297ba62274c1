//! Content of the Parquet files: rows from findings and histograms.

use dbdyno_analyse::{
    Findings, OperationHistogram, RunSummary, StepFindings, StepRun, Validity, VariantStep,
};

use super::file::Table;
use crate::evidence::state;
use crate::figures::{self, over_blocks};
use crate::value::Value;

pub(super) fn all(findings: &Findings, histograms: &[OperationHistogram]) -> Vec<Table> {
    vec![
        steps(findings),
        figures(findings),
        seconds(findings),
        device_seconds(findings),
        of_histograms(findings, histograms),
    ]
}

impl Table {
    fn new(name: &'static str) -> Self {
        Self { name, columns: Vec::new() }
    }

    /// Adds a row: the columns that every file begins with, then these values. The first row
    /// decides which columns there are.
    fn push(
        &mut self,
        run: &RunSummary,
        place: [(&'static str, Value); 3],
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

fn place(workload: &str, step: &str, variant: &str) -> [(&'static str, Value); 3] {
    [("workload", workload.into()), ("step", step.into()), ("variant", variant.into())]
}

fn all_runs(findings: &Findings) -> impl Iterator<Item = (&str, &StepFindings, &VariantStep, &StepRun)> {
    findings.variants_of_steps().flat_map(|(workload, step, variant)| {
        variant.runs.iter().map(move |run| (workload.name.as_str(), step, variant, run))
    })
}

/// One row per variant and step, with what the blocks say together.
fn steps(findings: &Findings) -> Table {
    let mut rows = Table::new("steps");
    for (workload, step, variant) in findings.variants_of_steps() {
        let columns = over_blocks(&findings.run.base, step, variant);
        rows.push(&findings.run, place(&workload.name, &step.name, &variant.variant), columns);
    }
    rows
}

fn valid(run: &StepRun) -> (&'static str, Value) {
    ("valid", (run.validity == Validity::Valid).into())
}

fn block(run: &StepRun) -> (&'static str, Value) {
    ("block", run.block.into())
}

/// One row per figure that is a number, for each run of a step.
fn figures(findings: &Findings) -> Table {
    let mut rows = Table::new("figures");
    for (workload, step, variant, run) in all_runs(findings) {
        for figure in figures::figures(step, run) {
            let Some(value) = number(&figure.value) else { continue };
            let columns = [
                block(run),
                valid(run),
                ("state", state(&run.validity).into()),
                ("family", figure.family.into()),
                ("figure", figure.name.into()),
                ("unit", figure.unit.into()),
                ("value", value.into()),
            ];
            rows.push(&findings.run, place(workload, &step.name, &variant.variant), columns);
        }
    }
    rows
}

/// The value as a number; 1 or 0 for a flag. `None` for other values.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Text(_) => None,
        Value::Whole(number) => number.map(|number| number as f64),
        Value::Number(number) => *number,
        Value::Flag(flag) => flag.map(|flag| f64::from(u8::from(flag))),
    };
    number.filter(|number| number.is_finite())
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

/// One row per range of times, for each histogram.
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
