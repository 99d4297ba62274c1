//! What a run says: the one type that reports are made from. Everything in it is computed from the records.

use std::collections::BTreeMap;

use dbdyno_record::{Deviation, ErrorCounts, HostInfo, ToolInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::account::Account;
use crate::cost::Cost;
use crate::debt::Debt;
use crate::factorial::Effect;
use crate::looks::Decided;
use crate::parity::Parity;
use crate::statistics::Interval;
use crate::statistics::kendall::Trend;
use crate::steadiness::Steadiness;
use crate::verdict::{Inference, Verdict};

/// All findings of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    pub run: RunSummary,
    pub variants: Vec<VariantSummary>,
    pub workloads: Vec<WorkloadFindings>,
    /// What the variants were told and in what they differ all the same; `None` when the plan does not want to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// What a reader must know before any number: failed cells, invalid steps, debug build, damaged files.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    pub run_id: String,
    pub name: String,
    pub started: String,
    pub tool: ToolInfo,
    pub host: HostInfo,
    pub seed: u64,
    pub base: String,
    /// Of steps that `margins` has nothing for.
    pub margin: f64,
    /// Margins of single steps, by pattern of the step's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// Name of the variant that is the base under a second name (A/A).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Time that the run could take, and how often it was looked at, in a run with a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    pub blocks_planned: u32,
    /// Cells that completed, and cells that were planned.
    pub cells_completed: usize,
    pub cells_planned: usize,
    /// The order in which cells were planned, as `block variant workload`.
    pub order: Vec<String>,
}

/// How a run with a budget went on after the plan's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Budget {
    pub seconds: f64,
    pub looks: u32,
    /// Blocks that were added to those of the plan.
    pub further_blocks: u32,
}

#[derive(Debug, Clone, Serialize)]
pub struct VariantSummary {
    pub name: String,
    pub driver: String,
    pub server: String,
    /// As the server said it; empty when it never ran.
    pub version_text: String,
    pub engine: Option<String>,
    pub config: String,
    pub external: bool,
    /// How its connections were encrypted; `None` where TLS was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorkloadFindings {
    pub name: String,
    pub version: u32,
    pub follows: String,
    pub options: Map<String, Value>,
    pub deviations: Vec<Deviation>,
    pub summary: Summary,
    pub steps: Vec<StepFindings>,
}

/// The three tables at the top of a report, rows = variants.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub absolute: Table,
    pub relative: Table,
    /// Of a full factorial design: rows = effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Table>,
    /// Background write rate against its target; `None` for a workload without targets.
    pub sla: Option<Table>,
    /// The base against itself; `None` for a run without A/A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Table>,
}

/// A table ready to be drawn in any format.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    pub title: String,
    /// One sentence: what the numbers are, with unit.
    pub caption: String,
    pub columns: Vec<String>,
    pub rows: Vec<TableRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TableRow {
    pub label: String,
    /// Grey row that states a target rather than a measurement.
    pub is_target: bool,
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// `None` when there is no valid measurement.
    pub value: Option<f64>,
    /// The value as it is shown; `n/a`, `failed` or `invalid` when there is none.
    pub text: String,
    pub colour: Colour,
    /// 95 % interval of a ratio over several blocks.
    pub interval: Option<Interval>,
    pub verdict: Option<Verdict>,
    /// Why it has that colour or no value, in words, so that colour never stands alone.
    pub note: String,
}

/// Colour rules of the original's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    None,
    /// Within the lowest quarter of the column.
    Red,
    /// Within the highest quarter of the column.
    Green,
    /// The background rate was not kept.
    Grey,
    /// More than 5 % above the base.
    Blue,
    /// More than 5 % below the base.
    Yellow,
}

#[derive(Debug, Clone, Serialize)]
pub struct StepFindings {
    pub name: String,
    /// The kind of operation that the rate counts: `insert`, `index`, `query`.
    pub headline_kind: String,
    /// `inserts/s`, `queries/s`, ...
    pub rate_label: String,
    /// Differences below this fraction count as none.
    pub margin: f64,
    /// The groups over which published reports sum steps up: name of the grouping to name of the group.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// It only prepares the next step: it is in no summary and gets no verdict.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_warm_up: bool,
    /// Statement shapes by kind.
    pub statements: Vec<(String, String)>,
    /// Target of the background writers in rows per second over all clients, and the share that counts as kept.
    pub target: Option<(f64, f64)>,
    pub variants: Vec<VariantStep>,
    /// Of a full factorial design: what each factor, and each two together, do to the rate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

/// One variant in one step, over all blocks.
#[derive(Debug, Clone, Serialize)]
pub struct VariantStep {
    pub variant: String,
    /// Median over the valid blocks.
    pub rate: Option<f64>,
    pub rate_min: Option<f64>,
    pub rate_max: Option<f64>,
    /// Against the base, paired by block.
    pub ratio: Option<Ratio>,
    /// What the ratio is made of; `None` for the base itself and where CPU was not sampled.
    pub account: Option<Account>,
    /// `None` for the base itself, for one block, and for a step that did not run.
    pub verdict: Option<Verdict>,
    /// At which look the verdict was reached; `None` for a run without a budget and for what is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// Whether the rate rises or falls from block to block; `None` for fewer than three valid blocks.
    pub drift: Option<Trend>,
    /// Median background rate over valid blocks, for steps with a target.
    pub background_rate: Option<f64>,
    pub runs: Vec<StepRun>,
}

/// Ratio to the base: geometric mean of the per-block ratios of blocks in which both are valid.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    pub value: f64,
    /// One per block, as (block, ratio).
    pub blocks: Vec<(u32, f64)>,
    /// What the blocks say beyond the value; `None` for one block and for the base itself.
    pub inference: Option<Inference>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Validity {
    Valid,
    /// Ran to its end, but its numbers must not be used.
    Invalid {
        reasons: Vec<String>,
    },
    Failed {
        message: String,
    },
    Interrupted,
}

/// One execution of one step.
#[derive(Debug, Clone, Serialize)]
pub struct StepRun {
    pub block: u32,
    pub validity: Validity,
    /// Length of the common window.
    pub window_seconds: f64,
    /// Headline rate over the common window.
    pub rate: f64,
    pub kinds: Vec<KindResult>,
    pub metrics: MetricRow,
    pub cost: Cost,
    /// `None` for a run without a calibration of the client, and without a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_reach: Option<ClientReach>,
    /// Share of whole seconds in which the background rate was at or above `share * target`.
    pub seconds_on_target: Option<f64>,
    pub lookups: u64,
    pub lookup_seconds: f64,
    /// Rate by second of the headline kind and the others, whole seconds of the window only.
    pub seconds: Vec<SecondPoint>,
    /// How steady the seconds were; `None` for fewer than ten, and for a step that is one piece of work.
    pub steadiness: Option<Steadiness>,
    /// What the server had put off before and after; `None` where that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debt: Option<Debt>,
}

/// Statements a second of all kinds together beside what the client could reach, by its calibration for this host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClientReach {
    pub statements_per_second: f64,
    /// Of the step.
    pub connections: u32,
    pub could_per_second: f64,
    /// The calibrated number of connections at which it could.
    pub could_connections: u32,
    /// The server that answered in the calibration was the limit there: the client could do more.
    pub at_least: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct KindResult {
    pub kind: String,
    pub connections: u32,
    pub pace: String,
    pub operations: u64,
    pub rows: u64,
    pub failed: u64,
    pub dropped: u64,
    pub errors: ErrorCounts,
    pub operations_per_second: f64,
    pub rows_per_second: f64,
    /// Statements of the operations answered; those of attempts that were repeated are not in it.
    pub statements_per_second: f64,
    pub service: Latency,
    pub response: Latency,
    /// `None` for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Its statements by kind, in their order, where the record tells them apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementResult>,
    /// The original's response-time buckets, over service time (what the original measures).
    pub buckets: Vec<Bucket>,
}

/// Statements of one kind within the operations answered.
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
    pub asked_per_second: f64,
    /// Greatest number of operations that were due and not sent, at the end of any second of the window.
    pub backlog_max: u64,
    /// From due to sent, of operations for which a connection was free: how late the client itself was.
    pub lag: Latency,
}

/// Percentiles of a latency histogram, in microseconds; all `None`-free: an empty histogram has `count` 0.
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
}

#[derive(Debug, Clone, Serialize)]
pub struct Bucket {
    /// `256us`, `1ms`, ..., `gt`
    pub label: String,
    pub count: u64,
    pub percent: f64,
}

/// The original's 21 columns under their names; `None` prints as `NA`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MetricRow {
    pub ips: Option<f64>,
    pub qps: Option<f64>,
    pub rps: Option<f64>,
    pub rmbps: Option<f64>,
    pub wps: Option<f64>,
    pub wmbps: Option<f64>,
    pub rpq: Option<f64>,
    pub rkbpq: Option<f64>,
    pub wpi: Option<f64>,
    pub wkbpi: Option<f64>,
    pub csps: Option<f64>,
    pub cpups: Option<f64>,
    pub cspq: Option<f64>,
    pub cpupq: Option<f64>,
    pub dbgb1: Option<f64>,
    pub dbgb2: Option<f64>,
    pub rss: Option<f64>,
    pub maxop: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub tag: String,
}

/// One whole second of the window.
#[derive(Debug, Clone, Serialize)]
pub struct SecondPoint {
    pub second: u64,
    pub kind: String,
    /// Rows for writers, operations for queries.
    pub rate: f64,
    pub service_max_us: u64,
    pub response_max_us: u64,
}
