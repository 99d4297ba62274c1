//! What a server and its host were like in one execution of a step.

use serde::Serialize;

/// The put-off work of a server around one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Debt {
    pub levels: Vec<DebtLevel>,
    /// Bytes written to the data directory's device between its first and last sample of the step;
    /// `None` where it is not seen. Not the kernel's `write_bytes` of the server's process, which
    /// counts whole folios of the page cache for each small write to one: ten times what was
    /// written was seen.
    pub written_bytes: Option<i64>,
}

/// One kind of put-off work; its unit is its name's last word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DebtLevel {
    /// As recorded: `dirty_bytes`, `history_list_length`, `dead_rows`, ...
    pub name: String,
    pub before: i64,
    pub after: i64,
}

/// What the server's control group held: the kernel counts a page to the group that was first to
/// touch it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GroupMemory {
    /// The most in any sample of the step: own memory, page cache and what the kernel holds for the
    /// group.
    pub greatest_bytes: Option<i64>,
    /// At the end of the window: heaps and buffer pools. PostgreSQL's buffers are shared memory,
    /// which counts as page cache.
    pub own_bytes: Option<i64>,
    /// At the end of the window: page cache of files, and shared memory.
    pub page_cache_bytes: Option<i64>,
    /// Of the page cache, what is not on the disk yet.
    pub dirty_bytes: Option<i64>,
    /// How often in a second a page was wanted and the limit was reached, so that others had to be
    /// taken back first.
    pub limit_hits_per_second: Option<f64>,
}

/// What was asked under one name in the whole step, by all clients together.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookups {
    /// `min_id` and `max_id` are look-ups; `insert` is the INSERT of `l.x` before the indexes.
    pub name: String,
    pub count: u64,
    /// The sum of all times.
    pub seconds: f64,
    pub mean_seconds: f64,
    pub max_seconds: f64,
}

impl Lookups {
    /// The figures of statements that took so long.
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

/// Whole seconds of the common window, headline kind, all clients together. Of a step that ends by
/// a count, those in which all clients were at work.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    pub seconds: usize,
    pub median_rate: f64,
    pub worst_rate: f64,
    /// The slowest second's rate ÷ the median second's; `None` when the median is 0.
    pub worst_share: Option<f64>,
    /// Longest run of whole seconds in which nothing was done; or the longest time in which all
    /// connections were lost, where that is longer, without its part of a second.
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
