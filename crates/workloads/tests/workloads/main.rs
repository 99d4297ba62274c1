//! The workloads at a database of our own that notes what arrives, and their plans.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod conformance;
mod desk;
mod microbenchmarks;
mod oltp;
mod plan;
#[cfg(feature = "scripts")]
mod sysbench;
