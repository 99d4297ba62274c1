//! One line of `intervals.jsonl`: what one client did of one kind of operation between two moments.

use serde::{Deserialize, Serialize};

/// Counts of one client and one operation kind over `[from_us, to_us)`, measured from the step's barrier.
///
/// Boundaries are whole seconds, plus the end of the common window and the end of the step. An operation
/// belongs to the interval in which its answer was complete. With all intervals of one client and kind summed
/// from the start up to this one, `due = done + failed + dropped + backlog + in_flight`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub from_us: u64,
    pub to_us: u64,
    /// Client number, from 1.
    pub client: u32,
    /// Operation kind: `insert`, `delete`, `query`, `index`.
    pub kind: String,
    /// Operations that became due.
    pub due: u64,
    /// Operations answered without an error.
    pub done: u64,
    /// Operations that ended with an error (after retries, where they are retried).
    pub failed: u64,
    /// Operations that became due and were given up without being sent.
    pub dropped: u64,
    /// At `to_us`: due and not yet sent.
    pub backlog: u64,
    /// At `to_us`: sent and not yet answered.
    pub in_flight: u64,
    /// Rows inserted, deleted, fetched or indexed by the operations done.
    pub rows: u64,
    /// Bytes received in answers, where the driver counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
    /// Sum and maximum of service time (sent to answered) of the operations done.
    pub service_sum_us: u64,
    pub service_max_us: u64,
    /// Sum and maximum of response time (due to answered) of the operations done.
    pub response_sum_us: u64,
    pub response_max_us: u64,
    /// At `to_us`: connections that were lost and are not yet open again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub down: u64,
    /// How long connections were lost within the interval, the sum over all of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub down_us: u64,
    #[serde(default, skip_serializing_if = "ErrorCounts::is_empty")]
    pub errors: ErrorCounts,
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
    /// No error of any class.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Errors of all classes.
    pub fn total(&self) -> u64 {
        self.retry + self.refused + self.lost + self.fatal
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
