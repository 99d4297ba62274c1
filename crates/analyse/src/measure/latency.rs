//! Computes latency percentiles and response-time buckets from the histograms in a step's common
//! window, which is the time over which rates are computed. [`operation_histograms`] gives the
//! histograms themselves, for exports.

use dbdyno_record::{CellRecord, Clock, HistogramSpan, Run, StepRecord, parallel};
use hdrhistogram::Histogram;

use crate::model::{Bucket, Latency};
use crate::window::Span;

/// The original Insert Benchmark's buckets of response times: each bucket's label and its inclusive
/// upper bound, in microseconds.
const BUCKETS: [(&str, u64); 10] = [
    ("256us", 256),
    ("1ms", 1_000),
    ("4ms", 4_000),
    ("16ms", 16_000),
    ("64ms", 64_000),
    ("256ms", 256_000),
    ("1s", 1_000_000),
    ("4s", 4_000_000),
    ("16s", 16_000_000),
    ("gt", u64::MAX),
];

/// Merges the histograms that lie in the window, of one kind of operation and one clock (the moment
/// from which an operation's time counts: when it was sent, or when it was due). It returns `None`
/// when there is none, and fails when a histogram cannot be unpacked.
///
/// A histogram cannot be cut. One that straddles the window's edge counts if more than half of its
/// time is inside.
pub(crate) fn merge(
    spans: &[HistogramSpan],
    kind: &str,
    clock: Clock,
    window: Span,
) -> Result<Option<Histogram<u64>>, dbdyno_record::Error> {
    HistogramSpan::sum(inside(spans, kind, clock, window))
}

fn inside<'a>(
    spans: &'a [HistogramSpan],
    kind: &str,
    clock: Clock,
    window: Span,
) -> impl Iterator<Item = &'a HistogramSpan> + Clone {
    spans.iter().filter(move |span| {
        span.kind == kind && span.clock == clock && counts_in(window, span.from_us, span.to_us)
    })
}

/// Whether a histogram of `[from_us, to_us)` counts in the window.
pub(crate) fn counts_in(window: Span, from_us: u64, to_us: u64) -> bool {
    window.share_of(from_us, to_us) > 0.5
}

/// Whether the recorded service and response times are equal. They are equal in a closed loop,
/// where an operation is due when it is sent. One of the two then need not be unpacked, and
/// unpacking is most of an analysis.
pub(crate) fn has_equal_service_and_response_times(
    spans: &[HistogramSpan],
    kind: &str,
    window: Span,
) -> bool {
    let service = inside(spans, kind, Clock::Service, window);
    let response = inside(spans, kind, Clock::Response, window);
    service.map(HistogramSpan::content).eq(response.map(HistogramSpan::content))
}

/// Percentiles of one histogram; `count` is 0 where there is none.
pub(crate) fn latency(histogram: Option<&Histogram<u64>>) -> Latency {
    let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
        return Latency::default();
    };
    Latency {
        count: histogram.len(),
        mean_us: histogram.mean(),
        p50_us: histogram.value_at_quantile(0.5),
        p90_us: histogram.value_at_quantile(0.9),
        p95_us: histogram.value_at_quantile(0.95),
        p99_us: histogram.value_at_quantile(0.99),
        p999_us: histogram.value_at_quantile(0.999),
        max_us: histogram.max(),
        curve: Vec::new(),
    }
}

/// Percentiles for a curve. A percentile above 100 × (1 − 1 ÷ count) equals the highest value, so
/// the curve ends there.
const CURVE: [f64; 15] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999];

fn curve(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let most = 100.0 * (1.0 - 1.0 / histogram.len().max(1) as f64);
    let known = CURVE.iter().filter(|percentile| **percentile <= most);
    let of = |percentile: &f64| (*percentile, histogram.value_at_quantile(percentile / 100.0));
    known.map(of).chain([(100.0, histogram.max())]).collect()
}

/// Percentiles of several histograms together; `None` where they hold nothing.
pub(crate) fn pooled<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Option<Latency> {
    let sum = histograms.fold(None, |sum: Option<Histogram<u64>>, histogram| match sum {
        None => Some(histogram.clone()),
        // The sum's range grows, so that every value fits.
        Some(mut sum) => sum.add(histogram).is_ok().then_some(sum),
    });
    let sum = sum.filter(|sum| !sum.is_empty())?;
    Some(Latency { curve: curve(&sum), ..latency(Some(&sum)) })
}

/// Counts for all ten of the original Insert Benchmark's disjoint buckets, including empty ones.
///
/// A histogram keeps three significant digits, so a value within 0.1 % above a bound may count
/// below it.
pub(crate) fn buckets(histogram: Option<&Histogram<u64>>) -> Vec<Bucket> {
    let mut counts = [0_u64; BUCKETS.len()];
    let total = histogram.map_or(0, Histogram::len);
    for value in histogram.into_iter().flat_map(|histogram| histogram.iter_recorded()) {
        let min_us = histogram.map_or(0, |histogram| histogram.lowest_equivalent(value.value_iterated_to()));
        let bucket = BUCKETS.partition_point(|(_, bound_us)| *bound_us < min_us);
        counts[bucket] += value.count_at_value();
    }
    let percent = |count: u64| if total == 0 { 0.0 } else { 100.0 * count as f64 / total as f64 };
    BUCKETS
        .iter()
        .zip(counts)
        .map(|((label, _), count)| Bucket { label: (*label).to_owned(), count, percent: percent(count) })
        .collect()
}

/// The times of one kind of operation in one run of a step, on one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationHistogram {
    pub workload: String,
    pub step: String,
    pub variant: String,
    pub block: u32,
    pub kind: String,
    /// The clock: `service`, `response` or `lag`.
    pub clock: &'static str,
    /// One entry per range of times: its lowest and its highest time in µs, both inclusive, and the
    /// number of operations in it. Ranges without an operation are left out.
    pub counts: Vec<(u64, u64, u64)>,
}

/// All histograms of a run, in the order of cells and steps. A histogram that cannot be unpacked is
/// left out, and the findings say so.
pub fn operation_histograms(run: &Run) -> Vec<OperationHistogram> {
    let steps: Vec<(&CellRecord, &StepRecord)> =
        run.cells.iter().flat_map(|cell| cell.steps.iter().map(move |step| (cell, step))).collect();
    parallel::map(&steps, |(cell, step)| of_step(cell, step)).into_iter().flatten().collect()
}

fn of_step(cell: &CellRecord, step: &StepRecord) -> Vec<OperationHistogram> {
    let Some((from_us, to_us)) = step.window() else { return Vec::new() };
    let window = Span::new(from_us, to_us);
    let of = |kind: &str, clock: Clock| {
        let histogram = merge(&step.histograms, kind, clock, window).ok()??;
        let counts = histogram.iter_recorded().map(|value| {
            let at = value.value_iterated_to();
            (histogram.lowest_equivalent(at), histogram.highest_equivalent(at), value.count_at_value())
        });
        let counts: Vec<(u64, u64, u64)> = counts.collect();
        (!counts.is_empty()).then(|| OperationHistogram {
            workload: cell.id.workload.clone(),
            step: step.name.clone(),
            variant: cell.id.variant.clone(),
            block: cell.id.block,
            kind: kind.to_owned(),
            clock: clock.name(),
            counts,
        })
    };
    let kinds = step.spec.kinds.iter().map(|spec| spec.kind.as_str());
    kinds.flat_map(|kind| Clock::ALL.into_iter().filter_map(move |clock| of(kind, clock))).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::HistogramSpan;
    use hdrhistogram::Histogram;

    use super::*;
    use crate::fixtures::{cell, read_write_step, run};

    #[test]
    fn a_curve_ends_with_the_highest_value_and_has_no_percentile_beyond_the_number_of_operations() {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        (1..=200).for_each(|value| histogram.record(value).unwrap());
        let found = pooled([&histogram].into_iter()).unwrap().curve;
        let ends = [found[0], found[4], found[found.len() - 2], found[found.len() - 1]];
        assert_eq!(ends, [(1.0, 2), (50.0, 100), (99.5, 199), (100.0, 200)]);
    }

    fn span(kind: &str, clock: Clock, from_us: u64, to_us: u64, values: &[u64]) -> HistogramSpan {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        HistogramSpan::new(kind, clock, from_us, to_us, &histogram).unwrap()
    }

    fn merged(values: &[u64]) -> Option<Histogram<u64>> {
        merge(&[span("q", Clock::Service, 0, 1, values)], "q", Clock::Service, Span::new(0, 1)).unwrap()
    }

    #[test]
    fn times_on_both_clocks_are_equal_only_if_they_are_equal_in_every_second() {
        let of = |clock, at: u64, values: &[u64]| span("q", clock, at, at + 1_000_000, values);
        let (service, response) = (Clock::Service, Clock::Response);
        let mut spans = vec![of(service, 0, &[5, 7]), of(response, 0, &[5, 7]), of(service, 1_000_000, &[9])];
        let is_equal = |spans: &[HistogramSpan]| {
            has_equal_service_and_response_times(spans, "q", Span::new(0, 2_000_000))
        };
        assert!(!is_equal(&spans), "one second of one clock is missing");
        spans.push(of(response, 1_000_000, &[9]));
        assert!(is_equal(&spans));
        spans[3] = of(response, 1_000_000, &[10]);
        assert!(!is_equal(&spans));
    }

    #[test]
    fn histograms_of_the_window_merge_without_loss_and_others_stay_out() {
        let spans = [
            span("query", Clock::Service, 0, 1_000_000, &[100, 200]),
            span("query", Clock::Service, 1_000_000, 1_500_000, &[300]),
            span("query", Clock::Service, 1_500_000, 2_000_000, &[999]),
            span("query", Clock::Response, 0, 1_000_000, &[777]),
            span("insert", Clock::Service, 0, 1_000_000, &[888]),
        ];
        let merged = merge(&spans, "query", Clock::Service, Span::new(0, 1_500_000)).unwrap();
        let latency = latency(merged.as_ref());
        assert_eq!((latency.count, latency.mean_us, latency.p50_us, latency.max_us), (3, 200.0, 200, 300));
    }

    #[test]
    fn percentiles_are_those_of_the_recorded_values() {
        let values: Vec<u64> = (1..=1000).collect();
        let merged = merged(&values);
        let l = latency(merged.as_ref());
        assert_eq!(
            (l.p50_us, l.p90_us, l.p95_us, l.p99_us, l.p999_us, l.max_us),
            (500, 900, 950, 990, 999, 1000)
        );
    }

    #[test]
    fn no_histogram_is_a_latency_of_count_zero() {
        assert_eq!(merge(&[], "query", Clock::Service, Span::new(0, 1)).unwrap(), None);
        assert_eq!(latency(None).count, 0);
        assert!(buckets(None).iter().all(|bucket| bucket.count == 0 && bucket.percent == 0.0));
    }

    #[test]
    fn bucket_bounds_are_inclusive_and_disjoint() {
        let values = [256, 257, 1_000, 1_001, 4_000, 15_000, 70_000, 999_000, 3_000_000, 20_000_000];
        let merged = merged(&values);
        let buckets = buckets(merged.as_ref());
        let counts: Vec<_> = buckets.iter().map(|bucket| (bucket.label.as_str(), bucket.count)).collect();
        assert_eq!(
            counts,
            [
                ("256us", 1),
                ("1ms", 2),
                ("4ms", 2),
                ("16ms", 1),
                ("64ms", 0),
                ("256ms", 1),
                ("1s", 1),
                ("4s", 1),
                ("16s", 0),
                ("gt", 1),
            ]
        );
        assert_eq!(buckets[1].percent, 20.0);
    }

    #[test]
    fn every_recorded_time_is_in_its_range_once() {
        let mut step = read_write_step();
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        histogram.record_n(200, 400).unwrap();
        histogram.record_n(50_000, 100).unwrap();
        step.histograms.push(HistogramSpan::new("query", Clock::Service, 0, 1_000_000, &histogram).unwrap());
        let found = operation_histograms(&run(&["a"], 1, vec![cell(1, "a", vec![step])]));
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((only.kind.as_str(), only.clock, only.variant.as_str()), ("query", "service", "a"));
        assert_eq!(only.counts[0], (200, 200, 400));
        let (from_us, to_us, count) = only.counts[1];
        assert!(from_us <= 50_000 && 50_000 <= to_us && count == 100, "{:?}", only.counts);
    }
}
