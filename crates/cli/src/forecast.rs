//! Forecasts how long a plan takes. It uses what finished runs have taken on this class of host,
//! otherwise the shipped figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_analyse::host_class;
use dbdyno_model::Design;
use dbdyno_plan::{Basis, CellEstimate, Estimate, MeasuredCell, PastCell, Plan, estimate};
use dbdyno_record::{
    CellEvent, CellRecord, HostInfo, Manifest, Outcome, Run, RunEvent, StepEvent, StepRecord,
};
use dbdyno_report::host_class_words;
use dbdyno_workloads::plans::of_record;
use serde::{Deserialize, Serialize};

use crate::exit::ExitError;
use crate::manifest::host_info;
use crate::{cache_file, host, prepare, terminal};

/// Name of the work that brings a server to rest.
const SETTLE: &str = "cleanup";
/// Version of the file's schema, and of the shipped figures that its times are compared with. It
/// must be raised with either. A file of another version counts as absent and is written again.
const FORMAT: u32 = 2;
/// Number of entries that are kept, which are the newest.
const MOST: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredCell {
    run_id: String,
    /// Kind of build of dbdyno.
    build: String,
    /// Class of the host in words. Entries with other words match nothing.
    host: BTreeMap<String, String>,
    cell: PastCell,
}

/// Returns the forecast for a plan on this host.
pub(crate) fn of(plan: &Plan) -> Estimate {
    let info = host_info(plan, Path::new("."));
    estimate(plan, &Basis { past: past(&info), ..basis(plan, &info) })
}

/// Returns what a forecast knows of this host, without the results of finished runs.
fn basis(plan: &Plan, info: &HostInfo) -> Basis {
    Basis {
        cpus: host::usable_cpus().ok().and_then(|usable| u32::try_from(usable.0.len()).ok()),
        memory_bytes: Some(info.memory_bytes).filter(|bytes| *bytes > 0),
        only_cache_bytes: prepare::only_cache_bytes(plan),
        past: Vec::new(),
    }
}

/// Returns what is remembered of this class of host, by builds of this kind.
fn past(info: &HostInfo) -> Vec<PastCell> {
    let Some(path) = path() else { return Vec::new() };
    let class = host_class_words(host_class(info));
    let build = crate::manifest::tool().build;
    let is_here = |stored: &StoredCell| stored.build == build && stored.host == class;
    let all = cache_file::load::<StoredCell>(&path, FORMAT).into_iter();
    all.filter(is_here).map(|stored| stored.cell).collect()
}

/// Keeps the times of a run that has ended, for the next plan. A failure to keep them is no reason
/// to fail.
pub(crate) fn remember(run: &Run) {
    let Some(path) = path() else { return };
    // The cells of a resumed run replace those of its earlier sessions.
    let is_same = |old: &StoredCell, new: &StoredCell| old.run_id == new.run_id;
    let kept = stored(run).and_then(|cells| cache_file::add(&path, (FORMAT, MOST), cells, is_same));
    if let Err(ExitError { message, .. }) = kept {
        let why = message.unwrap_or_default();
        terminal::warning(&format!("the times of this run are not kept for `dbdyno plan`: {why}"));
    }
}

fn stored(run: &Run) -> Result<Vec<StoredCell>, ExitError> {
    let manifest: &Manifest = &run.manifest;
    let plan = of_record(&manifest.plan)?;
    // Cells that alternate share their time, and those of a fleet ran on several machines.
    let shares_time = plan.design == Design::Alternate || plan.clients.is_some();
    if shares_time || run.events.iter().any(is_of_a_fleet) {
        return Ok(Vec::new());
    }
    let forecast = estimate(&plan, &basis(&plan, &manifest.host));
    let class = host_class_words(host_class(&manifest.host));
    let of_cell = |cell: &CellEstimate| {
        let variant = plan.variants.iter().find(|variant| variant.name == cell.variant)?;
        let blocks = cells(run, &cell.variant, &cell.workload);
        Some(StoredCell {
            run_id: manifest.run_id.clone(),
            build: manifest.tool.build.clone(),
            host: class.clone(),
            cell: PastCell::of(&plan, variant, cell, &blocks)?,
        })
    };
    Ok(forecast.cells.iter().filter_map(of_cell).collect())
}

fn is_of_a_fleet(event: &RunEvent) -> bool {
    matches!(event, RunEvent::BlockMeasured { .. })
}

/// Returns the completed cells of a variant and workload, in the order of their blocks.
fn cells(run: &Run, variant: &str, workload: &str) -> Vec<MeasuredCell> {
    let is_wanted = |cell: &&CellRecord| cell.id.variant == variant && cell.id.workload == workload;
    let completed = |cell: &&CellRecord| cell.outcome() == Some(Outcome::Completed);
    run.cells.iter().filter(is_wanted).filter(completed).filter_map(|cell| measured(run, cell)).collect()
}

fn measured(run: &Run, cell: &CellRecord) -> Option<MeasuredCell> {
    let (started, ended) = run.cell_span_us(&cell.id)?;
    let mut steps: BTreeMap<String, Duration> = BTreeMap::new();
    for step in &cell.steps {
        *steps.entry(step.name.clone()).or_default() += took(step);
    }
    let settling = cell.events.iter().filter_map(|event| match event {
        CellEvent::Work { name, duration_us, .. } if name == SETTLE => {
            Some(Duration::from_micros(*duration_us))
        }
        _ => None,
    });
    let settling = settling.sum();
    Some(MeasuredCell { total: Duration::from_micros(ended.saturating_sub(started)), steps, settling })
}

/// Returns the time from connecting to the end of the last operation.
fn took(step: &StepRecord) -> Duration {
    let of_event = |event: &StepEvent| match event {
        StepEvent::Barrier { connect_us, .. } => *connect_us,
        StepEvent::Ended { at_us, .. } => *at_us,
        _ => 0,
    };
    Duration::from_micros(step.events.iter().map(of_event).sum())
}

/// Returns the path of `times.json`, or `None` without a home directory.
fn path() -> Option<PathBuf> {
    cache_file::in_state_folder("times.json")
}
