//! Warns about steps:
//!
//! * Runs are not used. They are grouped by reason, so that a reason that a hundred runs share is
//!   reported once.
//! * Steps were too short for a verdict, with few operations in the window or connections without
//!   an answer.
//! * Writes changed no row, such as deletes of rows that are gone and updates to values that are
//!   already there. They cost less, and a server that wrote faster before has more of them.
//! * The control (the base against itself) shows a difference.

use std::collections::{BTreeMap, HashSet};

use dbdyno_record::StatementClass;

use crate::model::steps::{RunOfStep, all_runs, valid_runs};
use crate::model::{
    Code, StepFindings, TooFewOperations, Validity, VariantShare, Verdict, Warning, WorkloadFindings,
};

/// Reasons that are alike, and the runs that have them.
struct SharedCause<'a> {
    /// The reasons in the words of the first run that has them.
    reasons: Vec<&'a Warning>,
    place: String,
    runs: usize,
    steps: HashSet<(&'a str, &'a str)>,
    variants: HashSet<&'a str>,
}

/// One warning per reason, in the order in which the reasons first occur.
pub(crate) fn invalid_run_warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let mut shared: Vec<SharedCause<'_>> = Vec::new();
    let mut all = 0;
    for workload in workloads {
        for found in workload.steps.iter().flat_map(all_runs) {
            let Validity::Invalid { reasons } = &found.run.validity else {
                all += usize::from(found.run.validity == Validity::Valid);
                continue;
            };
            all += 1;
            for reasons in alike(reasons) {
                let known = shared.iter().position(|known| known.reasons[0].is_like(reasons[0]));
                let at = known.unwrap_or_else(|| {
                    let (runs, steps, variants) = Default::default();
                    shared.push(SharedCause { reasons, place: found.place(), runs, steps, variants });
                    shared.len() - 1
                });
                shared[at].runs += 1;
                shared[at].steps.insert((&workload.name, &found.step.name));
                shared[at].variants.insert(&found.variant.variant);
            }
        }
    }
    shared.iter().map(|reason| reason.warning(all)).collect()
}

/// Groups the reasons of one run. Reasons that differ only in their table or client are alike.
fn alike(reasons: &[Warning]) -> Vec<Vec<&Warning>> {
    let mut alike: Vec<Vec<&Warning>> = Vec::new();
    for reason in reasons {
        match alike.iter_mut().find(|known| known[0].is_like(reason)) {
            Some(known) => known.push(reason),
            None => alike.push(vec![reason]),
        }
    }
    alike
}

impl SharedCause<'_> {
    fn warning(&self, all: usize) -> Warning {
        const NAMED: usize = 3;
        let code = if self.runs == 1 { Code::InvalidStep } else { Code::InvalidSteps };
        let named: Vec<Warning> = self.reasons.iter().take(NAMED).copied().cloned().collect();
        let more = Some(self.reasons.len()).filter(|all| *all > NAMED).map(|all| all - NAMED);
        let warning = Warning::new(code).at(&self.place).with("reasons", named).with_some("more_alike", more);
        match self.runs {
            1 => warning,
            runs => warning
                .with("runs", runs)
                .with("all", all)
                .with("steps", self.steps.len())
                .with("variants", self.variants.len()),
        }
    }
}

/// One warning for all runs with too few operations for a verdict. It names the worst run.
pub(crate) fn short_step_warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let runs = valid_runs(workloads).filter(|found| !found.step.is_warm_up);
    let short: Vec<_> = runs.filter_map(|found| Some((found.run.too_few?, found))).collect();
    let share = |few: &TooFewOperations| few.operations / few.needed;
    let worst = short.iter().min_by(|one, other| share(&one.0).total_cmp(&share(&other.0)));
    worst.map(|worst| short_step_warning(worst, short.len())).into_iter().collect()
}

fn short_step_warning((few, found): &(TooFewOperations, RunOfStep<'_>), runs: usize) -> Warning {
    Warning::new(Code::ShortSteps)
        .at(found.place())
        .with("runs", runs)
        .with("operations", few.operations)
        .with("needed", few.needed)
        .with("seconds", few.enough_seconds)
}

/// Share of a step's writes above which writes that changed no row are reported.
const REPORTED_SHARE: f64 = 0.05;

/// Lowest and highest share of writes that changed no row, by variant.
type Shares<'a> = BTreeMap<&'a str, VariantShare>;

/// One warning per step in which too many writes changed no row in any of its runs.
pub(crate) fn empty_write_warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let mut steps: Vec<(&str, Shares<'_>)> = Vec::new();
    for found in valid_runs(workloads) {
        let Some(share) = empty_share(&found) else { continue };
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

/// Share of writes that changed no row, among all writes in a step's operations.
fn empty_share(found: &RunOfStep<'_>) -> Option<f64> {
    let kind = found.run.kind(&found.step.headline_kind)?;
    let writes = kind.statements.iter().filter(|statement| is_write(&statement.statement));
    let (count, empty) = writes.fold((0, 0), |(count, empty), one| (count + one.count, empty + one.empty));
    (count > 0).then(|| empty as f64 / count as f64)
}

/// Whether a statement counts as a write. A script's statement that should change rows is counted
/// as `write`, or as `unchanged` where it changed none.
fn is_write(statement: &str) -> bool {
    const OF_SCRIPTS: [&str; 2] = ["write", "unchanged"];
    let class = StatementClass::of(statement);
    OF_SCRIPTS.contains(&statement) || matches!(class, StatementClass::Write | StatementClass::Delete)
}

/// A warning for a run whose base differs from itself. The run's other differences may be just as
/// false.
pub(crate) fn control_warning<'a>(
    steps: impl Iterator<Item = &'a StepFindings>,
    control: Option<&str>,
) -> Option<Warning> {
    let control = control?;
    let differs = |step: &&StepFindings| {
        let verdict = step.variant(control).and_then(|found| found.to_base.verdict);
        matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Missed | Verdict::Stalled))
    };
    let places: Vec<String> = steps.filter(differs).map(|step| step.name.clone()).collect();
    (!places.is_empty()).then(|| Warning::new(Code::ControlDiffers).at_all(places).with("control", control))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{StepEvent, StepRecord};
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{add_control, cell, load_step, query_step, run, scan_step, shown, texts};
    use crate::model::{Code, Verdict};
    use crate::{Choices, analyse, analyse_with};

    fn invalid(mut step: StepRecord, reasons: &[&str]) -> StepRecord {
        let events = reasons.iter().map(|reason| StepEvent::Invalid { reason: (*reason).to_owned() });
        step.events.extend(events);
        step
    }

    fn reasons(workloads: &[WorkloadFindings]) -> Vec<String> {
        invalid_run_warnings(workloads).iter().map(shown).collect()
    }

    #[test]
    fn a_reason_that_many_runs_share_is_reported_once_with_its_first_run() {
        let of = |block: u32, variant: &str, share: u32| {
            let load = invalid(load_step(1_000), &[&format!("the client was busy in {share} % of it.")]);
            let query = match block {
                1 => query_step(400, 200),
                _ => invalid(query_step(400, 200), &["the client was busy in 91.5 % of it.", "clock jumped"]),
            };
            cell(block, variant, vec![load, query])
        };
        let cells = vec![of(1, "a", 93), of(1, "b", 90), of(2, "a", 99), of(2, "b", 98)];
        let reported = reasons(&analyse(&run(&["a", "b"], 2, cells)).workloads);
        assert_snapshot!(reported.join("\n"), @r"
        invalid-steps [block 1 a l.i0] all: 8, reasons: (quoted text: the client was busy in 93 % of it), runs: 6, steps: 2, variants: 2
        invalid-steps [block 2 a qr100] all: 8, reasons: (quoted text: clock jumped), runs: 2, steps: 1, variants: 2
        ");
    }

    #[test]
    fn a_run_with_one_reason_for_each_table_counts_once() {
        let tables = ["table t1: 5 rows.", "table t2: 6 rows", "table t3: 7 rows", "table t4: 8 rows"];
        let step = invalid(load_step(1_000), &tables);
        let reported = reasons(&analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])])).workloads);
        assert_snapshot!(reported.join("\n"), @"invalid-step [block 1 a l.i0] more_alike: 1, reasons: (quoted text: table t1: 5 rows; quoted text: table t2: 6 rows; quoted text: table t3: 7 rows)");
    }

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
        insta::assert_snapshot!(texts.join("\n"), @"short-steps [block 1 a scan.c1] needed: 20.0, operations: 0.6666666666666666, runs: 2, seconds: 1800.0");
    }

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

    fn with_control(control: [u64; 4]) -> crate::model::Findings {
        analyse(&run_with_control(control))
    }

    fn run_with_control(control: [u64; 4]) -> dbdyno_record::Run {
        let base = [100_000, 90_000, 110_000, 100_000];
        let cells = base.iter().zip(control).zip(1..).flat_map(|((base, control), block)| {
            [
                cell(block, "a", vec![load_step(*base)]),
                cell(block, "a~control", vec![load_step(control)]),
                cell(block, "b", vec![load_step(base * 108 / 100)]),
            ]
        });
        let mut run = run(&["a", "a~control", "b"], 4, cells.collect());
        add_control(&mut run);
        run
    }

    #[test]
    fn a_control_that_differs_gives_a_warning_and_is_no_part_of_the_family_of_comparisons() {
        let findings = with_control([105_000, 94_600, 115_400, 105_100]);
        let step = &findings.workloads[0].steps[0];
        assert_eq!(step.variants[1].to_base.verdict, Some(Verdict::Faster));
        let inference = step.variants[2].to_base.ratio.as_ref().unwrap().inference.as_ref().unwrap();
        assert_eq!(inference.q_difference, inference.p_difference, "the only comparison of its family");
        let warning = &texts(&findings).into_iter().find(|text| text.starts_with("control-differs")).unwrap();
        assert_snapshot!(warning, @"control-differs [l.i0] control: a~control");
    }

    #[test]
    fn with_another_base_there_is_no_control() {
        let run = run_with_control([105_000, 94_600, 115_400, 105_100]);
        for base in ["b", "a~control"] {
            let choices = Choices { base: Some(base.to_owned()) };
            let findings = analyse_with(&run, &choices).unwrap();
            assert!(!findings.warnings.iter().any(|warning| warning.code == Code::ControlDiffers), "{base}");
            assert_eq!(findings.run.control, None);
        }
    }
}
