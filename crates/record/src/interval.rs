//! Defines a line of `intervals.jsonl`, which has the counts and times of one client and one kind
//! of operation between two moments.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Counts of one client and one operation kind over `[from_us, to_us)`, measured from the step's
/// barrier.
///
/// Boundaries are whole seconds, the end of the common window and the end of the step. An operation
/// belongs to the interval in which its answer was complete. When all intervals of one client and kind
/// are summed from the start up to this one, `due = done + failed + dropped + backlog + in_flight`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub from_us: u64,
    pub to_us: u64,
    /// Client number, from 1.
    pub client: u32,
    /// Operation kind, such as `insert`, `delete`, `query` or `index`.
    pub kind: String,
    /// Operations that became due.
    pub due: u64,
    /// Operations answered without an error.
    pub done: u64,
    /// Operations that ended with an error (after retries, where they are retried).
    pub failed: u64,
    /// Operations that became due and were given up without being sent.
    pub dropped: u64,
    /// Operations that are due at `to_us` and not yet sent.
    pub backlog: u64,
    /// Operations that are sent at `to_us` and not yet answered.
    pub in_flight: u64,
    /// Rows inserted, deleted, fetched or indexed by the operations done.
    pub rows: u64,
    /// Bytes received in answers, where the driver counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
    /// Sum and maximum of the service time (sent to answered) over the operations done.
    pub service_sum_us: u64,
    pub service_max_us: u64,
    /// Sum and maximum of the response time (due to answered) over the operations done.
    pub response_sum_us: u64,
    pub response_max_us: u64,
    /// Sum of the cycle times of the operations done or failed. The cycle of a closed loop begins at
    /// the end of the operation before, or at the barrier. It therefore includes think time and
    /// preparation. The cycle of an open loop begins when the operation is sent.
    pub cycle_sum_us: u64,
    /// The correction of these counts at the edges of the common window.
    #[serde(default, skip_serializing_if = "WindowCut::is_empty")]
    pub cut: WindowCut,
    /// Connections that are lost at `to_us` and not yet open again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub down: u64,
    /// How long connections were lost within the interval, summed over all of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub down_us: u64,
    #[serde(default, skip_serializing_if = "ErrorCounts::is_empty")]
    pub errors: ErrorCounts,
}

/// The correction to add to the counts of an interval, so that each operation counts by the share
/// of its cycle that lies in the common window.
///
/// An operation is counted in the interval in which it ended. If it began in the warm-up, its part
/// there is subtracted, so the value is below zero. If it ended after the window, its part in the
/// window is added. All other operations add nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowCut {
    pub operations: f64,
    pub rows: f64,
    pub cycle_us: f64,
}

impl WindowCut {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for WindowCut {
    fn add_assign(&mut self, more: Self) {
        let Self { operations, rows, cycle_us } = more;
        self.operations += operations;
        self.rows += rows;
        self.cycle_us += cycle_us;
    }
}

/// Errors by class. A retried attempt counts under `retry` and is not a failed operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorCounts {
    pub retry: u64,
    pub refused: u64,
    pub lost: u64,
    pub fatal: u64,
}

impl ErrorCounts {
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Returns the errors of all classes.
    pub fn total(&self) -> u64 {
        self.retry + self.refused + self.lost + self.fatal
    }
}

impl AddAssign for ErrorCounts {
    fn add_assign(&mut self, more: Self) {
        let Self { retry, refused, lost, fatal } = more;
        self.retry += retry;
        self.refused += refused;
        self.lost += lost;
        self.fatal += fatal;
    }
}

/// The counts and sums of an interval, and its longest times.
///
/// Each field is taken by its name, so the compiler rejects the macro if a new field is left out.
macro_rules! figures {
    ($interval:expr) => {{
        let $crate::Interval {
            from_us: _,
            to_us: _,
            client: _,
            kind: _,
            due,
            done,
            failed,
            dropped,
            backlog,
            in_flight,
            rows,
            received_bytes,
            service_sum_us,
            service_max_us,
            response_sum_us,
            response_max_us,
            cycle_sum_us,
            cut: _,
            down,
            down_us,
            errors: $crate::ErrorCounts { retry, refused, lost, fatal },
        } = $interval;
        let work = [due, done, failed, dropped, backlog, in_flight, rows, received_bytes];
        let times = [service_sum_us, response_sum_us, cycle_sum_us];
        let rest = [down, down_us, retry, refused, lost, fatal];
        (work.into_iter().chain(times).chain(rest), [service_max_us, response_max_us])
    }};
}
pub(crate) use figures;

/// Adds the counts of another connection over the same time. Client, kind and boundaries do not
/// change.
impl AddAssign<&Self> for Interval {
    fn add_assign(&mut self, more: &Self) {
        let (sums, longest) = figures!(self);
        let (more_sums, more_longest) = figures!(more);
        for (sum, more) in sums.zip(more_sums) {
            *sum += more;
        }
        self.cut += more.cut;
        for (longest, more) in longest.into_iter().zip(more_longest) {
            *longest = (*longest).max(*more);
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: u64) -> Interval {
        let errors = ErrorCounts { retry: of + 13, refused: of + 14, lost: of + 15, fatal: of + 16 };
        Interval {
            from_us: 0,
            to_us: 1_000_000,
            client: 2,
            kind: "insert".to_owned(),
            due: of,
            done: of + 1,
            failed: of + 2,
            dropped: of + 3,
            backlog: of + 4,
            in_flight: of + 5,
            rows: of + 6,
            received_bytes: of + 7,
            service_sum_us: of + 8,
            service_max_us: of + 9,
            response_sum_us: of + 10,
            response_max_us: of + 10,
            cycle_sum_us: of + 17,
            cut: WindowCut { operations: 0.5, rows: of as f64, cycle_us: -2.0 },
            down: of + 11,
            down_us: of + 12,
            errors,
        }
    }

    #[test]
    fn counts_are_added_and_the_longest_times_are_kept() {
        let mut sum = counts(100);
        sum += &counts(1_000);
        let errors = ErrorCounts { retry: 1_126, refused: 1_128, lost: 1_130, fatal: 1_132 };
        let expected = Interval {
            due: 1_100,
            done: 1_102,
            failed: 1_104,
            dropped: 1_106,
            backlog: 1_108,
            in_flight: 1_110,
            rows: 1_112,
            received_bytes: 1_114,
            service_sum_us: 1_116,
            service_max_us: 1_009,
            response_sum_us: 1_120,
            response_max_us: 1_010,
            cycle_sum_us: 1_134,
            cut: WindowCut { operations: 1.0, rows: 1_100.0, cycle_us: -4.0 },
            down: 1_122,
            down_us: 1_124,
            errors,
            ..counts(0)
        };
        assert_eq!(sum, expected);
    }
}
