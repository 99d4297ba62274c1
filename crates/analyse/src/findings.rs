//! What a run says: the one type that reports are made from. Everything in it is computed from the records.

use std::collections::BTreeMap;

use dbdyno_record::{Deviation, HostInfo, ToolInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::account::Account;
use crate::aging::Aging;
use crate::beside::Beside;
use crate::factorial::Effect;
use crate::failure::Failure;
use crate::groups::GroupFindings;
use crate::looks::Decided;
use crate::parity::Parity;
use crate::query_plans::StatementPlans;
use crate::relative_metrics::RelativeMetrics;
use crate::standstills::Standstills;
use crate::statistics::Interval;
use crate::statistics::kendall::Trend;
use crate::step_findings::StepRun;
use crate::sweep::Sweep;
use crate::verdict::{Inference, Verdict};

/// All findings of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    pub run: RunSummary,
    pub variants: Vec<VariantSummary>,
    pub workloads: Vec<WorkloadFindings>,
    /// How the variants were configured and in what they differ all the same; `None` when the plan does not want to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// What a reader must know before any number: failed cells, invalid steps, debug build, damaged files.
    pub warnings: Vec<String>,
    /// Cells that failed, each with the end of its server's log.
    pub failures: Vec<Failure>,
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
    /// Steps that ended and whose files have no checksums, of a run that has such: an earlier dbdyno recorded them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked_steps: Option<usize>,
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
    /// As the server said it; empty when it never answered.
    pub version_text: String,
    /// Storage engine of the workload's tables; the server's default where tables ask for none.
    pub engine: Option<String>,
    /// Limit on the memory of its server and the page cache of the server's files, as the kernel rounds it; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
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
    /// Ratios over groups of steps; empty where the steps belong to none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupFindings>,
    /// Tests on three or more numbers of connections, by number; empty where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Sweep>,
    /// Tests that ran before and after the steps that write; empty where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aging: Vec<Aging>,
    pub steps: Vec<StepFindings>,
}

impl WorkloadFindings {
    /// Steps that are compared: all but warm-ups.
    pub fn judged_steps(&self) -> impl Iterator<Item = &StepFindings> {
        self.steps.iter().filter(|step| !step.is_warm_up)
    }

    /// The most blocks that a ratio to `base` is made of, over all steps and variants; 0 where there is no ratio.
    pub fn most_ratio_blocks(&self, base: &str) -> usize {
        let variants = self.steps.iter().flat_map(|step| &step.variants);
        let ratios =
            variants.filter(|variant| variant.variant != base).filter_map(|variant| variant.ratio.as_ref());
        ratios.map(|ratio| ratio.blocks.len()).max().unwrap_or(0)
    }
}

/// The tables at the top of a report; rows = variants where nothing else is said.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub absolute: Table,
    pub relative: Table,
    /// Of a full factorial design: rows = effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Table>,
    /// Rows = groups of steps, columns = figures; one for each grouping, and for each number of connections where there are
    /// several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Table>,
    /// Rows = numbers of connections, columns = rates and response times by variant; one for each test on a ladder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Table>,
    /// Rows = tests that ran before and after the steps that write, columns = variants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aging: Option<Table>,
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
    /// What the plan wanted kept was not, as the background rate, whatever the colour.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub misses_target: bool,
    /// Why it has that colour or no value, in words, so that colour is never alone.
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
    /// The planned rate was not kept: that of background writes, or of an open loop.
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
    /// Of all clients together.
    pub connections: u32,
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
    /// What else is not like the base's; nothing for the base itself.
    #[serde(skip_serializing_if = "Beside::is_empty")]
    pub beside: Beside,
    /// How the server executed the step's statements; empty where it was not asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query_plans: Vec<StatementPlans>,
    /// All metrics against the base; `None` for the base itself and without a block in which both are valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<RelativeMetrics>,
    /// Blocks that are in no ratio because one of the two answered nothing in them.
    #[serde(skip_serializing_if = "Standstills::is_empty")]
    pub standstills: Standstills,
    /// `None` for the base itself, for one block unless it says enough, and for a step that did not run.
    pub verdict: Option<Verdict>,
    /// At which look the verdict was reached; `None` for a run without a budget and for what is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// Whether the rate rises or falls from block to block; `None` for fewer than three valid blocks.
    pub drift: Option<Trend>,
    /// Median background rate over valid blocks, for steps with a target.
    pub background_rate: Option<f64>,
    /// Median over valid blocks of what is judged against the target.
    pub judged_background_rate: Option<f64>,
    /// Valid blocks in which the target was missed, whatever the median says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_missed_blocks: Vec<u32>,
    pub runs: Vec<StepRun>,
}

/// Ratio to the base: geometric mean of the per-block ratios of blocks in which both are valid and answered something.
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
