//! Types for two variants that are compared step by step, from one run or from two, and for the
//! differences between the two runs. A published report's figures are here too, each next to the
//! figure that the run measured. The types hold data only; the report crate writes the sentences.

use dbdyno_model::Quantity;
use dbdyno_record::Run;
use serde::Serialize;

use crate::model::steps::StepComparison;
use crate::model::warning::Warning;
use crate::statistics::Interval;
use crate::statistics::describe::Group;
use crate::why::StepProfile;

#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    pub run: &'a Run,
    pub variant: &'a str,
}

#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub base: ComparedSide,
    pub new: ComparedSide,
    /// `true` where both sides are from one run, so ratios are formed within blocks.
    pub paired: bool,
    /// Margin of the steps that have none of their own.
    pub margin: f64,
    /// Notes that a reader must know before any number.
    pub notes: Vec<Warning>,
    pub steps: Vec<ComparedStep>,
    /// The ratios of all steps that have a ratio of speed, as one group.
    pub ratios: Option<Group>,
    /// The functions that make the difference, in the steps that both sides have profiled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<StepProfile>,
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
    /// The rates are times, so a ratio below 1 is faster.
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
    /// Number of the base's blocks that the ratio is made of: those in pairs, or for two runs the
    /// valid blocks. The next field has the number for new.
    pub base_blocks: usize,
    pub new_blocks: usize,
    /// New did not keep the background rate that base kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub target_missed: bool,
    /// The plan sets the rate, and base kept it. Rates cannot show which of the two is faster.
    #[serde(rename = "fixed_rate", skip_serializing_if = "std::ops::Not::not")]
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub aspect: Aspect,
    /// The variant that differs, where both sides have it under the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The base's value as text; `None` where the base does not have the property, or has no limit
    /// for it.
    pub base: Option<String>,
    pub new: Option<String>,
}

/// The property in which the two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    Plan,
    Seed,
    Build,
    Dbdyno,
    Kernel,
    Machine,
    CpuModel,
    Cpus,
    MemoryGib,
    ServerCpus,
    ClientCpus,
    ClientWait,
    DataFilesystem,
    /// Memory of a server that dbdyno started.
    StartedMemory,
    StartedCpus,
    RatioBase,
    Workload,
    /// Version of the workload with this name.
    Version(String),
    /// A key of the plan, or an option of a workload, by its path.
    Key(String),
}

impl Difference {
    /// Makes the difference; `None` where both values are the same.
    pub(crate) fn of(aspect: Aspect, base: Option<String>, new: Option<String>) -> Option<Self> {
        (base != new).then_some(Self { aspect, variant: None, base, new })
    }
}

/// A published report compared with the run.
#[derive(Debug, Clone, Serialize)]
pub struct PublishedComparison {
    pub title: String,
    pub author: String,
    pub year: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<String>,
    pub machine: String,
    #[serde(skip)]
    pub rows: Vec<PublishedRow>,
    pub findings: Vec<FindingSeen>,
}

/// A published figure and the measured one. Both are the variant's figure ÷ the base's.
#[derive(Debug, Clone)]
pub struct PublishedRow {
    /// Workload in which it was measured; the next field has its set-up.
    pub workload: Option<String>,
    pub setup: Option<String>,
    /// Name of the base in the published report; `variant` is a name from there too.
    pub base: String,
    pub variant: String,
    /// Name of the step, or of the group of steps with its statistic: `writes: average`.
    pub subject: String,
    pub quantity: Quantity,
    pub published: f64,
    /// The measured figure; `None` where the run did not measure both variants.
    pub measured: Option<f64>,
    /// 95 % interval over the blocks; `None` for one block.
    pub interval: Option<Interval>,
    pub blocks: usize,
    pub agreement: Agreement,
}

/// How near a measured figure must be to a published one, as a fraction of it, to agree.
pub const CLOSE: f64 = 0.10;

/// How a published figure relates to the measured one. It does not judge the two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The measured interval is within [`CLOSE`] of the published figure.
    Agrees,
    /// The whole measured interval is farther than [`CLOSE`] from the published figure.
    Contradicts,
    /// The interval neither agrees nor contradicts, or there is no interval.
    TooWide,
    NotMeasured,
}

impl Agreement {
    /// Returns the name that tables for programs have for the agreement.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Contradicts => "contradicts",
            Self::TooWide => "too_wide",
            Self::NotMeasured => "not_measured",
        }
    }
}

/// A finding of a published report, looked for in the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingSeen {
    pub says: String,
    pub seen: Seen,
    /// Steps in which the finding was seen. The two fields below count those in which it was not
    /// seen and those that are undecided.
    pub steps_seen: usize,
    pub steps_not_seen: usize,
    pub steps_undecided: usize,
    /// Steps that both variants ran and in which no block is valid for both.
    pub steps_invalid: usize,
}

/// Says whether a published finding shows in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The finding shows in more than half of its steps.
    Seen,
    /// The measurements show the opposite in at least as many steps as those that show the finding.
    NotSeen,
    Undecided,
    /// Both variants ran the steps, and none of the steps is valid.
    Invalid,
    /// The run does not have the variants or the steps, so it cannot show the finding.
    CannotBeTried,
}
