//! Tests of the sessions with real servers of every version line, with hostile servers and with
//! silent servers.
//!
//! The tests that are not ignored share three servers ([`shared`]). `cargo xtask test --all` also
//! runs the tests of all versions and the tests that kill a server, which start their own servers.

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
