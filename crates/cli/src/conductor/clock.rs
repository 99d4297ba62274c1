//! How long a run has taken: by a clock that no one sets, and by what earlier sessions of it have
//! recorded of theirs.

use std::time::{Duration, Instant};

use dbdyno_record::{CellId, RunEvent};

use crate::time;

/// Counts the time of a run, without that between being stopped and going on.
pub(crate) struct RunClock {
    /// What earlier sessions took.
    before: Duration,
    began: Instant,
}

impl RunClock {
    pub(crate) fn start() -> Self {
        Self::going_on(&[])
    }

    /// Of a run whose earlier sessions have recorded `events`.
    pub(crate) fn going_on(events: &[RunEvent]) -> Self {
        Self { before: recorded(events), began: Instant::now() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    pub(crate) fn elapsed_us(&self) -> u64 {
        time::to_us(self.elapsed())
    }

    /// The time of day and [`Self::elapsed_us`], read at the same moment, so that a later reading
    /// of both shows whether the time of day was set.
    pub(crate) fn now(&self) -> (String, u64) {
        /// Readings between which the thread was not kept waiting.
        const AT_ONCE: Duration = Duration::from_millis(1);
        const TRIES: usize = 10;
        let read = || {
            let (before, at, after) = (self.elapsed(), time::now(), self.elapsed());
            (after - before, at, time::to_us(before))
        };
        let mut best = read();
        for _ in 1..TRIES {
            if best.0 <= AT_ONCE {
                break;
            }
            let again = read();
            if again.0 < best.0 {
                best = again;
            }
        }
        (best.1, best.2)
    }
}

/// Time that the run took up to the last thing that its sessions have recorded.
fn recorded(events: &[RunEvent]) -> Duration {
    let mut sum = Duration::ZERO;
    let is_start = |event: &RunEvent| matches!(event, RunEvent::Started { .. });
    let starts: Vec<usize> = (0..events.len()).filter(|index| is_start(&events[*index])).collect();
    let ends = starts.iter().skip(1).copied().chain([events.len()]);
    for (start, end) in starts.iter().copied().zip(ends) {
        let session = &events[start..end];
        match session.iter().rev().find_map(elapsed) {
            _ if is_of_old(session) => sum += by_times(session),
            Some(elapsed) => sum = elapsed,
            None => {}
        }
    }
    sum
}

/// Since the run began.
fn elapsed(event: &RunEvent) -> Option<Duration> {
    let elapsed_us = match event {
        RunEvent::CellStarted { elapsed_us, .. } | RunEvent::CellEnded { elapsed_us, .. } => *elapsed_us,
        RunEvent::Look { elapsed_us, .. } | RunEvent::Rested { elapsed_us, .. } => Some(*elapsed_us),
        _ => None,
    };
    elapsed_us.map(Duration::from_micros)
}

/// Of a dbdyno that recorded at cells nothing but the time of day.
fn is_of_old(session: &[RunEvent]) -> bool {
    let is_bare = |event: &RunEvent| {
        let is_of_cell = matches!(event, RunEvent::CellStarted { .. } | RunEvent::CellEnded { .. });
        is_of_cell && elapsed(event).is_none()
    };
    session.iter().any(is_bare)
}

/// Length of a session by the time of day, which someone may have set meanwhile: there is nothing
/// else in runs of old.
fn by_times(session: &[RunEvent]) -> Duration {
    let length = |(first, last): (&RunEvent, &RunEvent)| time::between(at(first), at(last));
    session.first().zip(session.last()).and_then(length).unwrap_or_default()
}

/// Time that a cell took when it last came to its end, complete or not.
pub(super) fn last_duration(events: &[RunEvent], id: &CellId) -> Duration {
    let is_end = |event: &RunEvent| matches!(event, RunEvent::CellEnded { cell, .. } if cell == id);
    let ended = events.iter().rposition(is_end);
    ended.and_then(|index| duration_of_cell(&events[..=index])).unwrap_or_default()
}

/// Of the cell whose end is the last of `events`.
fn duration_of_cell(events: &[RunEvent]) -> Option<Duration> {
    let (end, before) = events.split_last()?;
    let RunEvent::CellEnded { cell: ended, .. } = end else { return None };
    let is_start = |event: &&RunEvent| matches!(event, RunEvent::CellStarted { cell, .. } if cell == ended);
    let start = before.iter().rev().find(is_start)?;
    match (elapsed(start), elapsed(end)) {
        (Some(start), Some(end)) => end.checked_sub(start),
        _ => time::between(at(start), at(end)),
    }
}

fn at(event: &RunEvent) -> &str {
    match event {
        RunEvent::Started { at, .. }
        | RunEvent::CellStarted { at, .. }
        | RunEvent::CellEnded { at, .. }
        | RunEvent::CellSetAside { at, .. }
        | RunEvent::Look { at, .. }
        | RunEvent::Rested { at, .. }
        | RunEvent::BlockMeasured { at, .. }
        | RunEvent::Warning { at, .. }
        | RunEvent::Ended { at, .. } => at,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Outcome;

    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn at_second(second: u32) -> String {
        format!("2026-11-22T03:00:{second:02}.000Z")
    }

    fn started(second: u32, resumed: bool) -> RunEvent {
        RunEvent::Started { at: at_second(second), resumed, tool: None }
    }

    /// Start and end of a cell, each by the time of day and by the clock of the run.
    fn cell(variant: &str, from: (u32, Option<u64>), to: Option<(u32, Option<u64>)>) -> Vec<RunEvent> {
        let cell = CellId { block: 1, variant: variant.to_owned(), workload: "oltp".to_owned() };
        let micros = |seconds: Option<u64>| seconds.map(|seconds| seconds * SECOND_US);
        let begun =
            RunEvent::CellStarted { at: at_second(from.0), cell: cell.clone(), elapsed_us: micros(from.1) };
        let ended = to.map(|(second, elapsed)| RunEvent::CellEnded {
            at: at_second(second),
            cell,
            outcome: Outcome::Completed,
            message: None,
            elapsed_us: micros(elapsed),
        });
        [begun].into_iter().chain(ended).collect()
    }

    /// Seconds that a and b took when they last ended.
    fn seconds(events: &[RunEvent]) -> [u64; 2] {
        ["a", "b"].map(|variant| {
            let id = CellId { block: 1, variant: variant.to_owned(), workload: "oltp".to_owned() };
            last_duration(events, &id).as_secs()
        })
    }

    /// Killed in b, and gone on with half a minute later.
    fn run_of_old() -> Vec<RunEvent> {
        let mut events = vec![started(0, false)];
        events.extend(cell("a", (1, None), Some((5, None))));
        events.extend(cell("b", (6, None), None));
        events.push(started(40, true));
        events.extend(cell("b", (41, None), Some((44, None))));
        events
    }

    #[test]
    fn time_between_being_stopped_and_going_on_is_not_the_runs() {
        assert_eq!(recorded(&run_of_old()), Duration::from_secs(6 + 4));
        assert_eq!(seconds(&run_of_old()), [4, 3]);
        assert_eq!(recorded(&[]), Duration::ZERO);
        let mut events = vec![started(0, false)];
        events.extend(cell("a", (1, Some(1)), Some((5, Some(5)))));
        events.extend(cell("b", (6, Some(6)), None));
        events.push(started(40, true));
        assert_eq!(recorded(&events), Duration::from_secs(6));
        events.extend(cell("b", (41, Some(7)), Some((44, Some(10)))));
        assert_eq!(recorded(&events), Duration::from_secs(10));
        assert_eq!(seconds(&events), [4, 3]);
    }

    #[test]
    fn of_a_cell_that_was_interrupted_and_ran_again_only_the_last_time_counts() {
        let mut events = vec![started(0, false)];
        events.extend(cell("a", (1, Some(1)), Some((5, Some(5)))));
        events.extend(cell("b", (6, Some(6)), Some((26, Some(26)))));
        events.push(started(40, true));
        let id = CellId { block: 1, variant: "b".to_owned(), workload: "oltp".to_owned() };
        events.push(RunEvent::CellSetAside {
            at: at_second(40),
            cell: id,
            to: "aside/1/1/b/oltp".to_owned(),
        });
        events.extend(cell("b", (41, Some(27)), Some((44, Some(30)))));
        assert_eq!(seconds(&events), [4, 3]);
        assert_eq!(recorded(&events), Duration::from_secs(30), "the run took the rest anyway");
    }

    #[test]
    fn a_time_of_day_that_is_set_while_the_run_goes_on_changes_nothing() {
        let mut events = vec![started(50, false)];
        // Set back by 40 s in the middle of a, and on by 30 s in the middle of b.
        events.extend(cell("a", (51, Some(1)), Some((16, Some(6)))));
        events.extend(cell("b", (17, Some(7)), Some((50, Some(10)))));
        assert_eq!(recorded(&events), Duration::from_secs(10));
        assert_eq!(seconds(&events), [5, 3]);
    }

    #[test]
    fn a_run_of_old_that_goes_on_has_its_time_in_what_is_recorded_next() {
        let mut events = run_of_old();
        events.push(started(55, true));
        events.extend(cell("c", (56, Some(11)), Some((58, Some(13)))));
        assert_eq!(recorded(&events), Duration::from_secs(13));
        let clock = RunClock::going_on(&events);
        assert!(clock.elapsed() >= Duration::from_secs(13) && clock.elapsed() < Duration::from_secs(60));
    }
}
