//! The sampler against processes, disks and files that do known things.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod own_process;
mod sampling;

#[path = "../common/mod.rs"]
mod common;
