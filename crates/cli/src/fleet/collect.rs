//! Takes the records of a task into those of the run.

use dbdyno_record::{Outcome, Run, RunEvent};

use crate::conductor::Tally;
use crate::exit::ExitError;
use crate::fleet::Fleet;
use crate::fleet::task::Task;
use crate::time;

impl Fleet<'_> {
    /// Takes the records of an ended task into the run. It is `false` when the task did not come to
    /// the end of its block.
    pub(super) fn collect(
        &mut self,
        machine: &str,
        task: &Task,
        tally: &mut Tally,
    ) -> Result<bool, ExitError> {
        let Ok(measured) = Run::outline(&task.dir) else { return Ok(false) };
        let (host, cells) = (measured.manifest.host, measured.manifest.order);
        if !is_whole(&measured.events) {
            return Ok(false);
        }
        let before_us = self.spent_us;
        for mut event in measured.events {
            if matches!(event, RunEvent::Started { .. } | RunEvent::Ended { .. }) {
                continue;
            }
            if let Some(elapsed_us) = elapsed_us(&mut event) {
                *elapsed_us += before_us;
                self.spent_us = *elapsed_us;
            }
            if let RunEvent::CellEnded { cell, outcome, message, .. } = &event {
                match outcome {
                    Outcome::Completed => tally.completed += 1,
                    _ => {
                        tally.failed += 1;
                        let why = message.as_deref().unwrap_or("no reason was given");
                        self.progress.line(&format!("error: {cell} failed on {machine}: {why}"));
                    }
                }
            }
            self.writer.event(&event)?;
        }
        let (at, machine) = (time::now(), machine.to_owned());
        let took = time::about(std::time::Duration::from_micros(self.spent_us - before_us));
        self.progress.line(&format!("block {} on {machine}: {took}", task.block));
        // This comes before the cells, so that a block in the record always has its machine.
        self.writer.event(&RunEvent::BlockMeasured {
            at,
            block: task.block,
            machine,
            host: Box::new(host),
        })?;
        for cell in &cells {
            self.writer.take_over(&task.dir, cell)?;
            self.progress.cell_elsewhere(cell);
        }
        Ok(true)
    }
}

/// Whether a task has come to its end. A task that was interrupted lacks cells.
fn is_whole(events: &[RunEvent]) -> bool {
    let Some(RunEvent::Ended { outcome, .. }) = events.last() else { return false };
    *outcome != Outcome::Interrupted
}

/// Returns the time since the run began.
fn elapsed_us(event: &mut RunEvent) -> Option<&mut u64> {
    match event {
        RunEvent::CellStarted { elapsed_us, .. }
        | RunEvent::CellEnded { elapsed_us, .. }
        | RunEvent::Rested { elapsed_us, .. } => Some(elapsed_us),
        _ => None,
    }
}
