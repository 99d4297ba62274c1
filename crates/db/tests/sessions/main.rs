//! The sessions against servers: real ones of every line, small ones that mean harm, silent ones.
//!
//! Tests of the first part share three servers ([`shared`]). Those of all versions, and those of a
//! server's end, start servers of their own and are run by `cargo xtask test --all`.

mod foreign;
mod hostile;
mod mysql_sessions;
mod mysql_settling;
mod mysql_spoken;
mod mysql_tls;
mod mysql_upkeep;
mod postgres_sessions;
mod postgres_spoken;
mod postgres_tls;
mod postgres_upkeep;
mod shared;
mod silent;
mod unwaited;

#[path = "../certificates/mod.rs"]
mod certificates;
#[path = "../mysql_servers/server.rs"]
mod mysql_server;
#[path = "../postgres_servers/server.rs"]
mod postgres_server;
