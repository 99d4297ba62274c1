//! How a server came to rest between two steps. It is the value of `settling` in the details of a
//! cell's `work` event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The time from the end of the active work (flush, purge, vacuum) until every level lay under its
/// bound, or until the cap was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    /// Whether every bound held in the end.
    pub quiet: bool,
    pub took_us: u64,
    pub cap_us: u64,
    /// The highest value of each level that counts as quiet. A level's unit is its last word.
    pub bounds: BTreeMap<String, i64>,
    /// The levels before the active work.
    pub before: BTreeMap<String, i64>,
    /// Levels that were above their bounds in the end.
    pub missed: Vec<String>,
    /// One sample per second. The last one is the state in the end.
    pub samples: Vec<SettlingSample>,
}

/// The levels at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettlingSample {
    /// Time since the end of the active work.
    pub at_us: u64,
    pub levels: BTreeMap<String, i64>,
}

/// The key of this value in the details of a `work` event.
pub const SETTLING: &str = "settling";
