//! What a workload forecasts of its steps: their length, and the work that they end with.

use std::time::Duration;

use serde::Deserialize;

/// Forecast of one step, or of work between steps (`prepare`, `settle`, `verify`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepEstimate {
    pub name: String,
    /// How much there is to do, in rows or seconds.
    pub detail: String,
    /// The certain part: the time of a step that ends with its time, and pauses.
    pub length: Duration,
    /// The guessed part, which comes on top.
    pub work: Vec<Work>,
    /// Time after which the work ends, whether it is done or not.
    pub work_limit: Option<Duration>,
    /// `length` and the time of `work` together. It lacks the latter until a forecast is made of
    /// it.
    pub duration: Duration,
}

/// Some work of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The row of `figures.toml` that says what a unit takes.
    pub figure: String,
    pub units: f64,
    /// Connections that do the work at the same time, as far as there are CPUs for them.
    pub connections: u32,
}

/// A workload's forecast of its steps on a kind of server. Each step runs on what the one before it
/// has left.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The steps in the order in which they run, with the work between them.
    pub steps: Vec<StepEstimate>,
    /// Bytes of the data directory at its largest.
    pub disk_bytes: u64,
    /// Bytes of the data directory after the load.
    pub loaded_bytes: u64,
}

/// Bytes that a kind of server takes on disk.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Bytes of a row of the Insert Benchmark with its primary key only. It is 0 where nothing is
    /// kept.
    pub row_bytes: f64,
    /// Bytes per row that one secondary index adds when it is built over a full table.
    pub built_index_bytes: f64,
    /// Bytes per row that one secondary index takes in the steady state, after random inserts and
    /// deletes.
    pub steady_index_bytes: f64,
    /// Bytes of redo logs and similar files, however few rows there are.
    pub log_bytes: u64,
    /// Binlog bytes per written or deleted row.
    pub binlog_row_bytes: u64,
    /// Bytes of an initialised data directory, kept to be copied for each cell.
    pub template_bytes: u64,
}

impl StepEstimate {
    /// Makes a step of which `length` is certain.
    pub fn new(name: &str, detail: &str, length: Duration) -> Self {
        Self {
            name: name.to_owned(),
            detail: detail.to_owned(),
            length,
            work: Vec::new(),
            work_limit: None,
            duration: length,
        }
    }

    /// Makes a step that ends with its work: so many units of `figure`, on one connection.
    pub fn of_work(name: &str, detail: &str, figure: &str, units: f64) -> Self {
        Self::new(name, detail, Duration::ZERO).and(figure, units, 1)
    }

    /// Adds more work, which follows the work so far.
    #[must_use]
    pub fn and(mut self, figure: &str, units: f64, connections: u32) -> Self {
        self.work.push(Work { figure: figure.to_owned(), units, connections });
        self
    }

    #[must_use]
    pub fn at_most(mut self, limit: Option<Duration>) -> Self {
        self.work_limit = limit;
        self
    }

    /// Returns the time of the guessed part.
    pub fn guessed(&self) -> Duration {
        self.duration.saturating_sub(self.length)
    }
}

/// Makes a duration of at most 1e15 seconds, so that sums of steps and cells cannot overflow
/// whatever an unchecked plan says.
pub fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.clamp(0.0, 1e15))
}
