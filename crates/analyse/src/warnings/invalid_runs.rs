//! Warnings about steps' runs that are not used, grouped by reason. A reason that a hundred runs
//! share is reported once.

use std::collections::HashSet;

use crate::model::runs::all_runs;
use crate::model::{Code, Validity, Warning, WorkloadFindings};

/// One reason, or several that are like it, with the runs that have it.
struct Shared<'a> {
    /// The reasons as the first run has them, in the order of steps.
    reasons: Vec<&'a Warning>,
    place: String,
    runs: usize,
    steps: HashSet<(&'a str, &'a str)>,
    variants: HashSet<&'a str>,
}

/// One warning per reason, in the order in which the reasons first occur.
pub(crate) fn warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let mut shared: Vec<Shared<'_>> = Vec::new();
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
                    shared.push(Shared { reasons, place: found.place(), runs, steps, variants });
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

/// The reasons of one run, grouped by likeness. Reasons that differ only in their table or client
/// are one.
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

impl Shared<'_> {
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

#[cfg(test)]
mod tests {
    use dbdyno_record::{StepEvent, StepRecord};
    use insta::assert_snapshot;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, query_step, run, shown};

    fn invalid(mut step: StepRecord, reasons: &[&str]) -> StepRecord {
        let events = reasons.iter().map(|reason| StepEvent::Invalid { reason: (*reason).to_owned() });
        step.events.extend(events);
        step
    }

    fn reasons(workloads: &[WorkloadFindings]) -> Vec<String> {
        warnings(workloads).iter().map(shown).collect()
    }

    #[test]
    fn a_reason_that_many_runs_share_is_reported_once_with_the_first_place() {
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
}
