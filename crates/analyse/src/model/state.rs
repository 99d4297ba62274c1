//! State of a server and its host during one execution of a step: deferred work, memory,
//! steadiness.

use serde::Serialize;

/// A server's deferred work before and after one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeferredWork {
    pub levels: Vec<DeferredLevel>,
    /// Bytes written to the data directory's device between its first and last sample in the step;
    /// `None` where the device cannot be seen. It is not taken from the kernel's `write_bytes` of
    /// the server's process. That counter counts whole folios of the page cache for each small
    /// write, and has shown ten times what was written.
    pub written_bytes: Option<i64>,
}

/// One kind of deferred work. The last word of its name is its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeferredLevel {
    /// The name as recorded: `dirty_bytes`, `history_list_length`, `dead_rows`, ...
    pub name: String,
    pub before: i64,
    pub after: i64,
}

/// Memory of the server's control group. The kernel charges a page to the group that touched it
/// first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GroupMemory {
    /// Highest value in any sample of the step: own memory, page cache, and what the kernel holds
    /// for the group.
    pub highest_bytes: Option<i64>,
    /// Heaps and buffer pools at the end of the window. PostgreSQL's buffers are shared memory,
    /// which counts as page cache.
    pub own_bytes: Option<i64>,
    /// Page cache of files, and shared memory, at the end of the window.
    pub page_cache_bytes: Option<i64>,
    /// The part of the page cache that is not on the disk yet.
    pub dirty_bytes: Option<i64>,
    /// How often per second a page was needed while the limit was reached, so that the kernel had
    /// to reclaim others first.
    pub limit_hits_per_second: Option<f64>,
}

/// Statements that were sent under one name in the whole step, by all clients together.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookups {
    /// `min_id` and `max_id` are look-ups; `insert` is the INSERT of `l.x` before the indexes.
    pub name: String,
    pub count: u64,
    /// The sum of all durations.
    pub seconds: f64,
    pub mean_seconds: f64,
    pub max_seconds: f64,
}

impl Lookups {
    /// Makes the figures from the statements' durations in microseconds.
    pub fn of(name: &str, durations_us: &[u64]) -> Self {
        let seconds = durations_us.iter().sum::<u64>() as f64 / 1e6;
        Self {
            name: name.to_owned(),
            count: durations_us.len() as u64,
            seconds,
            mean_seconds: seconds / durations_us.len().max(1) as f64,
            max_seconds: durations_us.iter().max().map_or(0.0, |longest| *longest as f64 / 1e6),
        }
    }
}

/// How steady the rate was over the window's whole seconds. It counts the headline kind of all
/// clients together. A step that ends by a count has only the seconds in which all clients were at
/// work.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    pub seconds: usize,
    pub median_rate: f64,
    pub worst_rate: f64,
    /// The slowest second's rate ÷ the median second's; `None` when the median is 0.
    pub worst_share: Option<f64>,
    /// Longest run of whole seconds in which nothing was done. If all connections were lost for
    /// longer, it is that time, rounded down to whole seconds.
    pub longest_gap_seconds: usize,
    pub share_below_half_median: f64,
    /// Seconds before the steady state (MSER-5); `None` for fewer than 40 seconds, and when it was
    /// never steady.
    pub warm_up_seconds: Option<usize>,
    /// No steady state was found: the best cut would lose more than half of the seconds.
    pub never_steady: bool,
    /// Seconds after which the rate repeats itself, for instance from checkpoint to checkpoint.
    pub period_seconds: Option<usize>,
    /// The two levels between which the rate jumps, and the share of seconds at the lower.
    pub modes: Option<[f64; 2]>,
    pub low_mode_share: Option<f64>,
}
