//! Whether the figures of a step may be used, and why not.

pub(crate) mod answers;
pub(crate) mod client_pauses;
pub(crate) mod record_integrity;
pub(crate) mod refused;

use std::collections::BTreeMap;

use dbdyno_record::{Check, Interval, Outcome, StepEvent, StepRecord};

use crate::measure::client_hosts;
use crate::model::Validity;

/// Judges one step from its records alone.
///
/// A step that did not end is interrupted, unless it is damaged. One that ran to its end is valid
/// unless a record says otherwise: damage, an `invalid` event, a failed content check, no common
/// window, records that are not whole, operations that do not add up, or a time in which dbdyno
/// itself stalled.
pub(crate) fn validity(step: &StepRecord) -> Validity {
    match (step.outcome(), &step.damaged) {
        // A crash damages nothing, and the true end may be among what cannot be read.
        (None | Some(Outcome::Interrupted), Some(damage)) => {
            return Validity::Invalid { reasons: vec![damage.clone()] };
        }
        (None | Some(Outcome::Interrupted), None) => return Validity::Interrupted,
        (Some(Outcome::Failed), _) => {
            let message = end_message(step).unwrap_or("no reason was recorded; see the events of the step");
            return Validity::Failed { message: message.to_owned() };
        }
        (Some(Outcome::Completed), _) => {}
    }
    let mut reasons: Vec<String> = step.invalid_reasons().into_iter().map(str::to_owned).collect();
    reasons
        .extend(step.checks().into_iter().filter(|check| !is_reported(step, check)).filter_map(failed_check));
    let has_window = step.window().is_some_and(|(from_us, to_us)| from_us < to_us);
    if !has_window && step.damaged.is_none() {
        reasons.push("no common window was recorded".to_owned());
    }
    match &step.damaged {
        Some(damage) => reasons.push(damage.clone()),
        // With lines missing, sums are bound to disagree and would only repeat the damage.
        None => reasons.extend(account_faults(step)),
    }
    reasons.extend(client_pauses::fault(step));
    reasons.extend(client_hosts::late(&step.events));
    if reasons.is_empty() { Validity::Valid } else { Validity::Invalid { reasons } }
}

fn end_message(step: &StepRecord) -> Option<&str> {
    step.events.iter().rev().find_map(|event| match event {
        StepEvent::Ended { message, .. } => message.as_deref(),
        _ => None,
    })
}

/// What is wrong with the operations: of files that are not whole, nothing more than that.
fn account_faults(step: &StepRecord) -> Vec<String> {
    let missing = record_integrity::faults(step);
    if missing.is_empty() { accounting_faults(&step.intervals) } else { missing }
}

/// Whether the record itself calls the step invalid for this check: it does so for each that
/// failed.
fn is_reported(step: &StepRecord, check: &Check) -> bool {
    let of_table = format!("table {}: ", check.table);
    step.invalid_reasons().iter().any(|reason| reason.starts_with(&of_table))
}

fn failed_check(check: &Check) -> Option<String> {
    let parts: Vec<_> = check
        .parts
        .iter()
        .filter(|part| part.expected != part.actual)
        .map(|part| format!("{} is {}, must be {}", part.name, part.actual, part.expected))
        .collect();
    (!parts.is_empty()).then(|| format!("table {}: {}", check.table, parts.join("; ")))
}

/// Running sums of one client and kind.
#[derive(Debug, Default)]
struct RunningSums {
    due: u64,
    ended: u64,
    faulty: bool,
}

/// The first moment, for each client and kind, at which
/// `due = done + failed + dropped + backlog + in flight` does not hold for all that was counted up
/// to then, or at which the step's end leaves operations open.
///
/// An operation lost here is one whose time is in no figure, which is how a load generator flatters
/// a server.
pub(crate) fn accounting_faults(intervals: &[Interval]) -> Vec<String> {
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
            faults.push(format!(
                "client {} {}: up to {:.3} s {} operations were due but {accounted} are accounted for",
                interval.client,
                interval.kind,
                seconds(interval.to_us),
                account.due,
            ));
        }
    }
    faults.extend(last.into_values().filter(|last| last.backlog + last.in_flight > 0).map(|last| {
        format!(
            "client {} {}: the step ended with {} operations waiting and {} not answered",
            last.client, last.kind, last.backlog, last.in_flight
        )
    }));
    faults
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CheckPart;

    use super::*;
    use crate::fixtures::{ended, interval, load_step};

    fn reasons(step: &StepRecord) -> Vec<String> {
        match validity(step) {
            Validity::Invalid { reasons } => reasons,
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
    fn what_the_record_calls_invalid_is_invalid() {
        let mut step = load_step(1000);
        step.events.push(StepEvent::Invalid { reason: "clock jumped".to_owned() });
        assert_eq!(reasons(&step), ["clock jumped"]);
    }

    #[test]
    fn a_mismatched_check_names_the_table_and_both_figures() {
        let mut step = load_step(1000);
        let part = |name: &str, expected, actual| CheckPart { name: name.to_owned(), expected, actual };
        let parts = vec![part("rows", 2000, 1999), part("sum(price)", 5, 5)];
        step.events.push(StepEvent::Check(Check { table: "pi1".to_owned(), parts, duration_us: 9 }));
        assert_eq!(reasons(&step), ["table pi1: rows is 1999, must be 2000"]);
        step.events.push(StepEvent::Invalid { reason: "table pi1: rows is 1999, must be 2000".to_owned() });
        assert_eq!(reasons(&step), ["table pi1: rows is 1999, must be 2000"], "reported once");
    }

    #[test]
    fn a_step_without_a_window_cannot_be_used() {
        let mut step = load_step(1000);
        step.events.retain(|event| !matches!(event, StepEvent::Window { .. }));
        assert_eq!(reasons(&step), ["no common window was recorded"]);
    }

    #[test]
    fn damage_is_the_only_reason_given_for_sums_that_disagree() {
        let mut step = load_step(1000);
        step.intervals[0].due += 1;
        step.damaged = Some("intervals.jsonl line 2 is damaged".to_owned());
        assert_eq!(reasons(&step), ["intervals.jsonl line 2 is damaged"]);
    }

    #[test]
    fn an_operation_that_disappears_is_found_where_it_first_does() {
        let mut step = load_step(1000);
        step.intervals[1].done -= 1;
        assert_eq!(
            reasons(&step),
            ["client 1 insert: up to 2.000 s 20 operations were due but 19 are accounted for"]
        );
    }

    #[test]
    fn operations_under_way_are_accounted_for_until_the_end() {
        let mut first = interval(0, 1_000_000, 1, "query", 8, 0);
        (first.due, first.failed, first.backlog, first.in_flight) = (12, 1, 2, 1);
        let mut second = interval(1_000_000, 2_000_000, 1, "query", 5, 0);
        (second.due, second.dropped) = (3, 1);
        assert_eq!(accounting_faults(&[second.clone(), first.clone()]), [""; 0]); // 15 due = 13 + 1 + 1, in any order
        (second.done, second.in_flight) = (4, 1);
        assert_eq!(
            accounting_faults(&[first, second]),
            ["client 1 query: the step ended with 0 operations waiting and 1 not answered"]
        );
    }

    #[test]
    fn a_lost_interval_does_not_add_up() {
        let mut intervals = vec![
            interval(0, 1_000_000, 1, "insert", 5, 0),
            interval(1_000_000, 2_000_000, 1, "insert", 6, 0),
        ];
        (intervals[0].due, intervals[0].in_flight) = (6, 1);
        intervals[1].due = 5;
        assert_eq!(accounting_faults(&intervals), [""; 0]);
        intervals.remove(0);
        assert_eq!(accounting_faults(&intervals).len(), 1);
    }
}
