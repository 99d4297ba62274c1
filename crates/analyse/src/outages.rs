//! Connections that were lost and came back: for how long, and how often.

use dbdyno_record::{CellRecord, StepEvent, StepRecord};

/// Losses of connections in one step. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outage {
    /// In which at least one connection was lost.
    seconds: f64,
    /// Lost, the sum over all connections.
    connection_seconds: f64,
    losses: u64,
    reconnects: u64,
}

/// The outage of a step; `None` when it lost no connection and opened it again.
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
    // Connections that did not come back were lost up to the end; the intervals know since when.
    spans.extend(step.intervals.iter().filter(|interval| interval.down > 0).filter_map(|interval| {
        let length_us = interval.to_us - interval.from_us;
        // All of them down all the time: an interval that lies wholly in the outage.
        (interval.down_us >= length_us * interval.down).then_some((interval.from_us, interval.to_us))
    }));
    let down_us: u64 = step.intervals.iter().map(|interval| interval.down_us).sum();
    Some(Outage {
        seconds: union_us(spans) as f64 / 1e6,
        connection_seconds: down_us as f64 / 1e6,
        losses,
        reconnects,
    })
}

/// Length of what the spans cover together.
fn union_us(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (from, to) in spans {
        covered += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    covered
}

/// The sentence that a reader must know before the step's figures.
pub(crate) fn warning(cell: &CellRecord, step: &StepRecord) -> Option<String> {
    let outage = outage(step)?;
    let times = |count: u64, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let lost = match outage.losses - outage.reconnects.min(outage.losses) {
        0 => String::new(),
        lost => format!(", {} not back at the end", times(lost, "connection")),
    };
    Some(format!(
        "Outage in block {} {} {}: {:.1} s, {}{lost}; connections were lost for {:.1} s in all. Rates and times hold it.",
        cell.id.block,
        cell.id.variant,
        step.name,
        outage.seconds,
        times(outage.reconnects, "reconnect"),
        outage.connection_seconds,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step};

    fn lost(at_us: u64) -> StepEvent {
        let (kind, code, message) = ("insert".to_owned(), "2013".to_owned(), "gone".to_owned());
        StepEvent::ConnectionLost { at_us, client: 1, kind, code, message }
    }

    fn back(at_us: u64, down_us: u64) -> StepEvent {
        StepEvent::Reconnected { at_us, client: 1, kind: "insert".to_owned(), down_us, attempts: 3 }
    }

    fn told(events: Vec<StepEvent>, down_us: u64) -> Option<String> {
        let mut step = load_step(1_000);
        step.intervals[0].down_us = down_us;
        step.events.extend(events);
        warning(&cell(1, "a", Vec::new()), &step)
    }

    #[test]
    fn outages_of_several_connections_count_once_as_time_and_each_as_a_reconnect() {
        assert_eq!(told(Vec::new(), 0), None);
        let overlapping =
            vec![lost(1_000_000), lost(1_100_000), back(4_000_000, 3_000_000), back(4_200_000, 3_100_000)];
        insta::assert_snapshot!(told(overlapping, 6_100_000).unwrap(), @"Outage in block 1 a l.i0: 3.2 s, 2 reconnects; connections were lost for 6.1 s in all. Rates and times hold it.");
        let apart =
            vec![lost(0), back(500_000, 500_000), lost(2_000_000), back(2_250_000, 250_000), lost(3_000_000)];
        insta::assert_snapshot!(told(apart, 750_000).unwrap(), @"Outage in block 1 a l.i0: 0.8 s, 2 reconnects, 1 connection not back at the end; connections were lost for 0.8 s in all. Rates and times hold it.");
    }
}
