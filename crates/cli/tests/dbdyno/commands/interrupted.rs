//! Tests of runs that are cut short, by Ctrl-C or by kill -9, and are then resumed.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use dbdyno_analyse::{Code, Validity};
use dbdyno_record::{Outcome, Run, RunEvent, StepRecord};
use nix::sys::signal::Signal;

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::{
    Desk, Running, faults_but_rates, findings, wait_for, wait_until_in_step, without_files,
};

/// Starts a run and returns when its last step's first second is recorded.
fn in_the_last_step(desk: &Desk) -> (Running, PathBuf) {
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"3s\""));
    // Under nohup the tests ignore SIGHUP and their children inherit that, so `env` restores the
    // default.
    let mut program = std::process::Command::new("env");
    desk.prepare(&mut program);
    program.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_dbdyno"), "run", "p.toml"]);
    let mut running = desk.start(&mut program);
    let dir = desk.run_dir();
    let first = Run::open(&dir).unwrap().manifest.order[0].variant.clone();
    wait_until_in_step(&mut running, &dir, &format!("1/{first}/insert-benchmark/qp100"));
    (running, dir)
}

/// Checks the report of a run in which five steps have ended, the sixth has not, and the other
/// variant has not run.
fn the_report_has_the_finished_steps(desk: &Desk, dir: &Path) {
    let report = desk.dbdyno(&["report", dir.to_str().unwrap()]);
    report.expect_ok();
    assert!(report.out.contains("0 of 2 cells completed"), "{}", report.out);
    let findings = findings(dir);
    let runs = findings.workloads[0].steps.iter().flat_map(|step| {
        let runs = step.variants.iter().flat_map(|variant| &variant.runs);
        runs.map(|run| (step.name.as_str(), run.validity == Validity::Interrupted))
    });
    let ended = |name| (name, false);
    let mut expected = ["l.i0", "l.x", "l.i1", "l.i2", "qr100"].map(ended).to_vec();
    expected.push(("qp100", true));
    assert_eq!(runs.collect::<Vec<_>>(), expected);
    let faults = faults_but_rates(&findings);
    let [interrupted] = &faults[..] else { panic!("{faults:?}") };
    assert!(interrupted.starts_with("qp100 "), "{interrupted}");
}

fn resume_completes(desk: &Desk, dir: &Path) {
    let resumed = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    resumed.expect_ok();
    assert!(resumed.err.contains("resuming: 2 of 2 cells are left"), "{}", resumed.err);
    let run = Run::open(dir).unwrap();
    let aside = run.events.iter().find_map(|event| match event {
        RunEvent::CellSetAside { cell, to, .. } => Some((cell.clone(), to.clone())),
        _ => None,
    });
    let (cell, to) = aside.unwrap();
    assert_eq!(cell, run.manifest.order[0]);
    assert_eq!(to, format!("aside/1/1/{}/insert-benchmark", cell.variant));
    assert!(dir.join(to).join("qr100/intervals.jsonl").is_file(), "what was measured is kept aside");
    let findings = findings(dir);
    assert_eq!((findings.run.cells_completed, faults_but_rates(&findings)), (2, Vec::new()));
    let is_of_the_stop =
        |code| matches!(code, Code::CellInterrupted | Code::CellUnfinished | Code::CellsMissing);
    assert!(!findings.warnings.iter().any(|warning| is_of_the_stop(warning.code)), "{:?}", findings.warnings);
    assert!(!dir.join("data").exists(), "data of the killed run is left");
    let saved = std::fs::read_to_string(dir.join("report.html")).unwrap();
    let again = desk.dbdyno(&["report", dir.to_str().unwrap(), "--format", "html"]);
    assert_eq!(without_files(&saved), again.out);
}

#[test]
fn a_killed_run_is_readable_to_its_last_second_and_goes_on() {
    let desk = Desk::new();
    let (running, dir) = in_the_last_step(&desk);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.wait().code, None);
    let run = Run::open(&dir).unwrap();
    let step = run.cells[0].steps.iter().find(|step| step.name == "qp100").unwrap();
    assert!(!step.intervals.is_empty() && step.outcome().is_none());
    assert_eq!(
        desk.golden(&desk.dbdyno(&["list", "runs"]).out),
        "  runs/RUN  0 of 2 cells, not ended; continue with --resume\n"
    );
    the_report_has_the_finished_steps(&desk, &dir);
    resume_completes(&desk, &dir);
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_how_to_go_on() {
    let desk = Desk::new();
    let (running, dir) = in_the_last_step(&desk);
    running.signal(Signal::SIGINT);
    let ended = running.wait();
    ended.expect_code(130);
    let name = desk.golden(dir.file_name().unwrap().to_str().unwrap());
    let advice = format!("stopped early; to continue: dbdyno run --resume runs/{name}");
    assert_eq!(desk.golden(ended.err.trim_end()).lines().last(), Some(advice.as_str()));
    assert!(ended.out.contains("p99"), "no answer:\n{}", ended.out);
    let run = Run::open(&dir).unwrap();
    assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Interrupted, .. })));
    assert!(!dir.join("data").exists(), "data is left");
    the_report_has_the_finished_steps(&desk, &dir);
    resume_completes(&desk, &dir);
}

#[test]
fn sigterm_and_sighup_end_a_run_as_ctrl_c_does() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let desk = Desk::new();
        let (running, dir) = in_the_last_step(&desk);
        running.signal(signal);
        running.wait().expect_code(130);
        the_report_has_the_finished_steps(&desk, &dir);
        assert!(!dir.join("data").exists(), "data is left");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: a whole run after a signal"]
fn a_run_that_was_started_to_outlive_its_terminal_does() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"3s\""));
    let mut shell = std::process::Command::new("sh");
    desk.prepare(&mut shell);
    // SIGHUP is ignored as under nohup.
    shell.args(["-c", "trap '' HUP; exec \"$0\" run p.toml", env!("CARGO_BIN_EXE_dbdyno")]);
    let mut running = desk.start(&mut shell);
    let dir = desk.run_dir();
    let first = Run::open(&dir).unwrap().manifest.order[0].variant.clone();
    wait_until_in_step(&mut running, &dir, &format!("1/{first}/insert-benchmark/qr100"));
    running.signal(Signal::SIGHUP);
    running.wait().expect_ok();
}

/// `timeout` sends two signals in this way: one to its command, and one to the command's group.
#[test]
fn two_signals_at_once_end_a_run_as_one_does() {
    let desk = Desk::new();
    let (running, dir) = in_the_last_step(&desk);
    // The signals are of two kinds, because the kernel may merge two pending signals of one kind.
    running.signal(Signal::SIGTERM);
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    assert!(matches!(
        Run::open(&dir).unwrap().events.last(),
        Some(RunEvent::Ended { outcome: Outcome::Interrupted, .. })
    ));
    assert!(dir.join("report.html").is_file() && !dir.join("data").exists());
}

#[test]
fn ctrl_c_does_not_wait_for_the_end_of_a_pause() {
    let desk = Desk::new();
    let text = plan(TWO_VARIANTS, "").replace("settle_wait = \"0s\"", "settle_wait = \"10m\"");
    desk.write("p.toml", &text);
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let first = Run::open(&dir).unwrap().manifest.order[0].variant.clone();
    wait_until_in_step(&mut running, &dir, &format!("1/{first}/insert-benchmark/l.i2"));
    let events = dir.join(format!("cells/1/{first}/insert-benchmark/l.i2/events.jsonl"));
    wait_for("the end of l.i2", || {
        std::fs::read_to_string(&events).is_ok_and(|text| text.contains("\"event\":\"ended\"")).then_some(())
    });
    // After this time the pause has usually begun. A signal that comes earlier ends the pause too.
    sleep(Duration::from_millis(300));
    running.signal(Signal::SIGINT);
    let ended = running.wait();
    ended.expect_code(130);
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.cells[0].steps.last().and_then(StepRecord::outcome), Some(Outcome::Completed));
    assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Interrupted, .. })));
}

#[test]
fn a_run_that_is_being_written_is_not_written_twice() {
    let desk = Desk::new();
    let (running, dir) = in_the_last_step(&desk);
    let second = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    insta::assert_snapshot!(desk.refusal(&second), @"exit 3: error: FOLDER/runs/RUN/events.jsonl is being written by another dbdyno; wait until it has ended, or stop it");
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
}
