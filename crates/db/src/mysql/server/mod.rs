//! Examines base directories and option files for MariaDB, MySQL and Percona Server, makes data
//! directories, starts servers, and takes ownership of databases on servers that others run.

mod base;
mod initialise;
mod my_cnf;
mod ownership;
mod start;

pub(super) use base::{abilities, expected_programs, find_program, open};
pub(super) use initialise::engine_plugin;
pub(super) use my_cnf::{login_of_file, own_config, tls_of_file};
pub(super) use ownership::take_ownership;
pub(super) use start::start;
