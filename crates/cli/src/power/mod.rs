//! Which differences a plan can detect, from the noise of a run or of the runs of this host.

mod noise;
mod store;
mod table;

use dbdyno_analyse::{Findings, Forecast, fixed_blocks, forecast, margin_of};
use dbdyno_plan::{Estimate, Plan};
use dbdyno_record::Manifest;
use serde::Serialize;

use crate::args::PlanArgs;
use crate::exit::ExitError;
use crate::terminal;
pub(crate) use table::blocks;

/// Noises that are shown when nothing is known: 1 % is usual for a quiet machine.
const ASSUMED: [f64; 4] = [0.005, 0.01, 0.02, 0.05];

#[derive(Debug, Serialize)]
pub(crate) struct Power {
    pub(crate) blocks: u32,
    /// Blocks that fit into the plan's budget. What they detect is what `blocks` of them would, had
    /// their number been fixed.
    pub(crate) most_blocks: Option<u32>,
    /// Steps that can have a verdict × variants other than the base, which are judged together.
    pub(crate) comparisons: usize,
    /// Difference that blocks are counted for, as a fraction; twice the margin of each step when
    /// `None`.
    pub(crate) wanted: Option<f64>,
    /// Where the noise is from, in words; `None` when it is not known.
    pub(crate) noise_from: Option<String>,
    /// The plan's steps, without those that can have no verdict: warm-ups, and loads of the first
    /// block alone.
    pub(crate) steps: Vec<StepPower>,
    /// By assumed noise, when none is known.
    pub(crate) assumed: Vec<StepPower>,
}

/// What it can detect in a step, or in any step with such a noise.
#[derive(Debug, Serialize)]
pub(crate) struct StepPower {
    /// `None` for an assumed noise.
    pub(crate) step: Option<String>,
    /// As a fraction: standard deviation of a block's ratio. `None` when it is not known.
    pub(crate) noise: Option<f64>,
    pub(crate) margin: f64,
    #[serde(flatten)]
    pub(crate) forecast: Option<Forecast>,
}

/// The power of a plan, which would be recorded as `manifest`; `None` for one that compares
/// nothing.
pub(crate) fn of_plan(
    plan: &Plan,
    estimate: &Estimate,
    manifest: &Manifest,
    args: &PlanArgs,
) -> Result<Option<Power>, ExitError> {
    let most_blocks = plan.budget.map(|budget| estimate.blocks_within(budget.0));
    let blocks = most_blocks.map_or(plan.blocks, fixed_blocks);
    let control = usize::from(plan.aa);
    let others = plan.variants.len().saturating_sub(1 + control);
    if plan.variants.len() < 2 {
        return Ok(None);
    }
    let known = match &args.noise {
        Some(run) => noise::of_run(run, manifest)?,
        None => noise::of_host(manifest),
    };
    let steps: usize =
        manifest.workloads.iter().map(|workload| plan.judged_steps(&workload.name).len()).sum();
    let wanted = args.detect.map(|percent| percent / 100.0);
    let comparisons = steps * others.max(1);
    let of_noise = |step: Option<String>, deviation: Option<f64>, margin: f64| StepPower {
        step,
        noise: deviation.map(f64::exp_m1),
        margin,
        forecast: deviation.map(|deviation| {
            forecast(deviation, blocks, comparisons, wanted.unwrap_or(2.0 * margin), margin)
        }),
    };
    let several = manifest.workloads.len() > 1;
    let mut all = Vec::new();
    for workload in &manifest.workloads {
        for step in &plan.judged_steps(&workload.name) {
            let name = if several { format!("{} {step}", workload.name) } else { step.clone() };
            let deviation = known.as_ref().and_then(|known| known.of(&workload.name, step));
            all.push(of_noise(Some(name), deviation, margin_of(manifest, step)));
        }
    }
    let is_known = all.iter().any(|step| step.noise.is_some());
    let assumed = if is_known {
        Vec::new()
    } else {
        ASSUMED.map(|noise| of_noise(None, Some(noise.ln_1p()), plan.margin)).into()
    };
    Ok(Some(Power {
        blocks,
        most_blocks,
        comparisons,
        wanted,
        noise_from: known.filter(|_| is_known).map(|known| known.from),
        steps: all,
        assumed,
    }))
}

/// The length of steps, in whole seconds, that decides most in the same time, and why; `None` where
/// the noise is not known. `seconds` is how long the steps of `plan` are.
pub(crate) fn best_time(plan: &Plan, manifest: &Manifest, seconds: u64) -> Option<(u64, String)> {
    /// Shorter steps show little of a server; longer ones are for what changes slowly, which no one
    /// but the user knows.
    const RANGE: std::ops::RangeInclusive<f64> = 3.0..=120.0;
    let known = noise::of_host(manifest)?;
    let estimate = crate::forecast::of(plan);
    let mut all: Vec<(f64, f64)> = Vec::new();
    for cell in &estimate.cells {
        let steps = plan.judged_steps(&cell.workload).len() as f64;
        let block = cell.duration.saturating_sub(cell.once_duration()).as_secs_f64();
        let cost = (block / steps.max(1.0) - seconds as f64).max(0.5);
        all.extend(known.best_seconds(&cell.workload, cost).map(|best| (best, cost)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (best, cost) = *all.get(all.len() / 2)?;
    let chosen = best.clamp(*RANGE.start(), *RANGE.end()).round();
    let why = format!("chosen from the noise of {}; each step has {cost:.1} s of overhead", known.from);
    Some((chosen as u64, why))
}

/// Keeps the noise of a run that has ended, for the next plan. What cannot be kept is no reason to
/// fail: it can be had from the run again.
pub(crate) fn remember(manifest: &Manifest, findings: &Findings) {
    if let Some(path) = store::path()
        && let Err(ended) = store::save(&path, noise::stored(manifest, findings))
    {
        terminal::warning(&format!(
            "the noise of this run is not kept for `dbdyno plan`: {}",
            ended.message.unwrap_or_default()
        ));
    }
}
