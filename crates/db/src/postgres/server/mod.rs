//! PostgreSQL: its base directories, its configuration file, and servers that dbdyno starts.
//!
//! The life cycle is the same as for MariaDB and MySQL (marker, template, private socket, CPUs, end
//! with dbdyno). Three things differ: the user (PostgreSQL refuses to run as root), the installer
//! (`initdb`), and the number of processes, because a PostgreSQL server has many.

mod base;
mod conf;
mod data;
mod ownership;
mod start;

pub(super) use base::{abilities, find_programs, looked_for, open};
pub(super) use conf::{login_of_file, own_config};
pub(super) use ownership::take_ownership;
pub(super) use start::start;

pub(super) use dbdyno_products::postgres::{MAINTENANCE, SUPERUSER};
