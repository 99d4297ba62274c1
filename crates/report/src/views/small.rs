//! Small tables for the tests of views: a run of `insert-benchmark` against the base `old`.

use std::borrow::Cow;

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::tables::{ComparisonRow, Key, Observation, Source};
use dbdyno_analyse::{MetricGroup, Verdict};

type Place = (&'static str, &'static str);

/// Of a variant in a step, over all blocks.
fn key((step, variant): Place) -> Key<'static> {
    Key {
        workload: "insert-benchmark",
        setup: None,
        step,
        connections: Some(1),
        variant,
        block: None,
        machine: None,
        source: Source::Run,
    }
}

pub(super) fn observation(place: Place, metric: &'static str, value: f64) -> Observation<'static> {
    let (metric, entry) = (Cow::Borrowed(metric), entry(metric));
    Observation { key: key(place), metric, unit: "", value, validity: None, entry }
}

pub(super) fn comparison(place: Place, metric: &'static str, ratio: f64) -> ComparisonRow<'static> {
    ComparisonRow {
        key: key(place),
        base: "old",
        metric,
        ratio: Some(ratio),
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
