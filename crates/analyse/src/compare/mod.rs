//! Compares variants over several blocks. The results are ratios, verdicts, groups of steps,
//! effects of factors, and what interim analyses decided.

pub(crate) mod by_machine;
pub(crate) mod comparability;
pub(crate) mod comparison;
pub(crate) mod comparisons;
pub(crate) mod context;
pub(crate) mod exclusions;
pub(crate) mod factorial;
pub(crate) mod interim_analyses;
pub(crate) mod noise;
pub(crate) mod pairs;
pub(crate) mod published;
pub(crate) mod query_plans;
pub(crate) mod rates;
pub(crate) mod ratio;
pub(crate) mod verdicts;
