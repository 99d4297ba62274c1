//! The plan file: this crate reads and checks it, expands it to cells and blocks, and estimates its
//! time and disk.

mod check;
mod check_clients;
mod check_report;
mod client_wait;
#[cfg(test)]
#[path = "tests/config.rs"]
mod config;
mod count_words;
mod document;
mod error;
mod estimate;
mod expand;
mod experiment;
mod explain;
#[cfg(test)]
#[path = "tests/fake.rs"]
mod fake;
mod forecast;
mod needed_steps;
mod overrides;
mod parse;
mod setup;
mod size;
mod table;
mod variant_options;
mod workload;

pub use check::warnings;
pub use check_report::variants_without_figures;
pub use client_wait::{WaitChoice, client_wait};
pub use count_words::{grouped, numbered};
pub use error::{Error, Location};
pub use estimate::{Basis, CellEstimate, Estimate, MeasuredCell, PastCell, estimate, judged_steps};
pub use expand::{Cell, cells, further_cells};
pub use explain::closest;
pub use forecast::{Forecast, Size, StepEstimate, Work, seconds};
pub use needed_steps::needed_steps;
pub use parse::{QUICKSTART, parse_with, read_with};
pub use setup::name_parts;
pub use table::{BuildPart, Table, TableError, TableValue, built_without};
pub use variant_options::{each_file, options_problem};
pub use workload::{
    Kinds, Mistake, Needs, Rest, StepOutline, Values, WorkloadKind, WorkloadOptions, Workloads, data_problem,
    json_schema, recorded,
};

/// A plan whose workloads can be run.
pub type Plan = dbdyno_model::Plan<Workloads>;
