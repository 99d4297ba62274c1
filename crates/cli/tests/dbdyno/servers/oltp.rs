//! Tests the classic OLTP tests on real servers. Each server must accept their statements, and the
//! rows must be there.

use dbdyno_record::Run;

use crate::servers::shared::{self, MARIADB, MYSQL, POSTGRES, at};
use crate::servers::watch::server_of;
use crate::servers::{MARIADB_10_11, MYSQL_8_0, POSTGRES_9_6, POSTGRES_18, variant};
use crate::support::{Desk, faults, findings};

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\", \"read-only\", \"read-write\", \
         \"write-only\", \"update-index\", \"update-non-index\", \"insert\", \"delete\"]\ntables = 2\ntable_size = 500\n\
         connections = [8]\ntime = \"1s\"\n{options}\n"
    )
}

#[test]
fn all_tests_are_valid_with_prepared_statements_and_as_text() {
    for protocol in ["auto", "text"] {
        all_tests_are_valid(protocol, &shared::on_all(), 160);
    }
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn all_tests_are_valid_on_other_versions() {
    for protocol in ["auto", "text", "prepared"] {
        let variants = variant("maria", MARIADB_10_11, "")
            + &variant("mysql", MYSQL_8_0, "")
            + &variant("pg-old", POSTGRES_9_6, "")
            + &variant("pg", POSTGRES_18, "");
        all_tests_are_valid(protocol, &variants, 400);
    }
}

/// With few rows and many connections there are deadlocks and, on PostgreSQL, two connections that
/// reinsert the same row at once.
fn all_tests_are_valid(protocol: &str, variants: &str, events: u32) {
    let desk = Desk::new();
    desk.write("p.toml", &plan(variants, &format!("protocol = \"{protocol}\"\nevents = {events}")));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let (findings, cells) = (findings(&dir), variants.matches("[[variant]]").count());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), cells), "{protocol}");
    let run = Run::open(&dir).unwrap();
    for step in run.cells.iter().flat_map(|cell| &cell.steps) {
        let failed: u64 = step.intervals.iter().map(|interval| interval.failed).sum();
        assert_eq!(failed, 0, "{}: retried operations end well", step.spec.name);
        let test = step.spec.name.split('.').next().unwrap();
        let is_text = protocol == "text" || (protocol == "auto" && test == "insert");
        let expected = if is_text { "text" } else { "prepared" };
        assert!(
            !step.spec.name.contains('.') || step.spec.kinds[0].protocol == expected,
            "{}",
            step.spec.name
        );
    }
}

#[test]
fn connections_speak_the_character_set_that_the_plan_names() {
    let desk = Desk::new();
    let latin1 = "options.client_charset = \"latin1\"";
    let variants = at("maria", &MARIADB, latin1) + &at("mysql", &MYSQL, latin1) + &at("default", &MYSQL, "");
    desk.write("p.toml", &plan(&variants, "load_method = \"stream\"\nevents = 100"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    // The cells are valid, so the rows are those that were sent.
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 3));
    let parity = findings.parity.unwrap();
    let row = parity.classes.iter().find(|row| row.id == "client-charset").unwrap();
    let texts: Vec<&str> = row.cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts, ["latin1", "latin1", "utf8mb4"]);
    for (variant, charset) in [("maria", "latin1"), ("mysql", "latin1"), ("default", "utf8mb4")] {
        let session = server_of(&desk.run_dir(), variant).session;
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            assert_eq!(session[name], charset, "{variant}: {name}");
        }
    }
}

#[test]
#[ignore = "in cargo xtask test --all: minutes"]
fn tables_without_primary_key_and_ids_of_the_client_work_too() {
    for options in
        ["secondary = true\nevents = 400", "auto_inc = false\narrivals = \"constant\"\nrates = [200]"]
    {
        let desk = Desk::new();
        let variants = at("maria", &MARIADB, "") + &at("pg", &POSTGRES, "");
        desk.write("p.toml", &plan(&variants, options));
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let findings = findings(&desk.run_dir());
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2), "{options}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn connections_reopen_after_every_third_operation_and_ranges_are_counted() {
    for (protocol, mysql, postgres) in
        [("text", MYSQL_8_0, POSTGRES_9_6), ("prepared", MARIADB_10_11, POSTGRES_18)]
    {
        let desk = Desk::new();
        let variants = variant("my", mysql, "") + &variant("pg", postgres, "");
        let options = format!("protocol = \"{protocol}\"\nevents = 120\nreconnect = 3\ncount_ranges = 2");
        desk.write("p.toml", &plan(&variants, &options));
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let findings = findings(&desk.run_dir());
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2), "{protocol}");
        for step in findings.workloads[0].steps.iter().filter(|step| step.name.contains('.')) {
            for variant in &step.variants {
                let kind = &variant.runs[0].kinds[0];
                let count = |name: &str| {
                    kind.statements.iter().find(|of| of.statement == name).map_or(0, |of| of.count)
                };
                let about = format!("{} of {}, {protocol}", step.name, variant.variant);
                // Each of the 8 connections has 15 operations.
                assert_eq!((kind.operations, count("reconnect")), (120, 40), "{about}");
                // Statements in attempts that met a deadlock count too.
                let attempts = 120 + kind.errors.retry;
                let reads = step.name.starts_with("read-");
                assert_eq!(count("count-range"), if reads { 2 * attempts } else { 0 }, "{about}");
            }
        }
    }
}
