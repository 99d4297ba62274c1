//! Cells in which the machine's time of day was set, or the machine slept.
//!
//! dbdyno measures by a clock that no one sets, so figures hold. Times of records, of logs and of
//! the server itself do not, and a machine that slept has cold caches. The kernel bends both clocks
//! alike when it follows a time server, so what lies between them is a step.

use std::collections::BTreeMap;

use dbdyno_record::{CellId, Run, RunEvent};

use crate::model::{Code, Notice};

/// Smaller ones are not reported: time servers correct less than 128 ms without a step, and both
/// clocks are read within a millisecond.
const LIMIT_SECONDS: f64 = 0.1;

/// The time of day and the run's own clock, in seconds.
type Clocks = (f64, f64);

/// The greatest step, and in how many cells there was one.
pub(crate) fn notice(run: &Run) -> Option<Notice> {
    let mut begun: BTreeMap<String, Clocks> = BTreeMap::new();
    let mut steps: Vec<(f64, &CellId)> = Vec::new();
    for event in &run.events {
        match event {
            RunEvent::CellStarted { at, cell, elapsed_us } => {
                begun.extend(clocks(at, *elapsed_us).map(|clocks| (cell.to_string(), clocks)));
            }
            RunEvent::CellEnded { at, cell, elapsed_us, .. } => {
                let both = begun.remove(&cell.to_string()).zip(clocks(at, *elapsed_us));
                let step = both.map(|(from, to)| (to.0 - from.0) - (to.1 - from.1));
                steps.extend(step.filter(|step| step.abs() > LIMIT_SECONDS).map(|step| (step, cell)));
            }
            _ => {}
        }
    }
    let (seconds, cell) = steps.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()))?;
    let code = if *seconds > 0.0 { Code::ClockSetOn } else { Code::ClockSetBack };
    let notice = Notice::new(code).at(cell.to_string()).with("seconds", seconds.abs());
    Some(notice.with_some("cells", Some(steps.len()).filter(|cells| *cells > 1)))
}

fn clocks(at: &str, elapsed_us: Option<u64>) -> Option<Clocks> {
    let at: jiff::Timestamp = at.parse().ok()?;
    Some((at.as_millisecond() as f64 / 1e3, elapsed_us? as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Outcome;
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell_id, run, shown};

    /// A cell of ten minutes at whose end the time of day is so much off.
    fn ended_with(block: u32, off_ms: i64) -> [RunEvent; 2] {
        let start: jiff::Timestamp = "2026-11-22T03:00:00Z".parse().unwrap();
        let at = |ms| (start + jiff::SignedDuration::from_millis(ms)).to_string();
        let cell = cell_id(block, "a");
        let begun = RunEvent::CellStarted { at: at(0), cell: cell.clone(), elapsed_us: Some(5_000_000) };
        let ended = RunEvent::CellEnded {
            at: at(600_000 + off_ms),
            cell,
            outcome: Outcome::Completed,
            message: None,
            elapsed_us: Some(605_000_000),
        };
        [begun, ended]
    }

    fn reported(off_ms: &[i64]) -> Option<String> {
        let mut run = run(&["a"], 1, Vec::new());
        run.events = (1..).zip(off_ms).flat_map(|(block, off)| ended_with(block, *off)).collect();
        notice(&run).as_ref().map(shown)
    }

    #[test]
    fn a_time_of_day_that_was_set_within_a_cell_is_reported() {
        assert_eq!(reported(&[0, 90, -90]), None);
        assert_snapshot!(reported(&[0, 40_000]).unwrap(), @"clock-set-on [block 2 a insert-benchmark] seconds: 40.0");
        assert_snapshot!(reported(&[-3_600_000, 150]).unwrap(), @"clock-set-back [block 1 a insert-benchmark] cells: 2, seconds: 3600.0");
    }
}
