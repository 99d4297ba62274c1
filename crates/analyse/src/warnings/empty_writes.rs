//! Warnings about writes that changed no row: deletes of rows that are gone, updates to values that
//! are already there. They cost less, and a server that wrote faster before has more of them.

use std::collections::BTreeMap;

use dbdyno_record::StatementClass;

use crate::model::runs::{RunOfStep, valid_runs};
use crate::model::{Code, VariantShare, Warning, WorkloadFindings};

/// Share of a step's writes from which they are reported.
const REPORTED_SHARE: f64 = 0.05;

/// Lowest and highest share by variant.
type Shares<'a> = BTreeMap<&'a str, VariantShare>;

/// One warning per step in which too many writes changed no row in any of its runs.
pub(crate) fn warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let mut steps: Vec<(&str, Shares<'_>)> = Vec::new();
    for found in valid_runs(workloads) {
        let Some(share) = share(&found) else { continue };
        let name = found.step.name.as_str();
        if steps.last().is_none_or(|(last, _)| *last != name) {
            steps.push((name, Shares::new()));
        }
        if let Some((_, shares)) = steps.last_mut() {
            let variant = &found.variant.variant;
            let first = || VariantShare { variant: variant.clone(), lowest: share, highest: share };
            let known = shares.entry(variant).or_insert_with(first);
            (known.lowest, known.highest) = (known.lowest.min(share), known.highest.max(share));
        }
    }
    steps.retain(|(_, shares)| shares.values().any(|share| share.highest > REPORTED_SHARE));
    let warning = |(step, shares): (&str, Shares<'_>)| {
        let shares: Vec<VariantShare> = shares.into_values().collect();
        Warning::new(Code::EmptyWrites).at(step).with("shares", shares)
    };
    steps.into_iter().map(warning).collect()
}

/// Share among all writes in a step's operations.
fn share(found: &RunOfStep<'_>) -> Option<f64> {
    let kind = found.run.kind(&found.step.headline_kind)?;
    let writes = kind.statements.iter().filter(|statement| is_write(&statement.statement));
    let (count, empty) = writes.fold((0, 0), |(count, empty), one| (count + one.count, empty + one.empty));
    (count > 0).then(|| empty as f64 / count as f64)
}

/// Whether a statement counts as a write. Scripts count statements by what they did, not by what
/// they are.
fn is_write(statement: &str) -> bool {
    const OF_SCRIPTS: [&str; 2] = ["write", "unchanged"];
    let class = StatementClass::of(statement);
    OF_SCRIPTS.contains(&statement) || matches!(class, StatementClass::Write | StatementClass::Delete)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::StepEvent;

    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, texts};

    #[test]
    fn writes_that_changed_nothing_are_reported_by_variant_from_five_percent_on() {
        let step = |statement: &str, empty: u64| {
            let mut step = query_step(500, 0);
            let (kind, statement) = ("query".to_owned(), statement.to_owned());
            let (from_us, to_us, done) = (0, 2_000_000, 1_000);
            let rows = done - empty;
            step.events.push(StepEvent::Statement { kind, statement, from_us, to_us, done, empty, rows });
            step
        };
        let reported = |statement: &str, empty: [u64; 3]| {
            let cells = vec![
                cell(1, "a", vec![step(statement, empty[0])]),
                cell(1, "b", vec![step(statement, empty[1])]),
                cell(2, "a", vec![step(statement, empty[2])]),
            ];
            let warnings = texts(&analyse(&run(&["a", "b"], 2, cells)));
            warnings.into_iter().find(|warning| warning.starts_with("empty-writes"))
        };
        assert_eq!(reported("delete", [50, 20, 0]), None);
        assert_eq!(reported("point-select", [500, 500, 500]), None);
        assert!(reported("non-index-update", [1_000, 0, 0]).is_some());
        assert!(reported("unchanged", [1_000, 0, 0]).is_some());
        insta::assert_snapshot!(reported("delete", [470, 30, 820]).unwrap(), @r#"empty-writes [qr100] shares: [{"variant":"a","lowest":0.47,"highest":0.82},{"variant":"b","lowest":0.03,"highest":0.03}]"#);
    }
}
