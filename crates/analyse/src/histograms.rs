//! The recorded histograms of operations over the common window, for programs that need more than
//! percentiles.

use dbdyno_record::{CellRecord, Clock, Run, StepRecord, parallel};

use crate::measure::latency::merge;
use crate::window::Span;

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
    /// Lowest and highest time in a range, both in µs and included, and the number of operations
    /// with such a time. Ranges without an operation are left out.
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
