//! Every version that dbdyno promises, started by it and spoken to: one table of versions, one test a line.
//!
//! The servers are looked for in the servers folder. One that is absent fails its test: a test that skips proves nothing.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod mysql;
mod postgres;
mod support;

use dbdyno_provision::{Base, find_named, list, servers_dir};

/// The table: a test's name, how the names of the servers that it checks begin, the catalogue's name that gets one.
macro_rules! matrix {
    ($($test:ident $prefix:literal $catalogue:literal)*) => {
        const TABLE: &[(&str, &str)] = &[$(($prefix, $catalogue)),*];

        $(#[test]
        fn $test() {
            check_all_of($prefix, $catalogue);
        })*
    };
}

matrix! {
    mysql_5_5_is_spoken "mysql-5.5." "mysql-5.5.9"
    mysql_5_6_is_spoken "mysql-5.6." "mysql-5.6.24"
    mysql_5_7_is_spoken "mysql-5.7." "mysql-5.7.22"
    mysql_8_0_is_spoken "mysql-8.0." "mysql-8.0.31"
    mysql_9_is_spoken "mysql-9" "mysql-9-sid"
    mariadb_10_1_is_spoken "mariadb-10.1." "mariadb-10.1.23"
    mariadb_10_11_is_spoken "mariadb-10.11" "mariadb-10.11.5"
    mariadb_11_is_spoken "mariadb-11." "mariadb-11.8-debian"
    postgres_9_6_is_spoken "pg-9.6." "pg-9.6.24"
    postgres_10_is_spoken "pg-10." "pg-10.23"
    postgres_11_is_spoken "pg-11." "pg-11.22"
    postgres_12_is_spoken "pg-12." "pg-12.22"
    postgres_13_is_spoken "pg-13." "pg-13.23"
    postgres_14_is_spoken "pg-14." "pg-14.24"
    postgres_15_is_spoken "pg-15." "pg-15.19"
    postgres_16_is_spoken "pg-16." "pg-16.15"
    postgres_17_is_spoken "pg-17" "pg-17.11"
    postgres_18_is_spoken "pg-18" "pg-18.6"
}

/// What else lies in the folder is promised to nobody, but is checked while it is there.
#[test]
fn every_other_server_in_the_folder_is_spoken() {
    let promised = |name: &String| TABLE.iter().any(|(prefix, _)| name.starts_with(prefix));
    for name in list(&servers_dir()).iter().filter(|name| !promised(name)) {
        check(name);
    }
}

fn check_all_of(prefix: &str, catalogue: &str) {
    let folder = servers_dir();
    let mut names = list(&folder);
    names.retain(|name| name.starts_with(prefix));
    assert!(
        !names.is_empty(),
        "no server {prefix}* in {}; get one with `cargo xtask servers {catalogue}`",
        folder.display()
    );
    names.iter().for_each(|name| check(name));
}

fn check(name: &str) {
    match find_named(name).unwrap() {
        Base::Mysql(base) => mysql::check(name, &base),
        Base::Postgres(base) => postgres::check(name, &base),
    }
}
