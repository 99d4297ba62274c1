//! The plan file: read, check, expand to cells and blocks, estimate time and disk.

mod bytes;
mod check;
mod check_address;
mod check_microbenchmarks;
mod check_oltp;
mod check_tables;
mod check_workload;
mod config;
mod data;
mod document;
mod error;
mod estimate;
mod estimate_data;
mod estimate_microbenchmarks;
mod estimate_oltp;
mod expand;
mod experiment;
mod explain;
mod ladder;
mod load;
mod microbenchmark_steps;
mod microbenchmark_tests;
mod microbenchmark_turns;
mod microbenchmarks;
mod model;
mod oltp;
mod oltp_words;
mod overrides;
mod parse;
mod pattern;
mod prepared;
mod profile;
mod settle;
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
pub use microbenchmark_steps::{MicroConnections, MicroLength, MicroSequence, MicroStep, Moment};
pub use microbenchmark_tests::MicroTest;
pub use microbenchmarks::{MicroRung, Microbenchmarks};
pub use model::{
    ColumnDefinitions, Host, NoLimit, Parity, Plan, Tls, TlsMode, Variant, VariantKind, Workloads,
};
pub use oltp::Oltp;
pub use oltp_words::{Distribution, ErrorCode, IdType, LoadMethod, OltpPace, OltpProfile, OltpTest, Think};
pub use parse::{QUICKSTART, json_schema, parse, parse_with, read, read_with};
pub use settle::{Settle, SettleAfter, SettleBy, SettleWait};
pub use units::{CpuList, PlanDuration};
pub use workload::{Clock, InsertBenchmark, Pacing, Protocol, RowsPerCommit, Verify};
