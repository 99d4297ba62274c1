//! Runs of steps that are not used, summed up by why: a reason that a hundred runs share is
//! reported once.

use std::collections::HashSet;

use crate::model::runs::all_runs;
use crate::model::{Code, Notice, Validity, WorkloadFindings};
use crate::notices::cells::sentence;

/// What reasons have in common that differ in their figures only: `table #: rows is #, expected #`.
pub fn reason_class(reason: &str) -> String {
    let mut class = String::with_capacity(reason.len());
    let mut in_number = false;
    let mut characters = sentence(reason).chars().peekable();
    while let Some(character) = characters.next() {
        let goes_on = in_number && matches!(character, '.' | ',');
        if character.is_ascii_digit() {
            if !in_number {
                class.push('#');
            }
            in_number = true;
        } else if !(goes_on && characters.peek().is_some_and(char::is_ascii_digit)) {
            class.push(character);
            in_number = false;
        }
    }
    class
}

/// What a reason says first, for a place that has no room for its details and for what to do.
pub fn first_clause(reason: &str) -> &str {
    let end = ["; ", " ("].into_iter().filter_map(|mark| reason.find(mark)).min();
    sentence(&reason[..end.unwrap_or(reason.len())])
}

/// One reason, or several that differ in their figures only.
struct Shared<'a> {
    class: String,
    /// Of the first run, in the order of steps.
    reason: String,
    place: String,
    runs: usize,
    steps: HashSet<(&'a str, &'a str)>,
    variants: HashSet<&'a str>,
}

/// One warning for each reason, in the order in which they first occur.
pub(crate) fn notices(workloads: &[WorkloadFindings]) -> Vec<Notice> {
    let mut shared: Vec<Shared<'_>> = Vec::new();
    let mut all = 0;
    for workload in workloads {
        for found in workload.steps.iter().flat_map(all_runs) {
            let Validity::Invalid { reasons } = &found.run.validity else {
                all += usize::from(found.run.validity == Validity::Valid);
                continue;
            };
            all += 1;
            for (class, reasons) in by_class(reasons) {
                let at = shared.iter().position(|known| known.class == class).unwrap_or_else(|| {
                    let (runs, steps, variants) = Default::default();
                    let (reason, place) = (reported(&reasons), found.place());
                    shared.push(Shared { class, reason, place, runs, steps, variants });
                    shared.len() - 1
                });
                shared[at].runs += 1;
                shared[at].steps.insert((&workload.name, &found.step.name));
                shared[at].variants.insert(&found.variant.variant);
            }
        }
    }
    shared.iter().map(|reason| reason.notice(all)).collect()
}

/// The reasons of one run by what they have in common: one for each table, or for each client, are
/// one.
fn by_class(reasons: &[String]) -> Vec<(String, Vec<&str>)> {
    let mut classes: Vec<(String, Vec<&str>)> = Vec::new();
    for reason in reasons {
        let class = reason_class(reason);
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, reasons)) => reasons.push(reason),
            None => classes.push((class, vec![reason])),
        }
    }
    classes
}

/// Those of one run that are of one class.
fn reported(reasons: &[&str]) -> String {
    const REPORTED: usize = 3;
    let named: Vec<&str> = reasons.iter().take(REPORTED).map(|reason| sentence(reason)).collect();
    let more = reasons.len().saturating_sub(REPORTED);
    let more = if more > 0 { format!("; and {more} more like these") } else { String::new() };
    named.join("; ") + &more
}

impl Shared<'_> {
    fn notice(&self, all: usize) -> Notice {
        let code = if self.runs == 1 { Code::InvalidStep } else { Code::InvalidSteps };
        let notice = Notice::new(code).at(&self.place).with("reason", self.reason.as_str());
        match self.runs {
            1 => notice,
            runs => notice
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
        notices(workloads).iter().map(shown).collect()
    }

    #[test]
    fn reasons_that_differ_in_figures_are_of_one_class() {
        assert_eq!(
            reason_class("waited in 10.5 % of 1,234 (block 2), not more."),
            "waited in # % of # (block #), not more"
        );
        assert_eq!(reason_class("97 %, 3"), reason_class("8 %, 100.25"));
        assert_ne!(reason_class("the client was late: 1 ms"), reason_class("the client was the limit: 1 ms"));
    }

    #[test]
    fn the_first_clause_of_a_reason_is_what_it_says_without_details() {
        let busy = "the client was the limit: its busiest load thread had work in 97 % of the window (on a CPU in 95 %); give";
        assert_eq!(
            first_clause(busy),
            "the client was the limit: its busiest load thread had work in 97 % of the window"
        );
        assert_eq!(first_clause("table t1: rows is 2, must be 3; k is 1"), "table t1: rows is 2, must be 3");
        assert_eq!(first_clause("clock jumped."), "clock jumped");
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
        invalid-steps [block 1 a l.i0] all: 8, reason: the client was busy in 93 % of it, runs: 6, steps: 2, variants: 2
        invalid-steps [block 2 a qr100] all: 8, reason: clock jumped, runs: 2, steps: 1, variants: 2
        ");
    }

    #[test]
    fn a_run_with_one_reason_for_each_table_counts_once() {
        let tables = ["table t1: 5 rows.", "table t2: 6 rows", "table t3: 7 rows", "table t4: 8 rows"];
        let step = invalid(load_step(1_000), &tables);
        let reported = reasons(&analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])])).workloads);
        assert_snapshot!(reported.join("\n"), @"invalid-step [block 1 a l.i0] reason: table t1: 5 rows; table t2: 6 rows; table t3: 7 rows; and 1 more like these");
    }
}
