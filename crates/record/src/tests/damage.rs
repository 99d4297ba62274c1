//! Files that no crash explains, disks that are full, folders that are not runs.

use super::*;

/// Puts `text` in place of a line, counted from 1.
fn replace_line(path: &Path, line: usize, text: &str) {
    let whole = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[line - 1] = text;
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

fn open_error(dir: &Path) -> String {
    Run::open(dir).unwrap_err().to_string().replace(dir.to_str().unwrap(), "RUN")
}

#[test]
fn a_damaged_line_within_the_events_of_the_run_is_an_error_with_file_and_line() {
    let (_parent, dir) = sample_run();
    replace_line(&dir.join("events.jsonl"), 2, "{\"event\":\"cell_started\",\"at\"");
    insta::assert_snapshot!(
        open_error(&dir),
        @"RUN/events.jsonl line 2 is damaged: EOF while parsing an object at column 28; the rest of the run can be read with that file set aside"
    );
    std::fs::remove_file(dir.join("events.jsonl")).unwrap();
    assert_eq!(Run::open(&dir).unwrap().cells.len(), 1, "as the message says");
}

#[test]
fn a_damaged_file_of_a_step_takes_only_what_follows_in_it() {
    let damage =
        [("events.jsonl", 3), ("intervals.jsonl", 1), ("histograms.hlog", 5), ("counters/server.jsonl", 3)];
    for (file, line) in damage {
        let (_parent, dir) = sample_run();
        replace_line(&step_dir(&dir).join(file), line, "{\"at_us\":1,");
        let run = Run::open(&dir).unwrap();
        let [whole, damaged] = &run.cells[0].steps[..] else { panic!("{file}") };
        assert_eq!(whole.damaged, None);
        let message = damaged.damaged.as_deref().unwrap();
        assert!(message.contains(&format!("{file} line {line} is damaged")), "{message}");
        let left = (
            damaged.events.len(),
            damaged.intervals.len(),
            damaged.histograms.len(),
            damaged.counters["server"].len(),
        );
        let expected = match file {
            "events.jsonl" => (2, 2, 4, 3),
            "intervals.jsonl" => (13, 0, 4, 3),
            "histograms.hlog" => (13, 2, 1, 3),
            _ => (13, 2, 4, 1),
        };
        assert_eq!(left, expected, "{file}");
    }
}

#[test]
fn a_damaged_line_within_the_events_of_a_cell_is_a_warning() {
    let (_parent, dir) = sample_run();
    replace_line(&dir.join("cells/1/wal/insert-benchmark/events.jsonl"), 2, "\0\0\0");
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.cells[0].events, cell_events()[..1]);
    assert_eq!(run.cells[0].outcome(), None);
    assert!(run.warnings[0].contains("events.jsonl line 2 is damaged"), "{:?}", run.warnings);
}

#[test]
fn a_histogram_with_changed_bytes_is_told_apart_when_it_is_unpacked_at_the_latest() {
    let (_parent, dir) = sample_run();
    let path = step_dir(&dir).join("histograms.hlog");
    let text = std::fs::read_to_string(&path).unwrap();
    // These letters are the number by which a compressed histogram is known.
    std::fs::write(&path, text.replacen("HIST", "TSIH", 1)).unwrap();
    let run = Run::open(&dir).unwrap();
    let error = run.cells[0].steps[1].histograms[0].histogram().err().unwrap().to_string();
    assert!(error.starts_with("histogram query/service from 1 us to 1000001 us: "), "{error}");
}

#[test]
fn counters_without_their_header_are_damaged() {
    let (_parent, dir) = sample_run();
    let path = step_dir(&dir).join("counters/server.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (header, lines) = text.split_once('\n').unwrap();
    for (text, message) in [
        (lines.to_string(), "does not begin with a header"),
        (format!("{header}\n{text}"), "has a second header"),
    ] {
        std::fs::write(&path, text).unwrap();
        let run = Run::open(&dir).unwrap();
        let step = &run.cells[0].steps[1];
        assert!(step.damaged.as_deref().unwrap().ends_with(message), "{:?}", step.damaged);
        assert!(step.counters.is_empty());
    }
}

#[test]
fn a_folder_that_belongs_to_no_cell_is_a_warning() {
    let (_parent, dir) = sample_run();
    std::fs::create_dir_all(dir.join("cells/9/wal/insert-benchmark")).unwrap();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.cells.len(), 1);
    let [warning] = &run.warnings[..] else { panic!("{:?}", run.warnings) };
    let expected = "cells/9/wal/insert-benchmark belongs to no cell of the manifest and is passed over";
    assert!(warning.ends_with(expected), "{warning}");
}

#[test]
fn a_folder_without_a_manifest_is_not_a_run() {
    let (_parent, dir) = sample_run();
    let manifest = dir.join("manifest.json");
    std::fs::remove_file(&manifest).unwrap();
    insta::assert_snapshot!(
        open_error(&dir),
        @"RUN is not a run directory: it has no manifest.json; give the folder that `dbdyno run` named"
    );
    assert!(matches!(RunWriter::resume(&dir).map(drop), Err(Error::NotARun { .. })));
    assert!(matches!(Run::open(&dir.join("none")), Err(Error::NotARun { .. })));
    std::fs::write(&manifest, "").unwrap();
    assert!(matches!(Run::open(&manifest), Err(Error::NotARun { .. })), "a file is no run either");
}

#[test]
fn a_run_of_a_newer_format_is_refused_before_anything_else_of_it_is_read() {
    let (_parent, dir) = sample_run();
    std::fs::write(dir.join("manifest.json"), "{\"format_version\": 2, \"unknown\": {}}").unwrap();
    insta::assert_snapshot!(
        open_error(&dir),
        @"RUN/manifest.json has format version 2, this dbdyno reads up to 1; use a newer dbdyno"
    );
    assert!(matches!(RunWriter::resume(&dir).map(drop), Err(Error::TooNew { .. })));
}

#[test]
fn a_damaged_manifest_is_an_error_with_its_line() {
    let (_parent, dir) = sample_run();
    replace_line(&dir.join("manifest.json"), 9, "  \"name\": 7,");
    let message = open_error(&dir);
    assert!(message.starts_with("RUN/manifest.json line 9 is damaged: "), "{message}");
    let whole = std::fs::read(dir.join("manifest.json")).unwrap();
    std::fs::write(dir.join("manifest.json"), &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(Run::open(&dir), Err(Error::DamagedManifest { .. })));
}

#[test]
fn a_full_disk_is_told_with_the_file_and_what_to_do() {
    let parent = tempfile::TempDir::new().unwrap();
    for (file, advice_for) in [("events.jsonl", 0), ("intervals.jsonl", 1), ("histograms.hlog", 2)] {
        let dir = parent.path().join(format!("step{advice_for}"));
        std::fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink("/dev/full", dir.join(file)).unwrap();
        let mut step = StepWriter::open(dir.clone()).unwrap();
        step_events("qr100").iter().for_each(|event| step.event(event).unwrap());
        step.interval(&interval(0)).unwrap();
        step.histogram("query/service", 0, 1, &histogram(&[5])).unwrap();
        for _ in 0..2 {
            let message = step.sync().unwrap_err().to_string().replace(dir.to_str().unwrap(), "STEP");
            assert_eq!(
                message,
                format!(
                    "cannot write STEP/{file}: No space left on device (os error 28); free space there or choose \
                     another folder with --out, then go on with --resume"
                )
            );
        }
    }
}
