//! Statistics for repeated measurements: pure functions, one file per method, each with its source.
//!
//! Values are log ratios or log rates unless a function says otherwise. Nothing here is random:
//! methods that resample draw their numbers from a seed. docs/concepts/statistics-methods.md
//! explains all of it to readers.

pub mod analysis_of_variance;
pub mod bootstrap;
pub mod change_point;
pub mod changes;
pub mod describe;
pub(crate) mod draw;
pub mod equivalence;
pub mod false_discovery;
pub mod kendall;
pub mod power;
pub mod power_same;
pub mod repeated_t;
pub mod series;
pub mod signed_rank;
pub mod student;
pub mod warm_up;

use serde::Serialize;

/// A range from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Turns an interval of logarithms into one of ratios.
    pub fn exp(self) -> Self {
        Self { low: self.low.exp(), high: self.high.exp() }
    }

    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
