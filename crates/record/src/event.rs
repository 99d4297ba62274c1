//! Lines of `events.jsonl` of a cell and a step: what happened, when, and what a step was meant to
//! be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::server_info::ServerInfo;
use crate::{Execution, OperationClass, QueryPlan};

/// How a step or cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed,
    Interrupted,
}

/// What an error means for the operation that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The same operation may be sent again: deadlock, lock wait, busy file.
    Retry,
    /// The server answered no to this operation; the next one may go well.
    Refused,
    /// The connection is gone.
    Lost,
    /// No operation of this kind can succeed: syntax, missing table, no rights, no space.
    Fatal,
}

/// `events.jsonl` of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CellEvent {
    Started {
        at: String,
    },
    Server {
        at: String,
        server: ServerInfo,
    },
    /// Work between two steps: initialise, cleanup, verification. `details` are its own figures.
    Work {
        at: String,
        name: String,
        duration_us: u64,
        details: Map<String, Value>,
    },
    /// Something that a reader may want to know and need not worry about.
    Note {
        at: String,
        text: String,
    },
    Warning {
        at: String,
        text: String,
    },
    /// No figure of the cell may be used, whatever its steps say.
    Invalid {
        at: String,
        reason: String,
    },
    /// `connections` says how the connections of the cell were encrypted; it is empty where TLS was
    /// not asked for.
    Ended {
        at: String,
        outcome: Outcome,
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        connections: Vec<ConnectionClass>,
    },
}

/// Connections of one class that agreed on the same encryption, as their own ends of them saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionClass {
    /// Kind of the operations that went over them (`insert`, `query`); `conductor` for the session
    /// during the load, `status` for the sampler's.
    pub class: String,
    pub connections: u32,
    /// `TLSv1.3`; `None` = in clear.
    pub tls_version: Option<String>,
    /// `TLS_AES_256_GCM_SHA384`
    pub cipher: Option<String>,
}

/// `events.jsonl` of a step. `at_us` counts from the barrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum StepEvent {
    /// First line: what the step is.
    Started {
        at: String,
        spec: StepSpec,
    },
    /// All connections are open; the clock starts. `connect_us` is what opening them took.
    Barrier {
        at: String,
        connections: u32,
        connect_us: u64,
    },
    /// What was asked of an open loop: the rate of all its connections together, by the process
    /// `constant` or `poisson`.
    Scheduled {
        kind: String,
        process: String,
        operations_per_second: f64,
        connections: u32,
    },
    /// One connection did all it had to do.
    ConnectionEnded {
        at_us: u64,
        client: u32,
        kind: String,
        operations: u64,
    },
    /// The common window: the time over which rates are computed.
    Window {
        from_us: u64,
        to_us: u64,
    },
    /// A look-up that belongs to the workload but to no operation (least or greatest id).
    Lookup {
        at_us: u64,
        client: u32,
        name: String,
        duration_us: u64,
        value: Option<i64>,
    },
    /// First error of its class, code and kind, and its count at the end of the step.
    Error {
        at_us: u64,
        client: u32,
        kind: String,
        class: ErrorClass,
        code: String,
        message: String,
    },
    /// A connection is gone and will be opened again. The first of a step are recorded; intervals
    /// count all.
    ConnectionLost {
        at_us: u64,
        client: u32,
        kind: String,
        code: String,
        message: String,
    },
    /// A lost connection is open again, its statements prepared.
    Reconnected {
        at_us: u64,
        client: u32,
        kind: String,
        /// From when the loss was noticed.
        down_us: u64,
        attempts: u32,
    },
    /// All statements of one kind that were answered within operations of `kind`, those that failed or
    /// were sent again included, in `[from_us, to_us)`, which is the common window. Their times are the histogram with the tag of
    /// [`crate::statement_kind`]; where an operation is one statement, its times are the
    /// operation's. Once, after the window.
    Statement {
        kind: String,
        /// `simple-range`
        statement: String,
        from_us: u64,
        to_us: u64,
        done: u64,
        /// Those that neither fetched nor changed a row.
        empty: u64,
        /// Rows fetched or changed.
        rows: u64,
    },
    /// The client, or one of several client hosts, did not run for so long before `to_us`: it was
    /// stopped, frozen, or its machine stood still. Time in which it waited for a CPU is not in it.
    Paused {
        to_us: u64,
        paused_us: u64,
    },
    /// What one of several client hosts did; one each, after the window.
    ClientHost(ClientHost),
    Execution(Execution),
    Check(Check),
    QueryPlan(QueryPlan),
    Warning {
        text: String,
    },
    /// The step's figures must not be used.
    Invalid {
        reason: String,
    },
    Ended {
        at: String,
        at_us: u64,
        outcome: Outcome,
        message: Option<String>,
    },
}

/// How often and for how long a CPU quota kept a control group off the CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Added up over CPUs; a time that lasts is not in it yet.
    pub us: i64,
    /// Periods of the quota in which something of the group ran.
    pub periods: i64,
    pub throttled_periods: i64,
}

/// One of several client hosts in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHost {
    pub host: String,
    pub connections: u32,
    pub cpus: u32,
    /// How long CPU was measured: from the end of the warm-up to the end of the last operation of
    /// all hosts.
    pub measured_us: u64,
    /// CPU of its whole agent in that time.
    pub cpu_us: u64,
    /// Of its busiest load thread: on a CPU, and waiting for one.
    pub busiest_cpu_us: u64,
    pub busiest_run_delay_us: u64,
    /// By a CPU quota, in that time: of its control group that was throttled longest.
    pub throttled: Throttled,
    /// It is the conductor's own machine: what it used is none of other programs.
    pub is_here: bool,
    /// By how much the step's start came too late to it.
    pub late_us: u64,
    /// The longest time from when an operation was due to when a free connection sent it; of fixed
    /// rates.
    pub lag_max_us: u64,
    /// Its time of day less that of the conductor, before the step.
    pub clock_offset_us: i64,
    /// How far from the truth that may be, and with it the moment at which the host began.
    pub clock_error_us: u64,
    /// By how much its clock moved against the conductor's from before the step to after it.
    pub clock_drift_us: i64,
    /// What keeps its time of day, as far as it says: the line of `chronyc tracking`, or the PTP
    /// device.
    pub clock_source: String,
}

/// Content of one table after a step, against what must be there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub table: String,
    pub parts: Vec<CheckPart>,
    pub duration_us: u64,
}

/// One figure of a check, e.g. `rows` or `sum(customerid)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckPart {
    pub name: String,
    /// A number; beyond 64 bits, as sums may be, its digits as text.
    #[serde(with = "wide")]
    pub expected: i128,
    /// As `expected`.
    #[serde(with = "wide")]
    pub actual: i128,
}

impl Check {
    /// Every figure is as expected.
    pub fn is_ok(&self) -> bool {
        self.parts.iter().all(|part| part.expected == part.actual)
    }
}

/// 128 bits in JSON. serde cannot read such numbers inside a tagged enum, and few JSON tools read
/// them at all.
mod wide {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Wide {
        Number(i64),
        Digits(String),
    }

    pub(super) fn serialize<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
        i64::try_from(*value)
            .map_or_else(|_| Wide::Digits(value.to_string()), Wide::Number)
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
        match Wide::deserialize(deserializer)? {
            Wide::Number(number) => Ok(number.into()),
            Wide::Digits(digits) => digits.parse().map_err(de::Error::custom),
        }
    }
}

/// What a headline counts, or how it takes time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    #[default]
    Operations,
    Rows,
    /// No rate: the median of the seconds that its executions took ([`Execution`]). Less is better.
    Seconds,
    /// No rate: the seconds of the common window, of a step that is one piece of work. Less is
    /// better.
    Elapsed,
}

impl Unit {
    /// The headline is a time: less is better.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Seconds | Self::Elapsed)
    }
}

/// When the common window ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowRule {
    /// When the first connection that decides the step's length is done: until then all clients
    /// were at work.
    #[default]
    FirstEnded,
    /// When the last one is done: for steps that are one piece of work, such as building an index.
    LastEnded,
}

/// Everything that analysis must know of a step, so that records can be read without the program
/// that made them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSpec {
    /// `l.i0`, `qr100`, ...
    pub name: String,
    pub clients: u32,
    pub headline: Headline,
    pub window: WindowRule,
    /// The background rate that must be kept, if the step has one.
    pub target: Option<Target>,
    pub kinds: Vec<KindSpec>,
    /// Options of the workload that shaped this step.
    pub options: Map<String, Value>,
    /// The groups over which published reports sum steps up: name of the grouping to name of the
    /// group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// It only prepares the next step (fills caches): its figures are recorded and belong to no
    /// summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm_up: bool,
}

/// The one figure that a step is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headline {
    pub kind: String,
    pub unit: Unit,
    /// `inserts/s`, `indexed rows/s`, `queries/s`, `seconds`
    pub label: String,
}

/// Service level agreement: rows per second of `kind`, all clients together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub kind: String,
    pub rows_per_second: f64,
    /// Fraction of the target that counts as met (0.95).
    pub share: f64,
}

/// One kind of operation in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindSpec {
    pub kind: String,
    /// What its operations do.
    pub class: OperationClass,
    pub connections_per_client: u32,
    /// `closed`, `constant 2/s`, `burst 2/s`
    pub pace: String,
    /// `text` or `prepared`
    pub protocol: String,
    /// Rows a statement inserts, deletes or asks for.
    pub rows_per_operation: u32,
    /// Statements of one operation, those that begin and end a transaction included.
    pub statements_per_operation: u32,
    /// Bytes of column values that an operation inserts or sets, as the columns are declared and
    /// filled; 0 of one that only reads or deletes.
    pub user_bytes_per_operation: f64,
    /// The statement's shape, parameters as `?`.
    pub statement: String,
}

impl KindSpec {
    /// The next of a connection waits for the answer to the one before: it comes by no schedule.
    pub fn is_closed_loop(&self) -> bool {
        self.pace.starts_with("closed")
    }

    /// They write, so that each of them commits.
    pub fn writes(&self) -> bool {
        let changes_rows = matches!(self.class, OperationClass::Insert | OperationClass::Delete);
        self.user_bytes_per_operation > 0.0 || changes_rows
    }
}

impl StepSpec {
    /// What the operations of `kind` do.
    pub fn class_of(&self, kind: &str) -> OperationClass {
        self.kinds.iter().find(|known| known.kind == kind).map(|known| known.class).unwrap_or_default()
    }

    /// What the operations do that the step's figure counts.
    pub fn headline_class(&self) -> OperationClass {
        self.class_of(&self.headline.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_any_size_survive_and_small_ones_are_plain_numbers() {
        let figures =
            [0, -1, i64::MAX.into(), i128::from(i64::MAX) + 1, i64::MIN.into(), i128::MAX, i128::MIN];
        let parts = figures.map(|expected| CheckPart { name: "sum".into(), expected, actual: 7 }).to_vec();
        let event = StepEvent::Check(Check { table: "t".into(), parts, duration_us: 1 });
        let text = serde_json::to_string(&event).unwrap();
        assert!(text.contains(r#""expected":9223372036854775807,"actual":7}"#), "{text}");
        assert!(text.contains(r#""expected":"9223372036854775808","actual":7}"#), "{text}");
        assert_eq!(serde_json::from_str::<StepEvent>(&text).unwrap(), event);
    }

    #[test]
    fn the_end_of_a_cell_is_read_without_its_connections_and_with_what_is_not_yet_known() {
        for more in ["", r#","something_new":{"a":1}"#] {
            let text = format!(r#"{{"event":"ended","at":"t","outcome":"completed","message":null{more}}}"#);
            let event: CellEvent = serde_json::from_str(&text).unwrap();
            let CellEvent::Ended { connections, .. } = &event else { panic!("{event:?}") };
            assert!(connections.is_empty());
            assert!(!serde_json::to_string(&event).unwrap().contains("connections"));
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_refused() {
        let text = r#"{"name":"rows","expected":"many","actual":1}"#;
        assert!(serde_json::from_str::<CheckPart>(text).is_err());
    }
}
