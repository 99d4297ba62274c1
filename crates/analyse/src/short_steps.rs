//! Steps that were too short for their connections: a closed loop in which not every connection was answered once.

use crate::valid_runs::{counted, valid_runs};
use crate::{KindResult, StepRun, WorkloadFindings};

/// One sentence for all such runs, which names the worst; `None` when there is none.
///
/// Operations that are under way when a window ends are in no figure. With many slow ones and few answered, the rate is low by
/// them, and the percentiles are of the fast ones only.
pub(crate) fn warning(workloads: &[WorkloadFindings]) -> Option<String> {
    let mut short: Vec<(f64, String)> = Vec::new();
    for found in valid_runs(workloads).filter(|found| !found.step.is_warm_up) {
        let Some(kind) = starved(found.run, &found.step.headline_kind) else { continue };
        let each = kind.operations as f64 / f64::from(kind.connections.max(1));
        let place = found.place();
        short.push((each, format!("{place}: {} on {} connections", kind.operations, kind.connections)));
    }
    let worst = short.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let runs = counted(short.len());
    Some(format!(
        "In {runs} fewer operations were answered than there were connections, at worst in {}. Rates are low there by what was under \
         way at the end, and response times miss the slow ones: give these steps more time.",
        worst.1
    ))
}

fn starved<'a>(run: &'a StepRun, headline_kind: &str) -> Option<&'a KindResult> {
    let is_starved = |kind: &&KindResult| {
        kind.kind == headline_kind && kind.pace == "closed" && kind.operations < u64::from(kind.connections)
    };
    run.kinds.iter().find(is_starved)
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};

    #[test]
    fn steps_that_answer_less_than_one_operation_a_connection_are_told_with_the_worst() {
        // Rows of 100 a statement for two seconds: 20 and 2 statements.
        let step = |name: &str, connections: u32, rate: u64| {
            let mut step = load_step(rate);
            step.name = name.to_owned();
            step.spec.name = name.to_owned();
            step.spec.clients = connections;
            step
        };
        let told = |steps| {
            let warnings = analyse(&run(&["a"], 1, vec![cell(1, "a", steps)])).warnings;
            warnings.into_iter().find(|warning| warning.contains("than there were connections"))
        };
        assert_eq!(told(vec![step("a.c20", 20, 1_000)]), None);
        let text = told(vec![step("a.c21", 21, 1_000), step("a.c64", 64, 100)]).unwrap();
        insta::assert_snapshot!(text, @"In 2 runs of steps fewer operations were answered than there were connections, at worst in block 1 a a.c64: 2 on 64 connections. Rates are low there by what was under way at the end, and response times miss the slow ones: give these steps more time.");
    }
}
