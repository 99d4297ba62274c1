//! One execution of a step in the findings: its rates, latencies, costs and seconds.

use dbdyno_record::ErrorCounts;
use serde::Serialize;

use crate::metrics::{Cost, DeviceLoad, Efficiency, HostCheck, MetricRow};
use crate::model::execution::{Composite, Execution};
use crate::model::notice::Notice;
use crate::model::state::{Debt, GroupMemory, Lookups, Steadiness};

#[derive(Debug, Clone, Serialize)]
pub struct StepRun {
    pub block: u32,
    #[serde(skip)]
    pub validity: Validity,
    /// Of the common window.
    #[serde(skip)]
    pub window_seconds: f64,
    /// The headline: a rate over the common window, or seconds, where the step's is a time.
    #[serde(skip)]
    pub rate: f64,
    /// A time that is only a bound: what took it was ended at its time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Work whose time counts by itself, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<Execution>,
    /// `None` for a step of one query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composite: Option<Composite>,
    /// Set where the rate rests on so few operations that it decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_few: Option<TooFewOperations>,
    pub kinds: Vec<KindResult>,
    #[serde(skip)]
    pub metrics: MetricRow,
    #[serde(skip)]
    pub efficiency: Efficiency,
    #[serde(skip)]
    pub cost: Cost,
    /// `None` where the device of the data directory was not sampled.
    #[serde(skip)]
    pub device: Option<DeviceLoad>,
    /// `None` for records without the CPU of all processes.
    #[serde(skip)]
    pub host_check: Option<HostCheck>,
    /// `None` for a run without a calibration of the client, and without a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_reach: Option<ClientReach>,
    /// Share of whole seconds in which the background rate was at or above `share * target`.
    #[serde(skip)]
    pub seconds_on_target: Option<f64>,
    /// What is judged against the target: rows a second of the client whose background writer did
    /// least, times the clients. `None` for a step without a target.
    #[serde(skip)]
    pub judged_background_rate: Option<f64>,
    /// What was asked outside the operations, by name.
    #[serde(skip)]
    pub lookups: Vec<Lookups>,
    /// Rate by second of the headline kind and the others, whole seconds of the window only.
    pub seconds: Vec<SecondPoint>,
    /// Whether single seconds of the headline kind say something: not of one piece of work, nor of
    /// long scans.
    pub has_telling_seconds: bool,
    /// The second, counted as those of `seconds`, from which on clients had done their share, in a
    /// step that ends by a count: the rate counts the rest, figures by second do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_from_second: Option<u64>,
    /// How steady the seconds were; `None` for fewer than ten, and for a step that is one piece of
    /// work.
    #[serde(skip)]
    pub steadiness: Option<Steadiness>,
    /// The device of the data directory, second by second of the window; empty where it was not
    /// sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_seconds: Vec<DeviceSecond>,
    /// What happened to the server in the window, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_events: Vec<ServerEvent>,
    /// What the server had put off before and after; `None` where that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debt: Option<Debt>,
    /// `None` where the server's memory was not limited.
    #[serde(skip)]
    pub group_memory: Option<GroupMemory>,
}

/// Fewer operations in a window than a verdict needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TooFewOperations {
    /// Of the headline kind, those that the window cuts by their share in it.
    pub operations: f64,
    /// Operations that would be enough.
    pub least: f64,
    /// The length of window that would hold so many.
    pub enough_seconds: f64,
}

impl StepRun {
    pub fn kind(&self, name: &str) -> Option<&KindResult> {
        self.kinds.iter().find(|kind| kind.kind == name)
    }

    /// KiB that were read from the device for one operation, and not by the server.
    pub fn others_read_kib(&self) -> Option<f64> {
        let all = self.per_operation(self.device.as_ref()?.read_kib_per_second?)?;
        Some((all - self.cost.server_read_kib.unwrap_or(0.0)).max(0.0))
    }

    /// KiB that were written to the device for one operation.
    pub fn written_kib(&self) -> Option<f64> {
        self.per_operation(self.device.as_ref()?.written_kib_per_second?)
    }

    fn per_operation(&self, per_second: f64) -> Option<f64> {
        (self.rate > 0.0).then(|| per_second / self.rate)
    }
}

/// Statements a second of all kinds together compared with what the client could reach, by its
/// calibration for this host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClientReach {
    pub statements_per_second: f64,
    pub connections: u32,
    pub could_per_second: f64,
    /// The calibrated number of connections at which it could.
    pub could_connections: u32,
    /// The client was not the limit of the calibration there, but the server that answered, or the
    /// round trip: it could do more.
    pub at_least: bool,
}

impl ClientReach {
    /// What it reached ÷ what it could.
    pub fn share(&self) -> f64 {
        self.statements_per_second / self.could_per_second
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct KindResult {
    pub kind: String,
    #[serde(skip)]
    pub connections: u32,
    pub pace: String,
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
    /// Statements of the operations answered; those of attempts that were repeated are not in it.
    #[serde(skip)]
    pub statements_per_second: f64,
    #[serde(skip)]
    pub service: Latency,
    #[serde(skip)]
    pub response: Latency,
    /// `None` for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Its statements by kind, in their order, where the record distinguishes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementResult>,
    /// The original's response-time buckets, over service time (what the original measures).
    pub buckets: Vec<Bucket>,
}

/// Statements of one kind that were answered, those of attempts that were repeated or failed included.
#[derive(Debug, Clone, Serialize)]
pub struct StatementResult {
    /// `simple-range`
    pub statement: String,
    pub count: u64,
    /// Statements that neither fetched nor changed a row.
    pub empty: u64,
    /// Rows fetched or changed.
    pub rows: u64,
    pub per_second: f64,
    /// From sending to answered; of an operation that is one statement, the operation's.
    pub service: Latency,
}

/// What an open loop was asked for, and how it was kept. What it reached is in the [`KindResult`].
#[derive(Debug, Clone, Serialize)]
pub struct Schedule {
    /// `constant` or `poisson`.
    pub process: String,
    /// Operations a second of all connections together.
    #[serde(skip)]
    pub asked_per_second: f64,
    /// Operations that came due in the window.
    #[serde(skip)]
    pub due: u64,
    /// Greatest number of operations that were due and not sent, at the end of any second of the
    /// window.
    #[serde(skip)]
    pub backlog_max: u64,
    /// Operations that waited or were on their way at the window's end, less those at its
    /// beginning.
    #[serde(skip)]
    pub queue_growth: i64,
    /// From due to sent, of operations for which a connection was free: how late the client itself
    /// was.
    #[serde(skip)]
    pub lag: Latency,
}

/// Percentiles of a latency histogram, in microseconds; all `None`-free: an empty histogram has
/// `count` 0.
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
    /// Pairs of percentile and microseconds, as far as there are enough operations, for a curve;
    /// only of all blocks together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, u64)>,
}

impl Latency {
    /// Of fewer operations the 99th percentile is their longest, which says little of others.
    const LEAST_OPERATIONS: u64 = 100;

    /// The 99th percentile in microseconds; `None` of too few operations.
    pub fn known_p99_us(&self) -> Option<u64> {
        (self.count >= Self::LEAST_OPERATIONS).then_some(self.p99_us)
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Bucket {
    /// `256us`, `1ms`, ..., `gt`
    pub label: String,
    pub count: u64,
    pub percent: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct SecondPoint {
    /// From 0, the first whole second of the window: what the clients did before it, such as a
    /// warm-up, is not counted.
    pub second: u64,
    pub kind: String,
    /// Rows for writers, operations for queries.
    pub rate: f64,
    /// Greatest times of the operations answered in it; `None` where none was.
    pub service_max_us: Option<u64>,
    pub response_max_us: Option<u64>,
}

/// The device of the data directory between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceSecond {
    /// Counted as those of `seconds`: the one in which most of the time between the samples lies.
    pub second: u64,
    pub read_kib_per_second: f64,
    pub written_kib_per_second: f64,
    /// Mean time of a read or write; `None` without one, and where the kernel counts no times.
    pub await_ms: Option<f64>,
    /// Requests under way, on average.
    pub queue_depth: Option<f64>,
}

/// Something that happened to the server while it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ServerEvent {
    /// From the beginning of the first whole second of the window.
    pub at_seconds: f64,
    pub what: ServerEventKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerEventKind {
    /// Its log was cut: PostgreSQL counts checkpoints, of InnoDB the checkpoint's age fell at once.
    Checkpoint,
    /// It counts its time anew.
    Restart,
    Lost,
    /// The first second without an answer of the headline's kind.
    Stall,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Validity {
    Valid,
    /// Ran to its end, but its numbers must not be used.
    Invalid {
        reasons: Vec<Notice>,
    },
    Failed {
        message: String,
    },
    Interrupted,
}

impl Validity {
    /// Its word in tables for programs.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid { .. } => "invalid",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}
