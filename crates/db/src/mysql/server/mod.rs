//! MariaDB, MySQL and Percona Server: their base directories, option files, data directories, and
//! how they start.

mod abilities;
mod base;
mod claim;
mod command;
mod initialise;
mod login;
mod my_cnf;
mod option_file;
mod start;

pub(super) use abilities::abilities;
pub(super) use base::{find_program, looked_for, open};
pub(super) use claim::claim;
pub(super) use login::{login_of_file, tls_of_file};
pub(super) use my_cnf::native_settings;
pub(super) use start::start;

use crate::server::FamilyFacts;
use crate::server::release::{ConfigProduct, ProductFacts};

/// What all of them say alike.
const OF_FAMILY: ProductFacts =
    ProductFacts { word: "", name: "", prefixes: &[], base: None, file_form: ("[mysqld]\n", "") };

impl ConfigProduct {
    pub const MYSQL: Self =
        Self(&ProductFacts { word: "mysql", name: "MySQL", prefixes: &["mysql"], ..OF_FAMILY });
    pub const PERCONA: Self = Self(&ProductFacts {
        word: "percona",
        name: "Percona Server",
        prefixes: &["percona"],
        base: Some(Self::MYSQL),
        ..OF_FAMILY
    });
    pub const MARIADB: Self =
        Self(&ProductFacts { word: "mariadb", name: "MariaDB", prefixes: &["mariadb"], ..OF_FAMILY });
}

pub(super) const FACTS: FamilyFacts = FamilyFacts {
    products: &[ConfigProduct::MYSQL, ConfigProduct::PERCONA, ConfigProduct::MARIADB],
    options: include_str!("options.toml"),
    schemes: &["mysql://", "mariadb://"],
    default_port: 3306,
    socket_prefix: None,
    tls_options: login::TLS_OPTIONS,
    other_place_of_user: " or in the option file's [client]",
    option_file: ("my_cnf", "cnf"),
    superuser: "root",
    first_database: None,
    only_own_certificates: false,
    has_no_tls_on_sockets: false,
    reserved_connections: None,
};
