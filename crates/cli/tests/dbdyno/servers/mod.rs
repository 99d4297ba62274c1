//! Tests of the command on real servers. Tests that are not ignored need three builds: most use the
//! servers that all tests share ([`shared`]), and a few start their own. The others also need
//! MariaDB 10.1 with XtraDB and 10.11, MySQL 5.5 and 5.6, and PostgreSQL 9.6, 16 and 18.
//!
//! The builds are in the servers folder (`$DBDYNO_SERVERS`, otherwise below the cache folder). A
//! test whose server is absent fails, because a skipped test proves nothing.

mod address;
mod catalogue;
mod charged;
mod charset;
mod client_hosts;
mod compact;
mod configs;
mod counts;
mod dbt3;
mod end_to_end;
mod explained;
mod external;
mod faults;
mod foreign;
mod fsyncs;
mod ids;
mod killed;
mod life;
mod loads;
mod memory;
mod microbenchmark_tables;
mod microbenchmarks;
mod oltp;
mod options;
mod parity;
mod pgbench;
mod pgbench_command;
mod plans;
mod postgres;
mod restart;
mod scripts;
mod sent;
mod settle;
mod shapes;
mod shared;
mod statement_logs;
mod statements;
mod sysbench;
mod tampering;
mod templates;
mod tiny;
mod tls;
mod watch;

use dbdyno_db::server::{list, servers_dir};

pub(crate) const MARIADB_10_1: &str = "mariadb-10.1.";
pub(crate) const MARIADB_10_11: &str = "mariadb-10.11.";
/// Debian's build, which has MyRocks.
pub(crate) const MARIADB_11_8: &str = "mariadb-11.8";
pub(crate) const MYSQL_5_5: &str = "mysql-5.5.";
pub(crate) const MYSQL_5_6: &str = "mysql-5.6.";
pub(crate) const MYSQL_8_0: &str = "mysql-8.0.";
pub(crate) const POSTGRES_9_6: &str = "pg-9.6.";
pub(crate) const POSTGRES_15: &str = "pg-15.";
pub(crate) const POSTGRES_16: &str = "pg-16.";
pub(crate) const POSTGRES_18: &str = "pg-18.";

/// The catalogue's name for each prefix.
const CATALOGUE: &[(&str, &str)] = &[
    (MARIADB_10_1, "mariadb-10.1.23"),
    (MARIADB_10_11, "mariadb-10.11.5"),
    (MARIADB_11_8, "mariadb-11.8-debian"),
    (MYSQL_5_5, "mysql-5.5.9"),
    (MYSQL_5_6, "mysql-5.6.24"),
    (MYSQL_8_0, "mysql-8.0.31"),
    (POSTGRES_9_6, "pg-9.6.24"),
    (POSTGRES_15, "pg-15.19"),
    (POSTGRES_16, "pg-16.15"),
    (POSTGRES_18, "pg-18.6"),
];

/// The build in the servers folder whose name begins with `prefix`.
pub(crate) fn require(prefix: &str) -> String {
    let folder = servers_dir();
    let found = list(&folder).into_iter().find(|name| name.starts_with(prefix));
    found.unwrap_or_else(|| {
        let (_, name) = CATALOGUE.iter().find(|(known, _)| *known == prefix).unwrap();
        panic!("no server {prefix}* in {}; get one with `cargo xtask servers {name}`", folder.display())
    })
}

/// A variant `name` on the server with this prefix, with the further lines `more`.
pub(crate) fn variant(name: &str, prefix: &str, more: &str) -> String {
    format!("[[variant]]\nname = \"{name}\"\nserver = \"{}\"\n{more}\n", require(prefix))
}

/// A small plan: two clients with 3000 rows each, and no pauses.
pub(crate) fn small_plan(variants: &str, options: &str) -> String {
    let seconds = if options.contains("read_write_time") { "" } else { "read_write_time = \"1s\"\n" };
    format!(
        "name = \"test\"\n{variants}\n[workload.insert-benchmark]\nclients = 2\nload_rows = 3000\n\
         write_rows = 1000\nrates = [100]\nsettle_wait = \"0s\"\n{seconds}{options}\n"
    )
}

/// Options that need little memory and make initialising quick, with a value that the tests find
/// again in the records.
pub(crate) const MY_CNF: &str = "[mysqld]\ninnodb_buffer_pool_size = 64M\n";

/// The same options for PostgreSQL.
pub(crate) const POSTGRESQL_CONF: &str = "shared_buffers = 64MB\n";
