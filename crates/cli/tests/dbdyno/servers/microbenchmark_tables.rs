//! Tests the microbenchmarks' tables on real servers: restored before each step, with ids beyond 32
//! bits, and loaded by stream.

use dbdyno_record::StepEvent;

use crate::servers::{MARIADB_10_11, MY_CNF, MYSQL_5_5, MYSQL_8_0, POSTGRES_9_6, POSTGRES_18, variant};
use crate::support::Desk;
use crate::support::cells::{recorded, rows_after, run_of};

fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.microbenchmarks]\ntables = 2\ntable_size = 500\nsettle_wait = \"0s\"\n\
         operations = 40\n{options}\n"
    )
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn each_step_of_each_block_finds_the_tables_of_mariadb_as_they_were_loaded() {
    let desk = Desk::new();
    desk.write("my.cnf", MY_CNF);
    let steps = "steps = [\"point-query.warm\", \"point-query.pre\", \"delete\", \"insert\"]";
    let text = plan(
        &variant("ma", MARIADB_10_11, "own_config = \"my.cnf\""),
        &format!("{steps}\ndata = \"restore-each-step\""),
    );
    let run = run_of(&desk, &format!("blocks = 2\n{text}"));
    insta::assert_snapshot!(recorded(&run.cells[0]), @"load index (cleanup) (stop) (snapshot) (restore) (start) point-query.warm point-query.pre (stop) (restore) (start) delete (stop) (restore) (start) insert");
    insta::assert_snapshot!(recorded(&run.cells[1]), @"(restore) point-query.warm point-query.pre (stop) (restore) (start) delete (stop) (restore) (start) insert");
    for cell in &run.cells {
        assert!(rows_after(cell, "delete") < 1000);
        assert_eq!(rows_after(cell, "insert"), 1040, "loaded rows, and those of this step");
    }
}

/// The ids are too large for 32 bits in every statement, prepared and as text, whether the client
/// or the server assigns them. There is only one connection, because PostgreSQL does not find a row
/// that another connection deletes and reinserts at the same moment.
#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn the_whole_sequence_runs_on_ids_beyond_32_bits() {
    let newer = || variant("maria", MARIADB_10_11, "") + &variant("pg", POSTGRES_18, "");
    let older = variant("mysql-old", MYSQL_5_5, "")
        + &variant("mysql", MYSQL_8_0, "")
        + &variant("pg-old", POSTGRES_9_6, "");
    for (variants, protocol, method) in [(newer() + &older, "auto", "insert"), (newer(), "text", "stream")] {
        let options = format!(
            "id = \"bigint\"\nfirst_id = 5_000_000_000\nprotocol = \"{protocol}\"\nload_method = \"{method}\"\n\
             delete_refill = true"
        );
        let run = run_of(&Desk::new(), &plan(&variants, &options));
        assert_eq!(run.cells.len(), if protocol == "auto" { 5 } else { 2 });
        for cell in &run.cells {
            let variant = &cell.id.variant;
            let parts = cell.steps[0].checks()[0].parts.clone();
            let actual = |name: &str| parts.iter().find(|part| part.name == name).unwrap().actual;
            assert_eq!((actual("min(id)"), actual("max(id)")), (5_000_000_000, 5_000_000_499), "{variant}");
            assert_eq!(rows_after(cell, "insert"), 1040, "{variant}: refilled rows, and those of this step");
            for step in &cell.steps {
                for event in &step.events {
                    let StepEvent::Statement { statement, done, empty, .. } = event else { continue };
                    // A scan returns no rows by design, and a delete may find that its row is
                    // already gone.
                    let may_be_empty =
                        ["begin", "commit", "scan"].contains(&statement.as_str()) || step.name == "delete";
                    let found = format!("{variant} {}: {empty} of {done} {statement}", step.name);
                    assert!(may_be_empty || *empty == 0, "{found} found nothing");
                }
            }
        }
    }
}
