//! PostgreSQL: its base directories, its configuration file, and servers that dbdyno starts.
//!
//! The life cycle is that of MariaDB and MySQL (mark, template, private socket, CPUs, end with
//! dbdyno). Different are the user (PostgreSQL refuses to run as root), the installer (`initdb`),
//! and that a server is many processes.

mod abilities;
mod base;
mod claim;
mod conf;
mod data;
mod family;
mod pass_file;
mod ready;
mod server;
mod user;

/// Superuser of the data directories that dbdyno makes.
const SUPERUSER: &str = "postgres";

/// The database in which others are made.
const MAINTENANCE: &str = "postgres";

#[derive(Debug)]
pub(crate) struct Postgres;
