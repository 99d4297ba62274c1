//! Facts about MariaDB, MySQL and Percona Server.

mod classes;
pub mod option_file;
mod options;
mod query_plan;

pub use options::MysqlOptions;

use crate::known::KNOWN;
use crate::options::VariantOptions;
use crate::value::size;
use crate::{FamilyFacts, Product, Settings, TlsOption};

pub const MYSQL: &Product = &Product { word: "mysql", name: "MySQL", prefixes: &["mysql"], base: None };
pub const PERCONA: &Product =
    &Product { word: "percona", name: "Percona Server", prefixes: &["percona"], base: Some(MYSQL) };
pub const MARIADB: &Product =
    &Product { word: "mariadb", name: "MariaDB", prefixes: &["mariadb"], base: None };

pub static FACTS: FamilyFacts = FamilyFacts {
    name: "mysql",
    products: &[MYSQL, PERCONA, MARIADB],
    default_engine: Some("innodb"),
    config_options: include_str!("config-options.toml"),
    option_file_form: ("[mysqld]\n", ""),
    options: VariantOptions::of::<MysqlOptions>(),
    schemes: &["mysql://", "mariadb://"],
    default_port: 3306,
    // These are the names in MySQL's own tools. Option files write them with `_`.
    tls_options: &[
        ("ssl-mode", TlsOption::Mode),
        ("ssl-ca", TlsOption::Ca),
        ("ssl-cert", TlsOption::Cert),
        ("ssl-key", TlsOption::Key),
    ],
    password_file: "a MySQL option file",
    other_place_of_user: " or in the option file's [client]",
    option_file_ending: "cnf",
    distrusts_writable_files: true,
    libraries: &[("libaio.so.1", "libaio1"), ("libnuma.so.1", "libnuma1")],
    superuser: "root",
    certificate_option: "ssl_cert",
    zero_is_automatic: true,
    lines: option_file::lines,
    follow,
    plan_nodes: query_plan::nodes,
    classes: classes::CLASSES,
    ..FamilyFacts::DEFAULT
};

/// Updates settings that follow others: a character set brings its collation, and a buffer pool has
/// whole chunks.
fn follow(settings: &mut Settings, before: &Settings) {
    let [set, collation] = ["character_set_server", "collation_server"];
    if settings.get(set) != before.get(set) && settings.get(collation) == before.get(collation) {
        let set = settings.get(set).map(|set| set.to_ascii_lowercase()).unwrap_or_default();
        match KNOWN.collations.get(&set) {
            Some(brought) => settings.insert(collation.to_owned(), brought.clone()),
            None => settings.remove(collation),
        };
    }
    let [pool, chunk] = ["innodb_buffer_pool_size", "innodb_buffer_pool_chunk_size"];
    if let [Some(bytes), Some(chunk)] = [pool, chunk].map(|name| size(settings.get(name)?))
        && chunk > 0
        && bytes > chunk
    {
        settings.insert(pool.to_owned(), (bytes.div_ceil(chunk) * chunk).to_string());
    }
}
