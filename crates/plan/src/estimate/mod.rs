//! Forecasts how long a plan takes and how much disk it needs.
//!
//! A workload says how long its steps are and what work they do. The time of that work is a guess.
//! It follows finished runs on this host, otherwise the shipped [`figures`].

mod data_mode;
mod figures;
mod past;

use std::collections::BTreeMap;
use std::time::Duration;

use data_mode::by_data_mode;
pub use data_mode::judged_steps;
use dbdyno_model::{Design, Variant};
use dbdyno_products::VariantKind;
use figures::ServerFigures;
pub use past::{MeasuredCell, PastCell};

use crate::{Plan, StepEstimate, WorkloadOptions};

/// What a forecast knows of the machine, and of runs that have ended on it.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// CPUs that servers may use where the plan names none. When it is not known, the forecast
    /// takes `USUAL_CPUS`.
    pub cpus: Option<u32>,
    /// Memory of the machine, for servers without a limit.
    pub memory_bytes: Option<u64>,
    /// By variant: the server's own page cache in bytes, where its files bypass the kernel's page
    /// cache (direct I/O), so that no other memory holds its data.
    pub only_cache_bytes: BTreeMap<String, u64>,
    pub past: Vec<PastCell>,
}

/// CPUs that a machine counts with when nothing is known of it.
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
    /// data, and the largest data directory, or all of them with `host.keep_data`. The run
    /// directory's records come on top, and they are small. The data of a server at an address lie
    /// on its owner's disk and are not counted here.
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
    /// Names of the steps that only the variant's first block runs. These are the load where later
    /// blocks begin on a snapshot.
    pub once: Vec<String>,
    /// Bytes of the cell's data directory at its largest. For an address they lie on another's
    /// disk.
    pub disk_bytes: u64,
}

impl Estimate {
    /// How many blocks fit into `budget`, but no fewer than the plan has.
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
