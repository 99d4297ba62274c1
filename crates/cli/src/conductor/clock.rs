//! Measures how long a run has taken, by a monotonic clock and by what earlier sessions of the run
//! have recorded.

use std::time::{Duration, Instant};

use dbdyno_record::RunEvent;

use crate::time;

/// Counts the time of a run. It leaves out the time between a stop and the resumption.
pub(crate) struct RunClock {
    /// Time that earlier sessions took.
    before: Duration,
    began: Instant,
}

impl RunClock {
    pub(crate) fn start() -> Self {
        Self::going_on(&[])
    }

    /// Makes the clock of a run whose earlier sessions have recorded `events`.
    pub(crate) fn going_on(events: &[RunEvent]) -> Self {
        Self { before: recorded(events), began: Instant::now() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    pub(crate) fn elapsed_us(&self) -> u64 {
        time::to_us(self.elapsed())
    }

    /// Returns the time of day and [`Self::elapsed_us`], read at the same moment. A later reading
    /// of both then shows whether the time of day was set.
    pub(crate) fn now(&self) -> (String, u64) {
        /// Two readings this close say that the thread was not kept waiting between them.
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

/// Returns the time that the run took up to the last event in which its sessions recorded a time.
fn recorded(events: &[RunEvent]) -> Duration {
    events.iter().rev().find_map(elapsed).unwrap_or_default()
}

/// Returns the time since the run began.
fn elapsed(event: &RunEvent) -> Option<Duration> {
    match event {
        RunEvent::CellStarted { elapsed_us, .. }
        | RunEvent::CellEnded { elapsed_us, .. }
        | RunEvent::Look { elapsed_us, .. }
        | RunEvent::Rested { elapsed_us, .. } => Some(Duration::from_micros(*elapsed_us)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellId, Outcome, ToolInfo};

    use super::*;

    fn started(resumed: bool) -> RunEvent {
        RunEvent::Started { at: String::new(), resumed, tool: ToolInfo::default() }
    }

    /// Makes the start and end of a cell, in seconds of the run's clock.
    fn cell(variant: &str, from: u64, to: Option<u64>) -> Vec<RunEvent> {
        let (at, cell) =
            (String::new(), CellId { block: 1, variant: variant.to_owned(), workload: "oltp".to_owned() });
        let begun =
            RunEvent::CellStarted { at: at.clone(), cell: cell.clone(), elapsed_us: from * 1_000_000 };
        let ended = to.map(|seconds| RunEvent::CellEnded {
            at,
            cell,
            outcome: Outcome::Completed,
            message: None,
            elapsed_us: seconds * 1_000_000,
        });
        [begun].into_iter().chain(ended).collect()
    }

    #[test]
    fn a_run_that_goes_on_has_taken_what_its_last_cell_says() {
        assert_eq!(recorded(&[]), Duration::ZERO);
        let killed = [vec![started(false)], cell("a", 1, Some(5)), cell("b", 6, None)].concat();
        assert_eq!(recorded(&[&killed[..], &[started(true)]].concat()), Duration::from_secs(6));
        let events = [killed, vec![started(true)], cell("b", 7, Some(10))].concat();
        assert_eq!(recorded(&events), Duration::from_secs(10));
        let clock = RunClock::going_on(&events);
        assert!(clock.elapsed() >= Duration::from_secs(10) && clock.elapsed() < Duration::from_secs(60));
    }
}
