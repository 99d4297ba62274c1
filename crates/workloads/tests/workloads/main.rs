//! Tests the plans of the workloads, and the statements that the workloads send. Most tests use a
//! database that only records the statements that it receives.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod conformance;
mod desk;
mod microbenchmarks;
mod oltp;
mod plan;
#[cfg(feature = "scripts")]
mod sysbench;
