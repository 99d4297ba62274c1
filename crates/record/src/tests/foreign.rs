//! Tests of files that dbdyno did not write: pipes, devices, links and huge files. Each is reported
//! by name as a fault of its run. Reading it neither blocks nor takes much memory.

use std::fs;
use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::draw::in_a_small_process;
use super::*;

const GIBIBYTE: u64 = 1 << 30;

/// Files of the run and of its step `qr100`.
const FILES: [&str; 7] = [
    "manifest.json",
    "events.jsonl",
    "cells/1/wal/insert-benchmark/events.jsonl",
    "cells/1/wal/insert-benchmark/qr100/events.jsonl",
    "cells/1/wal/insert-benchmark/qr100/intervals.jsonl",
    "cells/1/wal/insert-benchmark/qr100/counters/server.jsonl",
    "cells/1/wal/insert-benchmark/qr100/checksums.json",
];

/// Returns all faults that are reported when the run in `dir` is opened.
fn faults(dir: &Path) -> String {
    match Run::open(dir) {
        Err(error) => error.to_string(),
        Ok(run) => {
            let of_steps =
                run.cells.iter().flat_map(|cell| &cell.steps).filter_map(|step| step.damaged.clone());
            run.warnings.iter().cloned().chain(of_steps).collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn a_file_that_is_not_regular_is_named_and_does_not_block_the_reader() {
    for file in FILES {
        let (_parent, dir) = sample_run();
        let path = dir.join(file);
        let said = format!("{} is not a regular file", path.display());
        let remove = || fs::remove_file(&path).unwrap();
        remove();
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        assert!(faults(&dir).contains(&said), "{}", faults(&dir));
        let _ = (Run::without_steps(&dir), Run::outline(&dir));
        if file == "events.jsonl" {
            let refused = RunWriter::resume(&dir).map(drop).unwrap_err();
            assert!(matches!(refused, Error::NotRegular { .. }), "{refused}");
        }
        for place in ["/dev/zero", "/etc/passwd", "nonesuch"] {
            remove();
            symlink(place, &path).unwrap();
            assert!(faults(&dir).contains(&said), "{place}: {}", faults(&dir));
        }
        remove();
        fs::create_dir(&path).unwrap();
        assert!(faults(&dir).contains(&said), "a folder: {}", faults(&dir));
    }
}

#[test]
fn gigabytes_of_nothing_are_named_and_not_kept() {
    in_a_small_process("tests::foreign::gigabytes_of_nothing_are_named_and_not_kept", 1, |_| {
        for file in FILES.into_iter().chain(["cells/1/wal/insert-benchmark/qr100/histograms.hlog"]) {
            let (_parent, dir) = sample_run();
            let path = dir.join(file);
            fs::File::create(&path).unwrap().set_len(5 * GIBIBYTE).unwrap();
            let is_document = file.ends_with(".json");
            let said =
                if is_document { " has more than " } else { " line 1 is damaged: it is longer than 16 MiB" };
            let said = format!("{}{said}", path.display());
            assert!(faults(&dir).contains(&said), "{}", faults(&dir));
        }
    });
}

#[test]
fn more_broken_lines_than_crashes_can_leave_are_damage() {
    let (_parent, dir) = sample_run();
    let path = dir.join("events.jsonl");
    let begun = "{\"event\":\"war\n";
    let resumed = RunEvent::Started { at: AT.into(), resumed: true, tool: manifest().tool };
    let resumed = serde_json::to_string(&resumed).unwrap() + "\n";
    let whole = fs::read_to_string(&path).unwrap();
    for (count, is_damage) in [(100, false), (101, true)] {
        fs::write(&path, format!("{whole}{}{resumed}", begun.repeat(count))).unwrap();
        assert_eq!(faults(&dir).contains("is damaged"), is_damage, "{count} lines");
    }
}

#[test]
fn a_line_of_the_maximum_length_is_read() {
    let path = Path::new("f");
    for (more, is_read) in [(0, true), (1, false)] {
        let long = " ".repeat(usize::try_from(crate::lines::LINE_MAX_BYTES).unwrap() - 1 + more) + "7\n8\n";
        let read = crate::lines::parse_lines(
            path,
            long.as_bytes(),
            |line| crate::lines::parse_json::<u8>(line).map(Some),
            None,
        );
        assert_eq!(read.items, if is_read { vec![7, 8] } else { Vec::new() });
        assert_eq!(read.damage.is_none(), is_read);
    }
}

#[test]
fn folders_behind_a_link_are_skipped_and_named() {
    for folder in [
        "cells",
        "cells/1",
        "cells/1/wal/insert-benchmark/qr100",
        "cells/1/wal/insert-benchmark/qr100/counters",
    ] {
        let (parent, dir) = sample_run();
        let (path, elsewhere) = (dir.join(folder), parent.path().join("elsewhere"));
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let said = format!("{} is a symbolic link", path.display());
        assert!(faults(&dir).contains(&said), "{folder}: {}", faults(&dir));
    }
}
