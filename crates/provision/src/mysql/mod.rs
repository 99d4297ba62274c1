//! MariaDB, MySQL and Percona Server: their base directories, option files, data directories, and
//! how they start.

mod abilities;
mod base;
mod claim;
mod command;
mod family;
mod initialise;
mod login;
mod my_cnf;
mod option_file;
mod products;
mod server;

#[derive(Debug)]
pub(crate) struct Mysql;
