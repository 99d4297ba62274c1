//! Judges whether a step's figures may be used, and says why not.

pub(crate) mod client;
pub(crate) mod operations;
pub(crate) mod record_integrity;
pub(crate) mod throttled;

use std::collections::BTreeMap;

use dbdyno_record::{Check, Interval, Outcome, StepEvent, StepRecord};

use crate::model::{Code, Validity, Warning};
use crate::validity::record_integrity::of_client;

/// Judges one step from its records alone.
///
/// A step that did not end is interrupted, unless it is damaged. One that ran to its end is valid
/// unless a record says otherwise. Such records are damage, an `invalid` event, a failed content
/// check, no common window, incomplete records, operations that do not add up, a time in which
/// dbdyno itself stalled, and a CPU quota.
pub(crate) fn validity(step: &StepRecord) -> Validity {
    match (step.outcome(), &step.damaged) {
        // A crash damages nothing, and the true end may be in the part that cannot be read.
        (None | Some(Outcome::Interrupted), Some(damage)) => {
            return Validity::Invalid { reasons: vec![damaged(damage)] };
        }
        (None | Some(Outcome::Interrupted), None) => return Validity::Interrupted,
        (Some(Outcome::Failed), _) => {
            let message = end_message(step).unwrap_or("no reason was recorded; see the events of the step");
            return Validity::Failed { message: message.to_owned() };
        }
        (Some(Outcome::Completed), _) => {}
    }
    let mut reasons = recorded(&step.events);
    let has_window = step.window().is_some_and(|(from_us, to_us)| from_us < to_us);
    if !has_window && step.damaged.is_none() {
        reasons.push(Warning::reason(Code::NoWindow));
    }
    match &step.damaged {
        Some(damage) => reasons.push(damaged(damage)),
        // Where lines are missing, sums must disagree and would only repeat the damage.
        None => reasons.extend(count_faults(step)),
    }
    reasons.extend(client::pause_fault(step));
    reasons.extend(throttled::faults(step));
    reasons.extend(client::late_hosts(&step.events));
    if reasons.is_empty() { Validity::Valid } else { Validity::Invalid { reasons } }
}

fn damaged(damage: &str) -> Warning {
    Warning::reason(Code::DamagedStep).with("text", damage)
}

fn end_message(step: &StepRecord) -> Option<&str> {
    step.events.iter().rev().find_map(|event| match event {
        StepEvent::Ended { message, .. } => message.as_deref(),
        _ => None,
    })
}

/// What is wrong with the operations. Where files are incomplete, only that is reported.
fn count_faults(step: &StepRecord) -> Vec<Warning> {
    let missing = record_integrity::faults(step);
    if missing.is_empty() { accounting_faults(&step.intervals) } else { missing }
}

/// The reasons in the record's `invalid` events, and content checks that failed. Directly before
/// such a check, the record has an `invalid` event that says the same.
fn recorded(events: &[StepEvent]) -> Vec<Warning> {
    let mut reasons = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match (event, events.get(at + 1)) {
            (StepEvent::Invalid { .. }, Some(StepEvent::Check(check))) if !check.is_ok() => {}
            (StepEvent::Invalid { reason }, _) => reasons.push(Warning::quoted(reason)),
            (StepEvent::Check(check), _) if !check.is_ok() => reasons.push(failed_check(check)),
            _ => {}
        }
    }
    reasons
}

/// The reason for a content check that failed.
pub fn failed_check(check: &Check) -> Warning {
    let wrong = check.parts.iter().filter(|part| part.expected != part.actual);
    Warning::reason(Code::ContentDiffers).at(&check.table).with("parts", wrong.cloned().collect::<Vec<_>>())
}

/// Running sums for one client and kind.
#[derive(Debug, Default)]
struct RunningSums {
    due: u64,
    ended: u64,
    faulty: bool,
}

/// The first moment, for each client and kind, at which
/// `due = done + failed + dropped + backlog + in flight` does not hold for all that was
/// counted up to then, or at which the step's end leaves operations open.
///
/// The time of a lost operation is in no figure, so a load generator that loses slow operations
/// makes a server look better than it is.
pub(crate) fn accounting_faults(intervals: &[Interval]) -> Vec<Warning> {
    let mut sorted: Vec<&Interval> = intervals.iter().collect();
    sorted.sort_by_key(|interval| interval.to_us);
    let mut accounts: BTreeMap<(u32, &str), RunningSums> = BTreeMap::new();
    let mut last: BTreeMap<(u32, &str), &Interval> = BTreeMap::new();
    let mut faults = Vec::new();
    for interval in sorted {
        let key = (interval.client, interval.kind.as_str());
        let account = accounts.entry(key).or_default();
        last.insert(key, interval);
        account.due += interval.due;
        account.ended += interval.done + interval.failed + interval.dropped;
        let accounted = account.ended + interval.backlog + interval.in_flight;
        if account.due != accounted && !account.faulty {
            account.faulty = true;
            faults.push(
                of_client(Code::OperationsLost, key)
                    .with("until_seconds", interval.to_us as f64 / 1e6)
                    .with("due", account.due)
                    .with("accounted", accounted),
            );
        }
    }
    let open = last.into_iter().filter(|(_, last)| last.backlog + last.in_flight > 0);
    faults.extend(open.map(|(key, last)| {
        of_client(Code::OperationsOpen, key).with("waiting", last.backlog).with("in_flight", last.in_flight)
    }));
    faults
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CheckPart;

    use super::*;
    use crate::fixtures::{ended, interval, load_step, shown};

    fn reasons(step: &StepRecord) -> Vec<String> {
        match validity(step) {
            Validity::Invalid { reasons } => reasons.iter().map(shown).collect(),
            other => panic!("not invalid: {other:?}"),
        }
    }

    #[test]
    fn a_step_that_completed_and_adds_up_is_valid() {
        assert_eq!(validity(&load_step(1000)), Validity::Valid);
    }

    #[test]
    fn a_step_that_failed_says_why() {
        let step = ended(load_step(1000), Outcome::Failed, "server gone");
        assert_eq!(validity(&step), Validity::Failed { message: "server gone".to_owned() });
    }

    #[test]
    fn a_step_without_an_end_is_interrupted() {
        let mut step = load_step(1000);
        step.events.pop();
        assert_eq!(validity(&step), Validity::Interrupted);
        assert_eq!(validity(&ended(step, Outcome::Interrupted, "ctrl-c")), Validity::Interrupted);
    }

    #[test]
    fn a_step_that_its_record_calls_invalid_is_invalid() {
        let mut step = load_step(1000);
        step.events.push(StepEvent::Invalid { reason: "clock jumped".to_owned() });
        assert_eq!(reasons(&step), ["quoted text: clock jumped"]);
    }

    #[test]
    fn a_mismatched_check_names_the_table_and_both_figures() {
        let mut step = load_step(1000);
        let part = |name: &str, expected, actual| CheckPart { name: name.to_owned(), expected, actual };
        let parts = vec![part("rows", 2000, 1999), part("sum(price)", 5, 5)];
        let check = StepEvent::Check(Check { table: "pi1".to_owned(), parts, duration_us: 9 });
        let differs =
            r#"content-differs [pi1] parts: [{"name":"rows","expected":2000,"actual":1999}]"#.to_owned();
        step.events.push(check.clone());
        assert_eq!(reasons(&step), [differs.as_str()]);
        let last = step.events.len() - 1;
        let said = |reason: &str| StepEvent::Invalid { reason: reason.to_owned() };
        step.events.splice(last.., [said("clock jumped"), said("table pi1 differs"), check]);
        assert_eq!(reasons(&step), ["quoted text: clock jumped", &differs], "reported once");
    }

    #[test]
    fn a_step_without_a_window_cannot_be_used() {
        let mut step = load_step(1000);
        step.events.retain(|event| !matches!(event, StepEvent::Window { .. }));
        assert_eq!(reasons(&step), ["no-window"]);
    }

    #[test]
    fn damage_is_the_only_reason_given_for_sums_that_disagree() {
        let mut step = load_step(1000);
        step.intervals[0].due += 1;
        step.damaged = Some("intervals.jsonl line 2 is damaged".to_owned());
        assert_eq!(reasons(&step), ["damaged-step text: intervals.jsonl line 2 is damaged"]);
    }

    #[test]
    fn an_operation_that_disappears_is_found_where_it_first_does() {
        let mut step = load_step(1000);
        step.intervals[1].done -= 1;
        assert_eq!(
            reasons(&step),
            ["operations-lost [client 1 insert] accounted: 19, due: 20, until_seconds: 2.0"]
        );
    }

    #[test]
    fn operations_under_way_are_accounted_for_until_the_end() {
        let mut first = interval(0, 1_000_000, 1, "query", 8, 0);
        (first.due, first.failed, first.backlog, first.in_flight) = (12, 1, 2, 1);
        let mut second = interval(1_000_000, 2_000_000, 1, "query", 5, 0);
        (second.due, second.dropped) = (3, 1);
        assert_eq!(accounting_faults(&[second.clone(), first.clone()]), []); // 15 due = 13 + 1 + 1, in any order
        (second.done, second.in_flight) = (4, 1);
        let faults: Vec<String> = accounting_faults(&[first, second]).iter().map(shown).collect();
        assert_eq!(faults, ["operations-open [client 1 query] in_flight: 1, waiting: 0"]);
    }

    #[test]
    fn a_lost_interval_does_not_add_up() {
        let mut intervals = vec![
            interval(0, 1_000_000, 1, "insert", 5, 0),
            interval(1_000_000, 2_000_000, 1, "insert", 6, 0),
        ];
        (intervals[0].due, intervals[0].in_flight) = (6, 1);
        intervals[1].due = 5;
        assert_eq!(accounting_faults(&intervals), []);
        intervals.remove(0);
        assert_eq!(accounting_faults(&intervals).len(), 1);
    }
}
