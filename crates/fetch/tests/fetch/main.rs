//! Tests of the catalogue of servers, and of its page in the documentation.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod catalogue;
mod reference;

#[path = "../../../db/tests/support/program.rs"]
mod program;
