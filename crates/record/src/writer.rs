//! Writes a run directory: the run, its cells, and the files of each step (events, intervals,
//! histograms and counters).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;

use crate::layout::{
    ASIDE, CELLS, COUNTERS, COUNTERS_ENDING, EVENTS, HISTOGRAMS, INTERVALS, LOGS, MANIFEST, REPEATED, STACKS,
    cell_path, create_folder, folder_name, names_in, refuse_links, sync_folder, write_whole,
};
use crate::lines::LineWriter;
use crate::{
    CellEvent, CellId, CounterHeader, CounterLine, Error, Interval, Manifest, RunEvent, StepEvent, checksum,
    histogram, reader,
};

/// Writes one run directory. While it lives, no other process can write the same run.
pub struct RunWriter {
    dir: PathBuf,
    events: LineWriter,
}

impl RunWriter {
    /// Creates `<parent>/<run_id>` with its manifest, which is on the disk before anything of the
    /// run is recorded. Until then the folder is recognised by its file of events, which is empty
    /// and locked.
    ///
    /// It fails when the folder exists, when `run_id` cannot name a folder, or when it cannot be
    /// written.
    pub fn create(parent: &Path, manifest: &Manifest) -> Result<RunWriter, Error> {
        let dir = parent.join(folder_name(&manifest.run_id)?);
        create_folder(&dir)?;
        let events = LineWriter::open(dir.join(EVENTS))?;
        events.lock()?;
        for folder in [CELLS, LOGS] {
            create_folder(&dir.join(folder))?;
        }
        write_whole(&dir.join(MANIFEST), manifest)?;
        sync_folder(&dir)?;
        sync_folder(&parent_of(&dir))?;
        Ok(RunWriter { dir, events })
    }

    /// Continues the run in `dir`, however its last process ended.
    ///
    /// The first event after this must be `RunEvent::Started` with `resumed`. From this event a
    /// reader knows that a broken line before it was cut off by a crash. `resume` fails when `dir`
    /// is not a run directory, when its format is too new or its manifest damaged, or when another
    /// process writes it.
    pub fn resume(dir: &Path) -> Result<(RunWriter, Manifest), Error> {
        let manifest = reader::read_manifest(dir)?;
        let events = LineWriter::reopen(dir.join(EVENTS))?;
        events.lock()?;
        Ok((RunWriter { dir: dir.into(), events }, manifest))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the folder where server logs go.
    pub fn logs_dir(&self) -> PathBuf {
        self.dir.join(LOGS)
    }

    /// Appends one event. It is on the disk when this returns.
    pub fn event(&mut self, event: &RunEvent) -> Result<(), Error> {
        self.events.push(event)?;
        self.events.sync()
    }

    /// Creates the folder of a cell. It fails with `Exists` when there is one, see `set_aside`.
    pub fn cell(&self, cell: &CellId) -> Result<CellWriter, Error> {
        let dir = self.dir.join(CELLS).join(cell_path(cell)?);
        let repeated = self.dir.join(REPEATED).join(cell_path(cell)?);
        refuse_links(&self.dir, &dir)?;
        refuse_links(&self.dir, &repeated)?;
        create_folder(&dir)?;
        sync_folders_between(&self.dir, &dir)?;
        let events = LineWriter::open(dir.join(EVENTS))?;
        Ok(CellWriter { dir, repeated, events })
    }

    /// Moves the folder of a cell that did not end to `aside/<n>/<block>/<variant>/<workload>`. `n`
    /// is the lowest number that is free for this cell.
    ///
    /// The result is the new path relative to the run directory, as `RunEvent::CellSetAside`
    /// records it. It is `None` when the cell has no folder.
    pub fn set_aside(&self, cell: &CellId) -> Result<Option<PathBuf>, Error> {
        let path = cell_path(cell)?;
        let from = self.dir.join(CELLS).join(&path);
        refuse_links(&self.dir, &from)?;
        if !from.exists() {
            return Ok(None);
        }
        let mut number = 1u32;
        let aside = loop {
            let aside = Path::new(ASIDE).join(number.to_string()).join(&path);
            if !self.dir.join(&aside).exists() {
                break aside;
            }
            number += 1;
        };
        self.move_here(&from, &self.dir.join(&aside))?;
        sync_folder(&parent_of(&from))?;
        Ok(Some(aside))
    }

    /// Moves the records of a cell from the run directory `from` into this one. Both must be on the
    /// same filesystem, and this one must have no record of the cell.
    pub fn take_over(&self, from: &Path, cell: &CellId) -> Result<(), Error> {
        let path = cell_path(cell)?;
        // The steps are moved last, because the cell counts as part of this run once they are here.
        for folder in [REPEATED, CELLS] {
            let (from, to) = (from.join(folder).join(&path), self.dir.join(folder).join(&path));
            if from.exists() {
                self.move_here(&from, &to)?;
            }
        }
        Ok(())
    }

    /// Moves a folder to `to`, which is in this run and on the same filesystem.
    fn move_here(&self, from: &Path, to: &Path) -> Result<(), Error> {
        refuse_links(&self.dir, to)?;
        let write_error = |source| Error::Write { path: to.into(), source };
        std::fs::create_dir_all(parent_of(to)).map_err(write_error)?;
        std::fs::rename(from, to).map_err(write_error)?;
        sync_folders_between(&self.dir, to)
    }
}

pub struct CellWriter {
    dir: PathBuf,
    /// Folder of the steps that run once more only to recreate the data.
    repeated: PathBuf,
    events: LineWriter,
}

impl CellWriter {
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends one event. It is on the disk when this returns.
    pub fn event(&mut self, event: &CellEvent) -> Result<(), Error> {
        self.events.push(event)?;
        self.events.sync()
    }

    /// Creates the folder of a step. It fails with `Exists` when the cell has had a step of this
    /// name.
    pub fn step(&self, name: &str) -> Result<StepWriter, Error> {
        let dir = self.dir.join(folder_name(name)?);
        create_folder(&dir)?;
        sync_folder(&self.dir)?;
        StepWriter::open(dir)
    }

    /// Creates the folder of a step that runs once more only to recreate the data. Readers of the
    /// run skip it. The folder is `repeated/<block>/<variant>/<workload>/<n>.<step>`, with the
    /// lowest number `n` that is free.
    pub fn repeated(&self, name: &str) -> Result<StepWriter, Error> {
        let name = folder_name(name)?;
        let path = |number: u32| self.repeated.join(format!("{number}.{name}"));
        let dir = (1..).map(path).find(|dir| !dir.exists()).unwrap_or_else(|| path(0));
        create_folder(&dir)?;
        StepWriter::open(dir)
    }
}

/// Syncs every folder from `top` down to the one that contains `below`.
fn sync_folders_between(top: &Path, below: &Path) -> Result<(), Error> {
    below.ancestors().skip(1).take_while(|folder| folder.starts_with(top)).try_for_each(sync_folder)
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}

/// Writes the folder of one step. Lines wait in memory until `flush`, which is called each second,
/// or `sync`.
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

    /// Appends the histogram of `[from_us, to_us)` since the barrier, with values in microseconds.
    /// An empty histogram is not written. `tag` is one that `Clock::tag` makes, and any other one
    /// is an error.
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

    /// Begins the counter file of a source. It can be written from any thread. A source has one
    /// file per step.
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

    /// Writes the stacks that a profiler sampled, one per line: the functions from the outermost
    /// caller on, separated by `;`, then a space and the number of samples.
    pub fn stacks(&self, folded: &str) -> Result<(), Error> {
        let path = self.dir.join(STACKS);
        let write = || {
            let mut file = File::create_new(&path)?;
            file.write_all(folded.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| Error::Write { path: path.clone(), source })
    }

    /// Gives all lines to the operating system, so that they survive the death of this process.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.files().into_iter().try_for_each(LineWriter::flush)
    }

    /// Syncs all lines and the folder to the disk, and then the checksums of all files. The step's
    /// counter writers must be synced on their own before this. Nothing may be written after it.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.files().into_iter().try_for_each(LineWriter::sync)?;
        let counters = self.dir.join(COUNTERS);
        if counters.exists() {
            sync_folder(&counters)?;
        }
        let sources = names_in(&counters)?.into_iter().map(|file| format!("{COUNTERS}/{file}"));
        let stacks = self.dir.join(STACKS).exists().then(|| STACKS.to_owned());
        let files = [EVENTS, INTERVALS, HISTOGRAMS].map(str::to_owned).into_iter().chain(stacks).chain(sources);
        checksum::write(&self.dir, &files.collect::<Vec<_>>())?;
        sync_folder(&self.dir)
    }

    /// Returns the files in the order in which they are written. Events are last, so that a step
    /// whose record has an end has all its figures.
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
    /// Appends one sample, taken `at_us` since the barrier, and gives it to the operating system.
    /// Only values that differ from the line before are written. For a key that is missing from a
    /// line, readers use its last value.
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
