//! Writes the files of one step: events, intervals, histograms and counters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;

use crate::layout::{COUNTERS, COUNTERS_ENDING, EVENTS, HISTOGRAMS, INTERVALS, create_folder};
use crate::layout::{folder_name, names_in, sync_folder};
use crate::lines::LineWriter;
use crate::{CounterHeader, CounterLine, Error, Interval, StepEvent, checksum, histogram};

/// Writes the folder of one step. Lines wait in memory until `flush`, which is called each second, or
/// `sync`.
pub struct StepWriter {
    dir: PathBuf,
    events: LineWriter,
    intervals: LineWriter,
    histograms: LineWriter,
}

impl StepWriter {
    /// Opens the files in a folder that exists and is new.
    pub fn open(dir: PathBuf) -> Result<StepWriter, Error> {
        let events = LineWriter::open(dir.join(EVENTS))?;
        let intervals = LineWriter::open(dir.join(INTERVALS))?;
        let mut histograms = LineWriter::open(dir.join(HISTOGRAMS))?;
        histograms.push_bytes(histogram::HEADER.as_bytes())?;
        Ok(StepWriter { dir, events, intervals, histograms })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn event(&mut self, event: &StepEvent) -> Result<(), Error> {
        self.events.push(event)
    }

    pub fn interval(&mut self, interval: &Interval) -> Result<(), Error> {
        self.intervals.push(interval)
    }

    /// Appends the histogram of `[from_us, to_us)` since the barrier, with values in microseconds. An
    /// empty histogram is not written. `tag` is one that `Clock::tag` makes, and any other one is an
    /// error.
    pub fn histogram(
        &mut self,
        tag: &str,
        from_us: u64,
        to_us: u64,
        histogram: &Histogram<u64>,
    ) -> Result<(), Error> {
        if histogram.is_empty() {
            return Ok(());
        }
        let line = histogram::format_line(tag, from_us, to_us, histogram).map_err(|message| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, message);
            Error::Write { path: self.histograms.path().into(), source }
        })?;
        self.histograms.push_bytes(&line)
    }

    /// Begins the counter file of a source. It can be written from any thread. A source has one file
    /// per step.
    pub fn counters(&self, header: CounterHeader) -> Result<CounterWriter, Error> {
        let name = format!("{}{COUNTERS_ENDING}", folder_name(&header.source)?);
        let path = self.dir.join(COUNTERS).join(name);
        if path.exists() {
            return Err(Error::Exists { path });
        }
        if !self.dir.join(COUNTERS).exists() {
            create_folder(&self.dir.join(COUNTERS))?;
        }
        let mut lines = LineWriter::open(path)?;
        lines.push(&header)?;
        lines.flush()?;
        Ok(CounterWriter { lines, last: BTreeMap::new() })
    }

    /// Gives all lines to the operating system, so that they survive the death of this process.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.files().into_iter().try_for_each(LineWriter::flush)
    }

    /// Puts all lines and the folder on the disk, then the checksums of all files. The step's counter
    /// writers must be synced on their own before this. Nothing may be written after it.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.files().into_iter().try_for_each(LineWriter::sync)?;
        let counters = self.dir.join(COUNTERS);
        if counters.exists() {
            sync_folder(&counters)?;
        }
        let sources = names_in(&counters)?.into_iter().map(|file| format!("{COUNTERS}/{file}"));
        let files = [EVENTS, INTERVALS, HISTOGRAMS].map(str::to_owned).into_iter().chain(sources);
        checksum::write(&self.dir, &files.collect::<Vec<_>>())?;
        sync_folder(&self.dir)
    }

    /// Returns the files in the order in which they are written. Events are last, so that a step whose
    /// record has an end has all its figures.
    fn files(&mut self) -> [&mut LineWriter; 3] {
        [&mut self.intervals, &mut self.histograms, &mut self.events]
    }
}

/// Writes the counter file of one source.
pub struct CounterWriter {
    lines: LineWriter,
    last: BTreeMap<String, i64>,
}

impl CounterWriter {
    /// Appends one sample, taken `at_us` since the barrier, and gives it to the operating system. Only
    /// values that differ from the line before are written. A key that is missing here keeps its last
    /// value for readers.
    pub fn line(&mut self, at_us: i64, values: &BTreeMap<String, i64>) -> Result<(), Error> {
        let changed = values.iter().filter(|(key, value)| self.last.get(*key) != Some(value));
        let changed: BTreeMap<String, i64> = changed.map(|(key, value)| (key.clone(), *value)).collect();
        self.last.extend(changed.clone());
        self.lines.push(&CounterLine { at_us, values: changed })?;
        self.lines.flush()
    }

    pub fn sync(&mut self) -> Result<(), Error> {
        self.lines.sync()
    }
}
