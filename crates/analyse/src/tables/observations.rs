//! The values of metrics, for each run of a step and for all valid blocks together.

use std::borrow::Cow;

use crate::metrics::{Figures, HostCheck, Metric};
use crate::model::{
    GroupMemory, KindResult, Latency, Lookups, MetricGroup, Schedule, Steadiness, StepFindings, StepRun,
    Validity, VariantStep,
};
use crate::tables::{Key, headline};

/// The value of a metric.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    pub key: Key<'a>,
    /// Name of the metric, such as `rate`, `server_cpu_us` or `query_response_p99_us`. No other
    /// metric has the same name.
    pub metric: Cow<'a, str>,
    pub unit: &'a str,
    pub value: f64,
    /// Whether the step's run is valid, and why not; `None` for all valid blocks together.
    pub validity: Option<&'a Validity>,
    /// The metric's entry in the catalogue; `None` for figures that are counted by kind of
    /// operation, and for the step's rate.
    pub entry: Option<&'static Metric>,
}

/// A figure: its name, which follows its family's name, its unit, and the function that reads it.
type Field<T> = (&'static str, &'static str, fn(&T) -> Option<f64>);

/// Adds what all of a variant's valid blocks say together. For metrics in the catalogue it is the
/// median.
pub(super) fn over_blocks<'a>(
    all: &mut Vec<Observation<'a>>,
    key: Key<'a>,
    step: &'a StepFindings,
    variant: &'a VariantStep,
) {
    let mut rows = Rows { all, key, validity: None };
    rows.add("", "valid_blocks", "blocks", Some(variant.valid_runs().count() as f64));
    let ends = [("", variant.rate), ("_min", variant.rate_min), ("_max", variant.rate_max)];
    for (end, value) in ends {
        rows.push(format!("{}{end}", headline(step)).into(), &step.rate_label, value, None);
    }
    rows.cut_off(step, variant.cut_off);
    if let Some(found) = &variant.latency {
        rows.fields("response", LATENCY, found);
    }
    rows.add("", "target", "rows/s", step.target.map(|(rows, _)| rows));
    rows.add("", "target_share", "", step.target.map(|(_, share)| share));
    rows.add("", "background_rate", "rows/s", variant.background_rate);
    rows.add("", "judged_background_rate", "rows/s", variant.judged_background_rate);
    for (group, metric) in catalogue() {
        let value = variant.median(|run| (group.of)(run)?.value(metric));
        rows.metric(prefix(group), metric, value);
    }
}

/// Adds a run's values: first the step's, then its metrics, then those that only some steps have.
pub(super) fn of_run<'a>(
    all: &mut Vec<Observation<'a>>,
    key: Key<'a>,
    step: &'a StepFindings,
    run: &'a StepRun,
) {
    let mut rows = Rows { all, key, validity: Some(&run.validity) };
    // A run that did not come to its end has no rate, but all other figures that were counted. Each
    // run has its window, so that no run is lost.
    if matches!(run.validity, Validity::Valid | Validity::Invalid { .. }) {
        rows.add("", headline(step), &step.rate_label, Some(run.rate));
        rows.cut_off(step, run.cut_off);
    }
    rows.fields("", STEP, run);
    for group in MetricGroup::ALL {
        for (metric, value) in (group.of)(run).into_iter().flat_map(Figures::figures) {
            rows.metric(prefix(group), metric, value);
        }
    }
    if let Some(found) = &run.host_check {
        for (metric, value) in found.figures() {
            rows.metric("host_check", metric, value);
        }
        rows.fields("host_check", HOST_CHECK, found);
    }
    if let Some(found) = &run.steadiness {
        rows.fields("", STEADINESS, found);
    }
    if let Some(found) = &run.group_memory {
        rows.fields("group_memory", GROUP_MEMORY, found);
    }
    for found in &run.lookups {
        rows.fields(&format!("lookup_{}", found.name), LOOKUPS, found);
    }
    if let Some(kind) = run.kind(&step.headline_kind) {
        rows.times("", "response", &kind.response);
    }
    for kind in &run.kinds {
        rows.fields(&kind.kind, KIND, kind);
        for (clock, times) in [("service", &kind.service), ("response", &kind.response)] {
            rows.times(&kind.kind, clock, times);
        }
        if let Some(schedule) = &kind.schedule {
            rows.fields(&kind.kind, SCHEDULE, schedule);
            rows.times(&kind.kind, "lag", &schedule.lag);
        }
    }
}

/// Returns the names of the catalogue's metrics, whether a run has values for them or not.
pub fn columns() -> impl Iterator<Item = String> {
    catalogue().map(|(group, metric)| named(prefix(group), metric.id).into_owned())
}

/// Returns every metric in the catalogue with its group.
fn catalogue() -> impl Iterator<Item = (&'static MetricGroup, &'static Metric)> {
    MetricGroup::ALL.iter().flat_map(|group| group.in_tables().map(move |metric| (group, metric)))
}

/// Returns the prefix of a group's names. Only the device has one, because its metrics have names
/// that other metrics have too.
fn prefix(group: &MetricGroup) -> &'static str {
    if group.is_compared { "" } else { group.name }
}

/// Returns the name of a metric, with its family's name in front where it has one.
fn named(family: &str, name: &'static str) -> Cow<'static, str> {
    match family {
        "" => Cow::Borrowed(name),
        family => Cow::Owned(format!("{family}_{name}")),
    }
}

/// The rows with one key.
struct Rows<'r, 'a> {
    all: &'r mut Vec<Observation<'a>>,
    key: Key<'a>,
    validity: Option<&'a Validity>,
}

impl<'a> Rows<'_, 'a> {
    /// Adds a row, and none where the value is not known.
    fn add(&mut self, family: &str, name: &'static str, unit: &'a str, value: Option<f64>) {
        self.push(named(family, name), unit, value, None);
    }

    fn metric(&mut self, family: &str, metric: &'static Metric, value: Option<f64>) {
        self.push(named(family, metric.id), metric.unit, value, Some(metric));
    }

    fn push(
        &mut self,
        metric: Cow<'a, str>,
        unit: &'a str,
        value: Option<f64>,
        entry: Option<&'static Metric>,
    ) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let (key, validity) = (self.key, self.validity);
        self.all.push(Observation { key, metric, unit, value, validity, entry });
    }

    fn fields<T>(&mut self, family: &str, fields: &[Field<T>], of: &T) {
        for (name, unit, value) in fields {
            self.add(family, name, unit, value(of));
        }
    }

    /// Adds the figures of response or service times. `kind` is empty for the headline's kind.
    fn times(&mut self, kind: &str, clock: &str, times: &Latency) {
        if times.count > 0 {
            let family = format!("{kind}_{clock}");
            self.fields(family.trim_start_matches('_'), LATENCY, times);
        }
    }

    /// Adds whether a time is only a bound, because its time limit ended it.
    fn cut_off(&mut self, step: &StepFindings, is_cut_off: bool) {
        self.add("", "cut_off", "", flag(is_cut_off).filter(|_| step.less_is_better));
    }
}

const STEP: &[Field<StepRun>] = &[
    ("window_seconds", "s", |run| Some(run.window_seconds)),
    ("seconds_on_target", "", |run| run.seconds_on_target),
    ("judged_background_rate", "rows/s", |run| run.judged_background_rate),
];

const HOST_CHECK: &[Field<HostCheck>] = &[
    ("unexplained_share", "", |found| Some(found.unexplained_share)),
    ("bound_share", "", |found| Some(found.bound_share)),
];

/// The steadiness figures. A flag is 1 or 0.
const STEADINESS: &[Field<Steadiness>] = &[
    ("whole_seconds", "s", |found| whole(found.seconds)),
    ("median_whole_second_rate", "1/s", |found| Some(found.median_rate)),
    ("worst_second_rate", "1/s", |found| Some(found.worst_rate)),
    ("worst_second_share", "", |found| found.worst_share),
    ("longest_gap_seconds", "s", |found| whole(found.longest_gap_seconds)),
    ("share_below_half_median", "", |found| Some(found.share_below_half_median)),
    ("warm_up_seconds", "s", |found| found.warm_up_seconds.and_then(whole)),
    ("became_steady", "", |found| flag(!found.never_steady)),
    ("period_seconds", "s", |found| found.period_seconds.and_then(whole)),
    ("low_mode_rate", "1/s", |found| found.modes.map(|[low, _]| low)),
    ("high_mode_rate", "1/s", |found| found.modes.map(|[_, high]| high)),
    ("low_mode_share", "", |found| found.low_mode_share),
];

const GROUP_MEMORY: &[Field<GroupMemory>] = &[
    ("highest_bytes", "bytes", |found| found.highest_bytes.map(|bytes| bytes as f64)),
    ("own_bytes", "bytes", |found| found.own_bytes.map(|bytes| bytes as f64)),
    ("page_cache_bytes", "bytes", |found| found.page_cache_bytes.map(|bytes| bytes as f64)),
    ("dirty_bytes", "bytes", |found| found.dirty_bytes.map(|bytes| bytes as f64)),
    ("limit_hits_per_second", "1/s", |found| found.limit_hits_per_second),
];

const LOOKUPS: &[Field<Lookups>] = &[
    ("count", "", |found| whole(found.count)),
    ("seconds", "s", |found| Some(found.seconds)),
    ("mean_seconds", "s", |found| Some(found.mean_seconds)),
    ("max_seconds", "s", |found| Some(found.max_seconds)),
];

const KIND: &[Field<KindResult>] = &[
    ("connections", "", |kind| whole(kind.connections)),
    ("operations", "", |kind| whole(kind.operations)),
    ("rows", "", |kind| whole(kind.rows)),
    ("failed", "", |kind| whole(kind.failed)),
    ("dropped", "", |kind| whole(kind.dropped)),
    ("errors", "", |kind| whole(kind.errors.total())),
    ("errors_retry", "", |kind| whole(kind.errors.retry)),
    ("errors_refused", "", |kind| whole(kind.errors.refused)),
    ("errors_lost", "", |kind| whole(kind.errors.lost)),
    ("errors_fatal", "", |kind| whole(kind.errors.fatal)),
    ("operations_per_second", "1/s", |kind| Some(kind.operations_per_second)),
    ("rows_per_second", "rows/s", |kind| Some(kind.rows_per_second)),
    ("statements_per_second", "1/s", |kind| Some(kind.statements_per_second)),
];

const SCHEDULE: &[Field<Schedule>] = &[
    ("asked_per_second", "1/s", |schedule| Some(schedule.asked_per_second)),
    ("due", "", |schedule| whole(schedule.due)),
    ("backlog_max", "", |schedule| whole(schedule.backlog_max)),
    ("queue_growth", "", |schedule| Some(schedule.queue_growth as f64)),
];

/// The latency figures, in the order of tables.
const LATENCY: &[Field<Latency>] = &[
    ("count", "", |times| whole(times.count)),
    ("mean_us", "us", |times| Some(times.mean_us)),
    ("p50_us", "us", |times| whole(times.p50_us)),
    ("p90_us", "us", |times| whole(times.p90_us)),
    ("p95_us", "us", |times| whole(times.p95_us)),
    ("p99_us", "us", |times| whole(times.p99_us)),
    ("p999_us", "us", |times| whole(times.p999_us)),
    ("max_us", "us", |times| whole(times.max_us)),
];

/// Returns a whole number as a double, which is exact up to 2^53.
fn whole(number: impl TryInto<u64>) -> Option<f64> {
    number.try_into().ok().map(|number| number as f64)
}

fn flag(is_so: bool) -> Option<f64> {
    Some(f64::from(u8::from(is_so)))
}
