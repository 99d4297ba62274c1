//! Tests of files whose damage no crash explains, of full disks, and of folders that are not runs.

use super::*;

/// Replaces line number `line`, counted from 1, by `text`.
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
        @"RUN/events.jsonl line 2 is damaged: EOF while parsing an object at column 28; to read the rest of the run move that file away"
    );
    std::fs::remove_file(dir.join("events.jsonl")).unwrap();
    assert_eq!(Run::open(&dir).unwrap().cells.len(), 1, "as the message says");
}

#[test]
fn damage_in_a_file_of_a_step_loses_only_the_lines_after_it() {
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
            "intervals.jsonl" => (14, 0, 4, 3),
            "histograms.hlog" => (15, 2, 1, 3),
            _ => (15, 2, 4, 1),
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
fn a_histogram_with_changed_bytes_is_found_when_it_is_unpacked_at_the_latest() {
    let (_parent, dir) = sample_run();
    let path = step_dir(&dir).join("histograms.hlog");
    let text = std::fs::read_to_string(&path).unwrap();
    // These letters are the number by which a compressed histogram is recognised.
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
    replace_line(&dir.join("manifest.json"), 9, "  \"started\": 7,");
    let message = open_error(&dir);
    assert!(message.starts_with("RUN/manifest.json line 9 is damaged: "), "{message}");
    let whole = std::fs::read(dir.join("manifest.json")).unwrap();
    std::fs::write(dir.join("manifest.json"), &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(Run::open(&dir), Err(Error::DamagedManifest { .. })));
}

#[test]
fn a_full_disk_is_reported_with_the_file_and_what_to_do() {
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

/// Changes the first `from` to `to` in a file of the step `qr100`, and reads the step. The step's
/// checksums are removed, because they would reveal the change.
fn changed(file: &str, from: &str, to: &str) -> StepRecord {
    let (_parent, dir) = sample_run();
    let path = step_dir(&dir).join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    std::fs::remove_file(step_dir(&dir).join("checksums.json")).unwrap();
    let [whole, damaged] = &Run::open(&dir).unwrap().cells[0].steps[..] else { panic!("two steps") };
    assert_eq!((&whole.damaged, whole.window(), whole.has_checksums), (&None, Some((0, 2_000_000)), true));
    assert!(!damaged.has_checksums);
    damaged.clone()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn an_impossible_figure_is_damage_with_file_and_line_and_is_not_used() {
    let cases = [
        (
            "events.jsonl",
            "\"to_us\":2000000",
            "\"to_us\":9200000000000000000",
            9,
            "greater than any step's can be",
        ),
        (
            "events.jsonl",
            "\"to_us\":2000000",
            "\"to_us\":1000000000000",
            9,
            "window ends at 1000000000000 us, and the step at 2003114",
        ),
        (
            "events.jsonl",
            "\"to_us\":2000000",
            "\"to_us\":2003000",
            9,
            "window ends at 2003000 us, and intervals.jsonl at 2000000",
        ),
        (
            "events.jsonl",
            "\"from_us\":0",
            "\"from_us\":2000001",
            9,
            "ends at 2000000 us, before it begins at 2000001",
        ),
        ("events.jsonl", "\"from_us\":0", "\"from_us\":-1", 9, "invalid value: integer `-1`"),
        ("events.jsonl", "\"operations\":3051", "\"operations\":18446744073709551615", 8, "greater than any"),
        (
            "events.jsonl",
            "\"operations_per_second\":1526.5",
            "\"operations_per_second\":-1.0",
            5,
            "cannot be asked for",
        ),
        ("events.jsonl", "\"clients\":1", "\"clients\":4294967295,\"x\":1", 1, ""),
        (
            "events.jsonl",
            "{\"event\":\"check\"",
            "{\"event\":\"ended\",\"at\":\"\",\"at_us\":1,\"outcome\":\"completed\",\"message\":null}\n{\"event\":\"check\"",
            13,
            "after the step's end",
        ),
        ("intervals.jsonl", "\"to_us\":1000000", "\"to_us\":1000001", 1, "none is longer than a second"),
        ("intervals.jsonl", "\"from_us\":1000000", "\"from_us\":2000001", 2, "before it begins"),
        ("intervals.jsonl", "\"due\":1526", "\"due\":9300000000000000", 1, "greater than any"),
        (
            "intervals.jsonl",
            "\"service_max_us\":2207",
            "\"service_max_us\":980115",
            1,
            "cannot have service times",
        ),
        (
            "intervals.jsonl",
            "\"response_sum_us\":980114",
            "\"response_sum_us\":9801140",
            1,
            "cannot have response times",
        ),
        ("histograms.hlog", "service,1.000001,", "service,9999999999.000001,", 6, "greater than any"),
        (
            "counters/server.jsonl",
            "\"at_us\":750113",
            "\"at_us\":-750113",
            3,
            "a sample at -750113 us follows one at -250000",
        ),
        (
            "counters/server.jsonl",
            "\"at_us\":1750090",
            "\"at_us\":9223372036854775807",
            4,
            "greater than any",
        ),
    ];
    for (file, from, to, line, said) in cases {
        let step = changed(file, from, to);
        if said.is_empty() {
            assert_eq!(step.damaged, None, "{to} clients can be");
            continue;
        }
        let message = step.damaged.unwrap();
        assert!(
            message.contains(&format!("{file} line {line} is damaged")) && message.contains(said),
            "{to}: {message}"
        );
        if file == "events.jsonl" {
            assert!(
                step.events.iter().all(|event| *event != StepEvent::Window { from_us: 0, to_us: 2_000_000 }),
                "{to}"
            );
        }
    }
}

#[test]
fn a_file_that_was_changed_after_the_end_of_its_step_is_damaged_however_small_the_change() {
    for (file, from, to) in [
        // Each changed figure is plausible and agrees with the other figures.
        ("events.jsonl", "\"to_us\":2000000", "\"to_us\":1000000"),
        ("events.jsonl", "\"actual\":10200", "\"actual\":10201"),
        ("intervals.jsonl", "\"rows\":15250", "\"rows\":25250"),
        ("intervals.jsonl", "\"service_sum_us\":980114", "\"service_sum_us\":880114"),
        ("histograms.hlog", "2207.000", "2208.000"),
        ("counters/server.jsonl", "\"cpu_user_us\":40", "\"cpu_user_us\":41"),
    ] {
        let (_parent, dir) = sample_run();
        let path = step_dir(&dir).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let [whole, damaged] = &Run::open(&dir).unwrap().cells[0].steps[..] else { panic!("{file}") };
        assert_eq!((&whole.damaged, whole.has_checksums, damaged.has_checksums), (&None, true, true));
        let message = damaged.damaged.as_deref().unwrap();
        assert!(message.contains(&format!("qr100/{file} was changed after the step had ended")), "{message}");
    }
}

#[test]
fn files_added_or_removed_after_the_end_of_a_step_are_damage() {
    let (_parent, dir) = sample_run();
    let counters = step_dir(&dir).join("counters");
    std::fs::rename(counters.join("server.jsonl"), counters.join("client.jsonl")).unwrap();
    let message = Run::open(&dir).unwrap().cells[0].steps[1].damaged.clone().unwrap();
    for said in ["client.jsonl was not there when the step ended", "server.jsonl is missing"] {
        assert!(message.contains(said), "{message}");
    }
    std::fs::rename(counters.join("client.jsonl"), counters.join("server.jsonl")).unwrap();
    std::fs::write(step_dir(&dir).join("checksums.json"), "{}}").unwrap();
    let step = &Run::open(&dir).unwrap().cells[0].steps[1];
    assert!(step.damaged.as_deref().unwrap().contains("checksums.json is damaged"), "{:?}", step.damaged);
}

#[test]
fn a_last_line_of_garbage_with_an_end_is_damage_and_no_crash() {
    for file in ["events.jsonl", "cells/1/wal/insert-benchmark/qr100/events.jsonl"] {
        let (_parent, dir) = sample_run();
        let path = dir.join(file);
        let line = std::fs::read_to_string(&path).unwrap().lines().count();
        replace_line(&path, line, "{\"event\":\"ended\",garbage}");
        let message = match Run::open(&dir) {
            Err(error) => error.to_string(),
            Ok(run) => run.cells[0].steps[1].damaged.clone().unwrap(),
        };
        assert!(message.contains(&format!("{file} line {line} is damaged")), "{message}");
    }
}

#[test]
fn a_histogram_that_says_it_needs_gigabytes_is_refused_without_them() {
    let mut plain = vec![0x1c, 0x84, 0x93, 0x13, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0, 0, 0, 3];
    plain.extend([1_u64, u64::MAX, 1.0_f64.to_bits()].iter().flat_map(|number| number.to_be_bytes()));
    let payload = fdeflate::compress_to_vec(&plain);
    let mut stored = vec![0x1c, 0x84, 0x93, 0x14];
    stored.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    stored.extend(payload);
    let mut line = b"Tag=query/service,0.000000,1.000000,5.000,".to_vec();
    line.extend(data_encoding::BASE64.encode(&stored).bytes());
    let span = crate::histogram::parse_line(&line).unwrap().unwrap();
    let error = span.histogram().unwrap_err().to_string();
    assert!(error.contains("no histogram as dbdyno writes it"), "{error}");
    assert!(HistogramSpan::sum([&span].into_iter()).is_err());
}
