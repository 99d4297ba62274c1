//! The plan file: read, check, expand to cells and blocks, estimate time and disk.

mod bytes;
mod check;
mod check_address;
mod check_oltp;
mod check_workload;
mod config;
mod data;
mod document;
mod error;
mod estimate;
mod estimate_data;
mod estimate_oltp;
mod expand;
mod experiment;
mod explain;
mod load;
mod model;
mod oltp;
mod overrides;
mod parse;
mod speed;
mod units;
mod workload;

pub use bytes::PlanBytes;
pub use check::warnings;
pub use config::{Config, ConfigPart, IntentValue};
pub use data::{Cold, DataMode};
pub use error::{Error, Place};
pub use estimate::{CellEstimate, Estimate, StepEstimate, estimate};
pub use expand::{Cell, cells, further_cells};
pub use load::{Load, LostConnections};
pub use model::{Host, NoLimit, Parity, Plan, Tls, TlsMode, Variant, VariantKind, Workloads};
pub use oltp::{Distribution, Oltp, OltpPace, OltpTest, Think};
pub use parse::{QUICKSTART, json_schema, parse, parse_with, read, read_with};
pub use units::{CpuList, PlanDuration};
pub use workload::{Clock, InsertBenchmark, Pacing, Protocol, RowsPerCommit, SettleWait, Verify};
