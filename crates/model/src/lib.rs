//! The data model: what a plan says, and what records keep of it. It is plain data that every crate
//! may read.

mod bytes;
mod client_wait;
mod clients;
mod config;
mod data;
mod defaults;
mod foreign;
mod load;
mod named;
mod on;
mod plan;
mod report;
mod scalar;
mod schema;
mod units;

pub use bytes::PlanBytes;
pub use client_wait::ClientWait;
pub use clients::{ClientNames, Clients};
pub use config::{Config, ConfigPart, IntentValue};
pub use data::{Cold, DataMode};
pub use foreign::foreign_title;
pub use load::{Load, LostConnections, load_problem};
pub use on::On;
pub use plan::{
    ColumnDefinitions, Cpus, Design, Host, NoLimit, Parity, Plan, RecordedWorkloads, Setup, TlsMode,
    TlsSettings, Unlike, Variant,
};
pub use report::{
    Colours, GroupFigures, PlanSize, Published, PublishedFigures, PublishedFinding, Quantity, Relation,
    Report, Section, StepFigures,
};
pub use scalar::{Given, scalar};
pub use units::{CpuList, PlanDuration, ValueError};
