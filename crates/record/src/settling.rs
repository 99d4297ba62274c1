//! How a server came to rest between two steps: the value of `settling` in the details of a cell's
//! `work` event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// From the end of the active work (flush, purge, vacuum) until every level lay under its bound, or
/// the cap was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    /// Every bound held in the end.
    pub quiet: bool,
    pub took_us: u64,
    pub cap_us: u64,
    /// The greatest value of each level that counts as quiet; a level's unit is its last word.
    pub bounds: BTreeMap<String, i64>,
    /// Before the active work.
    pub before: BTreeMap<String, i64>,
    /// Levels that were above their bounds in the end.
    pub missed: Vec<String>,
    /// One a second; the last one is the state in the end.
    pub samples: Vec<SettlingSample>,
}

/// The levels at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettlingSample {
    /// Since the end of the active work.
    pub at_us: u64,
    pub levels: BTreeMap<String, i64>,
}

/// Its key in the details of a `work` event.
pub const SETTLING: &str = "settling";
