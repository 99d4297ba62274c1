//! Repetitions of a query that took a time unlike that of the others.

use crate::model::runs::valid;
use crate::model::{Code, Notice, StepFindings, StepRun, WorkloadFindings};
use crate::statistics::describe::median;

/// Differs from the others by more than this part of them.
const ODD_FROM: f64 = 0.5;
/// Of two that differ none can be called the odd one.
const LEAST: usize = 3;

/// One for each step of a variant, and one for each of its runs: of the oddest.
pub(crate) fn notices(workloads: &[WorkloadFindings]) -> Vec<Notice> {
    let steps = workloads.iter().flat_map(|workload| &workload.steps).filter(|step| step.less_is_better);
    steps.flat_map(of_step).collect()
}

fn of_step(step: &StepFindings) -> Vec<Notice> {
    let mut found = Vec::new();
    for variant in &step.variants {
        let place = format!("{} {}", variant.variant, step.name);
        let blocks: Vec<(String, f64)> =
            valid(&variant.runs).map(|run| (format!("block {}", run.block), run.rate)).collect();
        found.extend(odd(&place, &blocks));
        for run in valid(&variant.runs) {
            let of_run = format!("block {} {place}", run.block);
            found.extend(odd(&of_run, &repetitions(run, &step.name)));
        }
    }
    found
}

/// Of one query: its own step's, whatever the order of its joins.
fn repetitions(run: &StepRun, step: &str) -> Vec<(String, f64)> {
    let name = step.split('.').next().unwrap_or(step);
    let own = run.executions.iter().filter(|execution| execution.name == name);
    own.map(|execution| (format!("repetition {}", execution.repetition), execution.seconds)).collect()
}

/// Of the oddest, with how many others are odd.
fn odd(place: &str, times: &[(String, f64)]) -> Option<Notice> {
    if times.len() < LEAST {
        return None;
    }
    let seconds: Vec<f64> = times.iter().map(|(_, seconds)| *seconds).collect();
    let middle = median(&seconds).filter(|middle| *middle > 0.0)?;
    let distance = |at: &usize| (seconds[*at] / middle).ln().abs();
    let is_odd = |at: &usize| (seconds[*at] / middle - 1.0).abs() > ODD_FROM;
    let all: Vec<usize> = (0..times.len()).filter(is_odd).collect();
    let oddest = *all.iter().max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    let (name, seconds) = &times[oddest];
    let others: Vec<f64> =
        times.iter().enumerate().filter(|(at, _)| *at != oddest).map(|(_, (_, other))| *other).collect();
    let middle = median(&others)?;
    let notice = Notice::new(Code::OddRepetition).at(place).with("repetition", name.as_str());
    let notice = notice.with("seconds", *seconds).with("others", middle);
    Some(if all.len() > 1 { notice.with("more", all.len() - 1) } else { notice })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::analyse;
    use crate::fixtures::{cell, query_seconds_step, run, texts};

    #[test]
    fn one_slow_repetition_is_named_and_scatter_is_not() {
        let times = |seconds: &[f64]| {
            let seconds: Vec<(f64, bool)> = seconds.iter().map(|seconds| (*seconds, false)).collect();
            let cells = vec![cell(1, "a", vec![query_seconds_step("q11", &seconds)])];
            let found = analyse(&run(&["a"], 1, cells));
            let odd = texts(&found).into_iter().filter(|text| text.starts_with("odd-repetition"));
            odd.collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(times(&[43.0, 13.0, 13.0, 13.0, 12.0]), @"odd-repetition [block 1 a q11] others: 13.0, repetition: repetition 1, seconds: 43.0");
        assert_snapshot!(times(&[1.0, 8.0, 1.0, 9.0, 1.0]), @"odd-repetition [block 1 a q11] more: 1, others: 1.0, repetition: repetition 4, seconds: 9.0");
        assert_eq!(times(&[1.4, 1.0, 1.0]), "");
        assert_eq!(times(&[43.0, 13.0]), "");
    }

    #[test]
    fn one_slow_block_is_named() {
        let cells = [43.0, 13.0, 13.0]
            .into_iter()
            .zip(1..)
            .map(|(seconds, block)| cell(block, "a", vec![query_seconds_step("q11", &[(seconds, false)])]));
        let found = analyse(&run(&["a"], 3, cells.collect()));
        let odd = texts(&found).into_iter().find(|text| text.starts_with("odd-repetition"));
        assert_eq!(
            odd.as_deref(),
            Some("odd-repetition [a q11] others: 13.0, repetition: block 1, seconds: 43.0")
        );
    }
}
