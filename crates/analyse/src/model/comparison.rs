//! Two variants compared step by step, from one run or from two.

use dbdyno_record::Run;
use serde::Serialize;

use crate::model::steps::StepComparison;
use crate::model::warning::Warning;
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
    /// `true` where both sides are from one run, so that ratios are formed within blocks.
    pub paired: bool,
    /// Margin of the steps that have none of their own.
    pub margin: f64,
    /// Notes that a reader must know before any number.
    pub notes: Vec<Warning>,
    pub steps: Vec<ComparedStep>,
    /// The ratios of all steps that have a ratio of speed, as one group.
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
    /// The rates are times, so that a ratio below 1 is faster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub less_is_better: bool,
    /// Differences below this fraction count as none.
    pub margin: f64,
    /// Median over the valid blocks; `None` for a side without one, and for both sides where no
    /// block is valid on both.
    pub base_rate: Option<f64>,
    pub new_rate: Option<f64>,
    /// 99th percentiles of the response times of all valid blocks; `None` for fewer than 100
    /// operations.
    pub base_p99_us: Option<u64>,
    pub new_p99_us: Option<u64>,
    /// New compared with base. Between two runs the ratio has no blocks.
    #[serde(flatten)]
    pub to_base: StepComparison,
    /// The base's blocks that are in no comparison, and why; the next field has those of new.
    pub base_left_out: Vec<Exclusion>,
    pub new_left_out: Vec<Exclusion>,
    /// Blocks of the base that the ratio is made of: those in pairs, or for two runs its valid
    /// blocks.
    pub base_blocks: usize,
    pub new_blocks: usize,
    /// New did not keep the background rate that base kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub target_missed: bool,
    /// The plan sets the rate, and base kept it. Rates cannot show which of the two is faster.
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
    /// The reasons. For a failure it is the first line, without its log.
    pub reasons: Vec<Warning>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionKind {
    /// The step ran to its end, and its figures may not be used.
    Invalid,
    Failed,
    /// The cell failed before the step.
    CellFailed,
    /// The step was stopped, or its cell was stopped before it.
    Interrupted,
    /// The cell has not begun.
    DidNotRun,
    /// No operation ended in the step, and no ratio can be formed with a rate of zero.
    ZeroRate,
}

impl ExclusionKind {
    /// The step or its cell went wrong, or its figures may not be used.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Invalid | Self::Failed | Self::CellFailed)
    }
}
