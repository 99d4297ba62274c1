//! Reads the folder of one step, as far as it can be read.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Map;

use crate::counter_lines::{self, together};
use crate::layout::{COUNTERS, COUNTERS_ENDING, EVENTS, HISTOGRAMS, INTERVALS};
use crate::lines::{Lines, parse_lines, read_file, read_json_lines};
use crate::{
    Check, CounterSeries, Error, Headline, HistogramSpan, Interval, Outcome, StepEvent, StepSpec, Unit,
    WindowRule, histogram,
};

/// One step of a cell, as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The folder's name: `l.i0`, `qr100`, ...
    pub name: String,
    /// What the step was meant to be, from its first event. Empty but for its name when that event is lost; the step
    /// is `damaged` then.
    pub spec: StepSpec,
    pub events: Vec<StepEvent>,
    pub intervals: Vec<Interval>,
    pub histograms: Vec<HistogramSpan>,
    /// Raw counters by source.
    pub counters: BTreeMap<String, CounterSeries>,
    /// Which files cannot be trusted and why; the other fields hold what was read before the damage.
    pub damaged: Option<String>,
}

impl StepRecord {
    /// Reads the folder of one step; what cannot be read is told in `damaged`.
    pub fn open(dir: &Path) -> Self {
        let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        read_step(dir, &name, &mut Vec::new())
    }

    /// The common window `(from_us, to_us)` since the barrier; `None` when the step did not come so far.
    pub fn window(&self) -> Option<(u64, u64)> {
        self.events.iter().rev().find_map(|event| match event {
            StepEvent::Window { from_us, to_us } => Some((*from_us, *to_us)),
            _ => None,
        })
    }

    /// How the step ended; `None` when it was killed in the middle.
    pub fn outcome(&self) -> Option<Outcome> {
        self.events.iter().rev().find_map(|event| match event {
            StepEvent::Ended { outcome, .. } => Some(*outcome),
            _ => None,
        })
    }

    /// Why the step's figures must not be used, in the order in which it was found.
    pub fn invalid_reasons(&self) -> Vec<&str> {
        let reasons = self.events.iter().filter_map(|event| match event {
            StepEvent::Invalid { reason } => Some(reason.as_str()),
            _ => None,
        });
        reasons.collect()
    }

    /// The content checks made after the step.
    pub fn checks(&self) -> Vec<&Check> {
        let checks = self.events.iter().filter_map(|event| match event {
            StepEvent::Check(check) => Some(check),
            _ => None,
        });
        checks.collect()
    }
}

/// Reads the step in `dir`. Lines that a crash cut off go to `warnings`; damage stays with the step.
pub(crate) fn read_step(dir: &Path, name: &str, warnings: &mut Vec<String>) -> StepRecord {
    let mut notes = Notes { warnings, damages: Vec::new() };
    let events: Vec<StepEvent> = notes.take(read_json_lines(&dir.join(EVENTS), None));
    let intervals = notes.take(read_json_lines(&dir.join(INTERVALS), None));
    let histograms = notes.take(read_histograms(&dir.join(HISTOGRAMS)));
    let counters = read_counters(&dir.join(COUNTERS), &mut notes);
    let spec = match events.first() {
        Some(StepEvent::Started { spec, .. }) => spec.clone(),
        _ => {
            let path = dir.join(EVENTS);
            notes.damages.push(format!("{} does not begin with a `started` event", path.display()));
            unknown_spec(name)
        }
    };
    let damaged = (!notes.damages.is_empty()).then(|| notes.damages.join("; "));
    StepRecord { name: name.into(), spec, events, intervals, histograms, counters, damaged }
}

/// What reading the files of a step brought up.
struct Notes<'a> {
    warnings: &'a mut Vec<String>,
    damages: Vec<String>,
}

impl Notes<'_> {
    fn take<T>(&mut self, read: Result<Lines<T>, Error>) -> Vec<T> {
        match read {
            Ok(lines) => {
                self.warnings.extend(lines.cut_off);
                self.damages.extend(lines.damage.map(|damage| damage.to_string()));
                lines.items
            }
            Err(error) => {
                self.damages.push(error.to_string());
                Vec::new()
            }
        }
    }
}

/// All counter files, by source.
fn read_counters(dir: &Path, notes: &mut Notes<'_>) -> BTreeMap<String, CounterSeries> {
    let mut counters = BTreeMap::new();
    let files = match file_names(dir) {
        Ok(files) => files,
        Err(source) => {
            notes.damages.push(Error::Read { path: dir.into(), source }.to_string());
            return counters;
        }
    };
    for file in files {
        let Some(source) = file.strip_suffix(COUNTERS_ENDING) else { continue };
        let path = dir.join(&file);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                notes.damages.push(error.to_string());
                continue;
            }
        };
        let lines = parse_lines(&path, &bytes, |line| counter_lines::parse_line(line).map(Some), None);
        match together(&notes.take(Ok(lines))) {
            Ok(series) => counters.extend(series.map(|series| (source.to_string(), series))),
            Err(message) => notes.damages.push(format!("{} {message}", path.display())),
        }
    }
    counters
}

/// Sorted; none when there is no such folder.
fn file_names(dir: &Path) -> std::io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn read_histograms(path: &Path) -> Result<Lines<HistogramSpan>, Error> {
    Ok(parse_lines(path, &read_file(path)?, histogram::parse_line, None))
}

fn unknown_spec(name: &str) -> StepSpec {
    StepSpec {
        name: name.into(),
        clients: 0,
        headline: Headline { kind: String::new(), unit: Unit::Operations, label: String::new() },
        window: WindowRule::FirstEnded,
        target: None,
        kinds: Vec::new(),
        options: Map::new(),
        groups: BTreeMap::new(),
        is_warm_up: false,
    }
}
