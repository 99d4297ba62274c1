//! Tests that cells that failed can be run again.

use std::path::PathBuf;

use dbdyno_analyse::{Code, Figure};
use dbdyno_record::{CellId, Outcome, Run, RunEvent};

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::{Desk, faults, findings};

/// Makes a run whose second cell fails, because its data directory already holds someone else's
/// data. Returns the run's folder and that directory.
fn with_a_failed_cell(desk: &Desk) -> (PathBuf, PathBuf) {
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"1s\""));
    let running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let order = Run::open(&dir).unwrap().manifest.order;
    // The directory must be there before the second cell begins. The order tells which cell that
    // is, and the first cell takes longer than any delay of this test.
    let strangers = dir.join(format!("data/1-{}-insert-benchmark", order[1].variant));
    std::fs::create_dir_all(&strangers).unwrap();
    std::fs::write(strangers.join("letters"), "mine").unwrap();
    let ended = running.wait();
    ended.expect_code(4);
    let how = "to repeat failed cells: dbdyno run --resume runs/RUN --failed\n";
    assert!(desk.golden(&ended.err).contains(how), "{}", ended.err);
    (dir, strangers)
}

fn set_aside(run: &Run) -> Vec<(CellId, String)> {
    let aside = run.events.iter().filter_map(|event| match event {
        RunEvent::CellSetAside { cell, to, .. } => Some((cell.clone(), to.clone())),
        _ => None,
    });
    aside.collect()
}

#[test]
fn a_failed_cell_is_run_again_when_asked_for_and_the_report_says_so() {
    let desk = Desk::new();
    let (dir, strangers) = with_a_failed_cell(&desk);
    let run = dir.to_str().unwrap();
    let listed = desk.golden(&desk.dbdyno(&["list", "runs"]).out);
    assert_eq!(listed, "  runs/RUN  1 of 2 cells, with failed cells; repeat them with --resume --failed\n");
    std::fs::remove_dir_all(strangers).unwrap();
    let left_alone = desk.dbdyno(&["run", "--resume", run]);
    assert!(
        left_alone.expect_code(4).err.contains("nothing is left to run: 2 of 2 cells have ended\n"),
        "{}",
        left_alone.err
    );
    assert_eq!(set_aside(&Run::open(&dir).unwrap()), []);
    let repeated = desk.dbdyno(&["run", "--resume", run, "--failed"]);
    let said = "resuming: 1 of 2 cells are left, 1 of them failed before\n";
    assert!(repeated.expect_ok().err.contains(said), "{}", repeated.err);
    let record = Run::open(&dir).unwrap();
    assert!(record.cells.iter().all(|cell| cell.outcome() == Some(Outcome::Completed)));
    let cell = record.manifest.order[1].clone();
    let to = format!("aside/1/1/{}/insert-benchmark", cell.variant);
    assert_eq!(set_aside(&record), [(cell.clone(), to.clone())]);
    assert!(dir.join(&to).join("events.jsonl").is_file(), "the record of the failure is gone");
    let findings = findings(&dir);
    assert_eq!((findings.run.cells_completed, faults(&findings)), (2, Vec::new()));
    let reported = findings.warnings.iter().find(|warning| warning.code == Code::CellRepeated);
    let reported = reported.unwrap_or_else(|| panic!("{:?}", findings.warnings));
    assert_eq!(
        (&reported.places, &reported.figures["records"]),
        (&vec![cell.to_string()], &Figure::Text(to))
    );
    // No failed cell is left.
    let again = desk.dbdyno(&["run", "--resume", run, "--failed"]);
    let nothing = "nothing is left to run: 2 of 2 cells have ended\n";
    assert!(again.expect_ok().err.contains(nothing), "{}", again.err);
}
