//! Comparisons over several blocks and variants: ratios, verdicts, groups, factors, interim
//! analyses.

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
