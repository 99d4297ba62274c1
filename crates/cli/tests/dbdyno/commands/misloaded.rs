//! Tests of tables that lack a row after their load. Every step that is measured on such tables is
//! invalid, in any cell and block.

use std::path::Path;
use std::time::Duration;

use dbdyno_analyse::Validity;
use dbdyno_db::Session;
use dbdyno_db::sqlite::{Options, SqliteSession};

use crate::support::{Desk, findings, wait_for};

const FAULT: &str = "the tables were not loaded as they must be: table sbtest1: rows is ";

/// Runs a plan with this value of `data`, and deletes a row during the load of the first block.
/// `load` is the folder of that load's record.
fn tampered(desk: &Desk, data: &str, load: &str) {
    let plan = "name = \"test\"\nblocks = 2\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n\
         options.pragmas = { journal_mode = \"wal\", synchronous = \"off\" }\n[workload.oltp]\nsettle_wait = \"0s\"\n\
         tests = [\"point-select\", \"read-only\", \"update-non-index\"]\ntable_size = 100_000\nevents = 50\n";
    desk.write("p.toml", &format!("{plan}data = \"{data}\"\n"));
    let running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let record = dir.join(load).join("events.jsonl");
    wait_for("the load", || record.exists().then_some(()));
    take_a_row(&dir.join("data/1-a-oltp/ib.db"));
    running.wait().expect_ok();
}

fn take_a_row(path: &Path) {
    let options =
        Options { path: path.to_path_buf(), pragmas: Vec::new(), busy_timeout: Duration::from_secs(60) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    wait_for("a row to take", || {
        runtime.block_on(async {
            let mut session = SqliteSession::open(&options).unwrap();
            let taken = session.query(b"DELETE FROM sbtest1 WHERE id = 1").await.unwrap().affected;
            session.close().await;
            (taken == 1).then_some(())
        })
    });
}

/// Returns each step and block, and whether the step is reported as invalid because of its load.
fn said(dir: &Path) -> Vec<String> {
    let mut said = Vec::new();
    for step in &findings(dir).workloads[0].steps {
        for run in &step.variants[0].runs {
            let of_load = match &run.validity {
                Validity::Invalid { reasons } => {
                    reasons.iter().any(|one| dbdyno_report::warning_text(one).starts_with(FAULT))
                }
                _ => false,
            };
            let is_valid = run.validity == Validity::Valid;
            let word = if of_load {
                "misloaded"
            } else if is_valid {
                "valid"
            } else {
                "invalid"
            };
            said.push(format!("{} {}: {word}", step.name, run.block));
        }
    }
    said
}

#[test]
#[ignore = "in cargo xtask test --all: many loads"]
fn the_step_after_a_repeated_load_that_lacks_a_row_is_invalid_and_no_other() {
    let desk = Desk::new();
    tampered(&desk, "reset", "repeated/1/a/oltp/1.load");
    insta::assert_snapshot!(said(&desk.run_dir()).join("\n"), @r"
    load 1: valid
    load 2: valid
    index 1: valid
    index 2: valid
    point-select.c1 1: valid
    point-select.c1 2: valid
    read-only.c1 1: misloaded
    read-only.c1 2: valid
    update-non-index.c1 1: valid
    update-non-index.c1 2: valid
    ");
}

#[test]
fn every_block_on_a_snapshot_that_lacks_a_row_is_invalid() {
    for data in ["restore", "restore-each-step"] {
        let desk = Desk::new();
        tampered(&desk, data, "cells/1/a/oltp/load");
        insta::allow_duplicates!(insta::assert_snapshot!(said(&desk.run_dir()).join("\n"), @r"
        load 1: invalid
        index 1: misloaded
        point-select.c1 1: misloaded
        point-select.c1 2: misloaded
        read-only.c1 1: misloaded
        read-only.c1 2: misloaded
        update-non-index.c1 1: misloaded
        update-non-index.c1 2: misloaded
        "));
    }
}
