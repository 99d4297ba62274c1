//! Columns of the CSV report for tests that ran before and after the steps that write.

use dbdyno_analyse::{Findings, StepFindings, StepRun, VariantStep, WorkloadFindings};

use super::number;
use crate::number::NOT_AVAILABLE;

/// There only in reports of runs with such tests, and filled in the rows of the step after the writes: the step before them, the
/// ratio of the row's block, and what all blocks say together.
const COLUMNS: [&str; 5] = [
    "before_writes_step",
    "ratio_to_before_writes",
    "ratio_to_before_writes_over_blocks",
    "ratio_to_before_writes_low",
    "ratio_to_before_writes_high",
];

/// Whether any workload of the run has such a test.
pub(super) fn are_there(findings: &Findings) -> bool {
    findings.workloads.iter().any(|workload| !workload.aging.is_empty())
}

pub(super) fn push_header(names: &mut Vec<String>) {
    names.extend(COLUMNS.map(str::to_owned));
}

pub(super) fn push(
    row: &mut Vec<String>,
    workload: &WorkloadFindings,
    step: &StepFindings,
    variant: &VariantStep,
    run: &StepRun,
) {
    let Some(aging) = workload.aging.iter().find(|aging| aging.after == step.name) else {
        row.extend(COLUMNS.map(|_| NOT_AVAILABLE.to_owned()));
        return;
    };
    let found = aging.variants.iter().find(|found| found.variant == variant.variant);
    let of_block = found.and_then(|found| found.blocks.iter().find(|(block, _)| *block == run.block));
    let interval = found.and_then(|found| found.interval);
    row.push(aging.before.clone());
    row.extend([
        number(of_block.map(|(_, ratio)| *ratio)),
        number(found.and_then(|found| found.ratio)),
        number(interval.map(|interval| interval.low)),
        number(interval.map(|interval| interval.high)),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// The columns of the second block of both variants.
    fn columns(step_name: &str) -> Vec<String> {
        let findings = fixture::with_aging();
        let workload = &findings.workloads[0];
        let step = workload.steps.iter().find(|step| step.name == step_name).expect("in the fixture");
        let of_variant = |variant: &VariantStep| {
            let mut row = Vec::new();
            push(&mut row, workload, step, variant, &variant.runs[1]);
            row.join(",")
        };
        step.variants.iter().map(of_variant).collect()
    }

    #[test]
    fn the_step_behind_the_writes_has_the_ratio_of_its_block_and_that_of_all() {
        assert_eq!(columns("qp500"), ["qp100,0.99,1,0.98,1.02"; 2]);
        assert_eq!(columns("qr500")[1], "qr100,NA,NA,NA,NA", "of the variant with a gap");
        assert_eq!(columns("qr100"), ["NA,NA,NA,NA,NA"; 2], "the step before them");
    }

    #[test]
    fn runs_without_such_tests_have_no_such_columns() {
        assert!(are_there(&fixture::with_aging()));
        assert!(!are_there(&fixture::findings()));
    }
}
