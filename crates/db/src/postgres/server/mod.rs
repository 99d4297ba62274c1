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
mod pass_file;
mod ready;
mod start;
mod user;

pub(super) use abilities::abilities;
pub(super) use base::{find_programs, looked_for, open};
pub(super) use claim::claim;
pub(super) use conf::conf_settings;
pub(super) use pass_file::login_of_file;
pub(super) use start::start;

use crate::server::release::{ConfigProduct, ProductFacts};
use crate::server::{FamilyFacts, TlsOption};

/// Superuser of the data directories that dbdyno makes.
pub(super) const SUPERUSER: &str = "postgres";

/// The database in which others are made.
pub(super) const MAINTENANCE: &str = "postgres";

impl ConfigProduct {
    pub const POSTGRESQL: Self = Self(&ProductFacts {
        word: "postgresql",
        name: "PostgreSQL",
        prefixes: &["pg", "postgresql", "postgres", "pgsql"],
        base: None,
        file_form: ("", ""),
    });
}

pub(super) const FACTS: FamilyFacts = FamilyFacts {
    products: &[ConfigProduct::POSTGRESQL],
    options: include_str!("options.toml"),
    schemes: &["postgres://", "postgresql://"],
    default_port: 5432,
    socket_prefix: Some(".s.PGSQL."),
    tls_options: &[
        ("sslmode", TlsOption::Mode),
        ("sslrootcert", TlsOption::Ca),
        ("sslcert", TlsOption::Cert),
        ("sslkey", TlsOption::Key),
    ],
    other_place_of_user: "",
    option_file: ("postgresql_conf", "conf"),
    superuser: SUPERUSER,
    first_database: Some(MAINTENANCE),
    only_own_certificates: true,
    has_no_tls_on_sockets: true,
    // Not in the data of options: 3 since there is one.
    reserved_connections: Some(("superuser_reserved_connections", 3)),
};
