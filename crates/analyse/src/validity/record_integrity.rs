//! Checks that a step's files hold all that was done: intervals without gap or overlap up to the
//! window's end, as many operations as the connections report that they sent, and a time for each
//! answered operation.
//!
//! No other check would find a line that is lost or doubled: in a closed loop, what is due in an
//! interval is done in it.

use std::collections::BTreeMap;

use dbdyno_record::{Clock, Interval, StepEvent, StepRecord};

use crate::measure::latency::counts_in;
use crate::model::{Code, Warning};
use crate::window::{KindSummary, WindowSummary};

/// Client and kind.
type ClientKind<'a> = (u32, &'a str);

pub(crate) fn of_client(code: Code, (client, kind): ClientKind<'_>) -> Warning {
    Warning::reason(code).at(format!("client {client} {kind}"))
}

/// What is missing, doubled or inconsistent, each with its file.
pub(crate) fn faults(step: &StepRecord) -> Vec<Warning> {
    let mut by_key: BTreeMap<ClientKind<'_>, Vec<&Interval>> = BTreeMap::new();
    for interval in &step.intervals {
        by_key.entry((interval.client, interval.kind.as_str())).or_default().push(interval);
    }
    let sent = sent(step);
    if by_key.is_empty() && !sent.is_empty() {
        return vec![Warning::reason(Code::IntervalsEmpty)];
    }
    let end_us = step.window().map_or(0, |(_, to_us)| to_us);
    let mut faults: Vec<Warning> = connections_fault(step).into_iter().collect();
    for (key, intervals) in &mut by_key {
        if let Some((code, span)) = tiling_fault(intervals, end_us) {
            let [from_seconds, to_seconds] = span.map(|us| us as f64 / 1e6);
            let fault = of_client(code, *key);
            faults.push(fault.with("from_seconds", from_seconds).with("to_seconds", to_seconds));
            continue;
        }
        let ended: u64 = intervals.iter().map(|interval| interval.done + interval.failed).sum();
        if let Some(sent) = sent.get(key).filter(|sent| **sent != ended) {
            faults.push(of_client(Code::OperationsUnlike, *key).with("ended", ended).with("sent", *sent));
        }
    }
    let unseen = sent.keys().filter(|key| !by_key.contains_key(*key));
    faults.extend(unseen.map(|key| of_client(Code::IntervalsMissing, *key)));
    faults
}

/// Operations that all connections of a client and kind sent, as each connection reported at its
/// end.
fn sent(step: &StepRecord) -> BTreeMap<ClientKind<'_>, u64> {
    let mut sent = BTreeMap::new();
    for event in &step.events {
        if let StepEvent::ConnectionEnded { client, kind, operations, .. } = event {
            *sent.entry((*client, kind.as_str())).or_default() += operations;
        }
    }
    sent
}

/// Checks that each connection that was open at the barrier reports its end once.
fn connections_fault(step: &StepRecord) -> Option<Warning> {
    let ends = step.events.iter().filter(|event| matches!(event, StepEvent::ConnectionEnded { .. })).count();
    let open = step.events.iter().find_map(|event| match event {
        StepEvent::Barrier { connections, .. } => Some(*connections as usize),
        _ => None,
    });
    match open {
        Some(open) if open == ends => None,
        Some(open) => Some(Warning::reason(Code::ConnectionsUnlike).with("ended", ends).with("of", open)),
        None if ends == 0 => None,
        None => Some(Warning::reason(Code::NoBarrier)),
    }
}

/// The first gap or overlap in the intervals of one client and kind, with its beginning and end in
/// microseconds.
///
/// The intervals' order in the file says nothing: a blocked thread may write seconds after later
/// ones.
fn tiling_fault(intervals: &mut [&Interval], end_us: u64) -> Option<(Code, [u64; 2])> {
    intervals.sort_by_key(|interval| (interval.from_us, interval.to_us));
    let mut reached_us = 0;
    for interval in intervals {
        if interval.from_us > reached_us {
            return Some((Code::IntervalsGap, [reached_us, interval.from_us]));
        }
        if interval.from_us < reached_us {
            return Some((Code::IntervalsTwice, [interval.from_us, reached_us.min(interval.to_us)]));
        }
        reached_us = interval.to_us;
    }
    (reached_us < end_us).then_some((Code::IntervalsShort, [reached_us, end_us]))
}

/// Checks that the histograms of `kind` have as many operations as the window. The fault names the
/// first clock that differs. `None` where they agree, and for a record without connections, which
/// has no times.
pub(crate) fn times_fault(
    step: &WindowSummary<'_>,
    kind: &KindSummary<'_>,
    timed: [(Clock, u64); 2],
) -> Option<Warning> {
    if !step.events.iter().any(|event| matches!(event, StepEvent::ConnectionEnded { .. })) {
        return None;
    }
    // The rule is the same for intervals and histograms, so that both count or leave out one that
    // straddles the window's edge.
    let intervals = kind.intervals.0.iter();
    let inside = intervals.filter(|interval| counts_in(step.window, interval.from_us, interval.to_us));
    let done: u64 = inside.map(|interval| interval.done).sum();
    let (clock, timed) = timed.into_iter().find(|(_, timed)| *timed != done)?;
    let fault = Warning::reason(Code::TimesUnlike).at(clock.tag(&kind.spec.kind));
    Some(fault.with("timed", timed).with("done", done))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::HistogramSpan;
    use hdrhistogram::Histogram;

    use super::*;
    use crate::fixtures::{codes, interval, load_step, shown, shown_all, summary};
    use crate::model::Validity;
    use crate::validity::validity;

    /// Three seconds of two clients' connections with 10 operations per second each, as the load
    /// engine records them.
    fn step() -> StepRecord {
        let mut step = load_step(1_000);
        step.spec.clients = 2;
        let second =
            |n: u64, client| interval(n * 1_000_000, (n + 1) * 1_000_000, client, "insert", 10, 1_000);
        step.intervals = (0..3).flat_map(|n| [second(n, 1), second(n, 2)]).collect();
        let task = |client| StepEvent::ConnectionEnded {
            at_us: 2_900_000,
            client,
            kind: "insert".to_owned(),
            operations: 30,
        };
        let barrier = StepEvent::Barrier { at: String::new(), connections: 2, connect_us: 9 };
        step.events.splice(1..1, [barrier, task(1), task(2)]);
        step
    }

    fn of(change: impl FnOnce(&mut StepRecord)) -> String {
        let mut step = step();
        change(&mut step);
        match validity(&step) {
            Validity::Invalid { reasons } => shown_all(&reasons),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_record_without_gaps_is_complete_in_whatever_order_its_lines_are() {
        assert_eq!(of(|_| ()), "Valid");
        assert_eq!(of(|step| step.intervals.reverse()), "Valid");
    }

    #[test]
    fn missing_and_doubled_records_are_named_with_their_file() {
        insta::assert_snapshot!(of(|step| step.intervals.clear()), @"intervals-empty");
        insta::assert_snapshot!(of(|step| drop(step.intervals.remove(2))), @"intervals-gap [client 1 insert] from_seconds: 1.0, to_seconds: 2.0");
        insta::assert_snapshot!(of(|step| drop(step.intervals.remove(1))), @"intervals-gap [client 2 insert] from_seconds: 0.0, to_seconds: 1.0");
        insta::assert_snapshot!(of(|step| step.intervals.push(step.intervals[3].clone())), @"intervals-twice [client 2 insert] from_seconds: 1.0, to_seconds: 2.0");
        insta::assert_snapshot!(of(|step| step.intervals.truncate(3)), @"
        operations-unlike [client 1 insert] ended: 20, sent: 30
        intervals-short [client 2 insert] from_seconds: 1.0, to_seconds: 2.0
        ");
        insta::assert_snapshot!(of(|step| step.intervals.retain(|interval| interval.client == 1)), @"intervals-missing [client 2 insert]");
        insta::assert_snapshot!(of(|step| (step.intervals[0].done, step.intervals[0].due) = (11, 11)), @"operations-unlike [client 1 insert] ended: 31, sent: 30");
        insta::assert_snapshot!(of(|step| drop(step.events.remove(2))), @"connections-unlike ended: 1, of: 2");
        insta::assert_snapshot!(of(|step| drop(step.events.remove(1))), @"no-barrier");
    }

    #[test]
    fn operations_that_failed_were_sent_and_those_that_were_dropped_were_not() {
        let of = of(|step| {
            let interval = &mut step.intervals[0];
            (interval.done, interval.failed, interval.dropped, interval.due) = (8, 2, 5, 15);
        });
        assert_eq!(of, "Valid");
    }

    #[test]
    fn each_answer_of_the_window_has_its_time() {
        let fault = |step: &StepRecord, timed| {
            let summary = summary(step);
            let timed = [Clock::Service, Clock::Response].map(|clock| (clock, timed));
            times_fault(&summary, summary.kind("insert").unwrap(), timed)
        };
        assert_eq!(fault(&step(), 40), None);
        insta::assert_snapshot!(shown(&fault(&step(), 20).unwrap()), @"times-unlike [insert/service] done: 40, timed: 20");
        assert_eq!(fault(&load_step(1_000), 7), None, "no connection made it");
    }

    #[test]
    fn a_step_with_fewer_times_than_answers_is_invalid_in_the_findings() {
        let mut step = step();
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        histogram.record_n(200, 20).unwrap();
        for clock in [Clock::Service, Clock::Response] {
            step.histograms.push(HistogramSpan::new("insert", clock, 0, 1_000_000, &histogram).unwrap());
        }
        let run = crate::fixtures::run(&["a"], 1, vec![crate::fixtures::cell(1, "a", vec![step])]);
        let findings = crate::analyse(&run);
        assert_eq!(codes(&findings.workloads[0].steps[0].variants[0].runs[0]), [Code::TimesUnlike]);
    }
}
