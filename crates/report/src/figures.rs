//! Every figure of one run of a step under its name. CSV has the figures as columns, and Parquet as
//! rows.

use dbdyno_analyse::metrics::{Figures, Metric};
use dbdyno_analyse::{
    HostCheck, KindResult, Latency, Lookups, MetricGroup, Steadiness, StepFindings, StepRun, Validity,
    VariantStep, Verdict,
};

use crate::value::Value;

/// A figure, described as in the catalogue of metrics.
pub(crate) struct Figure {
    /// What the figure belongs to: `step`, a group of metrics, `steadiness`, `host_check`,
    /// `lookup_min_id`, or a kind of operation with its clock, such as `query_response`.
    pub(crate) family: String,
    /// Name within the family.
    pub(crate) name: &'static str,
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "columns of CSV have no unit"))]
    pub(crate) unit: String,
    pub(crate) value: Value,
}

/// Families whose names differ from those of all others. In a table of all figures, their names
/// stand without the family's.
const ALONE: [&str; 5] = ["step", "steadiness", "metrics", "efficiency", "cost"];

impl Figure {
    /// The figure's name among all figures: `rate`, `device_await_ms`, `query_response_p99_us`.
    pub(crate) fn full_name(&self) -> String {
        match ALONE.contains(&self.family.as_str()) {
            true => self.name.to_owned(),
            false => format!("{}_{}", self.family, self.name),
        }
    }
}

/// What all blocks of a variant in a step say together, each figure under its name.
pub(crate) fn over_blocks(
    base: &str,
    step: &StepFindings,
    variant: &VariantStep,
) -> Vec<(&'static str, Value)> {
    let (to_base, latency) = (&variant.to_base, variant.latency.as_ref());
    let (inference, p99) = (to_base.inference(), to_base.p99.as_ref());
    let interval = inference.map(|inference| inference.interval);
    let of_p99 = p99.and_then(|found| found.ratio.interval());
    let time = |of: fn(&Latency) -> u64| Value::from(latency.map(of));
    vec![
        ("base", base.into()),
        ("connections", step.connections.into()),
        ("rate_unit", step.rate_label.as_str().into()),
        ("valid_blocks", variant.valid_runs().count().into()),
        ("rate", variant.rate.into()),
        ("rate_min", variant.rate_min.into()),
        ("rate_max", variant.rate_max.into()),
        ("ratio", to_base.value().into()),
        ("ratio_low", interval.map(|interval| interval.low).into()),
        ("ratio_high", interval.map(|interval| interval.high).into()),
        ("q_difference", inference.map(|inference| inference.q_difference).into()),
        ("verdict", to_base.verdict.map(Verdict::word).into()),
        ("mean_us", latency.map(|latency| latency.mean_us).into()),
        ("operations", time(|latency| latency.count)),
        ("p50_us", time(|latency| latency.p50_us)),
        ("p95_us", time(|latency| latency.p95_us)),
        ("p99_us", time(|latency| latency.p99_us)),
        ("p999_us", time(|latency| latency.p999_us)),
        ("max_us", time(|latency| latency.max_us)),
        ("p99_ratio", p99.map(|found| found.ratio.value).into()),
        ("p99_ratio_low", of_p99.map(|interval| interval.low).into()),
        ("p99_ratio_high", of_p99.map(|interval| interval.high).into()),
        ("p99_verdict", p99.and_then(|found| found.verdict).map(Verdict::word).into()),
        ("target", step.target.map(|(rows, _)| rows).into()),
        ("target_share", step.target.map(|(_, share)| share).into()),
        ("background_rate", variant.background_rate.into()),
    ]
}

/// A figure's name, its unit, and the function that reads it.
type Field<T> = (&'static str, &'static str, fn(&T) -> Value);

/// All figures in the order of a table: the step, its metrics, then what only some steps have.
pub(crate) fn figures(step: &StepFindings, run: &StepRun) -> Vec<Figure> {
    let mut all = Vec::new();
    // A run that did not come to its end has no rate, but it has all else that was counted.
    if matches!(run.validity, Validity::Valid | Validity::Invalid { .. }) {
        let (family, unit) = ("step".to_owned(), step.rate_label.clone());
        all.push(Figure { family, name: "rate", unit, value: run.rate.into() });
        add(&mut all, "step", STEP, run);
    }
    for group in MetricGroup::ALL {
        let found = (group.of)(run).into_iter().flat_map(|group| group.figures());
        all.extend(found.map(|(metric, value)| of_metric(group.name, metric, value)));
    }
    if let Some(found) = &run.host_check {
        all.extend(found.figures().into_iter().map(|(metric, value)| of_metric("host_check", metric, value)));
        add(&mut all, "host_check", HOST_CHECK, found);
    }
    if let Some(found) = &run.steadiness {
        add(&mut all, "steadiness", STEADINESS, found);
    }
    for found in &run.lookups {
        add(&mut all, &format!("lookup_{}", found.name), LOOKUPS, found);
    }
    for kind in &run.kinds {
        add(&mut all, &kind.kind, KIND, kind);
        for (clock, times) in [("service", &kind.service), ("response", &kind.response)] {
            if times.count > 0 {
                add(&mut all, &format!("{}_{clock}", kind.kind), LATENCY, times);
            }
        }
    }
    all
}

fn add<T>(all: &mut Vec<Figure>, family: &str, fields: &[Field<T>], of: &T) {
    all.extend(fields.iter().map(|(name, unit, value)| Figure {
        family: family.to_owned(),
        name,
        unit: (*unit).to_owned(),
        value: value(of),
    }));
}

fn of_metric(family: &str, metric: &Metric, value: Option<f64>) -> Figure {
    Figure { family: family.to_owned(), name: metric.id, unit: metric.unit.to_owned(), value: value.into() }
}

const STEP: &[Field<StepRun>] = &[
    ("window_seconds", "s", |run| run.window_seconds.into()),
    ("seconds_on_target", "", |run| run.seconds_on_target.into()),
    ("judged_background_rate", "rows/s", |run| run.judged_background_rate.into()),
];

const HOST_CHECK: &[Field<HostCheck>] = &[
    ("unexplained_share", "", |found| found.unexplained_share.into()),
    ("bound_share", "", |found| found.bound_share.into()),
];

const STEADINESS: &[Field<Steadiness>] = &[
    ("worst_second_rate", "1/s", |found| found.worst_rate.into()),
    ("longest_gap_seconds", "s", |found| found.longest_gap_seconds.into()),
    ("share_below_half_median", "", |found| found.share_below_half_median.into()),
    ("warm_up_seconds", "s", |found| found.warm_up_seconds.into()),
    ("became_steady", "", |found| (!found.never_steady).into()),
    ("period_seconds", "s", |found| found.period_seconds.into()),
    ("two_modes", "", |found| found.modes.is_some().into()),
];

const LOOKUPS: &[Field<Lookups>] = &[
    ("count", "", |found| found.count.into()),
    ("seconds", "s", |found| found.seconds.into()),
    ("mean_seconds", "s", |found| found.mean_seconds.into()),
    ("max_seconds", "s", |found| found.max_seconds.into()),
];

const KIND: &[Field<KindResult>] = &[
    ("connections", "", |kind| kind.connections.into()),
    ("operations", "", |kind| kind.operations.into()),
    ("rows", "", |kind| kind.rows.into()),
    ("failed", "", |kind| kind.failed.into()),
    ("dropped", "", |kind| kind.dropped.into()),
    ("errors", "", |kind| kind.errors.total().into()),
    ("operations_per_second", "1/s", |kind| kind.operations_per_second.into()),
    ("rows_per_second", "rows/s", |kind| kind.rows_per_second.into()),
    ("statements_per_second", "1/s", |kind| kind.statements_per_second.into()),
];

const LATENCY: &[Field<Latency>] = &[
    ("mean_us", "us", |times| times.mean_us.into()),
    ("p50_us", "us", |times| times.p50_us.into()),
    ("p90_us", "us", |times| times.p90_us.into()),
    ("p95_us", "us", |times| times.p95_us.into()),
    ("p99_us", "us", |times| times.p99_us.into()),
    ("p999_us", "us", |times| times.p999_us.into()),
    ("max_us", "us", |times| times.max_us.into()),
];
