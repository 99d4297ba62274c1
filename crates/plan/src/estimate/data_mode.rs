//! Changes a workload's forecast by its data mode: loads that run once or repeatedly, and stops,
//! starts and copies of the data.

use std::time::Duration;

use dbdyno_model::{Cold, DataMode, Design};

use super::CellEstimate;
use super::figures::ServerFigures;
use crate::{Needs, Plan, StepEstimate, StepOutline, WorkloadOptions};

/// Adds to a cell what the data mode and the cold steps of `options` cost, and notes what later
/// blocks leave out. `loaded_bytes` is the size of a data directory after the load. `stays_up` says
/// that one server serves all blocks.
pub(crate) fn by_data_mode(
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
    // These are the start, the load, and the rest after it.
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
    let again = later_groups(&measured);
    if mode == DataMode::Reset && again > 0 {
        let load: Duration = before.iter().map(|step| step.duration).sum();
        let detail = format!("{} fresh data, loaded again", times(again));
        add("reset", &detail, load.saturating_mul(again));
    }
    let restarts = restarts(mode, &cold, &measured);
    if restarts > 0 {
        let detail = format!("{} a stop and a start", times(restarts));
        let colds = count(measured.iter().filter(|step| cold.holds(&step.name)));
        let dropping = figures.time("caches dropped", f64::from(colds), 1);
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

/// Counts the steps after the first that begin on data of their own.
fn later_groups(measured: &[StepOutline]) -> u32 {
    count(measured.iter().skip(1).filter(|step| step.begins_group))
}

/// Counts stops and starts before measured steps. It leaves out those with fresh data, whose time
/// is in `prepare`, and the one with the snapshot.
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

/// Counts copies of the snapshot: at the beginning of each block, and before steps.
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
