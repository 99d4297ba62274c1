//! What a workload forecasts of its steps.

use std::time::Duration;

/// Forecast of one step, or of work between steps (`prepare`, `settle`, `verify`).
#[derive(Debug, Clone, PartialEq)]
pub struct StepEstimate {
    pub name: String,
    /// How much there is to do: rows or seconds.
    pub detail: String,
    pub duration: Duration,
}

/// A workload's forecast of its steps on a kind of server, each on what the one before it has left.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// In the order in which they run, with the work between them.
    pub steps: Vec<StepEstimate>,
    /// The data directory at its largest.
    pub disk_bytes: u64,
    /// The data directory after the load.
    pub loaded_bytes: u64,
}

impl StepEstimate {
    pub fn new(name: &str, detail: &str, duration: Duration) -> Self {
        Self { name: name.to_owned(), detail: detail.to_owned(), duration }
    }
}

/// At most 1e15 seconds, so that sums of steps and cells cannot overflow whatever an unchecked plan
/// says.
pub fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.min(1e15))
}
