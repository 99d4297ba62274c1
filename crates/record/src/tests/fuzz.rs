//! Reads lines of every file with bytes and numbers changed at random. Reading them must end
//! without a panic, and a number in a line must not decide how much memory is allocated.
//!
//! Each target runs in a separate process that may have 512 MiB of addresses. `DBDYNO_FUZZ_INPUTS`
//! is the number of inputs of each target. The same number makes the same inputs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::draw::{Draw, in_a_small_process};
use super::*;
use crate::lines::{Line, each_line, parse_json, parse_lines};
use crate::plausible::{self, Events, Intervals};
use crate::{counters, reader};

/// Number of inputs for each target. They take about a second in a debug build.
const INPUTS: u64 = 20_000;

/// Reads mutations of `seeds`. `target` is the test's name.
fn fuzz(target: &str, seeds: &[Vec<u8>], read: impl Fn(&mut Draw, &[u8])) {
    in_a_small_process(&format!("tests::fuzz::{target}"), INPUTS, |inputs| {
        let mut draw = Draw::new();
        for number in 0..inputs {
            let input = draw.mutated(&seeds[number as usize % seeds.len()]);
            let was_read = catch_unwind(AssertUnwindSafe(|| read(&mut draw, &input)));
            assert!(was_read.is_ok(), "input {number} of {target}: {}", input.escape_ascii());
        }
    });
}

/// Returns a file of the step `qr100` of the sample run.
fn seed(file: &str) -> Vec<u8> {
    let (_parent, dir) = sample_run();
    std::fs::read(step_dir(&dir).join(file)).unwrap()
}

#[test]
fn intervals() {
    fuzz("intervals", &[seed("intervals.jsonl")], |_, input| {
        let mut checked = Intervals::default();
        let read = parse_lines(Path::new("f"), input, |line| checked.take(parse_json(line)?).map(Some), None);
        let mut sum = Interval::default();
        read.items.iter().for_each(|interval| sum += interval);
        // An interval is at most one second, so the lines limit the length of the window.
        assert!(plausible::end_us(&read.items) <= 1_000_000 * read.items.len() as u64);
    });
}

#[test]
fn events() {
    let (_parent, dir) = sample_run();
    let cell = std::fs::read(dir.join("cells/1/wal/insert-benchmark/events.jsonl")).unwrap();
    let run = std::fs::read(dir.join("events.jsonl")).unwrap();
    fuzz("events", &[seed("events.jsonl"), seed("events.jsonl"), cell, run], |draw, input| {
        let path = Path::new("f");
        let resumes: fn(&RunEvent) -> bool = |event| matches!(event, RunEvent::Started { resumed: true, .. });
        parse_lines(path, input, |line| parse_json::<RunEvent>(line).map(Some), Some(resumes));
        parse_lines(path, input, |line| parse_json::<CellEvent>(line).map(Some), None);
        let mut so_far = Events::default();
        let read = parse_lines(path, input, |line| so_far.take(parse_json(line)?).map(Some), None);
        let end_us = draw.next() % 3_000_000;
        let mut events = read.items;
        while let Some((place, _)) = plausible::window_fault(&events, end_us) {
            events.remove(place);
        }
        let bounded =
            |event: &StepEvent| !matches!(event, StepEvent::Window { to_us, .. } if *to_us > end_us);
        assert!(events.iter().rfind(|event| matches!(event, StepEvent::Window { .. })).is_none_or(bounded));
    });
}

#[test]
fn counters() {
    fuzz("counters", &[seed("counters/server.jsonl")], |_, input| {
        let (mut before_us, mut lines) = (None, counters::SeriesBuilder::default());
        each_line(Path::new("f"), input, false, |line, _| {
            let entry = counters::parse_line(line)?;
            if let Some(at_us) = entry.at_us() {
                plausible::sample_at(at_us, before_us.replace(at_us))?;
            }
            lines.take(entry);
            Ok(Line::Good)
        });
        let Ok(Some(series)) = lines.series() else { return };
        for key in series.keys() {
            let _ = (series.nearest(key, 1_000_000), series.nearest(key, -1));
            assert!(series.values(key).count() <= series.len());
        }
    });
}

#[test]
fn histograms() {
    let line = |values: &[u64]| {
        crate::histogram::format_line("a/service", 0, 1_000_000, &histogram(values)).unwrap()
    };
    let plain = |values: &[u64]| {
        use hdrhistogram::serialization::{Serializer, V2Serializer};
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram(values), &mut bytes).unwrap();
        bytes
    };
    let many: Vec<u64> = (0..200).map(|number| number * number).collect();
    let seeds = [line(&[610, 640, 2_207]), plain(&[5, 900]), line(&many), plain(&many)];
    fuzz("histograms", &seeds, |_, input| {
        // If the plain bytes are changed before they are packed, they reach the reader of counts.
        // Otherwise the reader of the log rejects most of them.
        let text = if input.starts_with(&[0x1c, 0x84]) { packed(input) } else { input.to_vec() };
        let read = parse_lines(
            Path::new("f"),
            &text[..],
            |line| crate::histogram::parse_line(line)?.map(plausible::histogram).transpose(),
            None,
        );
        for span in &read.items {
            let _ = span.histogram().map(|histogram| histogram.value_at_quantile(0.99));
        }
        let _ = HistogramSpan::sum(read.items.iter());
    });
}

/// Returns a line of the log whose histogram is `plain`.
fn packed(plain: &[u8]) -> Vec<u8> {
    let payload = fdeflate::compress_to_vec(plain);
    let mut stored = vec![0x1c, 0x84, 0x93, 0x14];
    stored.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    stored.extend(payload);
    let mut line = b"Tag=a/service,0.000000,1.000000,5.000,".to_vec();
    line.extend(data_encoding::BASE64.encode(&stored).bytes());
    line
}

#[test]
fn manifest() {
    let (_parent, dir) = sample_run();
    let whole = std::fs::read(dir.join("manifest.json")).unwrap();
    fuzz("manifest", &[whole], |_, input| {
        if let Ok(manifest) = reader::parse_manifest(Path::new("f"), input) {
            manifest.order.iter().for_each(|cell| drop(crate::layout::cell_path(cell)));
        }
    });
}
