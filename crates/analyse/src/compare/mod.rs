//! Comparisons over several blocks and variants: ratios, verdicts, groups, factors, interim
//! analyses.

pub(crate) mod by_machine;
pub(crate) mod changed;
pub(crate) mod comparability;
pub(crate) mod comparison;
pub(crate) mod comparisons;
pub(crate) mod context;
pub(crate) mod cost_breakdown;
pub(crate) mod drift;
pub(crate) mod exclusions;
pub(crate) mod factorial;
pub(crate) mod fixed_rate;
pub(crate) mod forecast;
pub(crate) mod foreign_load;
pub(crate) mod groups;
pub(crate) mod inference;
pub(crate) mod interim_analyses;
pub(crate) mod latency_verdicts;
pub(crate) mod margins;
pub(crate) mod noise;
pub(crate) mod operators;
pub(crate) mod pairs;
pub(crate) mod published;
pub(crate) mod query_plans;
pub(crate) mod ratio;
pub(crate) mod relative_metrics;
pub(crate) mod targets;
pub(crate) mod undecided;
pub(crate) mod verdicts;
pub(crate) mod zero_rate;
