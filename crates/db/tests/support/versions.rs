//! The table of supported versions. It makes one test per line, and one test for all other servers
//! in the servers folder.

/// `every_version!(is_spoken, check)` makes a test `VERSION::is_spoken` from each line. The test
/// calls `check` for each server whose name has the line's prefix. One more test checks the other
/// servers in the folder, whose versions dbdyno does not promise to support.
macro_rules! every_version {
    ($is:ident, $check:ident) => {
        every_version! { $is, $check:
            mysql_5_5 "mysql-5.5." "mysql-5.5.9"
            mysql_5_6 "mysql-5.6." "mysql-5.6.24"
            mysql_5_7 "mysql-5.7." "mysql-5.7.22"
            mysql_8_0 "mysql-8.0." "mysql-8.0.31"
            mysql_9 "mysql-9" "mysql-9-sid"
            mariadb_10_1 "mariadb-10.1." "mariadb-10.1.23"
            mariadb_10_2 "mariadb-10.2." "mariadb-10.2.11"
            mariadb_10_5 "mariadb-10.5." "mariadb-10.5.23"
            mariadb_10_11 "mariadb-10.11" "mariadb-10.11.5"
            mariadb_11_4 "mariadb-11.4" "mariadb-11.4.5"
            mariadb_11_8 "mariadb-11.8" "mariadb-11.8-debian"
            postgres_9_6 "pg-9.6." "pg-9.6.24"
            postgres_10 "pg-10." "pg-10.23"
            postgres_11 "pg-11." "pg-11.22"
            postgres_12 "pg-12." "pg-12.22"
            postgres_13 "pg-13." "pg-13.23"
            postgres_14 "pg-14." "pg-14.24"
            postgres_15 "pg-15." "pg-15.19"
            postgres_16 "pg-16." "pg-16.15"
            postgres_17 "pg-17" "pg-17.11"
            postgres_18 "pg-18" "pg-18.6"
        }
    };
    ($is:ident, $check:ident: $($version:ident $prefix:literal $catalogue:literal)*) => {
        $(mod $version {
            #[test]
            #[ignore = "in cargo xtask test --all: every version"]
            fn $is() {
                for name in crate::support::all_of(($prefix, $catalogue)) {
                    super::$check(&name);
                }
            }
        })*

        mod every_other_server_in_the_folder {
            #[test]
            #[ignore = "in cargo xtask test --all: every version"]
            fn $is() {
                let promised = |name: &String| [$($prefix),*].iter().any(|prefix| name.starts_with(prefix));
                let there = dbdyno_db::server::list(&dbdyno_db::server::servers_dir());
                for name in there.iter().filter(|name| !promised(name)) {
                    super::$check(name);
                }
            }
        }
    };
}
