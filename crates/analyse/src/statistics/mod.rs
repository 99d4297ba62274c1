//! Statistics for repeated measurements: pure functions, one file per kind of method, each with its
//! sources.
//!
//! Values are log ratios or log rates unless a function says otherwise. Nothing here is random:
//! methods that resample draw their numbers from a seed. docs/concepts/statistics-methods.md
//! explains all of it to readers.

pub mod bisection;
pub mod change_point;
pub mod describe;
pub mod false_discovery;
pub mod power;
pub mod ranks;
pub mod repeated_t;
pub mod resampling;
pub mod series;
pub mod student;

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
