//! MariaDB, MySQL and Percona Server: their base directories, option files, data directories, and
//! how they start.

mod base;
mod initialise;
mod my_cnf;
mod ownership;
mod start;

pub(super) use base::{abilities, find_program, looked_for, open};
pub(super) use initialise::engine_plugin;
pub(super) use my_cnf::{login_of_file, own_config, tls_of_file};
pub(super) use ownership::take_ownership;
pub(super) use start::start;
