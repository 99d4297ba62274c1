//! What the files hold: rows from findings and histograms.

use dbdyno_analyse::metrics::{Figures, Metric};
use dbdyno_analyse::{Findings, OperationHistogram, StepFindings, StepRun, Validity, VariantStep, Verdict};

use super::file::{Column, Table};
use crate::evidence::state;

pub(super) fn all(findings: &Findings, histograms: &[OperationHistogram]) -> Vec<Table> {
    vec![
        steps(findings),
        figures(findings),
        seconds(findings),
        device_seconds(findings),
        of_histograms(findings, histograms),
    ]
}

/// Rows that grow together, a cell at a time.
struct Rows {
    name: &'static str,
    columns: Vec<(&'static str, Column)>,
}

/// A value of any column's type.
enum Value {
    Text(Option<String>),
    Whole(Option<i64>),
    Number(Option<f64>),
    Flag(Option<bool>),
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(Some(value.into()))
}

fn whole(value: u64) -> Value {
    Value::Whole(i64::try_from(value).ok())
}

fn number(value: f64) -> Value {
    Value::Number(Some(value))
}

impl Rows {
    fn new(name: &'static str) -> Self {
        Self { name, columns: Vec::new() }
    }

    /// The first row decides which columns there are.
    fn push(&mut self, cells: impl IntoIterator<Item = (&'static str, Value)>) {
        for (at, (name, value)) in cells.into_iter().enumerate() {
            if at == self.columns.len() {
                let column = match value {
                    Value::Text(_) => Column::Text(Vec::new()),
                    Value::Whole(_) => Column::Whole(Vec::new()),
                    Value::Number(_) => Column::Number(Vec::new()),
                    Value::Flag(_) => Column::Flag(Vec::new()),
                };
                self.columns.push((name, column));
            }
            match (&mut self.columns[at].1, value) {
                (Column::Text(values), Value::Text(value)) => values.push(value),
                (Column::Whole(values), Value::Whole(value)) => values.push(value),
                (Column::Number(values), Value::Number(value)) => values.push(value),
                (Column::Flag(values), Value::Flag(value)) => values.push(value),
                _ => unreachable!("a column has one type"),
            }
        }
    }

    fn done(self) -> Table {
        Table { name: self.name, columns: self.columns }
    }
}

/// What every file begins with.
fn of_run(findings: &Findings) -> [(&'static str, Value); 3] {
    let run = &findings.run;
    [("run", text(&run.run_id)), ("plan", text(&run.name)), ("started", text(&run.started))]
}

fn place(workload: &str, step: &str, variant: &str) -> [(&'static str, Value); 3] {
    [("workload", text(workload)), ("step", text(step)), ("variant", text(variant))]
}

fn all_steps(findings: &Findings) -> impl Iterator<Item = (&str, &StepFindings, &VariantStep)> {
    findings.workloads.iter().flat_map(|workload| {
        let of_step = |step: &'_ StepFindings| -> Vec<usize> { (0..step.variants.len()).collect() };
        workload.steps.iter().flat_map(move |step| {
            of_step(step).into_iter().map(move |at| (workload.name.as_str(), step, &step.variants[at]))
        })
    })
}

fn all_runs(findings: &Findings) -> impl Iterator<Item = (&str, &StepFindings, &VariantStep, &StepRun)> {
    all_steps(findings).flat_map(|(workload, step, variant)| {
        variant.runs.iter().map(move |run| (workload, step, variant, run))
    })
}

/// A row for each variant in each step: what the blocks say together.
fn steps(findings: &Findings) -> Table {
    let mut rows = Rows::new("steps");
    for (workload, step, variant) in all_steps(findings) {
        let ratio = variant.ratio.as_ref();
        let inference = ratio.and_then(|ratio| ratio.inference.as_ref());
        let (latency, p99) = (variant.latency.as_ref(), variant.p99.as_ref());
        let time = |of: fn(&dbdyno_analyse::Latency) -> u64| {
            Value::Whole(latency.and_then(|latency| i64::try_from(of(latency)).ok()))
        };
        let columns = [
            ("base", text(&findings.run.base)),
            ("connections", whole(u64::from(step.connections))),
            ("rate_unit", text(&step.rate_label)),
            ("valid_blocks", whole(variant.runs.iter().filter(|run| is_valid(run)).count() as u64)),
            ("rate", Value::Number(variant.rate)),
            ("rate_min", Value::Number(variant.rate_min)),
            ("rate_max", Value::Number(variant.rate_max)),
            ("ratio", Value::Number(ratio.map(|ratio| ratio.value))),
            ("ratio_low", Value::Number(inference.map(|inference| inference.interval.low))),
            ("ratio_high", Value::Number(inference.map(|inference| inference.interval.high))),
            ("q_difference", Value::Number(inference.map(|inference| inference.q_difference))),
            ("verdict", Value::Text(variant.verdict.map(Verdict::word).map(str::to_owned))),
            ("mean_us", Value::Number(latency.map(|latency| latency.mean_us))),
            ("operations", time(|latency| latency.count)),
            ("p50_us", time(|latency| latency.p50_us)),
            ("p95_us", time(|latency| latency.p95_us)),
            ("p99_us", time(|latency| latency.p99_us)),
            ("p999_us", time(|latency| latency.p999_us)),
            ("max_us", time(|latency| latency.max_us)),
            ("p99_ratio", Value::Number(p99.map(|p99| p99.ratio.value))),
            (
                "p99_verdict",
                Value::Text(p99.and_then(|p99| p99.verdict).map(Verdict::word).map(str::to_owned)),
            ),
        ];
        rows.push(
            of_run(findings).into_iter().chain(place(workload, &step.name, &variant.variant)).chain(columns),
        );
    }
    rows.done()
}

fn is_valid(run: &StepRun) -> bool {
    run.validity == Validity::Valid
}

fn valid(run: &StepRun) -> (&'static str, Value) {
    ("valid", Value::Flag(Some(is_valid(run))))
}

fn block(run: &StepRun) -> (&'static str, Value) {
    ("block", whole(u64::from(run.block)))
}

/// A row for each figure of each run of a step, under the names of the catalogue of metrics.
fn figures(findings: &Findings) -> Table {
    let mut rows = Rows::new("figures");
    for (workload, step, variant, run) in all_runs(findings) {
        let mut put = |group: &'static str, name: &str, unit: &str, value: f64| {
            let columns = [
                block(run),
                valid(run),
                ("state", text(state(&run.validity))),
                ("family", text(group)),
                ("figure", text(name)),
                ("unit", text(unit)),
                ("value", number(value)),
            ];
            let place = place(workload, &step.name, &variant.variant);
            rows.push(of_run(findings).into_iter().chain(place).chain(columns));
        };
        put("step", "rate", &step.rate_label, run.rate);
        put("step", "window_seconds", "s", run.window_seconds);
        let mut group = |name: &'static str, figures: Vec<(&Metric, Option<f64>)>| {
            for (metric, value) in figures {
                if let Some(value) = value.filter(|value| value.is_finite()) {
                    put(name, metric.id, metric.unit, value);
                }
            }
        };
        group("metrics", run.metrics.figures().collect());
        group("efficiency", run.efficiency.figures().collect());
        group("cost", run.cost.figures().collect());
        group("device", run.device.iter().flat_map(Figures::figures).collect());
    }
    rows.done()
}

fn seconds(findings: &Findings) -> Table {
    let mut rows = Rows::new("seconds");
    for (workload, step, variant, run) in all_runs(findings) {
        for point in &run.seconds {
            let time =
                |time_us: Option<u64>| Value::Whole(time_us.and_then(|time_us| i64::try_from(time_us).ok()));
            let columns = [
                block(run),
                valid(run),
                ("kind", text(&point.kind)),
                ("second", whole(point.second)),
                ("rate", number(point.rate)),
                ("service_max_us", time(point.service_max_us)),
                ("response_max_us", time(point.response_max_us)),
            ];
            let place = place(workload, &step.name, &variant.variant);
            rows.push(of_run(findings).into_iter().chain(place).chain(columns));
        }
    }
    rows.done()
}

fn device_seconds(findings: &Findings) -> Table {
    let mut rows = Rows::new("device_seconds");
    for (workload, step, variant, run) in all_runs(findings) {
        for second in &run.device_seconds {
            let columns = [
                block(run),
                valid(run),
                ("second", whole(second.second)),
                ("read_kib_per_second", number(second.read_kib_per_second)),
                ("written_kib_per_second", number(second.written_kib_per_second)),
                ("await_ms", Value::Number(second.await_ms)),
                ("queue_depth", Value::Number(second.queue_depth)),
            ];
            let place = place(workload, &step.name, &variant.variant);
            rows.push(of_run(findings).into_iter().chain(place).chain(columns));
        }
    }
    rows.done()
}

/// A row for each range of times of each histogram.
fn of_histograms(findings: &Findings, histograms: &[OperationHistogram]) -> Table {
    let mut rows = Rows::new("histograms");
    for histogram in histograms {
        for (from_us, to_us, count) in &histogram.counts {
            let columns = [
                ("block", whole(u64::from(histogram.block))),
                ("kind", text(&histogram.kind)),
                ("clock", text(histogram.clock)),
                ("from_us", whole(*from_us)),
                ("to_us", whole(*to_us)),
                ("count", whole(*count)),
            ];
            let place = place(&histogram.workload, &histogram.step, &histogram.variant);
            rows.push(of_run(findings).into_iter().chain(place).chain(columns));
        }
    }
    rows.done()
}
