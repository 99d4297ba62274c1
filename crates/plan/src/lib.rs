//! The plan file: read, check, expand to cells and blocks, estimate time and disk.

mod check;
mod check_address;
mod check_oltp;
mod check_workload;
mod document;
mod error;
mod estimate;
mod estimate_oltp;
mod expand;
mod explain;
mod load;
mod model;
mod oltp;
mod overrides;
mod parse;
mod settle;
mod speed;
mod units;
mod workload;

pub use check::warnings;
pub use error::{Error, Place};
pub use estimate::{CellEstimate, Estimate, StepEstimate, estimate};
pub use expand::{Cell, cells};
pub use load::{Load, LostConnections};
pub use model::{Host, Plan, Tls, TlsMode, Variant, VariantKind, Workloads};
pub use oltp::{Distribution, Oltp, OltpPace, OltpTest, Think};
pub use parse::{QUICKSTART, json_schema, parse, parse_with, read, read_with};
pub use settle::{Settle, SettleAfter, SettleBy, SettleWait};
pub use units::{CpuList, PlanDuration};
pub use workload::{Clock, InsertBenchmark, Pacing, Protocol, RowsPerCommit, Verify};
