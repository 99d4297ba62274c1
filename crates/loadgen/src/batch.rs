//! Holds the counts and times that a load thread hands over at a cut, and adds those of several
//! threads without loss. A cut is a moment at which all load threads hand over the counts since the
//! cut before. Times are in histograms of microseconds, which can be sent to another host.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dbdyno_record::Interval;
use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arrivals::to_us;
use crate::statements::Statements;

/// Service and response times of one operation kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Times {
    #[serde(with = "counts")]
    pub(crate) service: Histogram<u64>,
    /// The histogram of response times. To save memory it is `None` until a response time differs
    /// from its service time. In a closed loop none does, because no operation waits to be sent.
    #[serde(with = "some_counts")]
    response: Option<Histogram<u64>>,
    /// How late the engine itself sent operations for which a free connection was waiting. Only
    /// open loops have such times.
    #[serde(with = "some_counts")]
    pub(crate) lag: Option<Histogram<u64>>,
    /// The longest time from when an operation was due to when it was sent.
    pub(crate) late_max_us: u64,
}

impl Times {
    pub(crate) fn new() -> Self {
        Self { service: histogram(), response: None, lag: None, late_max_us: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.service.is_empty() && self.lag.is_none()
    }

    pub(crate) fn record(&mut self, service_us: u64, response_us: u64) {
        self.late_max_us = self.late_max_us.max(response_us.saturating_sub(service_us));
        match &mut self.response {
            Some(response) => record(response, response_us),
            None if response_us == service_us => {}
            None => record(self.response.insert(self.service.clone()), response_us),
        }
        record(&mut self.service, service_us);
    }

    /// Returns the times from when an operation was due to its answer.
    pub(crate) fn response(&self) -> &Histogram<u64> {
        self.response.as_ref().unwrap_or(&self.service)
    }

    pub(crate) fn record_lag(&mut self, lag_us: u64) {
        record(self.lag.get_or_insert_with(histogram), lag_us);
    }

    /// Adds the counts of another thread or second, without loss.
    pub(crate) fn add(&mut self, more: &Self) {
        self.late_max_us = self.late_max_us.max(more.late_max_us);
        // Both sides have the same significant figures and ranges that grow, so adding cannot fail.
        if self.response.is_some() || more.response.is_some() {
            let service = &self.service;
            let _ = self.response.get_or_insert_with(|| service.clone()).add(more.response());
        }
        let _ = self.service.add(&more.service);
        if let Some(more) = &more.lag {
            let _ = self.lag.get_or_insert_with(histogram).add(more);
        }
    }
}

/// Inserts `value` under `key`, or adds it to the value under that key.
pub(crate) fn merge<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, add: impl FnOnce(&mut V, V)) {
    match map.entry(key) {
        Entry::Vacant(place) => _ = place.insert(value),
        Entry::Occupied(mut sum) => add(sum.get_mut(), value),
    }
}

/// The counts and times that a load thread hands over at a cut: one interval per client and kind,
/// and the histograms of each kind.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// Each interval comes with the index of its kind.
    pub(crate) intervals: Vec<(usize, Interval)>,
    /// Times by kind index. Kinds without a completed operation are left out.
    pub(crate) times: BTreeMap<usize, Times>,
    pub(crate) statements: Statements,
    /// How many tasks wait for the answer to their first operation.
    pub(crate) unanswered: usize,
}

impl Batch {
    /// Returns the same batch, cut off at `end_ns`, where the step ended. Nothing was done later.
    pub(crate) fn ended(mut self, end_ns: u64) -> Self {
        self.to_ns = self.to_ns.min(end_ns);
        for (_, interval) in &mut self.intervals {
            interval.to_us = to_us(self.to_ns);
        }
        self
    }

    /// Adds the batch of another thread between the same two cuts.
    pub(crate) fn join(&mut self, more: Self) {
        self.intervals.extend(more.intervals);
        self.statements.add(&more.statements);
        self.unanswered += more.unanswered;
        for (kind, times) in more.times {
            merge(&mut self.times, kind, times, |sum, times| sum.add(&times));
        }
    }
}

/// Histograms hold 1 µs to 1 h with 3 significant figures. An index build that takes longer makes its
/// histogram grow.
const LOWEST_US: u64 = 1;
const HIGHEST_US: u64 = 3_600_000_000;
const FIGURES: u8 = 3;

/// Returns an empty histogram of times. It takes 190 kB.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(LOWEST_US, HIGHEST_US, FIGURES)
        .expect("the bounds are constants that the crate accepts");
    histogram.auto(true);
    histogram
}

/// A histogram in the form in which one host sends it to another: each value with its count.
/// Nothing is lost.
#[derive(Serialize, Deserialize)]
struct HistogramCounts(Vec<(u64, u64)>);

impl From<&Histogram<u64>> for HistogramCounts {
    fn from(histogram: &Histogram<u64>) -> Self {
        let values = histogram.iter_recorded();
        Self(values.map(|value| (value.value_iterated_to(), value.count_at_value())).collect())
    }
}

impl From<HistogramCounts> for Histogram<u64> {
    fn from(counts: HistogramCounts) -> Self {
        let mut histogram = histogram();
        for (value, count) in counts.0 {
            if histogram.record_n(value, count).is_err() {
                histogram.saturating_record_n(value, count);
            }
        }
        histogram
    }
}

/// Lets serde write a histogram as its counts.
pub(crate) mod counts {
    use super::{Borrow, Deserialize, Deserializer, Histogram, HistogramCounts, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        histogram: &impl Borrow<Histogram<u64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        HistogramCounts::from(histogram.borrow()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, H: From<Histogram<u64>>>(
        deserializer: D,
    ) -> Result<H, D::Error> {
        Ok(Histogram::from(HistogramCounts::deserialize(deserializer)?).into())
    }
}

/// Lets serde write a histogram that may be absent as its counts.
pub(crate) mod some_counts {
    use super::{Deserialize, Deserializer, Histogram, HistogramCounts, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        histogram: &Option<Histogram<u64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        histogram.as_ref().map(HistogramCounts::from).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Histogram<u64>>, D::Error> {
        Ok(Option::<HistogramCounts>::deserialize(deserializer)?.map(Into::into))
    }
}

pub(crate) fn record(histogram: &mut Histogram<u64>, value_us: u64) {
    if histogram.record(value_us).is_err() {
        // There is no memory for a longer range, so the value is counted as the highest one in
        // range.
        histogram.saturating_record(value_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(of: &[(u64, u64)]) -> Times {
        let mut times = Times::new();
        of.iter().for_each(|&(service_us, response_us)| times.record(service_us, response_us));
        times
    }

    fn values(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
        histogram.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }

    #[test]
    fn response_times_get_their_own_histogram_once_one_differs() {
        let closed = times(&[(5, 5), (7, 7)]);
        assert!(closed.response.is_none());
        assert_eq!(values(closed.response()), [(5, 1), (7, 1)]);
        let open = times(&[(5, 5), (7, 9), (5, 5)]);
        assert_eq!(values(&open.service), [(5, 2), (7, 1)]);
        assert_eq!(values(open.response()), [(5, 2), (9, 1)]);
    }

    #[test]
    fn adding_keeps_both_times_whichever_side_has_waited() {
        for (first, second) in [(&[(1, 1)][..], &[(2, 3)][..]), (&[(2, 3)], &[(1, 1)])] {
            let mut sum = times(first);
            sum.add(&times(second));
            assert_eq!(values(&sum.service), [(1, 1), (2, 1)]);
            assert_eq!(values(sum.response()), [(1, 1), (3, 1)]);
        }
        let mut closed = times(&[(1, 1)]);
        closed.add(&times(&[(2, 2)]));
        assert_eq!(values(closed.response()), [(1, 1), (2, 1)]);
    }
}
