//! Keeps a reading that grows with the server (threads, files) from costing more than its share of
//! a core.

use std::time::{Duration, Instant};

use super::Moment;
use crate::clock::thread_cpu;

/// A reading waits this many times its own CPU cost before it is done again: 0.25 % of a core.
const PAUSE_PER_COST: u32 = 400;

/// When a costly reading is due again.
#[derive(Debug)]
pub(crate) struct CostLimit {
    at_least: Duration,
    last: Option<(Instant, Duration)>,
}

impl CostLimit {
    /// A limit that also keeps `at_least` between two readings.
    pub(crate) fn new(at_least: Duration) -> Self {
        Self { at_least, last: None }
    }

    /// Whether to read now. At the boundaries of a window always: rates are computed from those
    /// samples.
    pub(crate) fn is_due(&self, moment: Moment, now: Instant) -> bool {
        let Some((at, cost)) = self.last else { return true };
        moment != Moment::Tick
            || now.saturating_duration_since(at) >= self.at_least.max(cost * PAUSE_PER_COST)
    }

    /// Does the reading and remembers what it cost.
    pub(crate) fn measure<T>(&mut self, now: Instant, reading: impl FnOnce() -> T) -> T {
        let before = thread_cpu();
        let result = reading();
        self.last = Some((now, thread_cpu().saturating_sub(before)));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_10_ms_is_done_every_4_seconds_and_at_boundaries() {
        let start = Instant::now();
        let limit = CostLimit { at_least: Duration::ZERO, last: Some((start, Duration::from_millis(10))) };
        let after = |ms| start + Duration::from_millis(ms);
        assert!(!limit.is_due(Moment::Tick, after(3_999)));
        assert!(limit.is_due(Moment::Tick, after(4_000)));
        assert!(limit.is_due(Moment::Boundary, after(1)));
    }

    #[test]
    fn a_cheap_reading_keeps_its_least_pause() {
        let start = Instant::now();
        let mut limit = CostLimit::new(Duration::from_secs(9));
        assert!(limit.is_due(Moment::Tick, start));
        limit.measure(start, || ());
        assert!(!limit.is_due(Moment::Tick, start + Duration::from_secs(8)));
        assert!(limit.is_due(Moment::Tick, start + Duration::from_secs(9)));
    }
}
