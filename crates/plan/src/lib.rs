//! This crate reads and checks the plan file, expands it into cells and blocks, and estimates how
//! much time and disk space a run needs.

mod check;
mod client_wait;
#[cfg(test)]
#[path = "tests/config.rs"]
mod config;
mod document;
mod error;
mod estimate;
mod expand;
mod explain;
#[cfg(test)]
#[path = "tests/fake.rs"]
mod fake;
mod parse;
mod setup;
mod variant_options;
mod workload;

pub use check::{published_variants_not_in_plan, warnings};
pub use client_wait::{WaitChoice, client_wait};
pub use error::{Error, Location};
pub use estimate::{
    Basis, CellEstimate, Estimate, Forecast, MeasuredCell, PastCell, Size, StepEstimate, Work, estimate,
    judged_steps, seconds,
};
pub use expand::{Cell, cells, further_cells, needed_steps};
pub use explain::{closest, grouped, numbered};
pub use parse::{QUICKSTART, parse_with, read_with};
pub use setup::name_parts;
pub use variant_options::{each_file, options_problem};
pub use workload::{
    BuildPart, Kinds, Mistake, Needs, Rest, StepOutline, TableError, TableValue, Values, WorkloadKind,
    WorkloadOptions, WorkloadTable, Workloads, built_without, data_problem, json_schema, recorded,
};

/// A plan whose workloads can be run.
pub type Plan = dbdyno_model::Plan<Workloads>;
