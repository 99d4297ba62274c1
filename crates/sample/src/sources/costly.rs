//! Limits how often an expensive source is read. A reading that grows with the server (threads, files)
//! must not cost more than its share of a core.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{Moment, Source, Values};
use crate::Error;
use crate::clock::thread_cpu;

/// A reading waits this many times its own CPU cost before it is done again, which is 0.25 % of a core.
const PAUSE_PER_COST: u32 = 400;

/// A source whose readings grow with the server.
pub(crate) struct Costly<S> {
    source: S,
    at_least: Duration,
    last: Option<(Instant, Duration)>,
}

impl<S> Costly<S> {
    /// Also keeps `at_least` between two readings.
    pub(crate) fn new(source: S, at_least: Duration) -> Self {
        Self { source, at_least, last: None }
    }

    /// Returns whether to read now. The answer is always yes at the boundaries of a window, because
    /// rates are computed from those samples.
    fn is_due(&self, moment: Moment, now: Instant) -> bool {
        let Some((at, cost)) = self.last else { return true };
        moment != Moment::Tick
            || now.saturating_duration_since(at) >= self.at_least.max(cost * PAUSE_PER_COST)
    }
}

impl<S: Source> Source for Costly<S> {
    fn about(&self) -> Map<String, Value> {
        self.source.about()
    }

    fn read(&mut self, moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let now = Instant::now();
        if !self.is_due(moment, now) {
            return Ok(None);
        }
        let before = thread_cpu();
        let read = self.source.read(moment, values);
        self.last = Some((now, thread_cpu().saturating_sub(before)));
        read
    }

    fn close(&mut self) {
        self.source.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that costs nothing.
    struct Clock;

    impl Source for Clock {
        fn about(&self) -> Map<String, Value> {
            Map::new()
        }

        fn read(&mut self, _moment: Moment, _values: &mut Values) -> Result<Option<Instant>, Error> {
            Ok(Some(Instant::now()))
        }
    }

    #[test]
    fn a_reading_of_10_ms_is_done_every_4_seconds_and_at_boundaries() {
        let start = Instant::now();
        let last = Some((start, Duration::from_millis(10)));
        let costly = Costly { last, ..Costly::new(Clock, Duration::ZERO) };
        let after = |ms| start + Duration::from_millis(ms);
        assert!(!costly.is_due(Moment::Tick, after(3_999)));
        assert!(costly.is_due(Moment::Tick, after(4_000)));
        assert!(costly.is_due(Moment::Boundary, after(1)));
    }

    #[test]
    fn a_cheap_reading_keeps_its_least_pause() {
        let start = Instant::now();
        let last = Some((start, Duration::ZERO));
        let costly = Costly { last, ..Costly::new(Clock, Duration::from_secs(9)) };
        assert!(!costly.is_due(Moment::Tick, start + Duration::from_secs(8)));
        assert!(costly.is_due(Moment::Tick, start + Duration::from_secs(9)));
    }

    #[test]
    fn a_reading_that_is_not_due_is_no_sample() {
        let mut source = Costly::new(Clock, Duration::from_secs(60));
        let mut sampled = |moment| source.read(moment, &mut Values::default()).unwrap().is_some();
        assert_eq!([Moment::Boundary, Moment::Tick, Moment::Boundary].map(&mut sampled), [true, false, true]);
    }
}
