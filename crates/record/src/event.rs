//! Defines the lines in the `events.jsonl` of a run, a cell or a step. They say what happened and
//! when, and they describe each step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::manifest::ServerInfo;
use crate::{CellId, Execution, HostInfo, OperationClass, QueryPlan, ToolInfo};

/// How a step or cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed,
    Interrupted,
}

/// The class of an error, by its consequence for the failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The same operation may be sent again: deadlock, lock wait, busy file.
    Retry,
    /// The server refused this operation. The next one may succeed.
    Refused,
    /// The connection is gone.
    Lost,
    /// No operation of this kind can succeed: syntax, missing table, no rights, no space.
    Fatal,
}

/// An event in a cell's `events.jsonl`.
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
    /// Work between two steps, such as initialisation, cleanup or verification. `details` are its own
    /// figures.
    Work {
        at: String,
        name: String,
        duration_us: u64,
        details: Map<String, Value>,
    },
    /// A fact that a reader may want to know and need not worry about.
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
    /// The cell ended. `connections` says how the connections of the cell were encrypted. It is
    /// empty where no TLS was requested.
    Ended {
        at: String,
        outcome: Outcome,
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        connections: Vec<ConnectionClass>,
    },
}

/// Connections of one class with the same encryption, as the client's end of each connection
/// reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionClass {
    /// Kind of the operations that went over them (`insert`, `query`), `conductor` for the session
    /// during the load, or `status` for the sampler's.
    pub class: String,
    pub connections: u32,
    /// The protocol version, such as `TLSv1.3`. `None` means plaintext.
    pub tls_version: Option<String>,
    /// The cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    pub cipher: Option<String>,
}

/// An event in a step's `events.jsonl`. `at_us` counts from the barrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum StepEvent {
    /// The first line, which says what the step is.
    Started {
        at: String,
        spec: StepSpec,
    },
    /// All connections are open and the clock starts. `connect_us` is how long opening them took.
    Barrier {
        at: String,
        connections: u32,
        connect_us: u64,
    },
    /// The planned rate of an open loop, over all its connections. `process` is `constant` or
    /// `poisson`.
    Scheduled {
        kind: String,
        process: String,
        operations_per_second: f64,
        connections: u32,
    },
    /// One connection has finished its work.
    ConnectionEnded {
        at_us: u64,
        client: u32,
        kind: String,
        operations: u64,
    },
    /// The common window, which is the time over which rates are computed.
    Window {
        from_us: u64,
        to_us: u64,
    },
    /// A server query that belongs to the workload but to no operation, such as for the lowest or
    /// highest id.
    Lookup {
        at_us: u64,
        client: u32,
        name: String,
        duration_us: u64,
        value: Option<i64>,
    },
    /// The first error of its class, code and kind. The intervals count all errors.
    Error {
        at_us: u64,
        client: u32,
        kind: String,
        class: ErrorClass,
        code: String,
        message: String,
    },
    /// A connection is gone and will be opened again. Only the first ones of a step are recorded. The
    /// intervals count all of them.
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
        /// Time since the loss was noticed.
        down_us: u64,
        attempts: u32,
    },
    /// All statements of one kind that were answered within operations of `kind` in `[from_us, to_us)`,
    /// which is the common window. Statements that failed or were sent again are included. Their times
    /// are the histogram with the tag of [`crate::statement_kind`]. Where an operation is one
    /// statement, the statement's times are the operation's. The event comes once, after the window.
    Statement {
        kind: String,
        /// Name of the statement, such as `simple-range`.
        statement: String,
        from_us: u64,
        to_us: u64,
        done: u64,
        /// Statements that neither fetched nor changed a row.
        empty: u64,
        /// Rows fetched or changed.
        rows: u64,
    },
    /// The client, or one of several client hosts, did not run for `paused_us` before `to_us`. It
    /// was stopped or frozen, or its machine was suspended. Time in which it waited for a CPU is
    /// not included.
    Paused {
        to_us: u64,
        paused_us: u64,
    },
    /// The figures of one of several client hosts. There is one event per host, after the window.
    ClientHost(ClientHost),
    /// A profiler sampled the server in the common window. The stacks are in the step's own file.
    Profiled(Profiled),
    /// The step was to be profiled, and was not.
    NotProfiled {
        reason: String,
    },
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

/// What a profiler sampled in a step's common window. The number of samples is the sum over the
/// stacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiled {
    /// What the samples count: `cpu-clock` or `cycles`.
    pub event_sampled: String,
    /// Samples per second of CPU time.
    pub samples_per_second: u32,
    /// How callers were found: `frame-pointer`, `lbr`, `dwarf` or `off`.
    pub call_chains: String,
    /// The profiler's name and version.
    pub profiler: String,
    /// Stacks that were too many to keep one by one. Each counts with the other stacks of its
    /// function.
    pub merged: u64,
}

/// How often and for how long a CPU quota kept a control group off the CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Time added up over CPUs. A period of throttling that still lasts is not included yet.
    pub us: i64,
    /// Periods of the quota in which a process of the group ran.
    pub periods: i64,
    pub throttled_periods: i64,
}

/// One of several client hosts in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHost {
    pub host: String,
    pub connections: u32,
    pub cpus: u32,
    /// How long CPU use was measured: from the end of the warm-up to the end of the last operation of
    /// all hosts.
    pub measured_us: u64,
    /// CPU time of the host's whole agent in that time.
    pub cpu_us: u64,
    /// How long its busiest load thread was on a CPU. The next field has how long that thread
    /// waited for one.
    pub busiest_cpu_us: u64,
    pub busiest_run_delay_us: u64,
    /// Throttling by a CPU quota in that time, of the one control group that was throttled longest.
    pub throttled: Throttled,
    /// Whether the host is the conductor's own machine. The agent's CPU time then does not count as
    /// the load of other programs.
    pub is_here: bool,
    /// By how much the step's start came too late on this host.
    pub late_us: u64,
    /// The longest time from when an operation was due to when a free connection sent it. It exists
    /// only at fixed rates.
    pub lag_max_us: u64,
    /// The host's time of day minus the conductor's, before the step.
    pub clock_offset_us: i64,
    /// The largest possible error of that offset, and so of the moment at which the host began.
    pub clock_error_us: u64,
    /// By how much the host's clock moved against the conductor's from before the step to after it.
    pub clock_drift_us: i64,
    /// The source that synchronises the host's time of day, as far as the host reports it: a line
    /// of `chronyc tracking`, or the PTP device.
    pub clock_source: String,
}

/// Content of one table after a step, compared with the expected content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub table: String,
    pub parts: Vec<CheckPart>,
    pub duration_us: u64,
}

/// One figure of a check, such as `rows` or `sum(customerid)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckPart {
    pub name: String,
    /// A number. Beyond 64 bits, which sums may need, it is written as a string of digits.
    #[serde(with = "wide")]
    pub expected: i128,
    /// The number that was found, written like `expected`.
    #[serde(with = "wide")]
    pub actual: i128,
}

impl Check {
    /// Returns whether every figure is as expected.
    pub fn is_ok(&self) -> bool {
        self.parts.iter().all(|part| part.expected == part.actual)
    }
}

/// Writes 128-bit numbers in JSON. serde cannot read such numbers inside a tagged enum, and few
/// JSON tools read them at all.
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

/// The unit of a headline figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    #[default]
    Operations,
    Rows,
    /// The figure is no rate but the median of the seconds that its executions took
    /// ([`Execution`]). Lower is better.
    Seconds,
    /// The figure is no rate but the seconds of the common window, for a step that is one piece of
    /// work. Lower is better.
    Elapsed,
}

impl Unit {
    /// Returns whether the headline is a time, so that lower is better.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Seconds | Self::Elapsed)
    }
}

/// When the common window ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowRule {
    /// It ends when the first connection that decides the step's length is done. Until then all clients
    /// were at work.
    #[default]
    FirstEnded,
    /// It ends when the last such connection is done. This is for steps that are one piece of work,
    /// such as building an index.
    LastEnded,
}

/// The description of a step for the analysis, so that records can be read without the program that
/// made them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSpec {
    /// The step's name: `l.i0`, `qr100`, ...
    pub name: String,
    /// What the step does, in a few words, such as `load in key order`; empty where the name says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub meaning: String,
    pub clients: u32,
    pub headline: Headline,
    pub window: WindowRule,
    /// The background rate that must be kept, if the step has one.
    pub target: Option<Target>,
    pub kinds: Vec<KindSpec>,
    /// Options of the workload that shaped this step.
    pub options: Map<String, Value>,
    /// The groups over which published reports sum up steps, from the grouping's name to the group's
    /// name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// Whether the step only prepares the next one (fills caches). Its figures are recorded but belong
    /// to no summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm_up: bool,
}

/// The one figure that a step is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headline {
    pub kind: String,
    pub unit: Unit,
    /// Label of the figure, such as `inserts/s`, `indexed rows/s`, `queries/s` or `seconds`.
    pub label: String,
}

/// A service level agreement: rows per second of `kind`, over all clients.
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
    /// The class of its operations.
    pub class: OperationClass,
    pub connections_per_client: u32,
    /// How operations arrive, such as `closed`, `constant 2/s` or `burst 2/s`.
    pub arrivals: String,
    /// The protocol, `text` or `prepared`.
    pub protocol: String,
    /// Rows that an operation's statement inserts, deletes or reads.
    pub rows_per_operation: u32,
    /// Statements of one operation, including those that begin and end a transaction.
    pub statements_per_operation: u32,
    /// Bytes of column values that an operation inserts or sets, as the columns are declared and
    /// filled. It is 0 for an operation that only reads or deletes.
    pub user_bytes_per_operation: f64,
    /// The statement's text, with `?` for its parameters.
    pub statement: String,
}

impl KindSpec {
    /// Returns whether a connection's next operation waits for the answer to the one before, so that no
    /// schedule decides when it comes.
    pub fn is_closed_loop(&self) -> bool {
        self.arrivals.starts_with("closed")
    }

    /// Returns whether the operations write, so that each of them commits.
    pub fn writes(&self) -> bool {
        let changes_rows = matches!(self.class, OperationClass::Insert | OperationClass::Delete);
        self.user_bytes_per_operation > 0.0 || changes_rows
    }
}

impl StepSpec {
    /// Returns the class of the operations of `kind`.
    pub fn class_of(&self, kind: &str) -> OperationClass {
        self.kinds.iter().find(|known| known.kind == kind).map(|known| known.class).unwrap_or_default()
    }

    /// Returns the class of the operations that the step's headline counts.
    pub fn headline_class(&self) -> OperationClass {
        self.class_of(&self.headline.kind)
    }
}

/// An event in the run's `events.jsonl`. Times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// dbdyno began the run or, with `resumed`, continued it. `tool` is the build that did so.
    Started {
        at: String,
        resumed: bool,
        tool: ToolInfo,
    },
    /// A cell began. `elapsed_us` is the time that the run has taken so far. It comes from a
    /// monotonic clock, and leaves out the time between a stop and the resume.
    CellStarted {
        at: String,
        cell: CellId,
        elapsed_us: u64,
    },
    /// A cell ended. `elapsed_us` is as in [`RunEvent::CellStarted`].
    CellEnded {
        at: String,
        cell: CellId,
        outcome: Outcome,
        message: Option<String>,
        elapsed_us: u64,
    },
    /// A resume set aside a cell that had not ended. Its folder is now `to`, below the run directory.
    CellSetAside {
        at: String,
        cell: CellId,
        to: String,
    },
    /// All blocks up to `blocks` are over, and dbdyno checked which variants are still undecided.
    /// `order` has the cells of the next block, or of a fleet's next blocks, in the order in which they
    /// are to run. It is empty when there is no next block.
    Look {
        at: String,
        /// Number of the last block so far. Blocks count from 1, so this is also how many there are.
        blocks: u32,
        /// As in [`RunEvent::CellStarted`].
        elapsed_us: u64,
        /// Whether there is no time for another block like the last one. This check is then the
        /// last, even if variants are undecided.
        last: bool,
        order: Vec<CellId>,
        /// For each workload, the steps that the cells of these blocks run. A workload that is not
        /// named runs all of its steps.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        steps: BTreeMap<String, Vec<String>>,
    },
    /// The machine was left idle between two cells, for as long as the plan says or until the user
    /// ended the run.
    Rested {
        at: String,
        duration_us: u64,
        /// As in [`RunEvent::CellStarted`].
        elapsed_us: u64,
    },
    /// The plan's blocks are over, and profile blocks follow. Their cells belong to no comparison.
    ProfileBlocks {
        at: String,
        /// As in [`RunEvent::CellStarted`].
        elapsed_us: u64,
        order: Vec<CellId>,
        /// For each workload, the steps that the cells run.
        steps: BTreeMap<String, Vec<String>>,
        /// For each workload, the steps that are profiled.
        profiled: BTreeMap<String, Vec<String>>,
    },
    /// A machine of a fleet has measured a block. The events of the block's cells come before this one.
    BlockMeasured {
        at: String,
        block: u32,
        /// The fleet's name for the machine.
        machine: String,
        host: Box<HostInfo>,
    },
    Warning {
        at: String,
        text: String,
    },
    Ended {
        at: String,
        outcome: Outcome,
    },
}

/// Returns the text of a [`RunEvent::Warning`] about a cell whose load was complete before the run
/// was stopped. The load is not repeated, and its figures are only in `aside`. Records hold the
/// warning as text, so [`is_load_kept`] compares texts.
pub fn load_kept(cell: &CellId, aside: &str) -> String {
    format!(
        "the load of {cell} was complete before the run was stopped and is not repeated; its figures are only in {aside}"
    )
}

/// Returns whether a warning is that of [`load_kept`].
pub fn is_load_kept(warning: &str, cell: &CellId) -> bool {
    warning.starts_with(&load_kept(cell, ""))
}

/// The time from the end of the active work (flush, purge, vacuum) until every level was below its
/// bound, or until the cap was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    /// Whether every level was below its bound at the end.
    pub quiet: bool,
    pub took_us: u64,
    pub cap_us: u64,
    /// The highest value of each level that counts as quiet. A level's unit is its last word.
    pub bounds: BTreeMap<String, i64>,
    /// The levels before the active work.
    pub before: BTreeMap<String, i64>,
    /// Levels that were above their bounds at the end.
    pub missed: Vec<String>,
    /// One sample per second. The last one is the state at the end.
    pub samples: Vec<SettlingSample>,
}

/// The levels at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettlingSample {
    /// Time since the end of the active work.
    pub at_us: u64,
    pub levels: BTreeMap<String, i64>,
}

/// The key under which the details of a `work` event hold a [`Settling`].
pub const SETTLING: &str = "settling";

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
    fn the_end_of_a_cell_is_read_without_its_connections_and_with_unknown_fields() {
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
