//! Forecasts how long a plan takes and how much disk it needs.
//!
//! A workload defines how long its steps are and how much work they do. The time of that work is a
//! guess. The guess is based on finished runs on this host, or otherwise on the shipped
//! [`figures`].

mod figures;
mod past;

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_model::{Cold, DataMode, Design, Variant};
use dbdyno_products::VariantKind;
use serde::Deserialize;

use crate::estimate::figures::ServerFigures;
use crate::{Needs, Plan, StepOutline, WorkloadOptions};

pub use crate::estimate::past::{MeasuredCell, PastCell};

/// The facts on which a forecast is based: about the machine, and about the runs that have ended on
/// it.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// CPUs that servers may use where the plan names none. When the number is not known, the
    /// forecast assumes `USUAL_CPUS`.
    pub cpus: Option<u32>,
    /// Memory of the machine, for servers without a limit.
    pub memory_bytes: Option<u64>,
    /// By variant: the server's own page cache in bytes, where its files bypass the kernel's page
    /// cache (direct I/O), so that no other memory holds its data.
    pub only_cache_bytes: BTreeMap<String, u64>,
    pub past: Vec<PastCell>,
}

/// CPUs that a forecast assumes for a machine whose CPUs are not known.
const USUAL_CPUS: u32 = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// How often each cell runs.
    pub blocks: u32,
    /// One entry per variant and workload, in the plan's order. Each entry runs once per block.
    pub cells: Vec<CellEstimate>,
    /// Time of all cells of all blocks, and of the rests between them.
    pub duration: Duration,
    /// Rest between two cells.
    pub rest: Duration,
    /// Bytes of initialised data directories that are kept to be copied, one per server that dbdyno
    /// starts.
    pub template_bytes: u64,
    /// The most disk of this machine in use at one time: the templates, the snapshots of loaded
    /// data, and the largest data directory, or all of them with `host.keep_data` or `design =
    /// "alternate"`. The run directory's records come on top, and they are small. The data of a
    /// server at an address lie on its owner's disk and are not counted.
    pub peak_disk_bytes: u64,
    /// The most disk that one cell takes on a server that others run. It is `None` in a plan
    /// without addresses.
    pub address_disk_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CellEstimate {
    pub variant: String,
    pub workload: String,
    /// Steps in the order in which they run.
    pub steps: Vec<StepEstimate>,
    /// Sum over the steps.
    pub duration: Duration,
    /// Names of the steps that only the variant's first block runs. These are the load and the work
    /// around it, where later blocks begin on a snapshot or in a server that stays up.
    pub once: Vec<String>,
    /// Bytes of the cell's data directory at its largest. For a server at an address, this disk
    /// space is on its owner's machine.
    pub disk_bytes: u64,
}

impl Estimate {
    /// Returns how many blocks fit into `budget`, but no fewer than the plan has.
    pub fn blocks_within(&self, budget: Duration) -> u32 {
        let cells: Duration =
            self.cells.iter().map(|cell| cell.duration.saturating_sub(cell.once_duration())).sum();
        let rests = self.rest.saturating_mul(u32::try_from(self.cells.len()).unwrap_or(u32::MAX));
        let further =
            budget.saturating_sub(self.duration).as_secs_f64() / (cells + rests).as_secs_f64().max(1e-3);
        self.blocks.saturating_add(further as u32)
    }
}

/// Returns the forecast for a checked plan.
pub fn estimate(plan: &Plan, basis: &Basis) -> Estimate {
    let mut cells = Vec::new();
    let mut template_bytes = 0;
    let stays_up = plan.design == Design::Alternate;
    for variant in &plan.variants {
        let figures = || ServerFigures::new(variant, server_cpus(plan, basis));
        template_bytes += figures().size().template_bytes;
        for (workload, options) in plan.workload.iter() {
            let mut cell = cell(plan, basis, (variant, workload), options, figures());
            past::correct(&mut cell.steps, &basis.past, (variant, workload), options);
            cell.duration =
                cell.steps.iter().map(|step| step.duration).fold(Duration::ZERO, Duration::saturating_add);
            cells.push(cell);
        }
    }
    let block: Duration = cells.iter().map(|cell| cell.duration).sum();
    let once: Duration = cells.iter().map(CellEstimate::once_duration).sum();
    let is_address = |cell: &&CellEstimate| {
        let variant = plan.variants.iter().find(|variant| variant.name == cell.variant);
        variant.is_some_and(|variant| VariantKind::of(variant).is_address())
    };
    let here: Vec<&CellEstimate> = cells.iter().filter(|cell| !is_address(cell)).collect();
    let address_disk_bytes = cells.iter().filter(is_address).map(|cell| cell.disk_bytes).max();
    let snapshots = here.iter().filter(|cell| !stays_up && !cell.once.is_empty());
    let snapshot_bytes = snapshots.fold(0_u64, |sum, cell| sum.saturating_add(cell.disk_bytes));
    let block_bytes = here.iter().fold(0_u64, |sum, cell| sum.saturating_add(cell.disk_bytes));
    let data_bytes = if stays_up {
        block_bytes
    } else if plan.host.keep_data {
        block_bytes.saturating_mul(plan.blocks.into())
    } else {
        here.iter().map(|cell| cell.disk_bytes).max().unwrap_or(0)
    };
    let all_cells = u32::try_from(cells.len()).unwrap_or(u32::MAX).saturating_mul(plan.blocks);
    let rest = plan.host.rest.0;
    let rests = rest.saturating_mul(all_cells.saturating_sub(1));
    let worked = once.saturating_add(block.saturating_sub(once).saturating_mul(plan.blocks));
    let peak_disk_bytes = data_bytes.saturating_add(template_bytes).saturating_add(snapshot_bytes);
    Estimate {
        blocks: plan.blocks,
        cells,
        duration: worked.saturating_add(rests),
        rest,
        template_bytes,
        peak_disk_bytes,
        address_disk_bytes,
    }
}

fn server_cpus(plan: &Plan, basis: &Basis) -> u32 {
    let of_plan = plan.host.server_cpus.as_ref().and_then(|list| u32::try_from(list.0.len()).ok());
    of_plan.or(basis.cpus).unwrap_or(USUAL_CPUS)
}

/// Forecasts one cell by the shipped figures.
fn cell(
    plan: &Plan,
    basis: &Basis,
    (variant, workload): (&Variant, &str),
    options: &dyn WorkloadOptions,
    figures: ServerFigures,
) -> CellEstimate {
    let forecast = options.estimate(&figures.size());
    let memory = plan.server_memory(&variant.name).map(|limit| limit.0).or(basis.memory_bytes);
    let memory = basis.only_cache_bytes.get(&variant.name).copied().or(memory);
    let data_bytes = forecast.loaded_bytes.saturating_sub(figures.size().log_bytes);
    let figures = figures.with_data(data_bytes, memory);
    let mut cell = CellEstimate {
        variant: variant.name.clone(),
        workload: workload.to_owned(),
        duration: Duration::ZERO,
        once: Vec::new(),
        disk_bytes: forecast.disk_bytes,
        steps: forecast.steps,
    };
    let outlines = options.steps();
    for step in &mut cell.steps {
        if outlines.iter().any(|outline| outline.name == step.name) {
            *step = step.clone().and("step", 1.0, 1);
        }
        step.duration = figures.duration(step);
    }
    by_data_mode(&mut cell, options, &figures, forecast.loaded_bytes, plan.design == Design::Alternate);
    cell
}

/// Adds the time and disk space of the data mode and of the cold steps in `options` to a cell, and
/// notes the steps that later blocks leave out. `loaded_bytes` is the size of a data directory
/// after the load. `stays_up` says that one server serves all blocks.
fn by_data_mode(
    cell: &mut CellEstimate,
    options: &dyn WorkloadOptions,
    figures: &ServerFigures,
    loaded_bytes: u64,
    stays_up: bool,
) {
    // Only steps after the load are measured.
    let measured: Vec<StepOutline> = options.steps().into_iter().filter(|step| !step.loads).collect();
    let Some(StepOutline { name: first, .. }) = measured.first() else { return };
    let Needs { data: mode, cold, .. } = options.needs();
    let restarting = |times: u32| figures.time("server restarted", f64::from(times), 1);
    // The steps before the first measured one are the start, the load, and the rest after it.
    let before: Vec<_> = cell.steps.iter().take_while(|step| step.name != *first).cloned().collect();
    if stays_up {
        cell.once = before.iter().map(|step| step.name.clone()).collect();
    }
    let mut add = |name: &str, detail: &str, duration| {
        cell.steps.push(StepEstimate { duration, ..StepEstimate::new(name, detail, Duration::ZERO) });
    };
    if mode.uses_snapshot() {
        cell.once =
            before.iter().filter(|step| step.name != "prepare").map(|step| step.name.clone()).collect();
        cell.once.push("snapshot".to_owned());
        add("snapshot", "taken once, with a stop and a start", restarting(1));
    }
    let reloads = later_groups(&measured);
    if mode == DataMode::Reset && reloads > 0 {
        let load: Duration = before.iter().map(|step| step.duration).sum();
        let detail = format!("{} fresh data, loaded again", times(reloads));
        add("reset", &detail, load.saturating_mul(reloads));
    }
    let restarts = restarts(mode, &cold, &measured);
    if restarts > 0 {
        let detail = format!("{} a stop and a start", times(restarts));
        let cold_steps = count(measured.iter().filter(|step| cold.holds(&step.name)));
        let dropping = figures.time("caches dropped", f64::from(cold_steps), 1);
        add("restart", &detail, restarting(restarts).saturating_add(dropping));
    }
    let copies = copies(mode, &measured);
    if copies > 0 {
        let detail = format!("{} a copy of the loaded data", times(copies));
        let bytes = loaded_bytes as f64 * f64::from(copies);
        add("restore", &detail, figures.time("byte copied", bytes, 1));
    }
}

fn times(number: u32) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// Counts the steps after the first that begin with restored or reloaded data.
fn later_groups(measured: &[StepOutline]) -> u32 {
    count(measured.iter().skip(1).filter(|step| step.begins_group))
}

/// Counts stops and starts before measured steps. It leaves out those with fresh data, whose time
/// is in `prepare`, and the one with which the snapshot is taken.
fn restarts(mode: DataMode, cold: &Cold, measured: &[StepOutline]) -> u32 {
    let of_mode = |index: usize, begins_group: bool| match mode {
        DataMode::Preserve | DataMode::Restore => false,
        DataMode::Restart => begins_group,
        DataMode::Reset | DataMode::RestoreEachStep => index > 0 && begins_group,
    };
    let steps = measured.iter().enumerate();
    count(steps.filter(|(index, step)| match of_mode(*index, step.begins_group) {
        true => mode != DataMode::Reset,
        false => cold.holds(&step.name),
    }))
}

/// Counts copies of the snapshot: one at the beginning of each block, and one before each further
/// group of steps where the data mode restores data there.
fn copies(mode: DataMode, measured: &[StepOutline]) -> u32 {
    match mode {
        DataMode::Restore => 1,
        DataMode::RestoreEachStep => 1 + later_groups(measured),
        DataMode::Preserve | DataMode::Restart | DataMode::Reset => 0,
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// Names the steps of the workload `name` that run in every block and are no warm-up. Only these
/// steps can have a verdict.
pub fn judged_steps(plan: &Plan, name: &str) -> Vec<String> {
    let Some(options) = plan.workload.get(name) else { return Vec::new() };
    let loads_once = options.needs().data.uses_snapshot() || plan.design == Design::Alternate;
    let judged = options.steps().into_iter().filter(|step| !(step.is_warm_up || step.loads && loads_once));
    judged.map(|step| step.name).collect()
}

impl CellEstimate {
    /// Sums the time of the steps that only the first block runs.
    pub fn once_duration(&self) -> Duration {
        let steps = self.steps.iter().filter(|step| self.once.contains(&step.name));
        steps.map(|step| step.duration).sum()
    }
}

/// Forecast of one step, or of work between steps (`prepare`, `settle`, `verify`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepEstimate {
    pub name: String,
    /// How much there is to do, in rows or seconds.
    pub detail: String,
    /// The certain part: the time of a step that ends with its time, and pauses.
    pub length: Duration,
    /// The guessed part, which comes on top.
    pub work: Vec<Work>,
    /// Time after which the work ends, whether it is done or not.
    pub work_limit: Option<Duration>,
    /// Time of `length` and `work` together. It is only `length` until the work is forecast.
    pub duration: Duration,
}

/// Some work of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The row of `figures.toml` with the time of one unit.
    pub figure: String,
    pub units: f64,
    /// Connections that do the work at the same time, as far as there are CPUs for them.
    pub connections: u32,
}

/// A workload's forecast of its steps on a kind of server. Each step runs on the data that the one
/// before it has left.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The steps in the order in which they run, with the work between them.
    pub steps: Vec<StepEstimate>,
    /// Bytes of the data directory at its largest.
    pub disk_bytes: u64,
    /// Bytes of the data directory after the load.
    pub loaded_bytes: u64,
}

/// Bytes that a kind of server takes on disk.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Bytes of a row of the Insert Benchmark with its primary key only. It is 0 where nothing is
    /// kept.
    pub row_bytes: f64,
    /// Bytes per row that one secondary index adds when it is built over a full table.
    pub built_index_bytes: f64,
    /// Bytes per row that one secondary index takes in the steady state, after random inserts and
    /// deletes.
    pub steady_index_bytes: f64,
    /// Bytes of redo logs and similar files, however few rows there are.
    pub log_bytes: u64,
    /// Binlog bytes per written or deleted row.
    pub binlog_row_bytes: u64,
    /// Bytes of an initialised data directory, kept to be copied for each cell.
    pub template_bytes: u64,
}

impl StepEstimate {
    /// Makes a step that takes exactly `length`, before any work is added.
    pub fn new(name: &str, detail: &str, length: Duration) -> Self {
        Self {
            name: name.to_owned(),
            detail: detail.to_owned(),
            length,
            work: Vec::new(),
            work_limit: None,
            duration: length,
        }
    }

    /// Makes a step that ends with its work, which is this many units of `figure` on one
    /// connection.
    pub fn of_work(name: &str, detail: &str, figure: &str, units: f64) -> Self {
        Self::new(name, detail, Duration::ZERO).and(figure, units, 1)
    }

    /// Adds more work, which follows the work so far.
    #[must_use]
    pub fn and(mut self, figure: &str, units: f64, connections: u32) -> Self {
        self.work.push(Work { figure: figure.to_owned(), units, connections });
        self
    }

    #[must_use]
    pub fn at_most(mut self, limit: Option<Duration>) -> Self {
        self.work_limit = limit;
        self
    }

    /// Returns the time of the guessed part.
    pub fn guessed(&self) -> Duration {
        self.duration.saturating_sub(self.length)
    }
}

/// Makes a duration of at most 1e15 seconds, so that sums of steps and cells cannot overflow, even
/// for an unchecked plan.
pub fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.clamp(0.0, 1e15))
}
