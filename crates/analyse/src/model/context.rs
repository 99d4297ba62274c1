//! What else differs from the base where the rates do: query plans, settings, stalls.

use serde::Serialize;

use crate::parity::SettingDifference;

/// Differences that may explain a ratio, in addition to its cost breakdown. None of them is a test;
/// they say where to look.
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

/// A figure for steadiness that differs between the two. Both values are medians over the valid
/// blocks.
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
    /// False where the server refused to explain the statement in every block, so that no plan is
    /// known.
    #[serde(skip)]
    pub is_explained: bool,
}

/// One execution of a statement in which the server counted rows and times by operator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutedPlan {
    pub statement: String,
    pub block: u32,
    /// Each operator stands before those that it reads from. Empty where the server refused or
    /// could not count.
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
