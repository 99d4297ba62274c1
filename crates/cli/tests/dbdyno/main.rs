//! Tests of the command from outside: with SQLite and without a database, on real servers, on
//! programmed servers whose true figures are known, on clusters of real engines, and with its pages
//! in a browser.
//!
//! Tests that are not ignored need only the servers in [`servers::shared`]. The tests in `truth`
//! need the machine for themselves, so `cargo xtask test --all` runs them one at a time.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod browser;
mod commands;
mod engines;
mod servers;
mod support;
mod truth;
