//! The data of config intents held against real servers: each option exists in the versions that the data says, with the
//! default that it says, and what intents are rendered to is what a server then has.
//!
//! The servers are looked for in the servers folder. One that is absent fails its test: a test that skips proves nothing. What
//! else lies in the folder is checked too, so more servers there are a wider check.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod data;
mod effect;
mod facts;

use dbdyno_provision::{find_named, list, servers_dir};

/// The table: a test's name, how the names of the servers that it checks begin, the catalogue's name that gets one.
macro_rules! versions {
    ($($test:ident $prefix:literal $catalogue:literal)*) => {
        const TABLE: &[&str] = &[$($prefix),*];

        $(#[test]
        fn $test() {
            check_all_of($prefix, $catalogue);
        })*
    };
}

versions! {
    mysql_5_5_is_as_the_data_says "mysql-5.5." "mysql-5.5.9"
    mysql_5_6_is_as_the_data_says "mysql-5.6." "mysql-5.6.24"
    mysql_5_7_is_as_the_data_says "mysql-5.7." "mysql-5.7.22"
    mysql_8_0_is_as_the_data_says "mysql-8.0." "mysql-8.0.31"
    mysql_9_is_as_the_data_says "mysql-9" "mysql-9-sid"
    mariadb_10_1_is_as_the_data_says "mariadb-10.1." "mariadb-10.1.23"
    mariadb_10_11_is_as_the_data_says "mariadb-10.11" "mariadb-10.11.5"
    mariadb_11_is_as_the_data_says "mariadb-11." "mariadb-11.8-debian"
    postgres_9_6_is_as_the_data_says "pg-9.6." "pg-9.6.24"
    postgres_10_is_as_the_data_says "pg-10." "pg-10.23"
    postgres_11_is_as_the_data_says "pg-11." "pg-11.22"
    postgres_12_is_as_the_data_says "pg-12." "pg-12.22"
    postgres_13_is_as_the_data_says "pg-13." "pg-13.23"
    postgres_14_is_as_the_data_says "pg-14." "pg-14.24"
    postgres_15_is_as_the_data_says "pg-15." "pg-15.19"
    postgres_16_is_as_the_data_says "pg-16." "pg-16.15"
    postgres_17_is_as_the_data_says "pg-17" "pg-17.11"
    postgres_18_is_as_the_data_says "pg-18" "pg-18.6"
}

/// What else lies in the folder is promised to nobody, but is checked while it is there.
#[test]
fn every_other_server_in_the_folder_is_as_the_data_says() {
    let promised = |name: &String| TABLE.iter().any(|prefix| name.starts_with(prefix));
    for name in list(&servers_dir()).iter().filter(|name| !promised(name)) {
        check(name);
    }
}

#[test]
fn sqlite_is_as_the_data_says() {
    data::check_sqlite();
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
    let base = find_named(name).unwrap();
    data::check(name, &base);
    effect::check(name, &base);
}
