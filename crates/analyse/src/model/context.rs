//! What else differs from the base where rates do: query plans, settings, stalls.

use serde::Serialize;

use crate::parity::SettingDifference;

/// In addition to the cost breakdown of a ratio. None of it is a test; it says where to look.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RatioContext {
    pub query_plans: Vec<PlanDifference>,
    /// Classes of settings in which the variant is not like the base, meant or not.
    pub settings: Vec<SettingDifference>,
    pub stalls: Vec<StallDifference>,
}

impl RatioContext {
    pub fn is_empty(&self) -> bool {
        self.query_plans.is_empty() && self.settings.is_empty() && self.stalls.is_empty()
    }
}

/// A figure of steadiness that differs, medians over the valid blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StallDifference {
    pub figure: StallFigure,
    pub base: f64,
    pub variant: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StallFigure {
    /// Rate of the slowest second ÷ that of the median second.
    WorstSecondShare,
    LongestGapSeconds,
    ShareBelowHalfMedian,
}

/// The plans of one variant for one statement of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementPlans {
    /// `simple-range`
    pub statement: String,
    /// As it was explained.
    pub sql: String,
    /// `mysql`, `postgres`, `sqlite`: plans of different forms cannot be compared.
    pub form: String,
    /// Without costs, row estimates and values: one entry for each plan that occurred, with the
    /// blocks in which it did.
    pub plans: Vec<(String, Vec<u32>)>,
    /// Not where the server refused to explain it in any block: the plans are not known then.
    #[serde(skip)]
    pub is_explained: bool,
}

/// One execution of a statement in which the server counted rows and times by operator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutedPlan {
    pub statement: String,
    pub block: u32,
    /// Each before those that it reads from. Empty where the server refused or could not.
    pub operators: Vec<Operator>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operator {
    /// 0 for the outermost.
    pub depth: usize,
    /// In the server's words.
    pub name: String,
    /// Over all loops; `None` where it never ran or the server does not count.
    pub rows: Option<f64>,
    pub loops: f64,
    /// Over all loops, with the operators below it.
    pub total_seconds: Option<f64>,
    /// Without them.
    pub own_seconds: Option<f64>,
}

/// A statement that the base executes otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanDifference {
    pub statement: String,
    pub base: String,
    pub variant: String,
}
