//! Every valid run of every step, as warnings look through them, and how they name one.

use crate::ratio::valid;
use crate::{StepFindings, StepRun, VariantStep, WorkloadFindings};

/// One of them with where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct ValidRun<'a> {
    pub(crate) step: &'a StepFindings,
    pub(crate) variant: &'a VariantStep,
    pub(crate) run: &'a StepRun,
}

impl ValidRun<'_> {
    /// `block 2 mysql-8.0 l.i1`
    pub(crate) fn place(&self) -> String {
        format!("block {} {} {}", self.run.block, self.variant.variant, self.step.name)
    }
}

/// In the order of workloads, steps, variants and blocks.
pub(crate) fn valid_runs(workloads: &[WorkloadFindings]) -> impl Iterator<Item = ValidRun<'_>> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps);
    let variants = steps.flat_map(|step| step.variants.iter().map(move |variant| (step, variant)));
    variants.flat_map(|(step, variant)| valid(&variant.runs).map(move |run| ValidRun { step, variant, run }))
}

/// `1 run of a step`, `7 runs of steps`
pub(crate) fn counted(runs: usize) -> String {
    if runs == 1 { "1 run of a step".to_owned() } else { format!("{runs} runs of steps") }
}

/// `1 connection`, `16 connections`
pub(crate) fn connections(number: u32) -> String {
    if number == 1 { "1 connection".to_owned() } else { format!("{number} connections") }
}
