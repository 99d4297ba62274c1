//! Examines PostgreSQL's base directories and configuration files, starts servers, and takes
//! ownership of databases on servers that others run.
//!
//! A server's life cycle is the same as for MariaDB and MySQL. Its data directory is a template's
//! copy with dbdyno's marker, it listens on a private socket, it runs on the chosen CPUs, and it
//! ends with dbdyno. Three things differ: the user (PostgreSQL refuses to run as root), the
//! installer (`initdb`), and the number of processes, because a PostgreSQL server has many.

mod base;
mod conf;
mod data;
mod ownership;
mod start;

pub(super) use base::{abilities, expected_programs, find_programs, open};
pub(super) use conf::{login_of_file, own_config};
pub(super) use ownership::take_ownership;
pub(super) use start::start;

pub(super) use dbdyno_products::postgres::{MAINTENANCE, SUPERUSER};
