//! How long a plan takes: by what finished runs of this class of host have taken, otherwise by the
//! shipped figures.

mod measured;
mod store;

use std::path::Path;

use dbdyno_analyse::host_class;
use dbdyno_plan::{Basis, Design, Estimate, PastCell, Plan, estimate};
use dbdyno_record::{HostInfo, Manifest, Run};
use dbdyno_report::host_class_words;
use dbdyno_workloads::plans::parse;

use crate::exit::ExitError;
use crate::manifest::host_info;
use crate::{configs, host, terminal};
use store::StoredCell;

/// The forecast for a plan on this host.
pub(crate) fn of(plan: &Plan) -> Estimate {
    let info = host_info(plan, Path::new("."));
    estimate(plan, &Basis { past: past(&info), ..basis(plan, &info) })
}

/// Without what finished runs have shown.
fn basis(plan: &Plan, info: &HostInfo) -> Basis {
    Basis {
        cpus: host::usable_cpus().ok().and_then(|usable| u32::try_from(usable.0.len()).ok()),
        memory_bytes: Some(info.memory_bytes).filter(|bytes| *bytes > 0),
        only_cache_bytes: configs::only_cache_bytes(plan),
        past: Vec::new(),
    }
}

/// What is remembered of this class of host, by builds of this kind.
fn past(info: &HostInfo) -> Vec<PastCell> {
    let Some(path) = store::path() else { return Vec::new() };
    let class = host_class_words(host_class(info));
    let build = crate::manifest::tool().build;
    let is_here = |stored: &StoredCell| stored.build == build && stored.host == class;
    store::load(&path).into_iter().filter(is_here).map(|stored| stored.cell).collect()
}

/// Keeps the times of a run that has ended, for the next plan. What cannot be kept is no reason to
/// fail.
pub(crate) fn remember(run: &Run) {
    let Some(path) = store::path() else { return };
    if let Err(ExitError { message, .. }) = stored(run).and_then(|cells| store::save(&path, cells)) {
        let why = message.unwrap_or_default();
        terminal::warning(&format!("the times of this run are not kept for `dbdyno plan`: {why}"));
    }
}

fn stored(run: &Run) -> Result<Vec<StoredCell>, ExitError> {
    let manifest: &Manifest = &run.manifest;
    let plan = parse(&manifest.plan_toml, "the run's plan")?;
    // Cells that alternate share their time; those of a fleet ran on several machines.
    let shares_time = plan.design == Design::Alternate || plan.clients.is_some();
    if shares_time || run.events.iter().any(measured::is_of_a_fleet) {
        return Ok(Vec::new());
    }
    let forecast = estimate(&plan, &basis(&plan, &manifest.host));
    let class = host_class_words(host_class(&manifest.host));
    let of_cell = |cell: &dbdyno_plan::CellEstimate| {
        let variant = plan.variants.iter().find(|variant| variant.name == cell.variant)?;
        let blocks = measured::cells(run, &cell.variant, &cell.workload);
        Some(StoredCell {
            run_id: manifest.run_id.clone(),
            build: manifest.tool.build.clone(),
            host: class.clone(),
            cell: PastCell::of(&plan, variant, cell, &blocks)?,
        })
    };
    Ok(forecast.cells.iter().filter_map(of_cell).collect())
}
