//! Tests the microbenchmarks on real servers. Every step in both sequences must be valid on each
//! product.

use dbdyno_record::Run;

use crate::servers::shared;
use crate::servers::{MARIADB_10_11, MARIADB_11_8, MYSQL_5_5, MYSQL_8_0, POSTGRES_9_6, POSTGRES_18, variant};
use crate::support::{Desk, faults, findings};

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.microbenchmarks]\ntable_size = 500\nsettle_wait = \"0s\"\n{options}\n"
    )
}

/// One step of each kind is enough, because steps of the same kind differ only in their statements.
#[test]
fn steps_of_every_kind_are_valid_on_every_product() {
    let steps =
        ["point-query", "range-covered-pk", "update-index", "read-write_range=100", "delete", "insert"];
    valid_steps(&shared::on_all(), &format!("steps = {steps:?}\noperations = 30"));
}

/// The products run side by side, because the runs spend most of their time waiting.
#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn all_steps_of_the_42_are_valid_on_every_product_and_on_myrocks() {
    let products = [
        variant("myrocks", MARIADB_11_8, "options.engine = \"rocksdb\""),
        variant("maria", MARIADB_10_11, ""),
        variant("mysql-old", MYSQL_5_5, "") + &variant("mysql", MYSQL_8_0, ""),
        variant("pg-old", POSTGRES_9_6, "") + &variant("pg", POSTGRES_18, ""),
    ];
    std::thread::scope(|scope| {
        for variants in &products {
            scope.spawn(move || all_steps_of("42", variants));
        }
    });
}

/// All tests in this sequence are also in the 42, which run on every product, so one server from
/// each family is enough.
#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn all_steps_of_the_32_are_valid_on_both_families() {
    all_steps_of("32", &(variant("mysql", MYSQL_8_0, "") + &variant("pg", POSTGRES_18, "")));
}

fn all_steps_of(sequence: &str, variants: &str) {
    valid_steps(variants, &format!("sequence = \"{sequence}\"\noperations = 60\nwarm_scan_time = \"1s\""));
}

/// With few rows and several connections there are deadlocks and, on PostgreSQL, two connections
/// that reinsert the same row at once.
fn valid_steps(variants: &str, options: &str) {
    let desk = Desk::new();
    let options = format!("{options}\ntables = 2\nconnections = [4]\nverify = \"end\"");
    desk.write("p.toml", &plan(variants, &options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    let cells = variants.matches("[[variant]]").count();
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), cells));
    let run = Run::open(&dir).unwrap();
    for step in run.cells.iter().flat_map(|cell| &cell.steps) {
        let failed: u64 = step.intervals.iter().map(|interval| interval.failed).sum();
        assert_eq!(failed, 0, "{}: retried operations end well", step.spec.name);
    }
}
