//! What a workload forecasts of its steps: how long they are, and the work that they end with.

use std::time::Duration;

use serde::Deserialize;

/// Forecast of one step, or of work between steps (`prepare`, `settle`, `verify`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepEstimate {
    pub name: String,
    /// How much there is to do: rows or seconds.
    pub detail: String,
    /// What is known for certain: of a step that ends with its time, and of pauses.
    pub length: Duration,
    /// What comes on top, and is guessed.
    pub work: Vec<Work>,
    /// The work ends after this time, done or not.
    pub work_limit: Option<Duration>,
    /// `length` and the time of `work`; without the latter until a forecast is made of it.
    pub duration: Duration,
}

/// Some work of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Which row of `figures.toml` says what a unit takes.
    pub figure: String,
    pub units: f64,
    /// Connections that do it at the same time, as far as there are CPUs for them.
    pub connections: u32,
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

/// Bytes on disk.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// A row of the Insert Benchmark with its primary key only. 0 where nothing is kept.
    pub row_bytes: f64,
    /// What one secondary index adds when it is built over a full table.
    pub built_index_bytes: f64,
    /// What one secondary index costs in the steady state, after random inserts and deletes.
    pub steady_index_bytes: f64,
    /// Redo logs and the like, however few rows there are.
    pub log_bytes: u64,
    /// Binlog of one written or deleted row.
    pub binlog_row_bytes: u64,
    /// An initialised data directory, kept to be copied for each cell.
    pub template_bytes: u64,
}

impl StepEstimate {
    /// A step of which `length` is certain.
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

    /// A step that ends with its work: so many units of `figure`, on one connection.
    pub fn of_work(name: &str, detail: &str, figure: &str, units: f64) -> Self {
        Self::new(name, detail, Duration::ZERO).and(figure, units, 1)
    }

    /// With more work, after the other.
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

    /// The part that is guessed.
    pub fn guessed(&self) -> Duration {
        self.duration.saturating_sub(self.length)
    }
}

/// At most 1e15 seconds, so that sums of steps and cells cannot overflow whatever an unchecked plan
/// says.
pub fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.clamp(0.0, 1e15))
}
