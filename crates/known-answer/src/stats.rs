//! Statistics of a server: counts, and the programmed and actual times of statements.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Longest time that is recorded exactly, in nanoseconds. Longer times count as this one.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Quantiles in the summary, with their names.
const QUANTILES: &[(&str, f64)] = &[
    ("p1_us", 0.01),
    ("p10_us", 0.1),
    ("p50_us", 0.5),
    ("p90_us", 0.9),
    ("p95_us", 0.95),
    ("p99_us", 0.99),
    ("p99_9_us", 0.999),
    ("p99_99_us", 0.9999),
];

/// A server's statistics since its start.
#[derive(Debug, Clone, Serialize, Default)]
pub struct Stats {
    pub connections: Connections,
    pub requests: Requests,
    pub faults: Faults,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// CPU time that the script made the server burn, measured by the threads' own CPU clocks. In
    /// JSON it is in seconds.
    #[serde(rename = "burnt_seconds", serialize_with = "seconds")]
    pub burnt: Duration,
    /// The time that each answered statement should take: burn and delay, without freezes.
    pub programmed: AnswerTimes,
    /// The time that each answered statement took, from the moment its last byte was read (or the
    /// previous answer was sent) to the moment its answer was written. Half answers, and statements
    /// that were answered by closing the connection, are not included.
    pub actual: AnswerTimes,
    /// How much longer each statement took than programmed, because of freezes, its thread's other
    /// work, and the kernel. The value shows how exact the server is.
    pub late: AnswerTimes,
}

#[derive(Debug, Clone, Copy, Serialize, Default, PartialEq, Eq)]
pub struct Connections {
    /// Accepted connections, including refused ones.
    pub accepted: u64,
    /// Connections beyond the limit.
    pub refused: u64,
    pub logged_in: u64,
    pub closed: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Default, PartialEq, Eq)]
pub struct Requests {
    pub queries: u64,
    pub executions: u64,
    pub prepares: u64,
    pub closes: u64,
    pub pings: u64,
    pub others: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Default, PartialEq, Eq)]
pub struct Faults {
    pub errors: u64,
    pub half_answers: u64,
    pub disconnects: u64,
}

/// Statement times to 3 figures, with their exact sum.
#[derive(Debug, Clone)]
pub struct AnswerTimes {
    histogram: Histogram<u64>,
    sum_ns: u128,
}

impl Requests {
    /// Number of queries and executions.
    pub fn statements(&self) -> u64 {
        self.queries + self.executions
    }
}

impl Stats {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { connections, requests, faults, received_bytes, sent_bytes, burnt, .. } = other;
        self.connections.accepted += connections.accepted;
        self.connections.refused += connections.refused;
        self.connections.logged_in += connections.logged_in;
        self.connections.closed += connections.closed;
        self.requests.queries += requests.queries;
        self.requests.executions += requests.executions;
        self.requests.prepares += requests.prepares;
        self.requests.closes += requests.closes;
        self.requests.pings += requests.pings;
        self.requests.others += requests.others;
        self.faults.errors += faults.errors;
        self.faults.half_answers += faults.half_answers;
        self.faults.disconnects += faults.disconnects;
        self.received_bytes += received_bytes;
        self.sent_bytes += sent_bytes;
        self.burnt += *burnt;
        self.programmed.add(&other.programmed);
        self.actual.add(&other.actual);
        self.late.add(&other.late);
    }

    /// Counts `count` statements that should take `programmed` and took `actual` each.
    pub(crate) fn answered(&mut self, programmed: Duration, actual: Duration, count: u64) {
        self.programmed.record(programmed, count);
        self.actual.record(actual, count);
        self.late.record(actual.saturating_sub(programmed), count);
    }
}

impl Default for AnswerTimes {
    fn default() -> Self {
        let histogram = Histogram::new_with_max(LONGEST_NS, 3).expect("the bounds are sound");
        Self { histogram, sum_ns: 0 }
    }
}

impl AnswerTimes {
    /// Counts `count` statements that took `time` each.
    pub(crate) fn record(&mut self, time: Duration, count: u64) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record_n(nanos, count);
        self.sum_ns += u128::from(nanos) * u128::from(count);
    }

    fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean; zero when nothing was counted.
    pub fn mean(&self) -> Duration {
        let mean = self.sum_ns.checked_div(u128::from(self.count())).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The time that a share `probability` (0 to 1) of the statements did not exceed.
    pub fn quantile(&self, probability: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(probability))
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// The histogram in nanoseconds, from 1 ns to 1 h, to 3 figures.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

impl Serialize for AnswerTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut times = serializer.serialize_struct("Times", QUANTILES.len() + 3)?;
        times.serialize_field("count", &self.count())?;
        times.serialize_field("mean_us", &micros(self.mean()))?;
        for (name, probability) in QUANTILES {
            times.serialize_field(name, &micros(self.quantile(*probability)))?;
        }
        times.serialize_field("max_us", &micros(self.max()))?;
        times.end()
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_of_threads_add_up() {
        let mut all = Stats::default();
        let mut one = Stats::default();
        one.requests.queries = 3;
        one.burnt = Duration::from_micros(5);
        one.answered(Duration::from_micros(90), Duration::from_micros(100), 2);
        one.answered(Duration::from_micros(405), Duration::from_micros(400), 1);
        all.add(&one);
        all.add(&one);
        assert_eq!(
            (all.requests.statements(), all.burnt, all.actual.count()),
            (6, Duration::from_micros(10), 6)
        );
        assert_eq!(all.actual.mean(), Duration::from_micros(200));
        assert_eq!(all.programmed.mean(), Duration::from_micros(195));
        assert_eq!(all.late.max().as_micros(), 10);
        insta::assert_snapshot!(serde_json::to_string(&all.actual).expect("JSON"), @r#"{"count":6,"mean_us":200.0,"p1_us":100.031,"p10_us":100.031,"p50_us":100.031,"p90_us":400.127,"p95_us":400.127,"p99_us":400.127,"p99_9_us":400.127,"p99_99_us":400.127,"max_us":400.127}"#);
        assert_eq!(AnswerTimes::default().mean(), Duration::ZERO);
    }
}
