//! Tests options that change the bytes on the wire, on one MariaDB and one MySQL server each.

use dbdyno_record::Run;

use crate::servers::{MARIADB_10_1, MARIADB_10_11, MYSQL_5_6, MYSQL_8_0, small_plan, variant};
use crate::support::{Desk, faults, findings};

/// Runs both servers with these options. Every step must be valid.
fn valid_run(mariadb: &str, mysql: &str, options: &str) -> Run {
    let desk = Desk::new();
    let variants = variant("mariadb", mariadb, "") + &variant("mysql", mysql, "");
    desk.write("p.toml", &small_plan(&variants, options));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
    Run::open(&dir).unwrap()
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn prepared_statements_give_the_same_rows() {
    let options = "protocol = \"prepared\"\ncreate_table_options = \"ROW_FORMAT=COMPACT\"";
    let run = valid_run(MARIADB_10_11, MYSQL_8_0, options);
    for step in run.cells.iter().flat_map(|cell| &cell.steps) {
        for kind in step.spec.kinds.iter().filter(|kind| kind.kind != "index") {
            assert_eq!(kind.protocol, "prepared", "{} {}", step.name, kind.kind);
        }
    }
    // Both servers get the same requests, so they must end with the same rows.
    let parts = |cell: usize| -> Vec<_> {
        let steps = &run.cells[cell].steps;
        steps.iter().flat_map(|step| step.checks()).map(|check| check.parts.clone()).collect()
    };
    assert_eq!(parts(0), parts(1));
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn bursts_and_ids_beyond_31_bits_are_valid() {
    let first_id = 3_000_000_000;
    let options = format!("arrivals = \"burst\"\nfirst_id = {first_id}\nread_write_time = \"2s\"");
    let run = valid_run(MARIADB_10_1, MYSQL_5_6, &options);
    for cell in &run.cells {
        for step in &cell.steps {
            for check in step.checks() {
                let lowest = check.parts.iter().find(|part| part.name == "min(transactionid)").unwrap();
                assert!(lowest.actual >= first_id, "{} {}: {lowest:?}", cell.id, step.name);
            }
        }
        let step = cell.steps.iter().find(|step| step.name == "qr100").unwrap();
        let insert = step.spec.kinds.iter().find(|kind| kind.kind == "insert").unwrap();
        assert!(insert.arrivals.starts_with("burst"), "{}", insert.arrivals);
    }
}
