//! Columns of the CSV report for ladders of connections: the rung that a step is of its sweep.

use dbdyno_analyse::{Findings, StepFindings, VariantStep, WorkloadFindings};

use super::number;
use crate::number::NOT_AVAILABLE;

/// There only in reports of runs with a sweep. The rate is the step's: the median over the blocks.
const COLUMNS: [&str; 4] = ["sweep", "sweep_connections", "sweep_blocks", "sweep_median_rate_per_second"];

/// Whether any workload of the run has a sweep.
pub(super) fn are_there(findings: &Findings) -> bool {
    findings.workloads.iter().any(|workload| !workload.sweeps.is_empty())
}

pub(super) fn push_header(names: &mut Vec<String>) {
    names.extend(COLUMNS.map(str::to_owned));
}

/// The step's rung: the same in the rows of all blocks of a variant.
pub(super) fn push(
    row: &mut Vec<String>,
    workload: &WorkloadFindings,
    step: &StepFindings,
    variant: &VariantStep,
) {
    let not_available = || NOT_AVAILABLE.to_owned();
    let place = |steps: &[String]| steps.iter().position(|name| *name == step.name);
    let of_step = workload.sweeps.iter().find_map(|sweep| Some((sweep, place(&sweep.steps)?)));
    let Some((sweep, at)) = of_step else {
        row.extend(COLUMNS.map(|_| not_available()));
        return;
    };
    let found = sweep.variants.iter().find(|found| found.variant == variant.variant);
    let rung = found.and_then(|found| found.rungs.get(at).copied().flatten());
    row.push(sweep.test.clone());
    row.push(sweep.connections.get(at).map_or_else(not_available, u32::to_string));
    row.push(rung.map_or_else(|| "0".to_owned(), |rung| rung.blocks.to_string()));
    row.push(number(rung.map(|rung| rung.median_rate)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn rungs(step_name: &str) -> Vec<String> {
        let findings = fixture::with_sweep();
        let workload = &findings.workloads[0];
        let mut step = workload.steps[0].clone();
        step.name = step_name.to_owned();
        let of_variant = |variant: &VariantStep| {
            let mut row = Vec::new();
            push(&mut row, workload, &step, variant);
            row.join(",")
        };
        step.variants.iter().map(of_variant).collect()
    }

    #[test]
    fn a_step_of_a_ladder_has_its_test_its_rung_and_the_rate_of_its_variant() {
        assert_eq!(rungs("read-only.c4"), ["read-only,4,2,4000", "read-only,4,2,4800"]);
        assert_eq!(
            rungs("read-only.c1024")[1],
            "read-only,1024,0,NA",
            "of the variant that did not get so far"
        );
        assert_eq!(rungs("l.i0"), ["NA,NA,NA,NA"; 2], "a step of no ladder");
    }

    #[test]
    fn runs_without_a_ladder_have_no_such_columns() {
        assert!(are_there(&fixture::with_sweep()));
        assert!(!are_there(&fixture::findings()));
    }
}
