//! Types for what may explain a ratio: other differences from the base (query plans, settings,
//! stalls), and the difference between two rates, split into its causes (CPU time, waiting for IO,
//! idle time).

use serde::Serialize;

use crate::parity::SettingDifference;

/// Differences that may explain a ratio, in addition to its cost breakdown. They are not tested;
/// they tell the reader where to look for a cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RatioContext {
    pub query_plans: Vec<PlanDifference>,
    /// Classes of settings in which the variant differs from the base, intended or not.
    pub settings: Vec<SettingDifference>,
    pub stalls: Vec<StallDifference>,
}

impl RatioContext {
    pub fn is_empty(&self) -> bool {
        self.query_plans.is_empty() && self.settings.is_empty() && self.stalls.is_empty()
    }
}

/// A figure for steadiness that differs between base and variant. Both values are medians over the
/// valid blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StallDifference {
    pub figure: StallFigure,
    pub base: f64,
    pub variant: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StallFigure {
    /// Rate in the slowest second ÷ that in the median second.
    WorstSecondShare,
    LongestGapSeconds,
    ShareBelowHalfMedian,
}

/// One variant's query plans for one of a step's statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementPlans {
    /// The statement's name, such as `simple-range`.
    pub statement: String,
    /// The SQL text that was explained.
    pub sql: String,
    /// Format of the plans: `mysql`, `postgres` or `sqlite`. Plans in different formats cannot be
    /// compared.
    pub form: String,
    /// One entry per plan that occurred, with the blocks in which it did. Costs, row estimates and
    /// values are left out.
    pub plans: Vec<(String, Vec<u32>)>,
    /// False where the server refused to explain the statement in every block, so no plan is
    /// known.
    #[serde(skip)]
    pub is_explained: bool,
}

/// One execution of a statement in which the server counted rows and times by operator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutedPlan {
    pub statement: String,
    pub block: u32,
    /// Each operator comes before the operators from which it reads. Empty where the server refused
    /// or could not count.
    pub operators: Vec<Operator>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operator {
    /// 0 for the outermost operator.
    pub depth: usize,
    /// The operator's name in the server's words.
    pub name: String,
    /// Rows over all loops; `None` where the operator never ran or the server does not count.
    pub rows: Option<f64>,
    pub loops: f64,
    /// Time over all loops, including the operators below it.
    pub total_seconds: Option<f64>,
    /// Time over all loops, without the operators below it.
    pub own_seconds: Option<f64>,
}

/// A statement that the base executes with another plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanDifference {
    pub statement: String,
    pub base: String,
    pub variant: String,
}

/// Why a variant's rate differs from the base's, as factors whose product is the ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostBreakdown {
    /// CPUs that the database could use: the server's, or the client's for an embedded database.
    pub cpus: u32,
    pub parts: Vec<CostPart>,
}

impl CostBreakdown {
    /// Returns the causes. The one that changes the rate most comes first.
    pub fn by_weight(&self) -> Vec<&CostPart> {
        let weight = |part: &CostPart| part.factor.ln().abs();
        let mut parts: Vec<&CostPart> = self.parts.iter().collect();
        parts.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
        parts
    }
}

/// One cause. Its figures are means over the ratio's blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostPart {
    pub cause: Cause,
    /// µs per operation for CPU time, % of the CPUs' time for the other causes.
    pub base: f64,
    pub variant: f64,
    /// What this cause alone does to the rate: 0.95 means 5 % less.
    pub factor: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The database's CPU time per operation in user mode.
    CpuUser,
    /// The database's CPU time per operation in the kernel.
    CpuKernel,
    /// Time in which the database's CPUs had nothing to run while something waited for IO.
    IoWait,
    /// The rest of the CPUs' time: waits for locks, for the client and for other programs.
    Idle,
}

impl Cause {
    /// Returns the name that tables for programs have for the cause.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuUser => "cpu_user",
            Self::CpuKernel => "cpu_kernel",
            Self::IoWait => "io_wait",
            Self::Idle => "idle",
        }
    }
}
