//! The catalogue of servers: what becomes of its entries, and its page.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod catalogue;
mod reference;

#[path = "../../../db/tests/support/program.rs"]
mod program;
