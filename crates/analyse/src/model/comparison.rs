//! Two variants compared step by step.

use dbdyno_record::Run;
use serde::Serialize;

use crate::model::notice::Notice;
use crate::model::steps::StepComparison;
use crate::statistics::describe::Group;

#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    pub run: &'a Run,
    pub variant: &'a str,
}

#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub base: ComparedSide,
    pub new: ComparedSide,
    /// `true` when both are of one run, so that ratios are formed within blocks.
    pub paired: bool,
    /// Of steps that have none of their own.
    pub margin: f64,
    /// What a reader must know before any number.
    pub notes: Vec<Notice>,
    pub steps: Vec<ComparedStep>,
    /// The ratios of all steps that have one of speed, as one group.
    pub ratios: Option<Group>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ComparedSide {
    pub run_id: String,
    pub variant: String,
    pub version_text: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ComparedStep {
    pub workload: String,
    pub step: String,
    /// Unit of the rates: `inserts/s`, `queries/s`, `seconds`.
    pub rate_label: String,
    /// The rates are times: a ratio below 1 is faster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub less_is_better: bool,
    /// Differences below this fraction count as none.
    pub margin: f64,
    /// Median over the valid blocks; `None` for a side that has none, and for both where no block
    /// is valid on both sides.
    pub base_rate: Option<f64>,
    pub new_rate: Option<f64>,
    /// 99th percentiles of the response times of all valid blocks; `None` for fewer than 100
    /// operations.
    pub base_p99_us: Option<u64>,
    pub new_p99_us: Option<u64>,
    /// New against base; of two runs the ratio has no blocks.
    #[serde(flatten)]
    pub to_base: StepComparison,
    /// Blocks of each side that are in no comparison, and why.
    pub base_left_out: Vec<Exclusion>,
    pub new_left_out: Vec<Exclusion>,
    /// Blocks that the ratio is made of: pairs, or the valid blocks of base and new.
    pub base_blocks: usize,
    pub new_blocks: usize,
    /// New did not keep the background rate that base kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub target_missed: bool,
    /// The rate is the plan's, and base kept it: no rate shows which of the two is quicker.
    #[serde(rename = "paced", skip_serializing_if = "std::ops::Not::not")]
    pub is_fixed_rate: bool,
    /// New did not keep the schedule that base kept.
    #[serde(skip)]
    pub schedule_missed: bool,
}

/// A block of one side whose figures of a step are not compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exclusion {
    pub block: u32,
    pub kind: ExclusionKind,
    /// Of a failure its first line, without its log.
    pub reasons: Vec<Notice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionKind {
    /// The step ran to its end, and its figures may not be used.
    Invalid,
    Failed,
    /// The cell failed before the step.
    CellFailed,
    /// The step was stopped, or its cell before it.
    Interrupted,
    /// The cell has not begun.
    DidNotRun,
    /// Nothing ended in it: no ratio can be formed with a rate of zero.
    ZeroRate,
}

impl ExclusionKind {
    /// The step or its cell went wrong, or its figures may not be used.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Invalid | Self::Failed | Self::CellFailed)
    }
}
