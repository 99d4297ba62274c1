//! PostgreSQL: its base directories, its configuration file, and servers that dbdyno starts.
//!
//! The life cycle is that of MariaDB and MySQL (mark, template, private socket, CPUs, end with dbdyno). Different are
//! the user (PostgreSQL refuses to run as root), the installer (`initdb`), and that a server is many processes.

mod conf;
mod data;
mod pass_file;
mod ready;
mod server;
mod user;

pub(crate) use conf::conf_settings;
pub(crate) use pass_file::password;
pub use server::{PgServer, PgServerSpec};
