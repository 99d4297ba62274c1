//! Warning about cells in which, or before which, the machine's time of day was set or the machine
//! slept.
//!
//! dbdyno measures by a clock that no one sets, so that figures hold. Times in records, in logs and
//! in the server itself do not, and a machine that slept has cold caches. When the kernel follows a
//! time server, it adjusts both clocks in the same way. A change in the difference between them is
//! therefore a step.

use std::collections::BTreeSet;

use dbdyno_record::{CellId, Run, RunEvent};

use crate::model::{Code, Warning};

/// Smallest reported step, in seconds. Time servers correct less than 128 ms without a step, and both
/// clocks are read within a millisecond.
const LIMIT_SECONDS: f64 = 0.1;

/// The time of day and the run's own clock, in seconds.
type Clocks = (f64, f64);

/// A warning with the largest step, and with how many cells that step or another one belongs to.
pub(crate) fn warning(run: &Run) -> Option<Warning> {
    let mut before: Option<Clocks> = None;
    let mut steps: Vec<(f64, &CellId)> = Vec::new();
    for event in &run.events {
        let (at, cell, elapsed_us) = match event {
            RunEvent::CellStarted { at, cell, elapsed_us } => (at, cell, elapsed_us),
            RunEvent::CellEnded { at, cell, elapsed_us, .. } => (at, cell, elapsed_us),
            // The run's clock stood still until the run went on, and each machine has its own.
            RunEvent::Started { .. } | RunEvent::BlockMeasured { .. } => {
                before = None;
                continue;
            }
            _ => continue,
        };
        let now = clocks(at, *elapsed_us);
        let step = before.zip(now).map(|(from, to)| (to.0 - from.0) - (to.1 - from.1));
        steps.extend(step.filter(|step| step.abs() > LIMIT_SECONDS).map(|step| (step, cell)));
        before = now;
    }
    let (seconds, cell) = steps.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()))?;
    let code = if *seconds > 0.0 { Code::ClockSetOn } else { Code::ClockSetBack };
    let warning = Warning::new(code).at(cell.to_string()).with("seconds", seconds.abs());
    let cells = steps.iter().map(|(_, cell)| cell.to_string()).collect::<BTreeSet<_>>().len();
    Some(warning.with_some("cells", Some(cells).filter(|cells| *cells > 1)))
}

fn clocks(at: &str, elapsed_us: u64) -> Option<Clocks> {
    let at: jiff::Timestamp = at.parse().ok()?;
    Some((at.as_millisecond() as f64 / 1e3, elapsed_us as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Outcome;
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell_id, run, shown};

    /// A cell of ten minutes. `off_ms` is the error of the time of day at its start and at its end.
    fn cell(block: u32, off_ms: [i64; 2]) -> [RunEvent; 2] {
        let start: jiff::Timestamp = "2026-11-22T03:00:00Z".parse().unwrap();
        let cell = cell_id(block, "a");
        let elapsed_ms = [0, 600_000].map(|ms| ms + 600_000 * i64::from(block));
        let [began, ended] = [0, 1]
            .map(|at| (start + jiff::SignedDuration::from_millis(elapsed_ms[at] + off_ms[at])).to_string());
        let [begun_us, ended_us] = elapsed_ms.map(|ms| u64::try_from(ms * 1000).unwrap());
        let (outcome, message) = (Outcome::Completed, None);
        [
            RunEvent::CellStarted { at: began, cell: cell.clone(), elapsed_us: begun_us },
            RunEvent::CellEnded { at: ended, cell, outcome, message, elapsed_us: ended_us },
        ]
    }

    fn reported_of(events: Vec<RunEvent>) -> Option<String> {
        let mut run = run(&["a"], 1, Vec::new());
        run.events = events;
        warning(&run).as_ref().map(shown)
    }

    /// The warning for these errors of the time of day at each start and end.
    fn reported(off_ms: &[[i64; 2]]) -> Option<String> {
        reported_of((1..).zip(off_ms).flat_map(|(block, off)| cell(block, *off)).collect())
    }

    #[test]
    fn a_time_of_day_that_was_set_within_a_cell_is_reported() {
        assert_eq!(reported(&[[0, 0], [0, 90], [90, 0]]), None);
        assert_snapshot!(reported(&[[0, 0], [0, 40_000]]).unwrap(), @"clock-set-on [block 2 a insert-benchmark] seconds: 40.0");
        let all = [[0, -3_600_000], [-3_600_000, -3_599_800]];
        assert_snapshot!(reported(&all).unwrap(), @"clock-set-back [block 1 a insert-benchmark] cells: 2, seconds: 3600.0");
    }

    #[test]
    fn so_is_one_between_two_cells_and_not_the_time_in_which_a_run_was_stopped() {
        assert_snapshot!(reported(&[[0, 0], [-7_000, -7_000]]).unwrap(), @"clock-set-back [block 2 a insert-benchmark] seconds: 7.0");
        let resumed =
            RunEvent::Started { at: String::new(), resumed: true, tool: dbdyno_record::ToolInfo::default() };
        let events = [&cell(1, [0, 0])[..], &[resumed], &cell(2, [90_000, 90_000])].concat();
        assert_eq!(reported_of(events), None);
    }
}
