//! What to ask: the workloads. One more workload is one new folder and one line in [`ALL`].

mod cards;
mod cleanup;
mod connection;
mod deviations;
mod digits;
mod engine;
mod error;
mod workload;

pub mod insert_benchmark;
pub mod microbenchmarks;
pub mod oltp;

pub use cards::{Card, CardOperation, Cards, cards};
pub use dbdyno_loadgen::{Philox, draw_below, draw_below_u64};
pub use deviations::{Surroundings, of_surroundings};
pub use error::Error;
pub use workload::{About, Context, Explained, Work, Workload};

/// Every workload: its name and what it is for, in the order in which they are listed to users.
pub const ALL: &[(&str, &str)] = &[
    (
        "insert-benchmark",
        "ten steps: load in key order, build indexes, random writes with deletes, then range and \
         point queries with concurrent writes at fixed rates",
    ),
    (
        "microbenchmarks",
        "27 small tests on sbtest tables in the order of the published reports, the 42 steps of \
         2024 or the 32 of 2025: read tests run before the writes and again after them",
    ),
    (
        "oltp",
        "the classic tests on sbtest tables: point selects, read-only and read-write transactions, single writes, over \
         ladders of connections and rates",
    ),
];
