//! The types of findings. What is computed, and what is said of it, is in the other folders.

mod comparison;
mod context;
mod cost_breakdown;
mod difference;
mod execution;
pub(crate) mod failure;
mod findings;
mod groups;
pub mod metrics;
mod notice;
mod report_words;
pub(crate) mod runs;
mod state;
mod step_run;
mod step_sets;
mod steps;
mod verdict;

pub use comparison::*;
pub use context::*;
pub use cost_breakdown::*;
pub use difference::*;
pub use execution::*;
pub use failure::Failure;
pub use findings::*;
pub use groups::{MetricGroup, RelativeMetrics};
pub use metrics::{Cost, DeviceLoad, Efficiency, HostCheck, MetricRow};
pub use notice::*;
pub use report_words::*;
pub use state::*;
pub use step_run::*;
pub use step_sets::*;
pub use steps::*;
pub use verdict::*;
