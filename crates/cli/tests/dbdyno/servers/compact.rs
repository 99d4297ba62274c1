//! Tests how full the pages of loaded tables are. Every load method must leave them as full as one
//! connection does with INSERTs in id order, because half-empty pages would distort every figure of
//! the tests that follow.

use dbdyno_db::{first_i64, mysql, postgres};

use crate::servers::external::external_server;
use crate::servers::watch::ask;
use crate::servers::{MARIADB_10_11, MARIADB_11_8, MYSQL_8_0, POSTGRES_15, postgres as pg};
use crate::support::{Desk, faults, findings};

/// Names of databases, each with the options by which its table is loaded. The others are compared
/// with the first.
const WAYS: [(&str, &str); 4] = [
    ("in_turn", "load_connections = 1"),
    ("inserts", "load_connections = 4"),
    ("stream", "load_connections = 4\nload_method = \"stream\""),
    ("one_stream", "load_connections = 1\nload_method = \"stream\""),
];

/// Loads a table and then its index with each of the options, and compares the size of each
/// database, by `size_of`, with that of the first.
fn check(what: &str, desk: &Desk, address: impl Fn(&str) -> String, size_of: impl Fn(&str) -> i64) {
    let mut measure = None;
    for (database, options) in WAYS {
        let file = format!("{database}.toml");
        desk.write(
            &file,
            &format!(
                "name = \"{database}\"\n[[variant]]\nname = \"theirs\"\naddress = \"{}\"\n[workload.oltp]\nsettle_wait = \"0s\"\n\
                 tests = [\"point-select\"]\ntables = 1\ntable_size = 50_000\nevents = 10\n{options}\n",
                address(database)
            ),
        );
        desk.dbdyno(&["run", &file, "--out", database]).expect_ok();
        let runs = std::fs::read_dir(desk.path(database)).unwrap().flatten();
        let run = runs.map(|entry| entry.path()).next().unwrap();
        assert_eq!(faults(&findings(&run)), Vec::<String>::new(), "{what}, {database}");
        let size = size_of(database);
        let measure = *measure.get_or_insert(size);
        assert!(measure > 600, "{what}: {measure} pages are not those of 50,000 rows");
        let share = size as f64 / measure as f64;
        assert!(share <= 1.03, "{what}, {database}: {size} pages, {measure} when loaded in turn");
    }
}

/// The number of leaf pages in the table and in its index on `k`.
fn leaf_pages(root: &mysql::Options, database: &str) -> i64 {
    let analyze = format!("ANALYZE TABLE {database}.sbtest1");
    let sum = format!(
        "SELECT CAST(SUM(stat_value) AS SIGNED) FROM mysql.innodb_index_stats WHERE database_name = '{database}' \
         AND table_name = 'sbtest1' AND stat_name = 'n_leaf_pages'"
    );
    first_i64(&ask(root, &[&analyze, &sum])).unwrap()
}

fn check_innodb(prefix: &str) {
    let desk = Desk::new();
    let server = external_server(&desk, prefix);
    let root = server.options(None);
    ask(&root, &["SET GLOBAL local_infile = ON"]);
    let address =
        |database: &str| format!("mysql://root@localhost/{database}?socket={}", server.socket().display());
    check(prefix, &desk, address, |database| leaf_pages(&root, database));
}

#[test]
#[ignore = "in cargo xtask test --all: another version, minutes"]
fn pages_of_mariadb_are_as_full_however_a_table_is_loaded() {
    check_innodb(MARIADB_10_11);
    check_innodb(MARIADB_11_8);
}

#[test]
#[ignore = "in cargo xtask test --all: another version, minutes"]
fn pages_of_mysql_are_as_full_however_a_table_is_loaded() {
    check_innodb(MYSQL_8_0);
}

#[test]
#[ignore = "in cargo xtask test --all: another version, minutes"]
fn pages_of_postgresql_are_as_full_however_a_table_is_loaded() {
    let desk = Desk::new();
    let server = pg::external_server(&desk, POSTGRES_15);
    let place = server.options(Some("postgres")).address.to_string();
    let folder = place.rsplit_once('/').unwrap().0.to_owned();
    let address = |database: &str| format!("postgres://postgres@localhost/{database}?socket={folder}");
    let pages = |database: &str| {
        let options: postgres::Options = server.options(Some(database));
        let sql = "SELECT pg_total_relation_size('sbtest1') / 8192";
        pg::number(&options, sql).unwrap()
    };
    check(POSTGRES_15, &desk, address, pages);
    // If the heap were in another order than the ids, the planner would choose other plans for a
    // range.
    for (database, _) in WAYS {
        let sql =
            "SELECT (1000 * correlation)::int FROM pg_stats WHERE tablename = 'sbtest1' AND attname = 'id'";
        assert_eq!(pg::number(&server.options(Some(database)), sql), Some(1000), "{database}");
    }
}
