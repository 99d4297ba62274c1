//! Tests that a process that dies leaves a run that can be read and resumed.

use super::*;

/// Returns every file of lines of the sample run.
fn line_files(dir: &Path) -> Vec<PathBuf> {
    let cell = dir.join("cells/1/wal/insert-benchmark");
    let step = step_dir(dir);
    vec![
        dir.join("events.jsonl"),
        cell.join("events.jsonl"),
        step.join("events.jsonl"),
        step.join("intervals.jsonl"),
        step.join("histograms.hlog"),
        step.join("counters/server.jsonl"),
    ]
}

/// Returns the sample run as a crash leaves it. A step has checksums only when it is complete, so a
/// crash leaves none.
fn crashed_run() -> (TempDir, PathBuf) {
    let (parent, dir) = sample_run();
    for step in ["l.i0", "qr100"] {
        std::fs::remove_file(dir.join(format!("cells/1/wal/insert-benchmark/{step}/checksums.json")))
            .unwrap();
    }
    (parent, dir)
}

/// Returns how many entries a reader finds in each of `line_files`.
fn counts(run: &Run) -> [usize; 6] {
    let cell = &run.cells[0];
    let step = cell.steps.iter().find(|step| step.name == "qr100").unwrap();
    [
        run.events.len(),
        cell.events.len(),
        step.events.len(),
        step.intervals.len(),
        step.histograms.len(),
        step.counters.get("server").map_or(0, crate::CounterSeries::len),
    ]
}

fn last_line_start(bytes: &[u8]) -> usize {
    bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

#[test]
fn a_file_cut_at_any_byte_of_its_last_line_keeps_all_lines_before() {
    let (_parent, dir) = crashed_run();
    let whole = counts(&Run::open(&dir).unwrap());
    for (number, path) in line_files(&dir).iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        let start = last_line_start(&bytes);
        for length in start..bytes.len() {
            std::fs::write(path, &bytes[..length]).unwrap();
            let run = Run::open(&dir).unwrap();
            let mut expected = whole;
            let lost_only_its_end = length == bytes.len() - 1;
            expected[number] -= usize::from(!lost_only_its_end);
            // The event of a window that ends after the last interval is dropped.
            expected[2] -= usize::from(path.ends_with("intervals.jsonl") && !lost_only_its_end);
            assert_eq!(counts(&run), expected, "{} cut at {length}", path.display());
            // No crash takes intervals from a step that has an end, because they are on the disk before
            // its end is.
            let is_damaged = run.cells[0].steps.iter().any(|step| step.damaged.is_some());
            assert_eq!(is_damaged, path.ends_with("intervals.jsonl") && !lost_only_its_end);
            let reported =
                run.warnings.iter().filter(|warning| warning.contains("cut off by a crash")).count();
            let broken = length > start && !lost_only_its_end;
            assert_eq!(
                reported,
                usize::from(broken),
                "{} cut at {length}: {:?}",
                path.display(),
                run.warnings
            );
        }
        std::fs::write(path, &bytes).unwrap();
    }
}

#[test]
fn a_file_cut_anywhere_leaves_the_rest_of_the_run_readable() {
    let (_parent, dir) = crashed_run();
    for path in line_files(&dir) {
        let bytes = std::fs::read(&path).unwrap();
        for length in (0..bytes.len()).step_by(7) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let mut run = Run::open(&dir).unwrap();
            assert_eq!(run.cells[0].steps.len(), 2);
            run.cells.iter_mut().for_each(|cell| cell.steps.clear());
            assert_eq!(Run::without_steps(&dir).unwrap().cells, run.cells);
        }
        std::fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn a_resumed_run_is_readable_wherever_the_crash_cut_its_events() {
    let (_parent, dir) = sample_run();
    let path = dir.join("events.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let start = last_line_start(&bytes);
    for length in start..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let resumed = RunEvent::Started { at: AT.into(), resumed: true, tool: manifest().tool };
        {
            let (mut run, manifest_read) = RunWriter::resume(&dir).unwrap();
            assert_eq!(manifest_read, manifest());
            run.event(&resumed).unwrap();
            run.event(&run_events()[4]).unwrap();
        }
        let kept = run_events().len() - usize::from(length < bytes.len() - 1);
        let mut expected = run_events()[..kept].to_vec();
        expected.extend([resumed, run_events()[4].clone()]);
        let run = Run::open(&dir).unwrap();
        assert_eq!(run.events, expected, "cut at {length}");
        let broken = length > start && length < bytes.len() - 1;
        assert_eq!(run.warnings.len(), usize::from(broken), "cut at {length}: {:?}", run.warnings);
    }
}

#[test]
fn a_resume_that_is_killed_in_its_first_line_can_itself_be_resumed() {
    let (_parent, dir) = sample_run();
    let path = dir.join("events.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"event\":\"war\n{\"event\":\"started\",\"at\":\"20");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(Run::open(&dir).unwrap().events, run_events());
    let resumed = RunEvent::Started { at: AT.into(), resumed: true, tool: manifest().tool };
    RunWriter::resume(&dir).unwrap().0.event(&resumed).unwrap();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.events.len(), run_events().len() + 1);
    assert_eq!(run.warnings.len(), 2, "{:?}", run.warnings);
}

/// The folder is as `kill -9` leaves it before the manifest is written.
#[test]
fn a_folder_whose_process_was_killed_before_the_run_began_says_so_and_holds_no_run() {
    let (_parent, dir) = sample_run();
    std::fs::remove_file(dir.join("manifest.json")).unwrap();
    assert!(!has_not_begun(&dir), "it has events");
    std::fs::write(dir.join("events.jsonl"), "").unwrap();
    std::fs::write(dir.join("manifest.json.unfinished"), "{").unwrap();
    assert!(has_not_begun(&dir));
    let refused = [Run::open(&dir).map(drop), RunWriter::resume(&dir).map(drop)];
    for refused in refused.map(Result::unwrap_err) {
        let said = refused.to_string();
        assert!(
            said.contains(" holds no run: ") && said.ends_with("remove it, and start the run again"),
            "{said}"
        );
    }
    let lock = std::fs::File::open(dir.join("events.jsonl")).unwrap();
    lock.lock().unwrap();
    assert!(!has_not_begun(&dir), "it is being made");
}

#[test]
fn a_cell_that_did_not_end_is_set_aside_and_can_be_run_again() {
    let (_parent, dir) = sample_run();
    let (run, _) = RunWriter::resume(&dir).unwrap();
    assert_eq!(run.set_aside(&cell_id("rollback")).unwrap(), None);
    for number in [1, 2] {
        let path = run.set_aside(&cell_id("wal")).unwrap().unwrap();
        assert_eq!(path, Path::new(&format!("aside/{number}/1/wal/insert-benchmark")));
        assert!(dir.join(&path).join("events.jsonl").exists());
        assert_eq!(Run::open(&dir).unwrap().cells, []);
        run.cell(&cell_id("wal")).unwrap().event(&cell_events()[0]).unwrap();
        assert_eq!(Run::open(&dir).unwrap().cells[0].outcome(), None);
    }
}

#[test]
fn a_step_killed_before_its_first_line_is_not_taken_for_a_complete_one() {
    let (_parent, dir) = crashed_run();
    for file in ["events.jsonl", "intervals.jsonl", "histograms.hlog"] {
        std::fs::write(step_dir(&dir).join(file), "").unwrap();
    }
    std::fs::remove_dir_all(step_dir(&dir).join("counters")).unwrap();
    let run = Run::open(&dir).unwrap();
    let step = &run.cells[0].steps[1];
    assert_eq!((step.spec.name.as_str(), step.outcome(), step.window()), ("qr100", None, None));
    assert_eq!(step.damaged, None, "nothing was changed");
}

#[test]
fn a_line_that_was_written_but_not_flushed_is_kept_when_the_writer_is_dropped() {
    let parent = tempfile::TempDir::new().unwrap();
    let run = RunWriter::create(parent.path(), &manifest()).unwrap();
    let mut step = run.cell(&cell_id("wal")).unwrap().step("l.i0").unwrap();
    [0, 1].iter().for_each(|second| step.interval(&interval(*second)).unwrap());
    step_events("l.i0").iter().for_each(|event| step.event(event).unwrap());
    drop(step);
    assert_eq!(Run::open(run.dir()).unwrap().cells[0].steps[0].events, step_events("l.i0"));
}
