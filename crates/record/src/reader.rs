//! Reads a run directory, whether it is finished or cut off at any byte: the run, its cells, and
//! the readable part of each step's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::checksum::{Checksums, Summed};
use crate::counters::{self, SeriesBuilder};
use crate::layout::{
    self, CELLS, COUNTERS, COUNTERS_ENDING, EVENTS, HISTOGRAMS, INTERVALS, MANIFEST, STACKS, cell_path, names_in,
};
use crate::lines::{self, Line, each_line, parse_json, read_json_lines};
use crate::plausible::{self, Events, Intervals};
use crate::{
    CellEvent, CellId, Check, CounterSeries, Error, FORMAT_VERSION, HistogramSpan, HostInfo, Interval,
    Manifest, Outcome, RunEvent, StepEvent, StepSpec, ToolInfo, histogram, parallel,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub dir: PathBuf,
    pub manifest: Manifest,
    pub events: Vec<RunEvent>,
    /// The cells that were begun, in the order of the manifest.
    pub cells: Vec<CellRecord>,
    /// The cells of profile blocks. No rate of them is compared, because the profiler slows the
    /// server down.
    pub profiled_cells: Vec<CellRecord>,
    /// Whether a process was writing the run when it was read. A cell without an end is then under
    /// way, and others are still to come.
    pub is_going_on: bool,
    /// Irregularities of the directory, in sentences: lines cut off by a crash, folders that belong
    /// to no cell, damaged cell events. Damage of a step is in `StepRecord::damaged`.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CellRecord {
    pub id: CellId,
    pub events: Vec<CellEvent>,
    /// The steps in the order of the workload's steps in the manifest, then others by name.
    pub steps: Vec<StepRecord>,
}

impl CellRecord {
    /// Returns how the cell ended, or `None` when it never did.
    pub fn outcome(&self) -> Option<Outcome> {
        self.events.iter().rev().find_map(|event| match event {
            CellEvent::Ended { outcome, .. } => Some(*outcome),
            _ => None,
        })
    }

    /// Returns why no figure of the cell may be used.
    pub fn invalid_reasons(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|event| match event {
            CellEvent::Invalid { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
    }
}

impl Run {
    /// Returns the builds of dbdyno that measured the run: the one that wrote the manifest, then
    /// one for each time the run was begun or resumed.
    pub fn tools(&self) -> impl Iterator<Item = &ToolInfo> {
        let of_session = self.events.iter().filter_map(|event| match event {
            RunEvent::Started { tool, .. } => Some(tool),
            _ => None,
        });
        std::iter::once(&self.manifest.tool).chain(of_session)
    }

    /// Returns the time from the last start to the last end of a cell, in microseconds on the run's
    /// clock. The result is `None` where one of the two is not recorded.
    pub fn cell_span_us(&self, cell: &CellId) -> Option<(u64, u64)> {
        let last = |of: &dyn Fn(&RunEvent) -> Option<u64>| self.events.iter().rev().find_map(of);
        let started = last(&|event| match event {
            RunEvent::CellStarted { cell: id, elapsed_us, .. } if id == cell => Some(*elapsed_us),
            _ => None,
        })?;
        let ended = last(&|event| match event {
            RunEvent::CellEnded { cell: id, elapsed_us, .. } if id == cell => Some(*elapsed_us),
            _ => None,
        })?;
        Some((started, ended))
    }

    /// Returns the steps that a cell was to run, if its block was one of those that leave some out.
    pub fn steps_of(&self, id: &CellId) -> Option<&[String]> {
        let of_look = self.events.iter().rev().find_map(|event| match event {
            RunEvent::Look { order, steps, .. } if order.iter().any(|cell| cell.block == id.block) => {
                steps.get(&id.workload)
            }
            _ => None,
        });
        of_look.map(Vec::as_slice)
    }

    /// Reads the run in `dir`, whether or not it has ended. The order in its manifest continues
    /// with the cells that were added while it ran. In a fleet's run, its host is the machine of
    /// the first block.
    ///
    /// It fails with `NotARun` without a manifest, and with `TooNew` when a newer dbdyno wrote it.
    /// It fails with `DamagedManifest` or `Damaged` when the manifest or the run's own events hold
    /// something that no crash explains.
    pub fn open(dir: &Path) -> Result<Run, Error> {
        Self::with_cells(dir, true)
    }

    /// Reads a run like [`Run::open`], without the steps of the cells. That is enough to tell how
    /// far the run is.
    pub fn without_steps(dir: &Path) -> Result<Run, Error> {
        Self::with_cells(dir, false)
    }

    fn with_cells(dir: &Path, with_steps: bool) -> Result<Run, Error> {
        let mut run = Self::outline(dir)?;
        let profiled = run.profile_order();
        let order: Vec<&CellId> = run.manifest.order.iter().chain(&profiled).collect();
        let cells = read_cells(dir, (&run.manifest, &order), with_steps, &mut run.warnings)?;
        (run.profiled_cells, run.cells) = cells.into_iter().partition(|cell| profiled.contains(&cell.id));
        Ok(run)
    }

    /// Returns the cells of profile blocks in the order in which they were to run.
    pub fn profile_order(&self) -> Vec<CellId> {
        let orders = self.events.iter().filter_map(|event| match event {
            RunEvent::ProfileBlocks { order, .. } => Some(order),
            _ => None,
        });
        orders.flatten().cloned().collect()
    }

    /// Reads a run like [`Run::open`], without the cells.
    pub fn outline(dir: &Path) -> Result<Run, Error> {
        let mut manifest = read_manifest(dir)?;
        let mut warnings = Vec::new();
        let resumes: fn(&RunEvent) -> bool = |event| matches!(event, RunEvent::Started { resumed: true, .. });
        // This is checked before anything is read. If it were checked later, a run that ends
        // meanwhile would look as if it had been cut off.
        let is_written = is_written(dir);
        let events = read_json_lines(&dir.join(EVENTS), Some(resumes));
        if let Some(damage) = events.damage {
            return Err(damage);
        }
        warnings.extend(events.cut_off);
        for event in &events.items {
            if let RunEvent::Look { order, .. } = event {
                manifest.order.extend(order.iter().cloned());
            }
        }
        let measured = events.items.iter().find_map(|event| match event {
            RunEvent::BlockMeasured { host, .. } => Some(host),
            _ => None,
        });
        // The machine that began the run may have measured nothing.
        if let Some(host) = measured {
            manifest.host = HostInfo::clone(host);
        }
        let is_over = matches!(events.items.last(), Some(RunEvent::Ended { .. }));
        let is_going_on = is_written && !is_over;
        let (events, cells, profiled_cells) = (events.items, Vec::new(), Vec::new());
        Ok(Run { dir: dir.into(), manifest, events, cells, profiled_cells, is_going_on, warnings })
    }
}

/// Returns whether a process writes the run in `dir`. Where that cannot be known, the answer is no.
pub fn is_written(dir: &Path) -> bool {
    lines::is_locked(&dir.join(EVENTS))
}

/// Returns whether `dir` was made for a run whose process was killed before it had written the
/// manifest. The file of events is made before the manifest, and filled after it.
pub fn has_not_begun(dir: &Path) -> bool {
    let is_empty =
        |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
    let has_manifest = dir.join(MANIFEST).symlink_metadata().is_ok();
    !has_manifest && is_empty(&dir.join(EVENTS)) && !is_written(dir)
}

/// Returns the last line of the run's events without parsing it, or `None` if there is no line.
pub fn last_event(dir: &Path) -> Option<String> {
    let mut last = None;
    let file = layout::open_regular(&dir.join(EVENTS)).ok()??;
    lines::each_line(dir, BufReader::new(file), false, |line, _| {
        last = Some(String::from_utf8_lossy(line).into_owned());
        Ok(lines::Line::Good)
    });
    last
}

pub(crate) fn read_manifest(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join(MANIFEST);
    let not_a_run = || match has_not_begun(dir) {
        true => Error::NotBegun { path: dir.into() },
        false => Error::NotARun { path: dir.into() },
    };
    match layout::read_bounded(&path, layout::MANIFEST_MAX_BYTES) {
        Ok(text) => parse_manifest(&path, &text.ok_or_else(not_a_run)?),
        Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotADirectory => Err(not_a_run()),
        Err(error) => Err(error),
    }
}

/// Parses the manifest that was read from `path`. The format version is checked before anything
/// else.
pub(crate) fn parse_manifest(path: &Path, text: &[u8]) -> Result<Manifest, Error> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    let damaged = |error: serde_json::Error| Error::DamagedManifest {
        path: path.into(),
        line: error.line(),
        message: error.to_string().replace(&format!(" line {}", error.line()), ""),
    };
    let Version { format_version: found } = serde_json::from_slice(text).map_err(damaged)?;
    if found > FORMAT_VERSION {
        return Err(Error::TooNew { path: path.into(), found, known: FORMAT_VERSION });
    }
    serde_json::from_slice(text).map_err(damaged)
}

fn read_cells(
    dir: &Path,
    (manifest, order): (&Manifest, &[&CellId]),
    with_steps: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<CellRecord>, Error> {
    let mut unplanned: BTreeSet<PathBuf> = cell_folders(&dir.join(CELLS), warnings)?.into_iter().collect();
    let mut begun = Vec::new();
    for id in order.iter().copied() {
        let folder = dir.join(CELLS).join(cell_path(id)?);
        if unplanned.remove(&folder) {
            begun.push((folder, id));
        }
    }
    let mut cells = Vec::new();
    for cell in parallel::map(&begun, |(folder, id)| read_cell(folder, id, manifest)) {
        cells.push(cell?);
    }
    // The work is divided by step and not by cell, because a run can have fewer cells than the
    // machine has cores, or only one cell more.
    let of_cells = begun.iter().zip(&cells).filter(|_| with_steps);
    let steps: Vec<(PathBuf, &String)> = of_cells
        .flat_map(|((folder, _), cell)| cell.steps.iter().map(move |name| (folder.join(name), name)))
        .collect();
    let mut read = parallel::map(&steps, |(folder, name)| {
        let mut odd = Vec::new();
        (read_step(folder, name, &mut odd), odd)
    })
    .into_iter();
    let mut records = Vec::new();
    for cell in &cells {
        warnings.extend(cell.odd.iter().cloned());
        let (steps, odd): (Vec<_>, Vec<_>) = read.by_ref().take(cell.steps.len()).unzip();
        warnings.extend(odd.into_iter().flatten());
        records.push(CellRecord { id: cell.id.clone(), events: cell.events.clone(), steps });
    }
    for folder in unplanned {
        warnings.push(format!("{} belongs to no cell of the manifest and is passed over", folder.display()));
    }
    Ok(records)
}

/// Returns every `<block>/<variant>/<workload>` below `cells`.
fn cell_folders(cells: &Path, odd: &mut Vec<String>) -> Result<Vec<PathBuf>, Error> {
    let mut found = if is_own_folder(cells, odd) { vec![cells.to_path_buf()] } else { Vec::new() };
    for _ in ["block", "variant", "workload"] {
        let level = found.iter().map(|folder| folders_in(folder, odd)).collect::<Result<Vec<_>, _>>()?;
        found = level.into_iter().flatten().collect();
    }
    Ok(found)
}

/// Returns the folders in a folder, sorted. There are none when it is absent.
fn folders_in(dir: &Path, odd: &mut Vec<String>) -> Result<Vec<PathBuf>, Error> {
    let below = names_in(dir)?.into_iter().map(|name| dir.join(name));
    Ok(below.filter(|path| is_own_folder(path, odd)).collect())
}

/// Returns whether there is a folder that is not reached by a link. The target of a link is not
/// part of the run.
fn is_own_folder(path: &Path, odd: &mut Vec<String>) -> bool {
    let Ok(found) = path.symlink_metadata() else { return false };
    if found.is_symlink() {
        odd.push(format!(
            "{} is a symbolic link and is passed over: no record is read through one",
            path.display()
        ));
    }
    found.is_dir()
}

/// A cell whose steps are not yet read.
struct CellFiles<'a> {
    id: &'a CellId,
    events: Vec<CellEvent>,
    /// Names of the steps in the order of the record.
    steps: Vec<String>,
    /// Irregularities in the cell's events.
    odd: Vec<String>,
}

fn read_cell<'a>(dir: &Path, id: &'a CellId, manifest: &Manifest) -> Result<CellFiles<'a>, Error> {
    let events = read_json_lines(&dir.join(EVENTS), None);
    let mut odd = events.cut_off;
    odd.extend(events.damage.map(|damage| damage.to_string()));
    let planned = manifest.workloads.iter().find(|workload| workload.name == id.workload);
    let planned = planned.map_or(&[][..], |workload| &workload.steps);
    let mut steps: Vec<String> = Vec::new();
    for folder in folders_in(dir, &mut odd)? {
        steps.extend(folder.file_name().and_then(|name| name.to_str()).map(String::from));
    }
    steps.sort_by_key(|name| planned.iter().position(|step| step == name).unwrap_or(usize::MAX));
    Ok(CellFiles { id, events: events.items, steps, odd })
}

/// Bytes of a file that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The folder's name: `l.i0`, `qr100`, ...
    pub name: String,
    /// The step's description from its first event. It has only the name when that event is lost.
    /// The step is then `damaged`, or was killed before that event.
    pub spec: StepSpec,
    pub events: Vec<StepEvent>,
    pub intervals: Vec<Interval>,
    pub histograms: Vec<HistogramSpan>,
    pub counters: BTreeMap<String, CounterSeries>,
    /// Sampled stacks with their numbers of samples, for a step that was profiled. The functions of
    /// a stack are separated by `;`, the outermost caller first.
    pub stacks: Vec<(String, u64)>,
    /// Whether the files were compared with the checksums that were written when the step had
    /// ended. Steps that did not end have no checksums, and neither do steps from versions of
    /// dbdyno that wrote none.
    pub has_checksums: bool,
    /// The damaged files and their faults. The other fields hold the data that were read before the
    /// damage.
    pub damaged: Option<String>,
}

impl StepRecord {
    /// Reads the folder of one step. Unreadable parts are reported in `damaged`.
    pub fn open(dir: &Path) -> Self {
        let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        read_step(dir, &name, &mut Vec::new())
    }

    /// Returns the common window `(from_us, to_us)` since the barrier, or `None` when the step did
    /// not get that far.
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

    /// Returns why the step's figures must not be used, in the order in which the reasons were
    /// found.
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
fn read_step(dir: &Path, name: &str, warnings: &mut Vec<String>) -> StepRecord {
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
        // A step that was killed may have lost the intervals of its last second. A step with other
        // damage is already reported.
        if matches!(events.last(), Some(StepEvent::Ended { .. })) && files.damages.is_empty() {
            let damage = Error::Damaged { path: dir.join(EVENTS), line: place + 1, message };
            files.damages.push(damage.to_string());
        }
        events.remove(place);
    }
    let histograms =
        files.read(HISTOGRAMS, |line| histogram::parse_line(line)?.map(plausible::histogram).transpose());
    let stacks = files.read(STACKS, |line| parse_stack(line).map(Some));
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
    let name = name.to_owned();
    StepRecord { name, spec, events, intervals, histograms, counters, stacks, has_checksums, damaged }
}

/// Parses a line of the stacks: `main;row_search_mvcc 12`.
fn parse_stack(line: &[u8]) -> Result<(String, u64), String> {
    let text = String::from_utf8_lossy(line);
    let parsed = text.trim_end().rsplit_once(' ').and_then(|(stack, count)| Some((stack, count.parse().ok()?)));
    parsed
        .filter(|(stack, count)| !stack.is_empty() && *count > 0)
        .map(|(stack, count)| (stack.to_owned(), count))
        .ok_or_else(|| format!("is no stack with a number of samples: {text}"))
}

/// The files of a step, and the problems that were found while reading them.
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
        let file = match layout::open_regular(&path) {
            Ok(Some(file)) => file,
            // If the file existed when the step ended, its checksum shows that it is missing.
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
        // The message about a damaged line is more precise than a message that the whole file
        // differs. Reading also stops at that line, so there is no checksum to compare.
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
        let (mut before_us, mut lines) = (None, SeriesBuilder::default());
        files.each_line(&name, |line| {
            let entry = counters::parse_line(line)?;
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
