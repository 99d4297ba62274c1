//! Why a comparison is undecided for another reason than the scatter of its blocks.

use serde::Serialize;

use crate::model::{ForeignLoad, TooFewOperations};

/// A reason that more blocks do not take away. A new one is a variant here, a rule in
/// `compare/undecided.rs` and words in the report's `words.rs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Undecided {
    /// One of the two times is below what the clock of the records resolves: no ratio is formed.
    BelowClock,
    /// A window of one of the two holds too few operations, by this one of them with the least.
    TooFewOperations(TooFewOperations),
    /// Other programs took so much CPU time that they may explain the difference.
    ForeignLoad(ForeignLoad),
    /// The base answered nothing in some blocks, which are in no ratio.
    BaseStalled,
}
