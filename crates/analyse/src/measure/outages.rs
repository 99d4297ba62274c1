//! Finds outages: for how long connections were lost, and how often they came back.

use dbdyno_record::{CellRecord, MOST_OUTAGE_EVENTS, StepEvent, StepRecord};

use crate::model::{Code, Warning};
use crate::window::{Span, covered_us};

/// Losses of connections in one step. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outage {
    /// Time in which at least one connection was lost.
    seconds: f64,
    /// Time for which connections were lost, summed over all connections.
    connection_seconds: f64,
    reconnects: u64,
    /// Not every loss and return is in the record.
    is_cut: bool,
    /// Connections that were still lost at the end.
    down: u64,
}

/// The outage in a step; `None` where no loss of a connection is in the record.
pub(crate) fn outage(step: &StepRecord) -> Option<Outage> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let (mut losses, mut reconnects) = (0, 0);
    for event in &step.events {
        match event {
            StepEvent::ConnectionLost { .. } => losses += 1,
            StepEvent::Reconnected { at_us, down_us, .. } => {
                reconnects += 1;
                spans.push((at_us.saturating_sub(*down_us), *at_us));
            }
            _ => {}
        }
    }
    if losses == 0 {
        return None;
    }
    // A connection that never comes back has no `Reconnected` event, so intervals have to show when
    // it was lost. An interval belongs to one client and one kind of operation. Its `down_us` is
    // the sum of the times for which connections were lost, and its `down` is the number of
    // connections that are still lost at its end. Each of these is taken as lost for the last
    // `down_us / down` of the interval. This is limited to the interval's length, because the sum
    // includes connections that came back.
    spans.extend(step.intervals.iter().filter(|interval| interval.down > 0).map(|interval| {
        let length_us = interval.to_us - interval.from_us;
        (interval.to_us - length_us.min(interval.down_us / interval.down), interval.to_us)
    }));
    // Several intervals end last: one per client and kind of operation.
    let end_us = step.intervals.iter().map(|interval| interval.to_us).max();
    let last = step.intervals.iter().filter(|interval| Some(interval.to_us) == end_us);
    Some(Outage {
        seconds: covered_us(spans) as f64 / 1e6,
        connection_seconds: step.intervals.iter().map(|interval| interval.down_us).sum::<u64>() as f64 / 1e6,
        reconnects,
        is_cut: losses + reconnects >= u64::from(MOST_OUTAGE_EVENTS),
        down: last.map(|interval| interval.down).sum(),
    })
}

/// The warning about a step's outage, to be read before the step's figures; `None` without an
/// outage.
pub(crate) fn warning(cell: &CellRecord, step: &StepRecord) -> Option<Warning> {
    let outage = outage(step)?;
    // There are two warnings, because an outage affects different figures. With a schedule,
    // operations come due during the outage, and their response times include it. In a closed loop,
    // a lost connection has no operation due, and failed operations have no time, so only the rate
    // shows it.
    let has_schedule = step.spec.kinds.iter().any(|kind| !kind.is_closed_loop());
    let code = if has_schedule { Code::OutageOfSchedule } else { Code::OutageOfClosedLoop };
    let warning = Warning::new(code)
        .at(format!("block {} {} {}", cell.id.block, cell.id.variant, step.name))
        .with("seconds", outage.seconds)
        .with("connection_seconds", outage.connection_seconds)
        .with("reconnects", outage.reconnects)
        .with_some("not_back", Some(outage.down).filter(|down| *down > 0));
    Some(warning.with_some("at_least", outage.is_cut.then_some("at least ")))
}

/// The longest time within `window` in which every connection of the headline's kind was lost.
/// Nothing can have been answered in that time. Only connections that came back are considered.
pub(crate) fn longest_without_connection(step: &StepRecord, window: Span) -> Span {
    let headline = &step.spec.headline.kind;
    let per_client = step.spec.kinds.iter().find(|kind| kind.kind == *headline);
    let connections = per_client.map_or(0, |kind| kind.connections_per_client * step.spec.clients);
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for event in &step.events {
        if let StepEvent::Reconnected { at_us, kind, down_us, .. } = event
            && kind == headline
        {
            changes.extend([(at_us.saturating_sub(*down_us), 1), (*at_us, -1)]);
        }
    }
    // A connection may come back and be lost again in the same microsecond. Sorting puts the end of
    // the first loss before the beginning of the second.
    changes.sort_unstable();
    let (mut lost, mut longest) = (0, Span::new(0, 0));
    for (change, next) in changes.iter().zip(changes.iter().skip(1)) {
        lost += change.1;
        let span = window.overlap(Span::new(change.0, next.0));
        if lost >= i64::from(connections) && span.seconds() > longest.seconds() {
            longest = span;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, shown};

    fn lost(at_us: u64) -> StepEvent {
        let (kind, code, message) = ("insert".to_owned(), "2013".to_owned(), "gone".to_owned());
        StepEvent::ConnectionLost { at_us, client: 1, kind, code, message }
    }

    fn back(at_us: u64, down_us: u64) -> StepEvent {
        StepEvent::Reconnected { at_us, client: 1, kind: "insert".to_owned(), down_us, attempts: 3 }
    }

    fn reported(events: Vec<StepEvent>, down_us: u64, down: u64) -> Option<String> {
        let mut step = load_step(1_000);
        let last = step.intervals.last_mut().unwrap();
        (last.down_us, last.down) = (down_us, down);
        step.events.extend(events);
        warning(&cell(1, "a", Vec::new()), &step).as_ref().map(shown)
    }

    #[test]
    fn the_time_of_overlapping_outages_counts_once_and_every_reconnect_is_counted() {
        assert_eq!(reported(Vec::new(), 0, 0), None);
        let overlapping =
            vec![lost(1_000_000), lost(1_100_000), back(4_000_000, 3_000_000), back(4_200_000, 3_100_000)];
        insta::assert_snapshot!(reported(overlapping, 6_100_000, 0).unwrap(), @"outage-of-closed-loop [block 1 a l.i0] connection_seconds: 6.1, reconnects: 2, seconds: 3.2");
    }

    #[test]
    fn connections_that_do_not_come_back_are_down_from_their_loss_to_the_end() {
        let interval = load_step(1_000).intervals.pop().unwrap();
        let (end_us, length_us) = (interval.to_us, interval.to_us - interval.from_us);
        assert!(length_us >= 500_000, "{length_us}");
        let away = vec![lost(end_us - 200_000), lost(end_us - 200_000)];
        insta::assert_snapshot!(reported(away, 400_000, 2).unwrap(), @"outage-of-closed-loop [block 1 a l.i0] connection_seconds: 0.4, not_back: 2, reconnects: 0, seconds: 0.2");
    }

    #[test]
    fn the_warning_depends_on_whether_operations_come_by_a_schedule() {
        let mut step = load_step(1_000);
        step.events.extend([lost(1_000_000), back(1_500_000, 500_000)]);
        let of = |step: &StepRecord| warning(&cell(1, "a", Vec::new()), step).unwrap().code;
        assert_eq!(of(&step), Code::OutageOfClosedLoop);
        step.spec.kinds[0].arrivals = "poisson 2/s".to_owned();
        assert_eq!(of(&step), Code::OutageOfSchedule);
    }

    #[test]
    fn the_time_without_any_connection_is_that_in_which_all_were_lost_at_once() {
        let longest = |clients, events: &[StepEvent]| {
            let mut step = load_step(1_000);
            step.spec.clients = clients;
            step.events.extend(events.iter().cloned());
            longest_without_connection(&step, Span::new(0, 2_000_000)).seconds()
        };
        // The connections were lost from 0.2 to 1.4 s and from 0.5 to 1.7 s.
        let two = [back(1_400_000, 1_200_000), back(1_700_000, 1_200_000)];
        assert_eq!((longest(2, &two), longest(3, &two)), (0.9, 0.0));
        assert_eq!(longest(1, &[back(2_900_000, 2_000_000)]), 1.1, "what lies in the window");
        assert_eq!(longest(1, &[]), 0.0);
    }

    #[test]
    fn losses_beyond_those_that_are_recorded_make_the_count_a_lower_bound() {
        let events = (0..5_000).flat_map(|at| [lost(at), back(at + 100_000, 100_000)]).collect();
        let text = reported(events, 0, 0).unwrap();
        assert!(text.contains("at_least: at least ") && text.contains("reconnects: 5000"), "{text}");
    }
}
