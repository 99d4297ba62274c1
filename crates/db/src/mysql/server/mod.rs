//! MariaDB, MySQL and Percona Server: their base directories, option files, data directories, and
//! how they start.

mod abilities;
mod base;
mod command;
mod initialise;
mod login;
mod my_cnf;
mod ownership;
mod start;

pub(super) use abilities::abilities;
pub(super) use base::{find_program, looked_for, open};
pub(super) use command::engine_plugin;
pub(super) use login::{login_of_file, tls_of_file};
pub(super) use my_cnf::own_config;
pub(super) use ownership::take_ownership;
pub(super) use start::start;
