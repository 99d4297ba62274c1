//! The ratios of metrics to a base: over all valid blocks, by block, by machine, and as published.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::Quantity;
use dbdyno_record::workload_and_setup;

use crate::compare::ratio::bound;
use crate::metrics::Metric;
use crate::model::steps::pairs;
use crate::model::{
    Agreement, Bound, Cause, CostBreakdown, Findings, Inference, MetricGroup, PublishedRow, Ratio,
    StepComparison, StepFindings, VariantStep, Verdict,
};
use crate::statistics::Interval;
use crate::tables::{Key, Machines, Source, Tables, headline, of_block};

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
const P99: &str = "response_p99_us";

/// Adds a variant's ratios over all valid blocks.
pub(super) fn over_blocks<'a>(
    all: &mut Vec<ComparisonRow<'a>>,
    (key, base): (Key<'a>, &'a str),
    (step, variant): (&'a StepFindings, &'a VariantStep),
) {
    let found = &variant.to_base;
    if key.variant == base {
        return;
    }
    if found.ratio.is_some() || found.verdict.is_some() {
        let cause = found.cost_breakdown.as_ref().and_then(CostBreakdown::main_part).map(|part| part.cause);
        let row = row(key, base, headline(step), found.ratio.as_ref());
        all.push(ComparisonRow { verdict: found.verdict, cause, details: Some(found), ..row });
    }
    if let Some(p99) = &found.p99 {
        all.push(ComparisonRow { verdict: p99.verdict, ..row(key, base, P99, Some(&p99.ratio)) });
    }
    let Some(relative) = &found.relative else { return };
    let metrics = MetricGroup::ALL.iter().filter(|group| group.is_compared).flat_map(MetricGroup::in_tables);
    for (metric, ratio) in metrics.filter_map(|metric| Some((metric, relative.of(metric)?))) {
        let row = row(key, base, metric.id, None);
        all.push(ComparisonRow { ratio: Some(ratio), entry: Some(metric), ..row });
    }
}

/// Adds the ratios that those over all blocks are made of, by block and by machine.
pub(super) fn of_blocks_and_machines<'a>(
    all: &mut Vec<ComparisonRow<'a>>,
    (key, base): (Key<'a>, &'a str),
    (step, variant): (&'a StepFindings, &'a VariantStep),
    machines: &Machines<'a>,
) {
    let (found, headline) = (&variant.to_base, headline(step));
    if key.variant == base {
        return;
    }
    let bounds: BTreeMap<u32, Bound> = pairs(&variant.runs, step.runs_of(base))
        .filter_map(|(run, base)| Some((run.block, bound(run, base)?)))
        .collect();
    if let Some(ratio) = &found.ratio {
        let rows = blocks((key, base), headline, ratio, machines);
        let bound_in = |block: Option<u32>| bounds.get(&block?).copied();
        all.extend(rows.map(|row| ComparisonRow { bound: bound_in(row.key.block), ..row }));
    }
    all.extend(found.p99.iter().flat_map(|p99| blocks((key, base), P99, &p99.ratio, machines)));
    for own in found.by_machine.iter().flat_map(|found| &found.machines) {
        let key = Key { machine: Some(&own.machine), ..key };
        all.push(ComparisonRow { ratio: Some(own.ratio), ..row(key, base, headline, None) });
    }
}

fn row<'a>(key: Key<'a>, base: &'a str, metric: &'a str, ratio: Option<&'a Ratio>) -> ComparisonRow<'a> {
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
    machines: &Machines<'a>,
) -> impl Iterator<Item = ComparisonRow<'a>> {
    ratio.blocks.iter().map(move |(block, ratio)| {
        let row = row(of_block(key, *block, machines), base, metric, None);
        ComparisonRow { ratio: Some(*ratio), ..row }
    })
}

/// Adds the comparisons that the plan's sections make with another base than the run's.
pub(super) fn add_sections<'a>(all: &mut Vec<ComparisonRow<'a>>, findings: &'a Findings) {
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
pub(super) fn published(findings: &Findings) -> impl Iterator<Item = ComparisonRow<'_>> {
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
            source: Source::Published,
        };
        let row = |key| row(key, &found.base, metric(found), None);
        let (ratio, agreement) = (Some(found.published), Some(found.agreement));
        let published = ComparisonRow { ratio, agreement, ..row(key) };
        let measured = found.measured.map(|ratio| ComparisonRow {
            ratio: Some(ratio),
            interval: found.interval,
            ..row(Key { source: Source::AsPublished, ..key })
        });
        std::iter::once(published).chain(measured)
    })
}

/// Returns the metric that a published figure is for.
fn metric(row: &PublishedRow) -> &'static str {
    match row.quantity {
        Quantity::Rate => "rate",
        Quantity::Seconds => "seconds",
        Quantity::Cpu => "cpu_o",
        Quantity::ReadKb => "rkb_o",
        Quantity::P99 => P99,
    }
}
