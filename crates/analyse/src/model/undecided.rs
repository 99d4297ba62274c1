//! Reasons why a comparison is undecided, other than the scatter of its blocks.

use serde::Serialize;

use crate::model::{ForeignLoad, TooFewOperations};

/// A reason that more blocks cannot remove. A new reason needs a variant here, a rule in
/// `compare/undecided.rs` and words in the report's `words.rs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Undecided {
    /// One of the two times is shorter than the records' clock resolves, so that no ratio is
    /// formed.
    BelowClock,
    /// A window of one of the two holds too few operations. The figures are those of the window
    /// with the fewest.
    TooFewOperations(TooFewOperations),
    /// Other programs took so much CPU time that they may explain the difference.
    ForeignLoad(ForeignLoad),
    /// The base answered nothing in some blocks, and these are in no ratio.
    BaseStalled,
}
