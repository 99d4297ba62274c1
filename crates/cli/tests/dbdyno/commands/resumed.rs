//! Tests what a resumed run must have in common with its first session.

use std::path::{Path, PathBuf};

use dbdyno_record::{Outcome, Run, RunEvent};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::{Desk, findings, texts, wait_until_in_step};

/// Makes a run that was killed in the first of its two cells. If this test was delayed until the
/// cell had ended, the kill came too late, and another run is made.
fn killed(desk: &Desk) -> PathBuf {
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"1s\""));
    for _ in 0..5 {
        let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
        let dir = desk.run_dir();
        let first = Run::open(&dir).unwrap().manifest.order[0].variant.clone();
        wait_until_in_step(&mut running, &dir, &format!("1/{first}/insert-benchmark/qr100"));
        running.signal(Signal::SIGKILL);
        let was_killed = running.wait().code.is_none();
        if was_killed && Run::open(&dir).unwrap().cells.iter().all(|cell| cell.outcome().is_none()) {
            return dir;
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
    panic!("five runs ended their first cell before they were killed")
}

/// Changes the manifest to that of a run that began in another way. Returns the original text.
fn began_otherwise(dir: &Path, change: impl FnOnce(&mut Value)) -> String {
    let path = dir.join("manifest.json");
    let before = std::fs::read_to_string(&path).unwrap();
    let mut manifest: Value = serde_json::from_str(&before).unwrap();
    change(&mut manifest);
    std::fs::write(&path, manifest.to_string()).unwrap();
    before
}

#[test]
fn another_build_resumes_a_run_only_on_request_and_the_report_says_so() {
    let desk = Desk::new();
    let dir = killed(&desk);
    let resume = |more: &[&str]| desk.dbdyno(&[&["run", "--resume", dir.to_str().unwrap()], more].concat());
    let refused = |change: fn(&mut Value)| {
        let before = began_otherwise(&dir, change);
        let said = [resume(&[]), resume(&["--anyway"])].map(|ended| desk.refusal(&ended));
        std::fs::write(dir.join("manifest.json"), before).unwrap();
        assert_eq!(said[0], said[1], "--anyway does not help");
        said[0].clone()
    };
    let build = refused(|manifest| manifest["tool"]["build"] = "other".into());
    assert!(
        build.starts_with("exit 2: error: the run was begun by a other build of dbdyno, and this is a "),
        "{build}"
    );
    let version = refused(|manifest| manifest["workloads"][0]["version"] = 9_999.into());
    assert!(
        version.starts_with(
            "exit 2: error: the run was begun with version 9999 of insert-benchmark, this dbdyno has version "
        ),
        "{version}"
    );
    let commit = Run::open(&dir).unwrap().manifest.tool.commit;
    began_otherwise(&dir, |manifest| manifest["tool"]["commit"] = "0123456".into());
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let events = events.replace(&format!("\"commit\":\"{commit}\""), "\"commit\":\"0123456\"");
    std::fs::write(dir.join("events.jsonl"), &events).unwrap();
    let refused = desk.refusal(&resume(&[]));
    assert!(refused.contains("(0123456) then, ") && refused.contains("or add --anyway"), "{refused}");
    assert_eq!(
        std::fs::read_to_string(dir.join("events.jsonl")).unwrap(),
        events,
        "a run that cannot go on was written to"
    );
    resume(&["--anyway"]).expect_ok();
    let reported = texts(&findings(&dir)).join("\n");
    assert!(
        reported.contains("the run went on with another dbdyno than the one that began it: "),
        "{reported}"
    );
    // The resuming program is now one of those that made the run.
    let again = resume(&[]);
    assert!(!again.expect_ok().err.contains("another dbdyno"), "{}", again.err);
}

#[test]
fn each_session_is_recorded_with_its_program() {
    let desk = Desk::new();
    let dir = killed(&desk);
    desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]).expect_ok();
    let run = Run::open(&dir).unwrap();
    let sessions = run.events.iter().filter_map(|event| match event {
        RunEvent::Started { resumed, tool, .. } => Some((*resumed, tool.clone())),
        _ => None,
    });
    let tool = run.manifest.tool.clone();
    assert_eq!(sessions.collect::<Vec<_>>(), [(false, tool.clone()), (true, tool)]);
}

#[test]
fn a_run_with_a_failed_cell_is_not_complete_when_the_rest_has_run() {
    let desk = Desk::new();
    let dir = killed(&desk);
    let first = Run::open(&dir).unwrap().manifest.order[0].clone();
    let events = dir.join(format!("cells/1/{}/insert-benchmark/events.jsonl", first.variant));
    let failed =
        r#"{"event":"ended","at":"2026-03-01T12:00:00Z","outcome":"failed","message":"the server died"}"#;
    let text = std::fs::read_to_string(&events).unwrap();
    std::fs::write(&events, format!("{text}{failed}\n")).unwrap();
    for said in ["resuming: 1 of 2 cells are left", "nothing is left to run: 2 of 2 cells have ended"] {
        let ended = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
        ended.expect_code(4);
        assert!(ended.err.contains(said), "{}", ended.err);
        assert!(ended.err.contains("error: 1 cell failed; the report has the reasons"), "{}", ended.err);
        let run = Run::open(&dir).unwrap();
        assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Failed, .. })));
    }
}

#[test]
fn a_machine_that_cannot_run_the_plan_any_more_is_reported_before_anything_is_written() {
    let desk = Desk::new();
    let dir = killed(&desk);
    let events = std::fs::read(dir.join("events.jsonl")).unwrap();
    let resume = || desk.refusal(&desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]));
    let before = began_otherwise(&dir, |manifest| manifest["plan"]["host"]["client_cpus"] = "1000".into());
    let said = resume();
    assert!(
        said.starts_with("exit 3: error: host.client_cpus names CPU 1000, which this process may not use"),
        "{said}"
    );
    std::fs::write(dir.join("manifest.json"), before).unwrap();
    began_otherwise(&dir, |manifest| {
        manifest["plan"]["workload"]["insert-benchmark"]["load_rows"] = (1_u64 << 40).into();
    });
    let said = resume();
    assert!(said.starts_with("exit 3: error: the plan needs about "), "{said}");
    assert_eq!(std::fs::read(dir.join("events.jsonl")).unwrap(), events);
}

#[test]
fn flags_for_a_resumed_run_start_no_new_run() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"1s\""));
    for flag in ["--failed", "--anyway"] {
        for more in [&["p.toml"][..], &[], &["--blocks", "1"], &["p.toml", "--set", "blocks=1"], &["--aa"]] {
            let ended = desk.dbdyno(&[&["run", flag], more].concat());
            let said = format!(
                "error: {flag} is for a run that goes on: dbdyno run --resume RUN {flag}, without a plan\n"
            );
            assert_eq!((ended.code, &ended.err), (Some(2), &said), "{more:?}");
        }
    }
    assert!(!desk.path("runs").exists(), "a run was begun");
}

/// This is the state that `kill -9` leaves between the run's end and its report. An earlier end may
/// have left an older report.
#[test]
fn a_completed_run_gets_its_missing_report() {
    let desk = Desk::new();
    desk.write("p.toml", &crate::commands::short_plan(TWO_VARIANTS));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let (report, events) = (dir.join("report.html"), std::fs::read(dir.join("events.jsonl")).unwrap());
    let resumed = || desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    let written = std::fs::read_to_string(&report).unwrap();
    std::fs::remove_file(&report).unwrap();
    std::fs::write(dir.join("report.html.unfinished"), "half a page").unwrap();
    let ended = resumed();
    assert!(ended.expect_ok().out.contains("report: "), "{}", ended.out);
    assert_eq!(std::fs::read_to_string(&report).unwrap(), written);
    assert!(!dir.join("report.html.unfinished").exists());
    std::fs::write(&report, "another page").unwrap();
    assert_eq!(resumed().expect_ok().out, "", "it is there");
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "another page");
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&report).unwrap().set_modified(earlier).unwrap();
    resumed().expect_ok();
    assert_eq!(std::fs::read_to_string(&report).unwrap(), written);
    assert_eq!(std::fs::read(dir.join("events.jsonl")).unwrap(), events, "the record is written to");
}

/// This is the state that `kill -9` leaves between a cell's end and the removal of its data.
#[test]
fn data_of_ended_cells_are_removed_when_the_run_is_resumed() {
    let desk = Desk::new();
    desk.write("p.toml", &crate::commands::short_plan(TWO_VARIANTS));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let events = dir.join("events.jsonl");
    let whole = std::fs::read_to_string(&events).unwrap();
    let without_end = whole.lines().filter(|line| !line.contains("\"event\":\"ended\""));
    let without_end: String = without_end.map(|line| format!("{line}\n")).collect();
    assert_ne!(whole, without_end);
    for text in [whole, without_end] {
        std::fs::write(&events, text).unwrap();
        let data = dir.join("data/1-wal-oltp");
        dbdyno_db::server::prepare_data(&data, &std::sync::atomic::AtomicBool::new(false)).unwrap();
        std::fs::write(data.join("file"), "x").unwrap();
        let resumed = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
        assert!(!resumed.expect_ok().err.contains("are left in"), "{}", resumed.err);
        assert!(!dir.join("data").exists(), "{}", resumed.err);
    }
    // This is the state when dbdyno was killed before the marker was made, or after it was removed.
    std::fs::create_dir_all(dir.join("data/1-wal-oltp")).unwrap();
    let resumed = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    assert!(!resumed.expect_ok().err.contains("data"), "{}", resumed.err);
    assert!(!dir.join("data").exists());
    // A file that dbdyno has not made stays, and the message names it.
    desk.write(&format!("{}/data/1-wal-oltp/precious", dir.display()), "x");
    let resumed = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    assert!(
        resumed
            .expect_ok()
            .err
            .contains("data/1-wal-oltp exists and is not a data directory that dbdyno made"),
        "{}",
        resumed.err
    );
    assert!(dir.join("data/1-wal-oltp/precious").exists());
}
