//! Histograms of times in microseconds.

use hdrhistogram::Histogram;

/// 1 µs to 1 h with 3 significant figures; an index build that takes longer makes its histogram grow.
const LOWEST_US: u64 = 1;
const HIGHEST_US: u64 = 3_600_000_000;
const FIGURES: u8 = 3;

/// An empty histogram of times, 190 kB.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(LOWEST_US, HIGHEST_US, FIGURES)
        .expect("the bounds are constants that the crate accepts");
    histogram.auto(true);
    histogram
}

pub(crate) fn record(histogram: &mut Histogram<u64>, value_us: u64) {
    if histogram.record(value_us).is_err() {
        // No memory to grow into: the count is kept, at the greatest value there is room for.
        histogram.saturating_record(value_us);
    }
}
