//! Checks on SQLite with which data and caches a measured step starts, for each value of the plan's
//! `data` and `cold`. Servers go through the same operations.

use std::path::Path;

use dbdyno_record::{CellRecord, Run};
use nix::sys::signal::Signal;

use crate::commands::{TWO_VARIANTS, plan, short_plan};
use crate::support::cells::{rows_after, run_of, works};
use crate::support::{Desk, wait_until_in_step};

fn oltp(options: &str) -> String {
    format!(
        "name = \"test\"\nblocks = 2\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n\
         options.pragmas = {{ journal_mode = \"wal\", synchronous = \"off\" }}\n[workload.oltp]\nsettle_wait = \"0s\"\n\
         tests = [\"insert\", \"delete\", \"update-index\"]\ntable_size = 2000\nevents = 300\n{options}\n"
    )
}

/// Returns the names of a cell's steps, and of the work between them that stops the server, changes
/// the data or starts the server, each in order.
fn recorded(cell: &CellRecord) -> (String, String) {
    let steps: Vec<&str> = cell.steps.iter().map(|step| step.name.as_str()).collect();
    (steps.join(" "), works(cell))
}

const ALL: &str = "load index insert.c1 delete.c1 update-index.c1";
const MEASURED: &str = "insert.c1 delete.c1 update-index.c1";

#[test]
fn restored_before_each_step_every_step_of_every_block_begins_on_the_loaded_rows() {
    let run = run_of(&Desk::new(), &oltp("data = \"restore-each-step\""));
    assert_eq!(recorded(&run.cells[0]), (ALL.to_owned(), "snapshot, restore, restore, restore".to_owned()));
    assert_eq!(recorded(&run.cells[1]), (MEASURED.to_owned(), "restore, restore, restore".to_owned()));
    for cell in &run.cells {
        // The load makes 2000 rows. Only the insert step adds rows, and only the delete step
        // removes some.
        assert!(rows_after(cell, "insert.c1") > 2000 && rows_after(cell, "delete.c1") < 2000);
        assert_eq!(rows_after(cell, "update-index.c1"), 2000);
    }
}

#[test]
fn restored_before_each_block_the_load_runs_once_and_steps_go_on_with_each_others_rows() {
    let run = run_of(&Desk::new(), &oltp("data = \"restore\""));
    assert_eq!(recorded(&run.cells[0]), (ALL.to_owned(), "snapshot, restore".to_owned()));
    assert_eq!(recorded(&run.cells[1]), (MEASURED.to_owned(), "restore".to_owned()));
    for cell in &run.cells {
        assert_eq!(rows_after(cell, "update-index.c1"), rows_after(cell, "delete.c1"));
    }
}

#[test]
fn reset_loads_again_before_each_step_and_keeps_those_loads_apart() {
    let desk = Desk::new();
    let run = run_of(&desk, &oltp("data = \"reset\""));
    for cell in &run.cells {
        assert_eq!(recorded(cell), (ALL.to_owned(), String::new()));
        assert_eq!(rows_after(cell, "update-index.c1"), 2000);
    }
    let mut repeated: Vec<String> = std::fs::read_dir(desk.run_dir().join("repeated/2/a/oltp"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    repeated.sort();
    assert_eq!(repeated.join(" "), "1.index 1.load 2.index 2.load");
}

#[test]
fn cold_steps_begin_with_dropped_caches_and_need_root() {
    let desk = Desk::new();
    desk.write("p.toml", &oltp("cold = [\"delete.c1\"]"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    if nix::unistd::geteuid().is_root() && ended.code == Some(0) {
        let run = Run::open(&desk.run_dir()).unwrap();
        assert_eq!(recorded(&run.cells[0]), (ALL.to_owned(), "drop caches".to_owned()));
    } else {
        ended.expect_code(3);
        assert!(ended.err.contains("cold steps drop the kernel's caches, which needs root"), "{}", ended.err);
    }
}

#[test]
fn a_run_that_was_killed_goes_on_with_its_snapshot_and_the_next_run_names_its_data() {
    let desk = Desk::new();
    desk.write(
        "p.toml",
        &oltp("data = \"restore\"\n").replace("events = 300", "time = \"3s\"\nthink_time = \"5ms\""),
    );
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/a/oltp/insert.c1");
    running.signal(Signal::SIGKILL);
    running.wait();
    assert!(dir.join("data/snapshots/a-oltp/snapshot.json").exists());
    desk.write("other.toml", &short_plan(TWO_VARIANTS));
    let other = desk.dbdyno(&["run", "other.toml"]);
    let named = format!("go on with it: dbdyno run --resume runs/{}", name(&dir));
    assert!(other.expect_ok().err.contains(&named), "{}", other.err);
    let resumed = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    let where_it_is = "its figures are only in aside/1/1/a/oltp";
    assert!(words(&resumed.expect_ok().err).contains(where_it_is), "{}", resumed.err);
    let run = Run::open(&dir).unwrap();
    assert_eq!(recorded(&run.cells[0]), (MEASURED.to_owned(), "restore".to_owned()), "the load is done");
    assert!(!dir.join("data").exists());
}

/// Returns the text without the line breaks that fit it to the terminal's width.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn name(dir: &Path) -> &str {
    dir.file_name().unwrap().to_str().unwrap()
}

#[test]
fn a_memory_limit_is_for_servers_that_dbdyno_starts() {
    let desk = Desk::new();
    desk.write("p.toml", &format!("{}[host]\nserver_memory = \"1 GB\"\n", plan(TWO_VARIANTS, "")));
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "p.toml"])), @"exit 2: error: p.toml:20:17: server_memory limits servers that dbdyno starts, and variant `rollback` is not one: set it in the variants that need it");
    desk.write("p.toml", &format!("{}[host]\nserver_memory = \"1 MB\"\n", plan(TWO_VARIANTS, "")));
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "p.toml"])), @"exit 2: error: p.toml:20:17: server_memory is 1 MB, but must be at least 32 MiB");
}
