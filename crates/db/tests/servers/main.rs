//! Tests that initialise, configure, start, query, stop and kill real servers.
//!
//! The tests that are not ignored need one MariaDB, one MySQL and one PostgreSQL. `cargo xtask test
//! --all` also runs the tests of other versions.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod life;
mod matrix;
mod mysql_servers;
mod options;
mod postgres_servers;
mod reflinks;
