//! Tests of the text of each file, which other tools read and the documentation shows.

use super::*;

const DOCUMENT: &str = include_str!("../../../../docs/reference/run-directory.md");

/// Returns the text of every file of lines of the sample run, and of its manifest, by name.
fn texts() -> Vec<(&'static str, String)> {
    let (_parent, dir) = sample_run();
    let cell = dir.join("cells/1/wal/insert-benchmark");
    let step = step_dir(&dir);
    let files = [
        ("manifest", dir.join("manifest.json")),
        ("run events", dir.join("events.jsonl")),
        ("cell events", cell.join("events.jsonl")),
        ("step events", step.join("events.jsonl")),
        ("intervals", step.join("intervals.jsonl")),
        ("counters", step.join("counters/server.jsonl")),
    ];
    files.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap())).to_vec()
}

#[test]
fn every_line_of_the_sample_run_is_in_the_documentation() {
    for (name, text) in texts() {
        for line in text.lines() {
            assert!(DOCUMENT.lines().any(|shown| shown.trim_end() == line), "{name} has {line}");
        }
    }
}

#[test]
fn the_histogram_log_in_the_documentation_is_one() {
    let shown = DOCUMENT.split("```hlog\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(shown.starts_with(crate::histogram::HEADER));
    let spans: Vec<_> =
        shown.lines().filter_map(|line| crate::histogram::parse_line(line.as_bytes()).unwrap()).collect();
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(span.tag(), "query/service");
    assert_eq!((span.from_us, span.to_us), (1, 1_000_001));
    assert_eq!(span.histogram().unwrap(), histogram(&[610, 640, 2_207]));
}

#[test]
fn the_documentation_names_the_format_version_that_is_written() {
    assert!(DOCUMENT.contains(&format!("Format version: **{FORMAT_VERSION}**")));
}

/// Returns every file below `dir`, and every folder that is empty, by its path from `dir`.
fn leaves(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_file() {
            found.push(name);
            continue;
        }
        let below = leaves(&entry.path());
        found.extend(below.iter().map(|leaf| format!("{name}/{leaf}")));
        found.extend(below.is_empty().then_some(name));
    }
    found.sort();
    found
}

#[test]
fn each_file_has_its_documented_path() {
    let (_parent, dir) = sample_run();
    let (run, _) = RunWriter::resume(&dir).unwrap();
    run.set_aside(&cell_id("wal")).unwrap();
    write_step(&run.cell(&cell_id("wal")).unwrap(), "l.x").unwrap();
    insta::assert_snapshot!(leaves(&dir).join("\n"), @r"
    aside/1/1/wal/insert-benchmark/events.jsonl
    aside/1/1/wal/insert-benchmark/l.i0/checksums.json
    aside/1/1/wal/insert-benchmark/l.i0/counters/server.jsonl
    aside/1/1/wal/insert-benchmark/l.i0/events.jsonl
    aside/1/1/wal/insert-benchmark/l.i0/histograms.hlog
    aside/1/1/wal/insert-benchmark/l.i0/intervals.jsonl
    aside/1/1/wal/insert-benchmark/qr100/checksums.json
    aside/1/1/wal/insert-benchmark/qr100/counters/server.jsonl
    aside/1/1/wal/insert-benchmark/qr100/events.jsonl
    aside/1/1/wal/insert-benchmark/qr100/histograms.hlog
    aside/1/1/wal/insert-benchmark/qr100/intervals.jsonl
    cells/1/wal/insert-benchmark/events.jsonl
    cells/1/wal/insert-benchmark/l.x/checksums.json
    cells/1/wal/insert-benchmark/l.x/counters/server.jsonl
    cells/1/wal/insert-benchmark/l.x/events.jsonl
    cells/1/wal/insert-benchmark/l.x/histograms.hlog
    cells/1/wal/insert-benchmark/l.x/intervals.jsonl
    events.jsonl
    logs
    manifest.json
    ");
}
