//! Lists of steps' runs, each with its workload, step, variant and block, as warnings name them.

use crate::model::findings::WorkloadFindings;
use crate::model::step_run::{StepRun, Validity};
use crate::model::steps::{StepFindings, VariantStep};
use crate::model::warning::{Code, Warning};
use crate::statistics::describe::median;

/// Shortest window for which a share of time is judged. In a shorter one, a tick of the kernel's
/// clocks (10 ms), a single hold-up or the samples at its two ends make up most of a share that is
/// reported.
pub(crate) const JUDGED_FROM_SECONDS: f64 = 2.0;

/// One execution of a step, with the step and variant that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct RunOfStep<'a> {
    pub(crate) step: &'a StepFindings,
    pub(crate) variant: &'a VariantStep,
    pub(crate) run: &'a StepRun,
}

impl RunOfStep<'_> {
    /// The run's name in warnings, such as `block 2 mysql-8.0 l.i1`.
    pub(crate) fn place(&self) -> String {
        format!("block {} {} {}", self.run.block, self.variant.variant, self.step.name)
    }
}

/// All valid runs, in the order of workloads, steps, variants and blocks.
pub(crate) fn valid_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = RunOfStep<'_>> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps);
    steps.flat_map(all_runs).filter(|found| found.run.validity == Validity::Valid)
}

/// The valid runs whose window is long enough for a share of time.
pub(crate) fn judged_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = RunOfStep<'_>> {
    valid_runs(workloads).filter(|found| found.run.window_seconds >= JUDGED_FROM_SECONDS)
}

/// All runs of a step in the order of variants and blocks, including those that must not be used.
pub(crate) fn all_runs(step: &StepFindings) -> impl Iterator<Item = RunOfStep<'_>> {
    let variants = step.variants.iter().map(move |variant| (step, variant));
    variants.flat_map(|(step, variant)| variant.runs.iter().map(move |run| RunOfStep { step, variant, run }))
}

/// The run in which a share is highest, and how many runs have more of it than is reported.
pub(crate) struct Worst {
    pub(crate) share: f64,
    pub(crate) place: String,
    pub(crate) reported: usize,
    /// Runs that have the share.
    pub(crate) all: usize,
}

/// Finds the run in which the share by `share_of` is highest, among valid runs whose window is long
/// enough for a share of time. `None` where no run has more than `reported_share`.
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
    /// Makes a warning of it. `reported_share` is the share from which a run is counted.
    pub(crate) fn warning(self, code: Code, reported_share: f64) -> Warning {
        let warning = Warning::new(code).at(self.place).with("share", self.share);
        warning.with("limit", reported_share).with("runs", self.reported).with("all", self.all)
    }
}

/// Runs whose figures may be used.
pub(crate) fn valid(runs: &[StepRun]) -> impl Iterator<Item = &StepRun> {
    runs.iter().filter(|run| run.validity == Validity::Valid)
}

/// The valid runs whose block is valid for the base too, each with the base's run.
pub fn pairs<'a>(
    runs: &'a [StepRun],
    base: &'a [StepRun],
) -> impl Iterator<Item = (&'a StepRun, &'a StepRun)> {
    valid(runs).filter_map(|run| Some((run, valid(base).find(|base| base.block == run.block)?)))
}

impl VariantStep {
    pub fn valid_runs(&self) -> impl Iterator<Item = &StepRun> {
        valid(&self.runs)
    }

    /// Median over the valid runs; `None` where none has the figure.
    pub fn median(&self, figure: impl Fn(&StepRun) -> Option<f64>) -> Option<f64> {
        median(&self.valid_runs().filter_map(figure).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_record::Unit;

    use crate::fixtures::{cell, load_step, run, series, step_run, with_counters};
    use crate::metrics::{Cost, MetricRow};

    #[test]
    fn medians_of_valid_blocks_and_what_others_read() {
        let block = |block: u32, user_us: f64, read: f64| StepRun {
            cost: Cost { server_user_us: Some(user_us), server_read_kib: Some(2.0), ..Cost::default() },
            metrics: MetricRow { rkbpq: Some(read), ..MetricRow::default() },
            // Seconds of a query, which no figure per operation is divided by.
            ..step_run(block, 100.0)
        };
        let found = crate::analyse(&run(&["a"], 1, vec![cell(1, "a", vec![load_step(1_000)])]));
        let mut variant = found.workloads[0].steps[0].variants[0].clone();
        variant.runs = vec![block(1, 10.0, 5.0), block(2, 30.0, 1.0), block(3, 20.0, 3.0)];
        assert_eq!(variant.median(|run| run.cost.server_user_us), Some(20.0));
        assert_eq!(variant.median(StepRun::others_read_kib), Some(1.0));
        for run in &mut variant.runs {
            run.cost.server_read_kib = None;
        }
        assert_eq!(variant.median(StepRun::others_read_kib), None, "whose reads they are is not known");
        for run in &mut variant.runs {
            run.validity = Validity::Interrupted;
        }
        assert_eq!(variant.median(|run| run.cost.server_user_us), None);
    }

    /// The headline of such a step is a time, and IO is per operation all the same.
    #[test]
    fn what_a_query_writes_is_per_query_and_not_per_second_of_its_time() {
        let counted = series("disk", &["written_bytes"], &[(0, vec![0]), (2_500_000, vec![500 * 2_048])]);
        let mut step = with_counters(&counted);
        step.spec.headline.unit = Unit::Seconds;
        let found = crate::analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])]));
        assert_eq!(found.workloads[0].steps[1].variants[0].runs[0].written_kib, Some(2.0));
    }
}
