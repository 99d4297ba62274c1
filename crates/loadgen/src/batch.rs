//! What a worker hands over at a cut, and how the parts of several workers become one without loss.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dbdyno_record::Interval;
use hdrhistogram::Histogram;

/// 1 µs to 1 h with 3 significant figures; an index build that takes longer makes its histogram grow.
const LOWEST_US: u64 = 1;
const HIGHEST_US: u64 = 3_600_000_000;
const FIGURES: u8 = 3;

/// Service and response times of one operation kind.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    pub(crate) service: Histogram<u64>,
    pub(crate) response: Histogram<u64>,
    /// Lateness of the engine itself; only of open loops.
    pub(crate) lag: Option<Histogram<u64>>,
}

impl Times {
    pub(crate) fn new() -> Self {
        Self { service: histogram(), response: histogram(), lag: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.service.is_empty() && self.lag.is_none()
    }

    pub(crate) fn record(&mut self, service_us: u64, response_us: u64) {
        record(&mut self.service, service_us);
        record(&mut self.response, response_us);
    }

    pub(crate) fn record_lag(&mut self, lag_us: u64) {
        record(self.lag.get_or_insert_with(histogram), lag_us);
    }

    /// Adds the counts of another worker or second, without loss.
    pub(crate) fn add(&mut self, more: &Self) {
        // Same figures on both sides, and ranges that grow, so that adding cannot fail.
        let _ = self.service.add(&more.service);
        let _ = self.response.add(&more.response);
        if let Some(more) = &more.lag {
            let _ = self.lag.get_or_insert_with(histogram).add(more);
        }
    }
}

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

/// What a worker hands over at a cut: one interval a client and kind, histograms of each kind.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// With the index of their kind.
    pub(crate) intervals: Vec<(usize, Interval)>,
    /// By kind index; kinds without a completed operation are left out.
    pub(crate) times: BTreeMap<usize, Times>,
}

impl Batch {
    /// Adds what another worker did between the same two moments.
    pub(crate) fn join(&mut self, more: Self) {
        self.intervals.extend(more.intervals);
        for (kind, times) in more.times {
            match self.times.entry(kind) {
                Entry::Vacant(place) => {
                    place.insert(times);
                }
                Entry::Occupied(mut sum) => sum.get_mut().add(&times),
            }
        }
    }
}
