//! What the files hold: rows from findings and histograms.

use dbdyno_analyse::metrics::{Figures, Metric};
use dbdyno_analyse::{
    Findings, OperationHistogram, RunSummary, StepFindings, StepRun, Validity, VariantStep, Verdict,
};

use super::file::{Table, Value};
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

fn text(value: impl Into<String>) -> Value {
    Value::Text(Some(value.into()))
}

fn whole(value: u64) -> Value {
    Value::Whole(i64::try_from(value).ok())
}

fn number(value: f64) -> Value {
    Value::Number(Some(value))
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
        place: [(&'static str, Value); 3],
        cells: impl IntoIterator<Item = (&'static str, Value)>,
    ) {
        let of_run = [("run", text(&run.run_id)), ("plan", text(&run.name)), ("started", text(&run.started))];
        for (at, (name, value)) in of_run.into_iter().chain(place).chain(cells).enumerate() {
            if at == self.columns.len() {
                self.columns.push((name, Vec::new()));
            }
            self.columns[at].1.push(value);
        }
    }
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
    let mut rows = Table::new("steps");
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
        rows.push(&findings.run, place(workload, &step.name, &variant.variant), columns);
    }
    rows
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
    let mut rows = Table::new("figures");
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
            rows.push(&findings.run, place(workload, &step.name, &variant.variant), columns);
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
    rows
}

fn seconds(findings: &Findings) -> Table {
    let mut rows = Table::new("seconds");
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
                ("second", whole(second.second)),
                ("read_kib_per_second", number(second.read_kib_per_second)),
                ("written_kib_per_second", number(second.written_kib_per_second)),
                ("await_ms", Value::Number(second.await_ms)),
                ("queue_depth", Value::Number(second.queue_depth)),
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
                ("block", whole(u64::from(histogram.block))),
                ("kind", text(&histogram.kind)),
                ("clock", text(histogram.clock)),
                ("from_us", whole(*from_us)),
                ("to_us", whole(*to_us)),
                ("count", whole(*count)),
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
