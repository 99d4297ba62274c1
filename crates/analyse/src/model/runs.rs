//! Runs of steps with where they belong: how warnings name one, and all valid ones to look through.

use crate::model::findings::WorkloadFindings;
use crate::model::notice::{Code, Notice};
use crate::model::step_run::{StepRun, Validity};
use crate::model::steps::{StepFindings, VariantStep};

/// In a shorter window a tick of the kernel's clocks (10 ms), a single hold-up or the samples at
/// its two ends are most of a share that is reported.
pub(crate) const JUDGED_FROM_SECONDS: f64 = 2.0;

/// A run of a step with where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct RunOfStep<'a> {
    pub(crate) step: &'a StepFindings,
    pub(crate) variant: &'a VariantStep,
    pub(crate) run: &'a StepRun,
}

impl RunOfStep<'_> {
    /// `block 2 mysql-8.0 l.i1`
    pub(crate) fn place(&self) -> String {
        format!("block {} {} {}", self.run.block, self.variant.variant, self.step.name)
    }
}

/// In the order of workloads, steps, variants and blocks.
pub(crate) fn valid_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = RunOfStep<'_>> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps);
    steps.flat_map(all_runs).filter(|found| found.run.validity == Validity::Valid)
}

/// Those of them whose window is long enough for a share of time.
pub(crate) fn judged_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = RunOfStep<'_>> {
    valid_runs(workloads).filter(|found| found.run.window_seconds >= JUDGED_FROM_SECONDS)
}

/// In the order of variants and blocks, those too that must not be used.
pub(crate) fn all_runs(step: &StepFindings) -> impl Iterator<Item = RunOfStep<'_>> {
    let variants = step.variants.iter().map(move |variant| (step, variant));
    variants.flat_map(|(step, variant)| variant.runs.iter().map(move |run| RunOfStep { step, variant, run }))
}

/// The run in which a share is greatest, and how many runs have more of it than is reported.
pub(crate) struct Worst {
    pub(crate) share: f64,
    pub(crate) place: String,
    pub(crate) reported: usize,
    /// Runs that were judged.
    pub(crate) all: usize,
}

/// Of the valid runs whose window is long enough for a share of time, by `share_of`, from
/// `reported_share` on; `None` where no run has so much.
pub(crate) fn worst(
    workloads: &[WorkloadFindings],
    reported_share: f64,
    share_of: impl Fn(&StepRun) -> Option<f64>,
) -> Option<Worst> {
    let shares: Vec<(f64, RunOfStep<'_>)> =
        judged_runs(workloads).filter_map(|found| Some((share_of(found.run)?, found))).collect();
    let reported = shares.iter().filter(|(share, _)| *share > reported_share);
    let (share, found) = reported.clone().max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Worst { share: *share, place: found.place(), reported: reported.count(), all: shares.len() })
}

impl Worst {
    /// With the share from which a run is counted.
    pub(crate) fn notice(self, code: Code, reported_share: f64) -> Notice {
        let notice = Notice::new(code).at(self.place).with("share", self.share);
        notice.with("limit", reported_share).with("runs", self.reported).with("all", self.all)
    }
}

/// Runs whose figures may be used.
pub(crate) fn valid(runs: &[StepRun]) -> impl Iterator<Item = &StepRun> {
    runs.iter().filter(|run| run.validity == Validity::Valid)
}
