//! Tests of results and messages whose reader goes away or whose disk is full.

use std::fs::OpenOptions;
use std::process::Stdio;

use dbdyno_record::{Outcome, Run, RunEvent};

use crate::commands::{TWO_VARIANTS, short_plan};
use crate::support::{Desk, Ended};

/// Runs `dbdyno ARGS > /dev/full`.
fn into_a_full_disk(desk: &Desk, args: &[&str]) -> Ended {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = desk.command(args).stdout(full).output().unwrap();
    Ended { code: output.status.code(), out: String::new(), err: String::from_utf8(output.stderr).unwrap() }
}

#[test]
fn a_run_goes_on_when_the_reader_of_its_messages_goes_away() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan(TWO_VARIANTS));
    let mut command = desk.command(&["run", "p.toml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let run = Run::open(&desk.run_dir()).unwrap();
    let completed = |event: &RunEvent| matches!(event, RunEvent::Ended { outcome: Outcome::Completed, .. });
    assert!(run.events.iter().any(completed), "{:?}", run.events);
}

#[test]
fn results_that_a_full_disk_did_not_take_are_an_error() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan(TWO_VARIANTS));
    let ended = into_a_full_disk(&desk, &["run", "p.toml"]);
    ended.expect_code(3);
    let warning = "error: cannot write to standard output: No space left on device (os error 28); the output is incomplete";
    assert!(ended.err.contains(warning) && ended.err.contains("report.html"), "{}", ended.err);
    let dir = desk.run_dir();
    assert!(dir.join("report.html").exists());
    let run = dir.to_str().unwrap();
    let rollback = format!("{run}:rollback");
    let commands: [&[&str]; 14] = [
        &["--help"],
        &["run", "-h"],
        &["--version"],
        &["report", run],
        &["report", run, "--format", "json"],
        &["compare", &rollback, ":wal"],
        &["plan", "p.toml"],
        &["plan", "p.toml", "--json"],
        &["plan", "p.toml", "--resolved"],
        &["plan", "--schema"],
        &["list", "metrics"],
        &["list", "runs"],
        &["servers", "list"],
        &[],
    ];
    for command in commands {
        let ended = into_a_full_disk(&desk, command);
        assert_eq!(ended.code, Some(3), "{command:?}: {}", ended.err);
        assert!(ended.err.contains("error: cannot write to standard output: "), "{command:?}: {}", ended.err);
    }
}

#[test]
fn results_whose_reader_has_gone_away_are_no_error() {
    let desk = Desk::new();
    let mut child = desk.command(&["plan", "--schema"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
