//! Repetitions of a query that took a time unlike that of the others.

use crate::model::runs::valid;
use crate::model::{Code, Notice, StepFindings, StepRun, WorkloadFindings};
use crate::statistics::describe::median;

/// Differs from the others by more than this part of them.
const ODD_FROM: f64 = 0.5;
/// Of two that differ none can be called the odd one.
const LEAST: usize = 3;

/// One for each.
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

fn odd(place: &str, times: &[(String, f64)]) -> Vec<Notice> {
    if times.len() < LEAST {
        return Vec::new();
    }
    let notice = |(at, (name, seconds)): (usize, &(String, f64))| {
        let others: Vec<f64> = times
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, (_, other))| *other)
            .collect();
        let middle = median(&others).filter(|middle| *middle > 0.0)?;
        ((seconds / middle - 1.0).abs() > ODD_FROM).then(|| {
            let notice = Notice::new(Code::OddRepetition).at(place).with("repetition", name.as_str());
            notice.with("seconds", *seconds).with("others", middle)
        })
    };
    times.iter().enumerate().filter_map(notice).collect()
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
