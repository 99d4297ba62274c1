//! Reads the folder of one step, as far as it can be read.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;

use crate::checksum::{Checksums, Summed};
use crate::counter_lines::{self, Together};
use crate::layout::{COUNTERS, COUNTERS_ENDING, EVENTS, HISTOGRAMS, INTERVALS, names_in};
use crate::lines::{Line, each_line, parse_json};
use crate::plausible::{self, Events, Intervals};
use crate::{
    Check, CounterSeries, Error, HistogramSpan, Interval, Outcome, StepEvent, StepSpec, histogram, regular,
};

/// Bytes of a file that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The folder's name: `l.i0`, `qr100`, ...
    pub name: String,
    /// What the step was meant to be, from its first event. It has only the name when that event is
    /// lost. The step is then `damaged`, or was killed before that event.
    pub spec: StepSpec,
    pub events: Vec<StepEvent>,
    pub intervals: Vec<Interval>,
    pub histograms: Vec<HistogramSpan>,
    pub counters: BTreeMap<String, CounterSeries>,
    /// Whether the files were compared with the checksums that were written when the step had ended.
    /// Steps that did not end have none, nor have those of versions of dbdyno that wrote none.
    pub has_checksums: bool,
    /// Which files cannot be trusted and why. The other fields hold what was read before the damage.
    pub damaged: Option<String>,
}

impl StepRecord {
    /// Reads the folder of one step. What cannot be read is reported in `damaged`.
    pub fn open(dir: &Path) -> Self {
        let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        read_step(dir, &name, &mut Vec::new())
    }

    /// Returns the common window `(from_us, to_us)` since the barrier, or `None` when the step did not
    /// come so far.
    pub fn window(&self) -> Option<(u64, u64)> {
        self.events.iter().rev().find_map(|event| match event {
            StepEvent::Window { from_us, to_us } => Some((*from_us, *to_us)),
            _ => None,
        })
    }

    /// Returns how the step ended, or `None` when it was killed in the middle.
    pub fn outcome(&self) -> Option<Outcome> {
        self.events.iter().rev().find_map(|event| match event {
            StepEvent::Ended { outcome, .. } => Some(*outcome),
            _ => None,
        })
    }

    /// Returns why the step's figures must not be used, in the order in which the reasons were found.
    pub fn invalid_reasons(&self) -> Vec<&str> {
        let reasons = self.events.iter().filter_map(|event| match event {
            StepEvent::Invalid { reason } => Some(reason.as_str()),
            _ => None,
        });
        reasons.collect()
    }

    pub fn checks(&self) -> Vec<&Check> {
        let checks = self.events.iter().filter_map(|event| match event {
            StepEvent::Check(check) => Some(check),
            _ => None,
        });
        checks.collect()
    }
}

/// Reads the step in `dir`. Lines that a crash cut off go to `warnings`, and damage stays with the
/// step.
pub(crate) fn read_step(dir: &Path, name: &str, warnings: &mut Vec<String>) -> StepRecord {
    let mut damages = Vec::new();
    let sums = Checksums::read(dir).unwrap_or_else(|damage| {
        damages.push(damage);
        Checksums::default()
    });
    let mut files = Files { dir, sums, warnings, damages };
    let mut checked = Intervals::default();
    let intervals: Vec<Interval> = files.read(INTERVALS, |line| checked.take(parse_json(line)?).map(Some));
    let mut so_far = Events::default();
    let mut events = files.read(EVENTS, |line| so_far.take(parse_json(line)?).map(Some));
    if let Some((place, message)) = plausible::window_fault(&events, plausible::end_us(&intervals)) {
        // A step that was killed may have lost the intervals of its last second. For a step that is
        // damaged already, enough is reported.
        if matches!(events.last(), Some(StepEvent::Ended { .. })) && files.damages.is_empty() {
            let damage = Error::Damaged { path: dir.join(EVENTS), line: place + 1, message };
            files.damages.push(damage.to_string());
        }
        events.remove(place);
    }
    let histograms =
        files.read(HISTOGRAMS, |line| histogram::parse_line(line)?.map(plausible::histogram).transpose());
    let counters = read_counters(&mut files);
    let spec = match events.first() {
        Some(StepEvent::Started { spec, .. }) => spec.clone(),
        first => {
            // A step without any line was killed before its first one, so it has no end either.
            if first.is_some() {
                let path = dir.join(EVENTS);
                files.damages.push(format!("{} does not begin with a `started` event", path.display()));
            }
            StepSpec { name: name.into(), ..StepSpec::default() }
        }
    };
    let missing = files.sums.missing(dir);
    files.damages.extend(missing);
    let has_checksums = files.sums.are_there();
    let damaged = (!files.damages.is_empty()).then(|| files.damages.join("; "));
    StepRecord { name: name.into(), spec, events, intervals, histograms, counters, has_checksums, damaged }
}

/// The files of a step, and what was found while reading them.
struct Files<'a> {
    dir: &'a Path,
    sums: Checksums,
    warnings: &'a mut Vec<String>,
    damages: Vec<String>,
}

impl Files<'_> {
    /// Returns the items of a file of lines. A file that is absent has none.
    fn read<T>(&mut self, name: &str, mut parse: impl FnMut(&[u8]) -> Result<Option<T>, String>) -> Vec<T> {
        let mut items = Vec::new();
        self.each_line(name, |line| {
            items.extend(parse(line)?);
            Ok(())
        });
        items
    }

    /// Gives `take` the lines of a file, and compares the file with its checksum from when the step
    /// ended.
    fn each_line(&mut self, name: &str, mut take: impl FnMut(&[u8]) -> Result<(), String>) {
        let path = self.dir.join(name);
        let file = match regular::open(&path) {
            Ok(Some(file)) => file,
            // If the file was there once, its checksum shows that it is missing.
            Ok(None) => return,
            Err(error) => {
                self.damages.push(error.to_string());
                self.damages.extend(self.sums.fault(self.dir, name, None));
                return;
            }
        };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, Summed::new(file));
        let odd = each_line(&path, &mut input, false, |line, _| take(line).map(|()| Line::Good));
        self.warnings.extend(odd.cut_off);
        // A damaged line is more precise than the message that the whole file differs, and it ends the
        // reading.
        let sum = odd.damage.is_none().then(|| input.into_inner().sum());
        let changed = self.sums.fault(self.dir, name, sum.as_ref());
        self.damages.extend(odd.damage.map(|damage| damage.to_string()).or(changed));
    }
}

/// Returns all counter files, by source.
fn read_counters(files: &mut Files<'_>) -> BTreeMap<String, CounterSeries> {
    let mut counters = BTreeMap::new();
    let dir = files.dir.join(COUNTERS);
    if dir.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        files
            .damages
            .push(format!("{} is a symbolic link, and no record is read through one", dir.display()));
        return counters;
    }
    let names = names_in(&dir).unwrap_or_else(|error| {
        files.damages.push(error.to_string());
        Vec::new()
    });
    for file in names {
        let Some(source) = file.strip_suffix(COUNTERS_ENDING) else { continue };
        let name = format!("{COUNTERS}/{file}");
        let (mut before_us, mut lines) = (None, Together::default());
        files.each_line(&name, |line| {
            let entry = counter_lines::parse_line(line)?;
            if let Some(at_us) = entry.at_us() {
                plausible::sample_at(at_us, before_us.replace(at_us))?;
            }
            lines.take(entry);
            Ok(())
        });
        match lines.series() {
            Ok(series) => counters.extend(series.map(|series| (source.to_string(), series))),
            Err(message) => files.damages.push(format!("{} {message}", dir.join(&file).display())),
        }
    }
    counters
}
