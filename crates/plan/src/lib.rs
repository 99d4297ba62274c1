//! The plan file: read, check, expand to cells and blocks, estimate time and disk.

mod bytes;
mod check;
mod check_address;
mod client_wait;
mod config;
mod count_words;
mod data;
mod document;
mod error;
mod estimate;
mod estimate_data;
mod expand;
mod experiment;
mod explain;
#[cfg(test)]
mod fake;
mod load;
mod model;
mod needed_steps;
mod overrides;
mod parse;
mod speed;
mod table;
mod units;
mod workload;

pub use bytes::PlanBytes;
pub use check::warnings;
pub use client_wait::{ClientWait, WaitChoice};
pub use config::{Config, ConfigPart, IntentValue};
pub use count_words::{grouped, numbered};
pub use data::{Cold, DataMode, data_problem};
pub use error::{Error, Place};
pub use estimate::{CellEstimate, Estimate, Forecast, StepEstimate, estimate, seconds};
pub use expand::{Cell, cells, further_cells};
pub use load::{Load, LostConnections};
pub use model::{
    ColumnDefinitions, Cpus, Design, Host, NoLimit, Parity, Plan, Tls, TlsMode, Variant, VariantKind,
};
pub use needed_steps::needed_steps;
pub use parse::{Kinds, QUICKSTART, parse_with, read_with};
pub use speed::{Size, Speed};
pub use table::{Table, TableError, TableValue};
pub use units::{CpuList, PlanDuration, TimeOrAuto};
pub use workload::{
    Mistake, Needs, StepOutline, WorkloadKind, WorkloadOptions, Workloads, json_schema, values_of,
};
