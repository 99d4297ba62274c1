//! Tests of the microbenchmarks' tables on SQLite: their state before each step, ids beyond 32
//! bits, and ways to load them.

use dbdyno_record::{CellRecord, StepEvent};

use crate::support::Desk;
use crate::support::cells::{recorded, rows_after, run_of, step};

/// A few steps, of which the first only fills caches.
const STEPS: &str = "steps = [\"point-query.warm\", \"point-query.pre\", \"update-index\", \"read-write_range=100\", \
    \"point-query\", \"delete\", \"insert\"]\noperations = 50\n";

fn plan(options: &str) -> String {
    format!(
        "name = \"test\"\nblocks = 2\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n\
         options.pragmas = {{ journal_mode = \"wal\", synchronous = \"off\" }}\n[workload.microbenchmarks]\n\
         tables = 2\ntable_size = 500\nsettle_wait = \"0s\"\nconnections = [2]\n{options}\n"
    )
}

fn state(cell: &CellRecord, name: &str) -> String {
    step(cell, name).spec.options["table_state"].as_str().unwrap().to_owned()
}

#[test]
fn one_table_goes_through_the_sequence_unless_the_plan_says_otherwise() {
    let run = run_of(&Desk::new(), &plan(STEPS));
    for cell in &run.cells {
        insta::allow_duplicates! {
            insta::assert_snapshot!(recorded(cell), @"load index point-query.warm (cleanup) point-query.pre update-index read-write_range=100 (cleanup) point-query delete insert");
        }
        assert_eq!(rows_after(cell, "insert"), rows_after(cell, "delete") + 50);
        assert_eq!(["update-index", "delete"].map(|name| state(cell, name)), ["loaded", "written"]);
    }
}

#[test]
fn restored_before_each_step_nothing_ages_and_a_warm_up_stays_with_its_step() {
    let run = run_of(&Desk::new(), &plan(&format!("{STEPS}data = \"restore-each-step\"")));
    insta::assert_snapshot!(recorded(&run.cells[0]), @"load index (cleanup) (snapshot) (restore) point-query.warm point-query.pre (restore) update-index (restore) read-write_range=100 (restore) point-query (restore) delete (restore) insert");
    insta::assert_snapshot!(recorded(&run.cells[1]), @"(restore) point-query.warm point-query.pre (restore) update-index (restore) read-write_range=100 (restore) point-query (restore) delete (restore) insert");
    for cell in &run.cells {
        assert!(rows_after(cell, "delete") < 1000);
        assert_eq!(rows_after(cell, "insert"), 1050);
        assert_eq!(["update-index", "delete"].map(|name| state(cell, name)), ["loaded", "loaded"]);
    }
}

#[test]
fn restored_before_each_block_the_load_runs_once_and_tables_age_within_a_block() {
    let run = run_of(&Desk::new(), &plan(&format!("{STEPS}data = \"restore\"")));
    insta::assert_snapshot!(recorded(&run.cells[0]), @"load index (cleanup) (snapshot) (restore) point-query.warm point-query.pre update-index read-write_range=100 (cleanup) point-query delete insert");
    insta::assert_snapshot!(recorded(&run.cells[1]), @"(restore) point-query.warm point-query.pre update-index read-write_range=100 (cleanup) point-query delete insert");
    for cell in &run.cells {
        assert_eq!(rows_after(cell, "insert"), rows_after(cell, "delete") + 50);
    }
}

#[test]
fn reset_loads_before_each_step_and_keeps_those_loads_apart() {
    let desk = Desk::new();
    let run = run_of(&desk, &plan(&format!("{STEPS}data = \"reset\"")));
    for cell in &run.cells {
        assert_eq!(rows_after(cell, "insert"), 1050);
    }
    let repeated = std::fs::read_dir(desk.run_dir().join("repeated/2/a/microbenchmarks")).unwrap().count();
    // Load and index run again before update-index, read-write, point-query, delete and insert.
    assert_eq!(repeated, 10);
}

/// All kinds of statements find rows by ids that do not fit into 32 bits.
#[test]
#[ignore = "in cargo xtask test --all: a whole sequence"]
fn the_whole_sequence_runs_on_ids_beyond_32_bits() {
    let options = "id = \"bigint\"\nfirst_id = 5_000_000_000\noperations = 20\ndelete_refill = true\n";
    let run = run_of(&Desk::new(), &plan(options));
    let cell = &run.cells[0];
    assert_eq!(cell.steps.len(), 2 + 1 + 42);
    let parts = step(cell, "load").checks()[0].parts.clone();
    let actual = |name: &str| parts.iter().find(|part| part.name == name).unwrap().actual;
    assert_eq!((actual("min(id)"), actual("max(id)")), (5_000_000_000, 5_000_000_499));
    assert!(actual("sum(k)") >= 500 * 5_000_000_000);
    assert_eq!(rows_after(cell, "insert"), 1020, "rows that were put back, and those of this step");
    for step in &cell.steps {
        for event in &step.events {
            let StepEvent::Statement { statement, done, empty, .. } = event else { continue };
            let may_be_empty =
                ["begin", "commit", "scan"].contains(&statement.as_str()) || step.name == "delete";
            assert!(
                may_be_empty || *empty == 0,
                "{}: {empty} of {done} {statement} found nothing",
                step.name
            );
        }
    }
}

#[test]
fn tables_are_loaded_in_the_ways_of_the_classic_workload() {
    // INSERT statements into tables as small as these are not prepared.
    for (options, protocol, steps) in [
        ("load_method = \"stream\"", "prepared", "load index scan"),
        ("protocol = \"text\"", "text", "load index scan"),
        ("index_before_load = true\nprofile = \"sysbench-0.5\"\ndata = \"restore\"", "text", "load scan"),
    ] {
        let run = run_of(&Desk::new(), &plan(&format!("steps = [\"scan\"]\n{options}")));
        let names: Vec<&str> = run.cells[0].steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names.join(" "), steps);
        assert_eq!(run.cells[0].steps[0].spec.kinds[0].protocol, protocol);
        assert_eq!(step(&run.cells[0], "load").spec.groups["2021"], "load");
    }
}
