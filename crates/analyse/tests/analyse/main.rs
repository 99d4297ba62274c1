//! Tests that analyse run directories on disk.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod fuzz;
mod recorded_run;

#[path = "../../../record/src/tests/draw.rs"]
mod draw;
