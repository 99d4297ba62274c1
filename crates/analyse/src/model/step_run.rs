//! Types for one execution of a step in the findings: its rates, latencies, costs and seconds, the
//! queries whose time counts by itself, and the state of the server and its host.

use dbdyno_record::{AnswerDigest, ErrorCounts};
use serde::Serialize;

use crate::metrics::{Cost, DeviceLoad, Efficiency, HardwareUse, HostCheck, MetricRow};
use crate::model::warning::Warning;

#[derive(Debug, Clone, Serialize)]
pub struct StepRun {
    pub block: u32,
    #[serde(skip)]
    pub validity: Validity,
    /// Length of the common window, in seconds.
    #[serde(skip)]
    pub window_seconds: f64,
    /// The headline figure: a rate over the common window, or seconds for a step whose figure is a
    /// time.
    #[serde(skip)]
    pub rate: f64,
    /// The time is only a lower bound, because what was timed ended at its time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Pieces of work whose time counts by itself, in the order in which they ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<Execution>,
    /// Figures over all queries in the step; `None` for a step of one query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composite: Option<Composite>,
    /// Set where the rate rests on too few operations to decide anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_few: Option<TooFewOperations>,
    pub kinds: Vec<KindResult>,
    #[serde(skip)]
    pub metrics: MetricRow,
    #[serde(skip)]
    pub efficiency: Efficiency,
    #[serde(skip)]
    pub cost: Cost,
    /// What the CPU counted for the server; `None` where it does not count.
    #[serde(skip)]
    pub hardware: Option<HardwareUse>,
    /// Load on the device of the data directory; `None` where it was not sampled.
    #[serde(skip)]
    pub device: Option<DeviceLoad>,
    /// Check of the host's CPU time; `None` for records without the CPU time of all processes.
    #[serde(skip)]
    pub host_check: Option<HostCheck>,
    /// How close the client was to its calibrated rate; `None` where the client was not calibrated,
    /// and where there is no server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_headroom: Option<ClientHeadroom>,
    /// Share of whole seconds in which the background rate was at or above `share * target`.
    #[serde(skip)]
    pub seconds_on_target: Option<f64>,
    /// The rate that is judged against the target, in rows per second. It is the rate of the client
    /// whose background writer wrote least, times the number of clients. `None` for a step without
    /// a target.
    #[serde(skip)]
    pub judged_background_rate: Option<f64>,
    /// Statements that were sent outside the operations, by name.
    #[serde(skip)]
    pub lookups: Vec<Lookups>,
    /// Rate per second of the headline kind and of the other kinds, for whole seconds of the window
    /// only.
    pub seconds: Vec<SecondPoint>,
    /// Whether rates in single seconds of the headline kind are meaningful. They are not where the
    /// step is one piece of work, or has long scans.
    pub has_telling_seconds: bool,
    /// In a step that ends by a count, the second from which on some clients had done their share.
    /// It is counted like those of `seconds`. The rate includes the operations after it; figures
    /// per second do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_from_second: Option<u64>,
    /// How steady the seconds were; `None` for fewer than ten, and for a step that is one piece of
    /// work.
    #[serde(skip)]
    pub steadiness: Option<Steadiness>,
    /// The data directory's device, second by second of the window; empty where it was not sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_seconds: Vec<DeviceSecond>,
    /// Events of the server in the window, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_events: Vec<ServerEvent>,
    /// The server's deferred work before and after the step; `None` where it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred_work: Option<DeferredWork>,
    /// Memory of the server's control group; `None` where the server's memory was not limited.
    #[serde(skip)]
    pub group_memory: Option<GroupMemory>,
    /// KiB written to the device of the data directory per unit of the headline.
    #[serde(skip)]
    pub written_kib: Option<f64>,
}

/// The figures that are reported when a window has fewer operations than a verdict needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TooFewOperations {
    /// Operations of the headline kind. One that the window cuts counts by its share in the window.
    pub operations: f64,
    /// The smallest number of operations that would be enough.
    pub needed: f64,
    /// The length in seconds of a window that would hold that many operations.
    pub enough_seconds: f64,
}

impl StepRun {
    pub fn kind(&self, name: &str) -> Option<&KindResult> {
        self.kinds.iter().find(|kind| kind.kind == name)
    }

    /// Returns the KiB per unit of the headline that others than the server read from the device.
    /// It is `None` where the server's own reads are not known.
    pub fn others_read_kib(&self) -> Option<f64> {
        Some((self.metrics.rkbpq? - self.cost.server_read_kib?).max(0.0))
    }
}

/// Statements per second of all kinds together, and how many the client could reach by its
/// calibration on this host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClientHeadroom {
    pub statements_per_second: f64,
    pub connections: u32,
    pub could_per_second: f64,
    /// The calibrated number of connections at which the client reached `could_per_second`.
    pub could_connections: u32,
    /// The client could do more, because that calibration was limited by the server that answered
    /// or by the round trip, and not by the client.
    pub at_least: bool,
}

impl ClientHeadroom {
    /// Returns the statements per second that the client reached ÷ those that it could reach.
    pub fn share(&self) -> f64 {
        self.statements_per_second / self.could_per_second
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct KindResult {
    pub kind: String,
    #[serde(skip)]
    pub connections: u32,
    pub arrivals: String,
    #[serde(skip)]
    pub operations: u64,
    #[serde(skip)]
    pub rows: u64,
    #[serde(skip)]
    pub failed: u64,
    #[serde(skip)]
    pub dropped: u64,
    #[serde(skip)]
    pub errors: ErrorCounts,
    #[serde(skip)]
    pub operations_per_second: f64,
    #[serde(skip)]
    pub rows_per_second: f64,
    /// Statements in answered operations. Statements in attempts that were repeated are not
    /// counted.
    #[serde(skip)]
    pub statements_per_second: f64,
    #[serde(skip)]
    pub service: Latency,
    #[serde(skip)]
    pub response: Latency,
    /// The kind's arrivals and how well they were kept to; `None` for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The operation's statements by kind, in their order, where the record distinguishes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementResult>,
    /// Response-time buckets of the original benchmark, filled with service times because the
    /// original measures those.
    pub buckets: Vec<Bucket>,
}

/// Answered statements of one kind. Those in attempts that were repeated or failed are counted too.
#[derive(Debug, Clone, Serialize)]
pub struct StatementResult {
    /// The statement's name, such as `simple-range`.
    pub statement: String,
    pub count: u64,
    /// Statements that neither fetched nor changed a row.
    pub empty: u64,
    /// Rows fetched or changed.
    pub rows: u64,
    pub per_second: f64,
    /// Time from sending to answer. Where an operation is one statement, it is the operation's
    /// service time.
    pub service: Latency,
}

/// The arrivals that the plan asked of an open loop, and how well the loop kept to them. The rate
/// that it reached is in the [`KindResult`].
#[derive(Debug, Clone, Serialize)]
pub struct Schedule {
    /// How arrivals are spaced: `constant` or `poisson`.
    pub process: String,
    /// Operations per second, of all connections together.
    #[serde(skip)]
    pub asked_per_second: f64,
    /// Operations that came due in the window.
    #[serde(skip)]
    pub due: u64,
    /// Highest number of operations that were due and not sent, at the end of any second of the
    /// window.
    #[serde(skip)]
    pub backlog_max: u64,
    /// Operations that waited or were under way at the end of the window, minus those at its
    /// beginning.
    #[serde(skip)]
    pub queue_growth: i64,
    /// Time from the moment at which an operation was due until it was sent, for operations that
    /// had a free connection. It shows how late the client itself was.
    #[serde(skip)]
    pub lag: Latency,
}

/// Percentiles of a latency histogram, in microseconds. An empty histogram has `count` 0, so
/// no field needs a `None`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Latency {
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p95_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
    /// Pairs of percentile and microseconds for a curve, as far as there are enough operations.
    /// Only the histogram of all blocks together has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, u64)>,
}

impl Latency {
    /// Returns the 90th percentile in microseconds, or `None` for fewer than 10 operations: it would
    /// be the longest of them, which says little about the others.
    pub fn known_p90_us(&self) -> Option<u64> {
        (self.count >= 10).then_some(self.p90_us)
    }

    /// Returns the 95th percentile in microseconds, or `None` for fewer than 20 operations.
    pub fn known_p95_us(&self) -> Option<u64> {
        (self.count >= 20).then_some(self.p95_us)
    }

    /// Returns the 99th percentile in microseconds, or `None` for fewer than 100 operations.
    pub fn known_p99_us(&self) -> Option<u64> {
        (self.count >= 100).then_some(self.p99_us)
    }

    /// Returns the percentile 99.9 in microseconds, or `None` for fewer than 1000 operations.
    pub fn known_p999_us(&self) -> Option<u64> {
        (self.count >= 1000).then_some(self.p999_us)
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Bucket {
    /// Upper end of the bucket: `256us`, `1ms`, ..., and `gt` for all above.
    pub label: String,
    pub count: u64,
    pub percent: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct SecondPoint {
    /// Number of the second. 0 is the first whole second of the window. Operations before it,
    /// such as those of a warm-up, are not counted.
    pub second: u64,
    pub kind: String,
    /// Rows per second for writers, operations per second for queries.
    pub rate: f64,
    /// Longest service time of the operations answered in this second; `None` where none was.
    pub service_max_us: Option<u64>,
    pub response_max_us: Option<u64>,
}

/// The device of the data directory between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceSecond {
    /// Number of the second in which most of the time between the two samples lies. It is counted
    /// like those of `seconds`.
    pub second: u64,
    pub read_kib_per_second: f64,
    pub written_kib_per_second: f64,
    /// Mean time of a read or write; `None` where there was none, and where the kernel counts no
    /// times.
    pub await_ms: Option<f64>,
    /// Mean number of requests under way.
    pub queue_depth: Option<f64>,
}

/// Something that happened to the server while it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ServerEvent {
    /// Seconds since the beginning of the window's first whole second.
    pub at_seconds: f64,
    pub what: ServerEventKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerEventKind {
    /// The server made a checkpoint. PostgreSQL counts checkpoints; InnoDB's checkpoint age falls
    /// at once.
    Checkpoint,
    /// The server restarted: its uptime begins again at 0.
    Restart,
    Lost,
    /// The first second without an answer to an operation of the headline kind.
    Stall,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Validity {
    Valid,
    /// The step ran to its end, but its figures must not be used.
    Invalid {
        reasons: Vec<Warning>,
    },
    Failed {
        message: String,
    },
    Interrupted,
}

impl Validity {
    /// Returns the name that tables for programs have for the state.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid { .. } => "invalid",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Figures over all queries in a step. Their names are our own, because they are not comparable
/// with published TPC-H results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Composite {
    /// Number of queries, without refresh functions.
    pub queries: usize,
    /// Geometric mean of the times of all executions, including refresh functions.
    pub geometric_mean_seconds: f64,
    /// Number of queries ÷ the step's time.
    pub queries_per_hour: f64,
    /// Executions that ended at their time limit. They make the mean too low.
    pub cut_off: usize,
}

/// One execution of a query or of a refresh function.
#[derive(Debug, Clone, Serialize)]
pub struct Execution {
    /// Name of the query or refresh function: `q7`, `rf1`.
    pub name: String,
    /// Number of the connection, counted from 1.
    pub client: u32,
    /// How often this name has run on this connection, counted from 1.
    pub repetition: u32,
    pub seconds: f64,
    /// The execution ended at its time limit, and would have taken longer.
    pub cut_off: bool,
    pub rows: u64,
    #[serde(skip)]
    pub answer: Option<AnswerDigest>,
}

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
    /// How often per second a page was needed while the limit was reached, so the kernel had
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
