//! Real servers: initialised, configured, started, asked, stopped, killed and refused.
//!
//! Tests of the first part need a MariaDB, a MySQL and a PostgreSQL; those of other versions are run
//! by `cargo xtask test --all`.

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
