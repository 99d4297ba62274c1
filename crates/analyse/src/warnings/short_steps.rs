//! Warnings about steps that were too short for a verdict: few operations in the window, or
//! connections without an answer.

use crate::model::runs::{RunOfStep, valid_runs};
use crate::model::{Code, TooFewOperations, Warning, WorkloadFindings};

/// One warning for all such runs. It names the worst.
pub(crate) fn warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let runs = valid_runs(workloads).filter(|found| !found.step.is_warm_up);
    let short: Vec<_> = runs.filter_map(|found| Some((found.run.too_few?, found))).collect();
    let share = |few: &TooFewOperations| few.operations / few.least;
    let worst = short.iter().min_by(|one, other| share(&one.0).total_cmp(&share(&other.0)));
    worst.map(|worst| warning(worst, short.len())).into_iter().collect()
}

fn warning((few, found): &(TooFewOperations, RunOfStep<'_>), runs: usize) -> Warning {
    Warning::new(Code::ShortSteps)
        .at(found.place())
        .with("runs", runs)
        .with("operations", few.operations)
        .with("least", few.least)
        .with("seconds", few.enough_seconds)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::StepRecord;

    use crate::analyse;
    use crate::fixtures::{cell, run, scan_step, texts};

    #[test]
    fn steps_with_too_few_operations_are_reported_with_the_worst() {
        let step = |name: &str, cycle_us: u64, connections: usize| {
            let mut step = scan_step(&vec![(cycle_us, 1_000_000); connections], (0, 60_000_000));
            step.name = name.to_owned();
            step.spec.name = name.to_owned();
            step
        };
        let reported = |steps: Vec<StepRecord>| {
            let all = texts(&analyse(&run(&["a"], 1, vec![cell(1, "a", steps)])));
            all.into_iter().filter(|text| text.starts_with("short-s")).collect::<Vec<_>>()
        };
        assert_eq!(reported(vec![step("scan.c2", 5_000_000, 2)]), Vec::<String>::new());
        let texts = reported(vec![step("scan.c2", 50_000_000, 2), step("scan.c1", 90_000_000, 1)]);
        insta::assert_snapshot!(texts.join("\n"), @"short-steps [block 1 a scan.c1] least: 20.0, operations: 0.6666666666666666, runs: 2, seconds: 1800.0");
    }
}
