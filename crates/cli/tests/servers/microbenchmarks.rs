//! The microbenchmarks on real servers: every step of both sequences is valid on each product.

use dbdyno_record::Run;

use crate::support::{Desk, faults, findings};
use crate::{MARIADB_10_11, MARIADB_11_8, MYSQL_5_5, MYSQL_8_0, POSTGRES_9_6, POSTGRES_18, variant};

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.microbenchmarks]\ntable_size = 500\nsettle_wait = \"0s\"\n{options}\n"
    )
}

/// Runs of each product side by side: they wait more than they work.
#[test]
fn all_steps_of_the_42_are_valid_on_every_product_and_on_myrocks() {
    let products = [
        variant("myrocks", MARIADB_11_8, "engine = \"rocksdb\""),
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

/// All its tests are among the 42, which all products run: one server of each family is enough.
#[test]
fn all_steps_of_the_32_are_valid_on_both_families() {
    all_steps_of("32", &(variant("mysql", MYSQL_8_0, "") + &variant("pg", POSTGRES_18, "")));
}

/// Few rows and several connections: deadlocks, and on PostgreSQL rows that two connections put
/// back at once.
fn all_steps_of(sequence: &str, variants: &str) {
    let desk = Desk::new();
    let options = format!(
        "sequence = \"{sequence}\"\ntables = 2\noperations = 60\nwarm_scan_time = \"1s\"\nconnections = [4]\nverify = \"end\""
    );
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
