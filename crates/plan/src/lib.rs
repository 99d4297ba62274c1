//! The plan file: read, check, expand to cells and blocks, estimate time and disk.

mod bytes;
mod check;
mod check_address;
mod check_clients;
mod check_report;
mod clients;
mod config;
mod count_words;
mod defaults;
mod document;
mod error;
mod estimate;
mod expand;
mod experiment;
mod explain;
#[cfg(test)]
#[path = "tests/fake.rs"]
mod fake;
mod load;
mod model;
mod named;
mod needed_steps;
mod on;
mod overrides;
mod parse;
mod products;
mod report;
mod scalar;
mod schema;
mod setup;
mod size;
mod table;
mod units;
mod variant_keys;

pub use bytes::PlanBytes;
pub use check::warnings;
pub use check_report::variants_without_figures;
pub use clients::{ClientNames, Clients};
pub use config::{Config, ConfigPart, IntentValue};
pub use count_words::{grouped, numbered};
pub use error::{Error, Location};
pub use estimate::{Basis, CellEstimate, Estimate, MeasuredCell, PastCell, estimate};
pub use expand::{Cell, cells, further_cells};
pub use explain::closest;
pub use load::{Load, LostConnections};
pub use model::{
    ClientWait, Cold, ColumnDefinitions, Cpus, DataMode, Design, Forecast, Host, Kinds, Mistake, Needs,
    NoLimit, Parity, Plan, Setup, Size, StepEstimate, StepOutline, Tls, TlsMode, Unlike, Values, Variant,
    VariantKind, WaitChoice, Work, WorkloadKind, WorkloadOptions, Workloads, data_problem, json_schema,
    seconds,
};
pub use needed_steps::needed_steps;
pub use on::On;
pub use parse::{QUICKSTART, parse_with, read_with};
pub use report::{
    Colours, GroupFigures, PlanSize, Published, PublishedFigures, PublishedFinding, Quantity, Relation,
    Report, Section, StepFigures,
};
pub use scalar::{Given, scalar};
pub use setup::name_parts;
pub use table::{BuildPart, Table, TableError, TableValue, built_without};
pub use units::{CpuList, PlanDuration};
