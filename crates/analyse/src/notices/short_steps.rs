//! Steps that were too short for their connections: a closed loop in which not every connection was
//! answered once.

use dbdyno_record::OperationClass;

use crate::model::runs::{RunOfStep, valid_runs};
use crate::model::{Code, KindResult, Notice, WorkloadFindings};

/// A notice for all such runs, which names the worst, and one for those that scan.
///
/// Operations that are under way when a window ends are in no figure. With many slow ones and few
/// answered, the rate is low by them, and the percentiles are of the fast ones only. Of scans the
/// rate counts the parts that lie in the window, but by few answers, some of which came after it.
pub(crate) fn notices(workloads: &[WorkloadFindings]) -> Vec<Notice> {
    let runs = valid_runs(workloads).filter(|found| !found.step.is_warm_up);
    let short = runs.filter_map(|found| {
        let kind = starved(&found)?;
        Some((found, kind))
    });
    let (scans, others): (Vec<Short<'_>>, Vec<Short<'_>>) =
        short.partition(|(found, _)| found.step.headline_class == OperationClass::Scan);
    [worst(Code::ShortSteps, &others), worst(Code::ShortScans, &scans)].into_iter().flatten().collect()
}

type Short<'a> = (RunOfStep<'a>, &'a KindResult);

/// How many there are, and the one with the fewest answers a connection.
fn worst(code: Code, short: &[Short<'_>]) -> Option<Notice> {
    let each = |kind: &KindResult| kind.operations as f64 / f64::from(kind.connections.max(1));
    let (found, kind) = short.iter().min_by(|one, other| each(one.1).total_cmp(&each(other.1)))?;
    let notice = Notice::new(code).at(found.place()).with("runs", short.len());
    Some(notice.with("operations", kind.operations).with("connections", kind.connections))
}

fn starved<'a>(found: &RunOfStep<'a>) -> Option<&'a KindResult> {
    // A scan that failed is not under way at the end.
    let scans = found.step.headline_class == OperationClass::Scan;
    let ended = |kind: &KindResult| kind.operations + if scans { kind.failed } else { 0 };
    let headline = found.run.kind(&found.step.headline_kind);
    headline.filter(|kind| kind.pace == "closed" && ended(kind) < u64::from(kind.connections))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::StepRecord;

    use crate::analyse;
    use crate::fixtures::{cell, load_step, run, scan_step, texts};

    #[test]
    fn steps_that_answer_less_than_one_operation_a_connection_are_reported_with_the_worst() {
        // Rows of 100 a statement for two seconds: 20 and 2 statements.
        let step = |name: &str, connections: u32, rate: u64| {
            let mut step = load_step(rate);
            step.name = name.to_owned();
            step.spec.name = name.to_owned();
            step.spec.clients = connections;
            step
        };
        let reported = |steps| {
            let warnings = texts(&analyse(&run(&["a"], 1, vec![cell(1, "a", steps)])));
            warnings.into_iter().find(|warning| warning.starts_with("short-s"))
        };
        assert_eq!(reported(vec![step("a.c20", 20, 1_000)]), None);
        let text = reported(vec![step("a.c21", 21, 1_000), step("a.c64", 64, 100)]).unwrap();
        insta::assert_snapshot!(text, @"short-steps [block 1 a a.c64] connections: 64, operations: 2, runs: 2");
    }

    #[test]
    fn scans_longer_than_their_step_are_not_said_to_have_low_rates() {
        let step = |name: &str, scan_us: u64, connections: usize| {
            let mut step = scan_step(&vec![(scan_us, 1_000_000); connections], (0, 60_000_000));
            step.name = name.to_owned();
            step.spec.name = name.to_owned();
            step
        };
        let reported = |steps: Vec<StepRecord>| texts(&analyse(&run(&["a"], 1, vec![cell(1, "a", steps)])));
        let about = |text: &String| text.starts_with("short-s");
        assert!(!reported(vec![step("scan.c2", 50_000_000, 2)]).iter().any(about));
        let all = reported(vec![step("scan.c2", 50_000_000, 2), step("scan.c1", 90_000_000, 1)]);
        let texts: Vec<&String> = all.iter().filter(|text| about(text)).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        insta::assert_snapshot!(texts[0], @"short-scans [block 1 a scan.c1] connections: 1, operations: 0, runs: 1");
    }
}
