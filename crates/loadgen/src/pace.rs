//! When operations are due: closed loop, an even schedule, or the original's one-second bursts.

use std::fmt;
use std::time::Duration;

/// The schedule of one lane. Times count from the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The next operation is due when the one before is answered.
    Closed,
    /// Operation n is due at `phase + n * per / operations`, whatever happened before it; a late lane catches up.
    Constant { operations: u64, per: Duration, phase: Duration },
    /// `per_second` operations back to back, then idle until a second has passed since the burst began; lost time is
    /// not made up. After operation r with r mod per_second = 0: when less than 0.95 s have passed since the last
    /// checkpoint, sleep to exactly 1.0 s, then set the checkpoint to now (the Insert Benchmark's rate limiter).
    Burst { per_second: u64 },
}

impl Pace {
    /// Operation `number` of an even schedule is due after this time; `None` for paces without a schedule.
    pub fn due(&self, number: u64) -> Option<Duration> {
        match *self {
            Self::Closed | Self::Burst { .. } => None,
            Self::Constant { operations, per, phase } => {
                let nanos = u128::from(number) * per.as_nanos() / u128::from(operations.max(1));
                Some(phase + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
        }
    }

    /// How many operations of an even schedule, at most `limit`, are due before `at`.
    pub(crate) fn due_before(&self, at: Duration, limit: u64) -> Option<u64> {
        match *self {
            Self::Closed | Self::Burst { .. } => None,
            Self::Constant { operations, per, phase } => {
                let Some(elapsed) = at.checked_sub(phase) else { return Some(0) };
                let slots = elapsed.as_nanos() * u128::from(operations);
                // Operation n is due before `at` when n * per < slots: n = 0 counts once any time has passed. Rounding
                // of `due` is downwards, so the first candidate is checked against it.
                let mut count = u64::try_from(slots.div_ceil(per.as_nanos().max(1))).unwrap_or(u64::MAX);
                while self.due(count).is_some_and(|due| due < at) {
                    count += 1;
                }
                Some(count.min(limit))
            }
        }
    }

    /// How long a schedule of `limit` operations lasts: until the operation after the last would be due.
    pub(crate) fn horizon(&self, limit: u64) -> Option<Duration> {
        self.due(limit)
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Constant { operations, per, .. } => {
                write!(f, "constant {}/s", trim(*operations as f64 / per.as_secs_f64()))
            }
            Self::Burst { per_second } => write!(f, "burst {per_second}/s"),
        }
    }
}

fn trim(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(operations: u64, per_ms: u64, phase_ms: u64) -> Pace {
        Pace::Constant {
            operations,
            per: Duration::from_millis(per_ms),
            phase: Duration::from_millis(phase_ms),
        }
    }

    #[test]
    fn an_even_schedule_is_exact_after_a_billion_operations() {
        let pace = even(3, 1000, 0);
        assert_eq!(pace.due(3_000_000_000), Some(Duration::from_secs(1_000_000_000)));
        assert_eq!(pace.due(1), Some(Duration::from_nanos(333_333_333)));
    }

    #[test]
    fn due_before_counts_exactly_the_operations_whose_due_time_is_earlier() {
        for pace in [even(2, 1000, 0), even(3, 1000, 125), even(20, 1000, 7), even(7, 5000, 1)] {
            for at_us in (0..4_000_000).step_by(1237) {
                let at = Duration::from_micros(at_us);
                let expected =
                    (0..200).take_while(|&number| pace.due(number).expect("scheduled") < at).count();
                assert_eq!(pace.due_before(at, 200), Some(expected as u64), "{pace} at {at:?}");
            }
        }
    }

    #[test]
    fn the_horizon_is_the_time_the_schedule_was_made_for() {
        assert_eq!(even(2, 1000, 0).horizon(3600), Some(Duration::from_secs(1800)));
        assert_eq!(Pace::Closed.horizon(10), None);
    }

    #[test]
    fn paces_read_as_rates() {
        assert_eq!(even(2, 1000, 0).to_string(), "constant 2/s");
        assert_eq!(even(12, 5000, 0).to_string(), "constant 2.4/s");
        assert_eq!(Pace::Burst { per_second: 20 }.to_string(), "burst 20/s");
    }
}
