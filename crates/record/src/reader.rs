//! Reads a run directory, whether it is finished or cut off at any byte.

use std::collections::BTreeSet;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::layout::{CELLS, EVENTS, MANIFEST, cell_path, names_in};
use crate::lines::{self, read_json_lines};
use crate::step_reader::read_step;
use crate::{
    CellEvent, CellId, Error, FORMAT_VERSION, HostInfo, Manifest, Outcome, RunEvent, StepRecord, ToolInfo,
    parallel, regular,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub dir: PathBuf,
    pub manifest: Manifest,
    pub events: Vec<RunEvent>,
    /// The cells that were begun, in the order of the manifest.
    pub cells: Vec<CellRecord>,
    /// Whether a process was writing the run when it was read. A cell without an end is then under way,
    /// and others are still to come.
    pub is_going_on: bool,
    /// What is odd about the directory, in sentences: lines cut off by a crash, folders that belong to
    /// no cell, damaged cell events. Damage of a step is in `StepRecord::damaged`.
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
    /// Returns the builds of dbdyno that measured the run: the one that wrote the manifest, then one
    /// for each time the run was begun or resumed.
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

    /// Reads the run in `dir`, whether or not it has ended. The order in its manifest continues with
    /// the cells that were added while it ran. In a fleet's run, its host is the machine of the first
    /// block.
    ///
    /// It fails with `NotARun` without a manifest, and with `TooNew` when a newer dbdyno wrote it. It
    /// fails with `DamagedManifest` or `Damaged` when the manifest or the run's own events hold
    /// something that no crash explains.
    pub fn open(dir: &Path) -> Result<Run, Error> {
        Self::with_cells(dir, true)
    }

    /// Reads a run like [`Run::open`], without the steps of the cells. That is enough to tell how far
    /// the run is.
    pub fn without_steps(dir: &Path) -> Result<Run, Error> {
        Self::with_cells(dir, false)
    }

    fn with_cells(dir: &Path, with_steps: bool) -> Result<Run, Error> {
        let mut run = Self::outline(dir)?;
        run.cells = read_cells(dir, &run.manifest, with_steps, &mut run.warnings)?;
        Ok(run)
    }

    /// Reads a run like [`Run::open`], without the cells.
    pub fn outline(dir: &Path) -> Result<Run, Error> {
        let mut manifest = read_manifest(dir)?;
        let mut warnings = Vec::new();
        let resumes: fn(&RunEvent) -> bool = |event| matches!(event, RunEvent::Started { resumed: true, .. });
        // This is checked before anything is read, so that what ends meanwhile has also ended in what
        // is read.
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
        let (events, cells) = (events.items, Vec::new());
        Ok(Run { dir: dir.into(), manifest, events, cells, is_going_on, warnings })
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

/// Returns the last line of the run's events as it stands there, or `None` without one.
pub fn last_event(dir: &Path) -> Option<String> {
    let mut last = None;
    let file = regular::open(&dir.join(EVENTS)).ok()??;
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
    match regular::read(&path, regular::MANIFEST_MAX_BYTES) {
        Ok(text) => parse_manifest(&path, &text.ok_or_else(not_a_run)?),
        Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotADirectory => Err(not_a_run()),
        Err(error) => Err(error),
    }
}

/// Parses the manifest that was read from `path`. The format version is checked before anything else.
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
    manifest: &Manifest,
    with_steps: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<CellRecord>, Error> {
    let mut unplanned: BTreeSet<PathBuf> = cell_folders(&dir.join(CELLS), warnings)?.into_iter().collect();
    let mut begun = Vec::new();
    for id in &manifest.order {
        let folder = dir.join(CELLS).join(cell_path(id)?);
        if unplanned.remove(&folder) {
            begun.push((folder, id));
        }
    }
    let mut cells = Vec::new();
    for cell in parallel::map(&begun, |(folder, id)| read_cell(folder, id, manifest)) {
        cells.push(cell?);
    }
    // The work is divided by step and not by cell, because a run can have fewer cells than the machine
    // has cores, or one more.
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

/// Returns whether there is a folder that is not reached by a link. What a link leads to is not the
/// run's.
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
struct Cell<'a> {
    id: &'a CellId,
    events: Vec<CellEvent>,
    /// Names of the steps in the order of the record.
    steps: Vec<String>,
    /// What is odd about the cell's events.
    odd: Vec<String>,
}

fn read_cell<'a>(dir: &Path, id: &'a CellId, manifest: &Manifest) -> Result<Cell<'a>, Error> {
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
    Ok(Cell { id, events: events.items, steps, odd })
}
