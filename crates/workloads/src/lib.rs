//! The workloads: which statements dbdyno sends, over which connections, on which data. A new workload
//! needs one folder, its `mod` line and one line in [`ALL`].

pub mod checks;
mod connection;
mod deviations;
mod digits;
mod engine;
mod error;
#[cfg(not(feature = "scripts"))]
mod left_out;
pub mod options;
pub mod plans;
pub mod settle;
mod step;
mod summaries;
mod workload;

pub mod dbt3;
pub mod insert_benchmark;
pub mod microbenchmarks;
pub mod oltp;
pub mod pgbench;
#[cfg(feature = "scripts")]
pub mod sysbench;

pub use dbdyno_loadgen::{Philox, draw_below, draw_below_u64};
pub use deviations::{Original, Surroundings};
pub use engine::takes_streams;
pub use error::Error;
pub use step::{DataSize, Step, StepOptions, WorkloadParts};
pub use summaries::{OperationSummary, StepSummary, WorkloadSummary};
pub(crate) use workload::planned;
pub use workload::{AnyWorkload, Boxed, Context, Entry, Explained, Kind, Steps, Tasks, Work, Workload};

/// The result of a workload's work outside the measured windows.
type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the workload that a plan names. The name may end with the name of a set-up, as in
/// `oltp@small`.
pub fn kind_of(name: &str) -> Option<&'static dyn Kind> {
    let (workload, _) = dbdyno_plan::name_parts(name);
    ALL.iter().copied().find(|kind| kind.name() == workload)
}

/// Every workload, in the order in which they are listed to users.
pub const ALL: &[&dyn Kind] = &[
    &Entry::<insert_benchmark::InsertBenchmark>::NEW,
    &Entry::<microbenchmarks::Microbenchmarks>::NEW,
    &Entry::<oltp::Oltp>::NEW,
    #[cfg(feature = "scripts")]
    &Entry::<sysbench::Sysbench>::NEW,
    #[cfg(not(feature = "scripts"))]
    &left_out::SYSBENCH,
    &Entry::<pgbench::Pgbench>::NEW,
    &Entry::<dbt3::Dbt3>::NEW,
];
