//! The two long tables of a run. *Observations* are the values of metrics, and *comparisons* are
//! their ratios to a base. Both have the same keys. JSON, CSV, Parquet and OpenMetrics are
//! projections of them, and the views of metrics filter, group and pivot them.
//!
//! | workload | step | variant | block | metric | value |
//! |---|---|---|---|---|---|
//! | insert-benchmark | l.i0 | mariadb-11.4 | 1 | rate | 148213.5 |
//! | insert-benchmark | l.i0 | mariadb-11.4 | | response_p99_us | 6712 |

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::Quantity;
use dbdyno_record::workload_and_setup;
use serde::Serialize;

use crate::metrics::{Figures, HostCheck, Metric};
use crate::model::{
    Agreement, Bound, Cause, Findings, GroupMemory, Inference, KindResult, Latency, Lookups, MetricGroup,
    PublishedRow, Ratio, RunSummary, Schedule, Steadiness, StepComparison, StepFindings, StepRun, Validity,
    VariantStep, Verdict, WorkloadFindings,
};
use crate::statistics::Interval;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Key<'a> {
    /// Name of the workload without its set-up. It is empty for a published figure that was not
    /// measured here.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub workload: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<&'a str>,
    /// Name of the step. For a published figure it may be a group of steps with its statistic:
    /// `writes: average`.
    pub step: &'a str,
    /// Connections of all clients together; `None` where a published report does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    pub variant: &'a str,
    /// Number of the block; `None` for all valid blocks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// The fleet's machine that measured the block; `None` in a run on one machine, and for all
    /// machines together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<&'a str>,
    pub source: ValueSource,
}

impl Key<'_> {
    /// Says whether the row belongs to the run's own comparison, over all valid blocks and
    /// machines.
    pub fn is_whole(&self) -> bool {
        self.block.is_none() && self.machine.is_none() && self.source == ValueSource::Run
    }
}

/// Says where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    Run,
    /// The run, compared with the base of one of the plan's sections, which is not the run's base.
    Section,
    /// The published report that the plan names. Its rows have the published names of the variants.
    Published,
    /// This run, in the way and under the names of the published report.
    AsPublished,
}

impl ValueSource {
    /// Returns the name that tables for programs have for the source.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Section => "section",
            Self::Published => "published",
            Self::AsPublished => "as_published",
        }
    }
}

/// Both long tables.
#[derive(Debug, Clone, Default)]
pub struct Tables<'a> {
    pub observations: Vec<Observation<'a>>,
    pub comparisons: Vec<ComparisonRow<'a>>,
}

impl<'a> Tables<'a> {
    /// Returns the tables of a whole run. They have a section's comparison once, and not again
    /// where the section has the run's own base.
    pub fn of(findings: &'a Findings) -> Self {
        let mut all = Self::default();
        for workload in &findings.workloads {
            let own = Self::of_workload(&findings.run, &findings.run.base, workload);
            all.observations.extend(own.observations);
            all.comparisons.extend(own.comparisons);
        }
        add_sections(&mut all.comparisons, findings);
        all.comparisons.extend(published(findings));
        all.observations.extend(profiles(findings));
        all
    }

    /// Returns the tables of one workload, compared with this base.
    pub fn of_workload(run: &'a RunSummary, base: &'a str, workload: &'a WorkloadFindings) -> Self {
        let machines = machines(run);
        let mut all = Self::default();
        for (step, variant) in
            workload.steps.iter().flat_map(|step| step.variants.iter().map(move |variant| (step, variant)))
        {
            let key = key(workload, step, variant);
            observations_over_blocks(&mut all.observations, key, step, variant);
            for run in &variant.runs {
                let key = of_block(key, run.block, &machines);
                observations_of_run(&mut all.observations, key, step, run);
            }
            let source = if base == run.base { ValueSource::Run } else { ValueSource::Section };
            let of = (Key { source, ..key }, base);
            comparisons_over_blocks(&mut all.comparisons, of, (step, variant));
            of_blocks_and_machines(&mut all.comparisons, of, (step, variant), &machines);
        }
        all
    }

    /// Returns the published report's figures, and the run's figures that are compared with them.
    pub fn published(findings: &'a Findings) -> Self {
        Self { comparisons: published(findings).collect(), ..Self::default() }
    }

    /// Returns the tables without single blocks and machines, and without steps that are not
    /// compared.
    pub fn over_blocks(base: &'a str, workload: &'a WorkloadFindings) -> Self {
        let mut all = Self::default();
        for step in workload.judged_steps() {
            for variant in &step.variants {
                let key = key(workload, step, variant);
                observations_over_blocks(&mut all.observations, key, step, variant);
                comparisons_over_blocks(&mut all.comparisons, (key, base), (step, variant));
            }
        }
        all
    }
}

/// Returns each profiled variant's CPU time per operation by function, over all profile blocks.
fn profiles(findings: &Findings) -> impl Iterator<Item = Observation<'_>> {
    let steps = findings.why.iter().flat_map(|why| &why.steps);
    let variants = steps.flat_map(|step| step.variants.iter().map(move |variant| (step, variant)));
    variants.flat_map(|(step, variant)| {
        let (workload, setup) = workload_and_setup(&step.workload);
        let (step, name) = (step.step.as_str(), variant.variant.as_str());
        let source = ValueSource::Run;
        let key =
            Key { workload, setup, step, connections: None, variant: name, block: None, machine: None, source };
        variant.functions.iter().map(move |function| Observation {
            key,
            metric: Cow::Owned(format!("function_us {}", function.function)),
            unit: "µs/op",
            value: function.own_us,
            validity: None,
            entry: None,
        })
    })
}

/// Returns the name of a step's headline. More is better for a rate, and less for a time.
fn headline(step: &StepFindings) -> &'static str {
    if step.less_is_better { "seconds" } else { "rate" }
}

/// The fleet's machine that measured each block, by the block's number.
type BlockMachines<'a> = BTreeMap<u32, &'a str>;

fn machines(run: &RunSummary) -> BlockMachines<'_> {
    run.machines
        .iter()
        .flat_map(|(name, blocks)| blocks.iter().map(move |block| (*block, name.as_str())))
        .collect()
}

fn key<'a>(workload: &'a WorkloadFindings, step: &'a StepFindings, variant: &'a VariantStep) -> Key<'a> {
    let (name, setup) = workload_and_setup(&workload.name);
    Key {
        workload: name,
        setup,
        step: &step.name,
        connections: Some(step.connections),
        variant: &variant.variant,
        block: None,
        machine: None,
        source: ValueSource::Run,
    }
}

fn of_block<'a>(key: Key<'a>, block: u32, machines: &BlockMachines<'a>) -> Key<'a> {
    Key { block: Some(block), machine: machines.get(&block).copied(), ..key }
}

/// A variant's metric ÷ the base's.
#[derive(Debug, Clone)]
pub struct ComparisonRow<'a> {
    pub key: Key<'a>,
    pub base: &'a str,
    /// Name of the metric, as in the observations.
    pub metric: &'a str,
    /// The ratio, which is infinite where the base has 0. It is `None` where no block has one; the
    /// verdict then says why.
    pub ratio: Option<f64>,
    /// The side of `ratio` on which the true one lies, where a time limit ended one of the two.
    pub bound: Option<Bound>,
    /// 95 % interval of the ratio; `None` for one block.
    pub interval: Option<Interval>,
    /// What the blocks say beyond the ratio and its interval.
    pub inference: Option<&'a Inference>,
    pub verdict: Option<Verdict>,
    /// The cause of most of the difference between the rates.
    pub cause: Option<Cause>,
    /// How near a published ratio is to the measured one; `None` for all others.
    pub agreement: Option<Agreement>,
    /// The comparison that the row is from, for the headline over all blocks.
    pub details: Option<&'a StepComparison>,
    /// The metric's entry in the catalogue; `None` for rates, times and response times.
    pub entry: Option<&'static Metric>,
}

impl ComparisonRow<'_> {
    /// Returns the probability of such a difference if there were none, adjusted over all
    /// comparisons in its family.
    pub fn p(&self) -> Option<f64> {
        Some(self.inference?.q_difference)
    }
}

/// The name of the metric whose ratio has a verdict on response times.
const RESPONSE_P99: &str = "response_p99_us";

/// Adds a variant's ratios over all valid blocks.
fn comparisons_over_blocks<'a>(
    all: &mut Vec<ComparisonRow<'a>>,
    (key, base): (Key<'a>, &'a str),
    (step, variant): (&'a StepFindings, &'a VariantStep),
) {
    let found = &variant.to_base;
    if key.variant == base {
        return;
    }
    if found.ratio.is_some() || found.verdict.is_some() {
        let cause = found.cost_breakdown.as_ref().and_then(|found| Some(found.by_weight().first()?.cause));
        let row = comparison_row(key, base, headline(step), found.ratio.as_ref());
        all.push(ComparisonRow { verdict: found.verdict, cause, details: Some(found), ..row });
    }
    if let Some(p99) = &found.p99 {
        all.push(ComparisonRow {
            verdict: p99.verdict,
            ..comparison_row(key, base, RESPONSE_P99, Some(&p99.ratio))
        });
    }
    let Some(relative) = &found.relative else { return };
    let metrics = MetricGroup::ALL.iter().filter(|group| group.is_compared).flat_map(MetricGroup::in_tables);
    for (metric, ratio) in metrics.filter_map(|metric| Some((metric, relative.of(metric)?))) {
        // Of these metrics only the instructions have a verdict.
        let judged = found.instructions.as_ref().filter(|_| metric.id == "instructions");
        let row = comparison_row(key, base, metric.id, judged.map(|judged| &judged.ratio));
        let verdict = judged.and_then(|judged| judged.verdict);
        all.push(ComparisonRow { ratio: Some(ratio), entry: Some(metric), verdict, ..row });
    }
}

/// Adds the ratios that those over all blocks are made of, by block and by machine.
fn of_blocks_and_machines<'a>(
    all: &mut Vec<ComparisonRow<'a>>,
    (key, base): (Key<'a>, &'a str),
    (step, variant): (&'a StepFindings, &'a VariantStep),
    machines: &BlockMachines<'a>,
) {
    let (found, headline) = (&variant.to_base, headline(step));
    if key.variant == base {
        return;
    }
    if let Some(ratio) = &found.ratio {
        let rows = blocks((key, base), headline, ratio, machines);
        let bound_in = |block: Option<u32>| found.block_bounds.get(&block?).copied();
        all.extend(rows.map(|row| ComparisonRow { bound: bound_in(row.key.block), ..row }));
    }
    all.extend(found.p99.iter().flat_map(|p99| blocks((key, base), RESPONSE_P99, &p99.ratio, machines)));
    for own in found.by_machine.iter().flat_map(|found| &found.machines) {
        let key = Key { machine: Some(&own.machine), ..key };
        all.push(ComparisonRow { ratio: Some(own.ratio), ..comparison_row(key, base, headline, None) });
    }
}

fn comparison_row<'a>(
    key: Key<'a>,
    base: &'a str,
    metric: &'a str,
    ratio: Option<&'a Ratio>,
) -> ComparisonRow<'a> {
    ComparisonRow {
        key,
        base,
        metric,
        ratio: ratio.map(|ratio| ratio.value),
        bound: ratio.and_then(|ratio| ratio.bound),
        interval: ratio.and_then(Ratio::interval),
        inference: ratio.and_then(|ratio| ratio.inference.as_ref()),
        verdict: None,
        cause: None,
        agreement: None,
        details: None,
        entry: None,
    }
}

fn blocks<'a>(
    (key, base): (Key<'a>, &'a str),
    metric: &'a str,
    ratio: &'a Ratio,
    machines: &BlockMachines<'a>,
) -> impl Iterator<Item = ComparisonRow<'a>> {
    ratio.blocks.iter().map(move |(block, ratio)| {
        let row = comparison_row(of_block(key, *block, machines), base, metric, None);
        ComparisonRow { ratio: Some(*ratio), ..row }
    })
}

/// Adds the comparisons that the plan's sections make with another base than the run's.
fn add_sections<'a>(all: &mut Vec<ComparisonRow<'a>>, findings: &'a Findings) {
    let mut known = BTreeSet::new();
    for section in findings.sections.iter().filter(|section| section.base != findings.run.base) {
        for workload in &section.workloads {
            let own = Tables::of_workload(&findings.run, &section.base, workload).comparisons;
            let place = |row: &ComparisonRow<'a>| (&workload.name, row.key.step, row.base, row.key.variant);
            let new: Vec<_> = own.into_iter().filter(|row| !known.contains(&place(row))).collect();
            known.extend(new.iter().map(place));
            all.extend(new);
        }
    }
}

/// Returns the published report's figures, and the run's figures that are compared with them.
fn published(findings: &Findings) -> impl Iterator<Item = ComparisonRow<'_>> {
    let rows = findings.published.iter().flat_map(|published| &published.rows);
    rows.flat_map(move |found| {
        let (workload, setup) = workload_and_setup(found.workload.as_deref().unwrap_or_default());
        let key = Key {
            workload,
            setup: found.setup.as_deref().or(setup),
            step: &found.subject,
            connections: None,
            variant: &found.variant,
            block: None,
            machine: None,
            source: ValueSource::Published,
        };
        let row = |key| comparison_row(key, &found.base, published_metric(found), None);
        let (ratio, agreement) = (Some(found.published), Some(found.agreement));
        let published = ComparisonRow { ratio, agreement, ..row(key) };
        let measured = found.measured.map(|ratio| ComparisonRow {
            ratio: Some(ratio),
            interval: found.interval,
            ..row(Key { source: ValueSource::AsPublished, ..key })
        });
        std::iter::once(published).chain(measured)
    })
}

/// Returns the metric that a published figure is for.
fn published_metric(row: &PublishedRow) -> &'static str {
    match row.quantity {
        Quantity::Rate => "rate",
        Quantity::Seconds => "seconds",
        Quantity::Cpu => "cpu_o",
        Quantity::ReadKb => "rkb_o",
        Quantity::P99 => RESPONSE_P99,
    }
}

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

/// Adds a variant's figures over all valid blocks together. For metrics in the catalogue these are
/// medians.
fn observations_over_blocks<'a>(
    all: &mut Vec<Observation<'a>>,
    key: Key<'a>,
    step: &'a StepFindings,
    variant: &'a VariantStep,
) {
    let mut rows = KeyRows { all, key, validity: None };
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
        rows.metric(column_prefix(group), metric, value);
    }
}

/// Adds a run's values: first the step's, then its metrics, then those that only some steps have.
fn observations_of_run<'a>(
    all: &mut Vec<Observation<'a>>,
    key: Key<'a>,
    step: &'a StepFindings,
    run: &'a StepRun,
) {
    let mut rows = KeyRows { all, key, validity: Some(&run.validity) };
    // A step that did not run to its end has no rate, but it has all other figures that were
    // counted. Each run has a row for the length of its window, so no run is missing from the
    // table.
    if matches!(run.validity, Validity::Valid | Validity::Invalid { .. }) {
        rows.add("", headline(step), &step.rate_label, Some(run.rate));
        rows.cut_off(step, run.cut_off);
    }
    rows.fields("", STEP, run);
    for group in MetricGroup::ALL {
        for (metric, value) in (group.of)(run).into_iter().flat_map(Figures::figures) {
            rows.metric(column_prefix(group), metric, value);
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
    catalogue().map(|(group, metric)| named(column_prefix(group), metric.id).into_owned())
}

/// Returns every metric in the catalogue with its group.
fn catalogue() -> impl Iterator<Item = (&'static MetricGroup, &'static Metric)> {
    MetricGroup::ALL.iter().flat_map(|group| group.in_tables().map(move |metric| (group, metric)))
}

/// Returns the prefix of a group's names. Only the device has one, because its metrics have names
/// that other metrics have too.
fn column_prefix(group: &MetricGroup) -> &'static str {
    if group.is_compared { "" } else { group.name }
}

/// Returns the name of a metric. Where the metric is one of a family, the family's name comes
/// first.
fn named(family: &str, name: &'static str) -> Cow<'static, str> {
    match family {
        "" => Cow::Borrowed(name),
        family => Cow::Owned(format!("{family}_{name}")),
    }
}

/// The rows with one key.
struct KeyRows<'r, 'a> {
    all: &'r mut Vec<Observation<'a>>,
    key: Key<'a>,
    validity: Option<&'a Validity>,
}

impl<'a> KeyRows<'_, 'a> {
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
    ("p90_us", "us", |times| times.known_p90_us().and_then(whole)),
    ("p95_us", "us", |times| times.known_p95_us().and_then(whole)),
    ("p99_us", "us", |times| times.known_p99_us().and_then(whole)),
    ("p999_us", "us", |times| times.known_p999_us().and_then(whole)),
    ("max_us", "us", |times| whole(times.max_us)),
];

/// Returns a whole number as a double, which is exact up to 2^53.
fn whole(number: impl TryInto<u64>) -> Option<f64> {
    number.try_into().ok().map(|number| number as f64)
}

fn flag(is_so: bool) -> Option<f64> {
    Some(f64::from(u8::from(is_so)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, plan, run};
    use crate::model::Validity;

    fn found() -> Findings {
        let cells = (1..=3).flat_map(|block| {
            [("a", 1_000), ("b", 2_000)]
                .map(|(name, rate)| cell(block, name, vec![load_step(rate * u64::from(block))]))
        });
        let mut run = run(&["a", "b"], 3, cells.collect());
        let failed = &mut run.cells[5].steps[0];
        failed.events.push(dbdyno_record::StepEvent::Invalid { reason: "x".to_owned() });
        run.manifest.plan = plan(
            "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[[section]]\ntitle = 'Back'\nbase = 'b'\n[[section]]\ntitle = 'Again'\nbase = 'b'",
        );
        analyse(&run)
    }

    #[test]
    fn each_key_has_each_metric_at_most_once() {
        let findings = found();
        let tables = Tables::of(&findings);
        let of_value = |one: &Observation<'_>| format!("{:?} {}", one.key, one.metric);
        let of_ratio = |one: &ComparisonRow<'_>| format!("{:?} {} {}", one.key, one.metric, one.base);
        let values: BTreeSet<String> = tables.observations.iter().map(of_value).collect();
        let ratios: BTreeSet<String> = tables.comparisons.iter().map(of_ratio).collect();
        assert_eq!((values.len(), ratios.len()), (tables.observations.len(), tables.comparisons.len()));
    }

    #[test]
    fn a_run_that_must_not_be_used_has_its_values_and_says_so() {
        let findings = found();
        let tables = Tables::of(&findings);
        let rate = |block| {
            let is_asked = |one: &&Observation<'_>| {
                one.key.variant == "b" && one.key.step == "l.i0" && one.key.block == block
            };
            tables
                .observations
                .iter()
                .filter(is_asked)
                .find(|one| one.metric == "rate")
                .expect("each has one")
        };
        assert_eq!(rate(Some(1)).validity, Some(&Validity::Valid));
        assert!(matches!(rate(Some(3)).validity, Some(Validity::Invalid { .. })));
        assert_eq!((rate(Some(2)).value, rate(None).value, rate(None).validity), (4_000.0, 3_000.0, None));
    }

    #[test]
    fn a_ratio_has_its_blocks_and_a_section_adds_its_own_base_once() {
        let findings = found();
        let tables = Tables::of(&findings);
        let rates = tables.comparisons.iter().filter(|one| one.metric == "rate" && one.key.step == "l.i0");
        let text = |one: &ComparisonRow<'_>| {
            format!("{} {:?} to {}: {:.2}", one.key.variant, one.key.block, one.base, one.ratio.unwrap())
        };
        let rates: Vec<String> = rates.filter(|one| one.key.variant != one.base).map(text).collect();
        insta::assert_snapshot!(rates.join("\n"), @"
        b None to a: 2.00
        b Some(1) to a: 2.00
        b Some(2) to a: 2.00
        a None to b: 0.50
        a Some(1) to b: 0.50
        a Some(2) to b: 0.50
        ");
    }

    #[test]
    fn a_ratio_of_a_time_that_was_cut_off_is_a_bound_in_its_block_and_over_all() {
        let mut findings = found();
        let step = &mut findings.workloads[0].steps[0];
        step.less_is_better = true;
        step.variants[1].runs[0].cut_off = true;
        let ratio = crate::ratio_of_runs(&step.variants[1].runs, &step.variants[0].runs);
        let bounds = crate::compare::ratio::block_bounds(&step.variants[1].runs, &step.variants[0].runs);
        (step.variants[1].to_base.ratio, step.variants[1].to_base.block_bounds) = (ratio, bounds);
        let tables = Tables::of_workload(&findings.run, "a", &findings.workloads[0]);
        let of = tables.comparisons.iter().filter(|one| one.metric == "seconds");
        let bounds: Vec<_> = of.map(|one| (one.key.block, one.bound)).collect();
        let is_more = Some(crate::model::Bound::MoreThan);
        assert_eq!(bounds, [(None, is_more), (Some(1), is_more), (Some(2), None)]);
    }
}
