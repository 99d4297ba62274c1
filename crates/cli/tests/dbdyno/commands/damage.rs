//! Tests of folders that are not run directories, and of run directories that are damaged or come
//! from a later dbdyno.

use std::path::{Path, PathBuf};

use crate::commands::plan;
use crate::support::{Desk, faults, findings};

/// Makes one run of one variant, and returns its directory.
fn one_run(desk: &Desk) -> PathBuf {
    let variant =
        "[[variant]]\nname = \"a\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }";
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
        "{\"format_version\": 999, \"what\": \"of later versions\"}",
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
    let report = desk.dbdyno(&["report", dir.to_str().unwrap(), "--all"]);
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
    // Warnings about the machine, if there are any, are on the lines before it.
    let line = 1 + before.lines().take_while(|line| !line.contains('\u{0}')).count();
    let refusal =
        |args: &[&str]| desk.refusal(&desk.dbdyno(args)).replace(&format!("line {line} is"), "line LINE is");
    let report = refusal(&["report", dir.to_str().unwrap()]);
    insta::assert_snapshot!(report, @r"exit 3: error: FOLDER/runs/RUN/events.jsonl line LINE is damaged: control character (\u0000-\u001F) found while parsing a string at column 16; to read the rest of the run move that file away");
    let resumed = refusal(&["run", "--resume", dir.to_str().unwrap()]);
    insta::assert_snapshot!(resumed, @r"exit 3: error: FOLDER/runs/RUN/events.jsonl line LINE is damaged: control character (\u0000-\u001F) found while parsing a string at column 16; to read the rest of the run move that file away");
    assert_eq!(std::fs::read_to_string(dir.join("events.jsonl")).unwrap(), before);
}

#[test]
fn records_that_do_not_add_up_are_invalid() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    let step = dir.join("cells/1/a/insert-benchmark/l.i0");
    change(&step.join("intervals.jsonl"), |text| text.replacen("\"due\":20", "\"due\":21", 1));
    // A record of an earlier dbdyno has no checksums.
    std::fs::remove_file(step.join("checksums.json")).unwrap();
    let faults = faults(&findings(&dir));
    assert!(
        faults.len() == 1 && faults[0].contains("21 operations were due but 20 are accounted for"),
        "{faults:?}"
    );
}

#[test]
fn a_number_that_was_edited_is_found_and_neither_ends_nor_delays_a_report() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    let run = dir.to_str().unwrap();
    let step = dir.join("cells/1/a/insert-benchmark/qr100");
    let events = step.join("events.jsonl");
    let whole = std::fs::read_to_string(&events).unwrap();
    let window = whole.lines().find(|line| line.contains("\"event\":\"window\"")).unwrap();
    let end = &window[window.find("\"to_us\"").unwrap()..];
    for (number, has_checksums) in
        [("9200000000000000000", true), ("1000000000000", true), ("1000000000000", false), ("500000", true)]
    {
        std::fs::write(&events, whole.replacen(end, &format!("\"to_us\":{number}}}"), 1)).unwrap();
        let sums = step.join("checksums.json");
        if !has_checksums {
            std::fs::rename(&sums, step.join("sums")).unwrap();
        }
        let faults = faults(&findings(&dir));
        assert!(faults.len() == 1 && faults[0].starts_with("qr100 a 1: Invalid"), "{number}: {faults:?}");
        // A number that is impossible in its line is reported first. Otherwise the checksum that
        // does not match is reported.
        let is_possible = number != "9200000000000000000";
        let said =
            if has_checksums && is_possible { "qr100/events.jsonl was changed" } else { "events.jsonl line" };
        assert!(faults[0].contains(said), "{number}: {faults:?}");
        desk.dbdyno(&["report", run]).expect_ok();
        let compared = desk.dbdyno(&["compare", run, run]);
        assert!(compared.code.is_some(), "{number}: {}", compared.err);
        if !has_checksums {
            std::fs::rename(step.join("sums"), &sums).unwrap();
        }
    }
}

#[test]
fn garbage_in_the_last_line_of_a_steps_events_is_damage_and_not_an_interruption() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    let step = dir.join("cells/1/a/insert-benchmark/qr100");
    std::fs::remove_file(step.join("checksums.json")).unwrap();
    change(&step.join("events.jsonl"), |text| {
        text.replace("\"event\":\"ended\"", "\"event\":\"en\u{fffd}ed\"")
    });
    let found = faults(&findings(&dir));
    assert!(found.len() == 1 && found[0].starts_with("qr100 a 1: Invalid"), "{found:?}");
    assert!(found[0].contains("qr100/events.jsonl line"), "{found:?}");
    // A killed run leaves its last line unfinished.
    change(&step.join("events.jsonl"), |text| text[..text.len() - 20].to_owned());
    let found = faults(&findings(&dir));
    assert!(found.len() == 1 && found[0].starts_with("qr100 a 1: Interrupted"), "{found:?}");
}

#[test]
fn a_record_of_an_earlier_dbdyno_is_read_and_reported_once_as_unchecked() {
    let desk = Desk::new();
    let dir = one_run(&desk);
    let report = || desk.dbdyno(&["report", dir.to_str().unwrap(), "--all"]).out;
    let checked = report();
    let mut steps = 0;
    for entry in std::fs::read_dir(dir.join("cells/1/a/insert-benchmark")).unwrap() {
        steps += u32::from(std::fs::remove_file(entry.unwrap().path().join("checksums.json")).is_ok());
    }
    let unchecked = report();
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    let said = format!(" · {steps} steps without checksums");
    let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(steps > 5 && !checked.contains("without checksums"), "{checked}");
    assert_eq!(unwrapped(&unchecked).replace(&said, ""), unwrapped(&checked), "the same figures");
}

#[test]
fn a_file_that_never_ends_is_a_fault_of_its_run_and_the_others_are_shown() {
    let desk = Desk::new();
    let whole = crate::commands::recorded::write(&desk.path("runs"));
    for (name, file) in [("fifo", "events.jsonl"), ("device", "manifest.json")] {
        let path = desk.path("runs").join(name);
        let copied = std::process::Command::new("cp").arg("-r").arg(&whole).arg(&path).status().unwrap();
        assert!(copied.success());
        std::fs::remove_file(path.join(file)).unwrap();
    }
    nix::unistd::mkfifo(&desk.path("runs/fifo/events.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", desk.path("runs/device/manifest.json")).unwrap();
    let faults = ["fifo/events.jsonl", "device/manifest.json"];
    let is_named = |said: &str, file: &str| {
        // A table may wrap the text.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("runs/{file} is not a regular file")), "{said}");
    };
    for file in faults {
        let dir = format!("runs/{}", file.split('/').next().unwrap());
        let of_one = [vec!["report", &dir], vec!["run", "--resume", &dir], vec!["compare", &dir, &dir]];
        for command in of_one.iter().chain([&vec!["history", &dir]]) {
            is_named(&desk.dbdyno(command).expect_code(3).err, file);
        }
        is_named(&desk.dbdyno(&["list", "runs"]).expect_ok().out, file);
        is_named(&desk.dbdyno(&["report", "runs"]).expect_ok().err, file);
    }
    let of_all = desk.dbdyno(&["history", "runs"]).expect_code(2).err.clone();
    let said = "warning: 2 folders are left out, ";
    assert!(
        of_all.starts_with(said) && of_all.contains("runs/fifo") && of_all.contains("runs/device"),
        "{of_all}"
    );
    assert!(whole.join("report.html").is_file());
    assert!(desk.dbdyno(&["list", "runs"]).out.contains("10 of 10 cells"));
}
