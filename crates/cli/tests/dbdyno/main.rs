//! The command from outside: on SQLite and on nothing, on real servers, on programmed servers whose
//! truth is known, on clusters of real engines, and its pages in a browser.
//!
//! Tests that are not ignored need the servers of [`servers::shared`] and nothing else. `truth`
//! needs the machine for itself: `cargo xtask test --all` runs its tests one at a time.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod browser;
mod commands;
mod engines;
mod servers;
mod support;
mod truth;
