//! Tests the sampler with processes, disks and files whose behaviour is known.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod own_process;
mod sampling;

#[path = "../common/mod.rs"]
mod common;
