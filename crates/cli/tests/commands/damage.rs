//! Run directories that are none, are damaged or come from a later dbdyno.

use std::path::{Path, PathBuf};

use crate::plan;
use crate::support::{Desk, faults, findings};

/// A folder with one run of one variant.
fn one_run(desk: &Desk) -> PathBuf {
    let variant = "[[variant]]\nname = \"a\"\nserver = \"sqlite\"\npragmas = { synchronous = \"off\" }";
    desk.write("p.toml", &plan(variant, "read_write_time = \"1s\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    desk.run_dir()
}

fn change(path: &Path, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed);
    std::fs::write(path, changed).unwrap();
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let desk = Desk::new();
    desk.write("folder/file", "");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["report", "folder"])), @"exit 2: error: folder is not a run directory: it has no manifest.json; give the folder that `dbdyno run` named");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["report", "missing"])), @"exit 2: error: missing is not a run directory: it has no manifest.json; give the folder that `dbdyno run` named");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "--resume", "folder"])), @"exit 2: error: folder is not a run directory: it has no manifest.json; give the folder that `dbdyno run` named");
}

#[test]
fn a_damaged_manifest_is_shown_with_its_line() {
    let desk = Desk::new();
    let manifest = "{\n  \"format_version\": 1,\n  \"tool\": {\n    \"version\" \"0.1.0\"\n";
    desk.write("runs/20260101T000000Z-test/manifest.json", manifest);
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["report", "runs/20260101T000000Z-test"])), @"exit 3: error: runs/RUN/manifest.json line 4 is damaged: expected `:` at column 15; without it nothing of the run can be read, so put a copy in its place");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "--resume", "runs/20260101T000000Z-test"])), @"exit 3: error: runs/RUN/manifest.json line 4 is damaged: expected `:` at column 15; without it nothing of the run can be read, so put a copy in its place");
    assert_eq!(
        std::fs::read_to_string(desk.path("runs/20260101T000000Z-test/manifest.json")).unwrap(),
        manifest
    );
}

#[test]
fn a_run_of_a_later_format_is_refused() {
    let desk = Desk::new();
    desk.write(
        "runs/20260101T000000Z-test/manifest.json",
        "{\"format_version\": 999, \"what\": \"nobody knows\"}",
    );
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["report", "runs/20260101T000000Z-test"])), @"exit 3: error: runs/RUN/manifest.json has format version 999, this dbdyno reads up to 1; use a newer dbdyno");
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "--resume", "runs/20260101T000000Z-test"])), @"exit 3: error: runs/RUN/manifest.json has format version 999, this dbdyno reads up to 1; use a newer dbdyno");
}

#[test]
fn a_damaged_line_makes_its_step_invalid_and_leaves_the_others() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    let step = dir.join("cells/1/a/insert-benchmark/qr100");
    change(&step.join("intervals.jsonl"), |text| {
        let lines: Vec<&str> = text.lines().collect();
        let broken = &lines[1][..lines[1].len() / 2];
        [&[lines[0], broken], &lines[2..]].concat().join("\n") + "\n"
    });
    let findings = findings(&dir);
    let faults = faults(&findings);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("qr100 a 1: Invalid")
            && faults[0].contains("intervals.jsonl line 2 is damaged"),
        "{faults:?}"
    );
    let report = desk.dbdyno(&["report", dir.to_str().unwrap()]);
    report.expect_ok();
    assert!(report.out.contains("qr100, a: invalid"), "{}", report.out);
    let unwrapped = report.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("intervals.jsonl line 2 is damaged"), "{}", report.out);
}

#[test]
fn a_damaged_line_of_the_runs_events_is_named_and_nothing_is_resumed() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    change(&dir.join("events.jsonl"), |text| text.replacen("cell_started", "cell_\u{0}", 1));
    let before = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    // What the machine is warned of at the start stands before it, or nothing does.
    let line = 1 + before.lines().take_while(|line| !line.contains('\u{0}')).count();
    let refusal =
        |args: &[&str]| desk.refusal(&desk.dbdyno(args)).replace(&format!("line {line} is"), "line LINE is");
    let report = refusal(&["report", dir.to_str().unwrap()]);
    insta::assert_snapshot!(report, @r"exit 3: error: FOLDER/runs/RUN/events.jsonl line LINE is damaged: control character (\u0000-\u001F) found while parsing a string at column 16; the rest of the run can be read with that file set aside");
    let resumed = refusal(&["run", "--resume", dir.to_str().unwrap()]);
    insta::assert_snapshot!(resumed, @r"exit 3: error: FOLDER/runs/RUN/events.jsonl line LINE is damaged: control character (\u0000-\u001F) found while parsing a string at column 16; the rest of the run can be read with that file set aside");
    assert_eq!(std::fs::read_to_string(dir.join("events.jsonl")).unwrap(), before);
}

#[test]
fn records_that_do_not_add_up_are_invalid() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    let intervals = dir.join("cells/1/a/insert-benchmark/l.i0/intervals.jsonl");
    change(&intervals, |text| text.replacen("\"due\":20", "\"due\":21", 1));
    let faults = faults(&findings(&dir));
    assert!(
        faults.len() == 1 && faults[0].contains("21 operations were due but 20 are accounted for"),
        "{faults:?}"
    );
}
