//! Runs the steps of a cell one after the other, each on the data and in the server that the plan
//! asks for.

use dbdyno_db::server::Snapshot;
use dbdyno_db::{AnySession, Session};
use dbdyno_record::{CellId, CellWriter, Outcome};
use dbdyno_workloads::AnyWorkload;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conductor::cell::Described;
use crate::conductor::reset::{DataChange, Reset, StepStart, reset_before};
use crate::conductor::start::Database;
use crate::conductor::step::{Ran, StepTask};
use crate::conductor::{Conductor, OpenCell, Stop};

/// Least width of a step's name in the line that reports it.
const LEAST_WIDTH: usize = 8;

/// What the steps of one cell share.
pub(super) struct CellSteps<'a> {
    pub(super) id: &'a CellId,
    pub(super) writer: &'a mut CellWriter,
    pub(super) database: &'a mut Database,
    pub(super) workload: &'a mut dyn AnyWorkload,
    names: Vec<String>,
    name_width: usize,
    /// What the workload knew before any table was there.
    blank: Value,
    began_on_copy: bool,
    /// The content checks that failed after the load of the current tables.
    pub(super) misloaded: Vec<String>,
    has_measured: bool,
    /// The steps that the server refused while the others could run.
    refused: &'a mut Vec<String>,
}

/// What is known of the tables as the load has left them. A snapshot of the tables keeps it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Loaded {
    #[serde(rename = "workload")]
    knowledge: Value,
    /// The content checks after the load that failed, in words.
    faults: Vec<String>,
}

impl<'a> CellSteps<'a> {
    pub(super) fn new(
        cell: &'a mut OpenCell<'_>,
        database: &'a mut Database,
        workload: &'a mut dyn AnyWorkload,
    ) -> Self {
        let names = workload.steps();
        let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(LEAST_WIDTH);
        let blank = workload.knowledge();
        Self {
            id: cell.id,
            writer: &mut cell.writer,
            database,
            workload,
            names,
            name_width,
            blank,
            began_on_copy: false,
            misloaded: Vec::new(),
            has_measured: false,
            refused: &mut cell.refused,
        }
    }

    fn restore_state(&mut self, snapshot: &Snapshot) -> Result<(), Stop> {
        let Loaded { knowledge, faults } =
            Loaded::deserialize(&snapshot.info.knowledge).map_err(Stop::failed)?;
        self.misloaded = faults;
        self.workload.restore_state(&knowledge).map_err(Stop::failed)
    }
}

impl Conductor<'_> {
    /// Runs the steps of a cell. It leaves out the load steps on a copy of loaded data.
    pub(super) fn steps(
        &mut self,
        cell: &mut OpenCell<'_>,
        database: &mut Database,
        described: Described,
        snapshot: Option<&Snapshot>,
    ) -> Result<(), Stop> {
        let Described { mut session, mut workload, .. } = described;
        let mut steps = CellSteps::new(cell, database, &mut *workload);
        let mut first = 0;
        if let Some(snapshot) = snapshot {
            steps.restore_state(snapshot)?;
            first = steps.workload.load_steps();
            steps.began_on_copy = true;
        }
        for index in self.steps_of(&steps, first) {
            session = self.ready(&mut steps, index, session)?;
            self.one_step(&mut steps, index, &mut session, false)?;
        }
        self.runtime.block_on(session.close());
        Ok(())
    }

    /// Returns the steps from `first` on that the cell's block runs.
    pub(super) fn steps_of(&self, steps: &CellSteps<'_>, first: usize) -> Vec<usize> {
        let partial = self.partial.get(&(steps.id.block, steps.id.workload.clone()));
        let is_run = |index: &usize| partial.is_none_or(|partial| partial.contains(&steps.names[*index]));
        (first..steps.names.len()).filter(is_run).collect()
    }

    /// Gives step `index` the server and the data that the plan asks for.
    fn ready(
        &mut self,
        steps: &mut CellSteps<'_>,
        index: usize,
        session: AnySession,
    ) -> Result<AnySession, Stop> {
        let loads = steps.workload.load_steps();
        if loads == 0 || index < loads || !steps.database.can_turn() {
            return Ok(session);
        }
        let (mode, cold) = self.plan.workload.data_of(&steps.id.workload);
        let step = StepStart {
            is_first: !steps.has_measured,
            began_on_copy: steps.began_on_copy,
            begins_group: steps.workload.outlines()[index].begins_group,
            is_cold: cold.holds(&steps.names[index]),
        };
        steps.has_measured = true;
        let Some(reset) = reset_before(mode, step) else { return Ok(session) };
        let place = format!("before step {}", steps.names[index]);
        let here = |stop: Stop| stop.at(&place);
        let loaded = Loaded { knowledge: steps.workload.knowledge(), faults: steps.misloaded.clone() };
        // A repeated load would warm the caches, so they are emptied after it.
        let now = Reset { is_cold: reset.is_cold && reset.data != DataChange::Anew, ..reset };
        let restarted =
            self.reset_before(steps.id, steps.writer, steps.database, session, now, json!(loaded));
        let mut session = restarted.map_err(here)?;
        if reset.data == DataChange::Restore
            && let Some(snapshot) = self.snapshot(steps.id)
        {
            steps.restore_state(&snapshot).map_err(here)?;
        }
        if reset.data == DataChange::Anew {
            steps.misloaded.clear();
            steps.workload.restore_state(&steps.blank).map_err(|error| here(Stop::failed(error)))?;
            for load in 0..loads {
                self.one_step(steps, load, &mut session, true)?;
            }
            if reset.is_cold {
                let then = Reset { data: DataChange::AsItIs, is_cold: true };
                let restarted =
                    self.reset_before(steps.id, steps.writer, steps.database, session, then, Value::Null);
                return restarted.map_err(here);
            }
        }
        Ok(session)
    }

    /// Runs one step with the work before and after it. `is_repeated` says that it runs again only
    /// to make the data.
    pub(super) fn one_step(
        &mut self,
        steps: &mut CellSteps<'_>,
        index: usize,
        session: &mut AnySession,
        is_repeated: bool,
    ) -> Result<(), Stop> {
        let name = &steps.names[index];
        let interrupted = |when: &str| Stop::interrupted(&format!("{when} step {name}"));
        self.let_work(session);
        let before = self.answered(&format!("preparing {name}"), steps.workload.before(index, session));
        self.write_works(steps.writer, before.ok_or_else(|| interrupted("before"))?)?;
        let (cell, database, name_width) = (steps.id, &*steps.database, steps.name_width);
        let misloaded = &steps.misloaded[..];
        let step =
            StepTask { conductor: self, cell, database, index, name, name_width, is_repeated, misloaded };
        let Ran { ending: (outcome, message), mismatches } =
            step.run(steps.writer, steps.workload, session)?;
        if index < steps.workload.load_steps() {
            steps.misloaded.extend(mismatches);
            // An index build may find the same rows missing as the load before it.
            steps.misloaded.sort();
            steps.misloaded.dedup();
        }
        if outcome != Outcome::Completed {
            let stop = Stop::Cell((outcome, message)).at(&format!("step {name}"));
            return self.gone_on(steps, index, stop, session);
        }
        if !is_repeated {
            self.progress.passed(name);
        }
        self.progress.busy("between steps");
        // The work may pause for many minutes, so Ctrl-C does not wait for its end.
        let after = self.unless_cancelled(steps.workload.after(index, session));
        if let Some(after) = after {
            self.write_works(steps.writer, after)?;
        }
        if self.cancelled() { Err(interrupted("after")) } else { Ok(()) }
    }
}

impl Conductor<'_> {
    /// Goes on after a step that did not complete, if the server only refused it, because the later
    /// steps do not depend on it. A step that has lost the server ends the cell.
    fn gone_on(
        &self,
        steps: &mut CellSteps<'_>,
        index: usize,
        stop: Stop,
        session: &mut AnySession,
    ) -> Result<(), Stop> {
        let why = match stop {
            Stop::Cell((Outcome::Failed, Some(why))) if steps.workload.outlines()[index].leaves_data => why,
            stop => return Err(stop),
        };
        match self.unless_cancelled(steps.database.connect()) {
            Some(Ok(again)) => *session = again,
            Some(Err(_)) => return Err(Stop::failed(why)),
            None => return Err(Stop::interrupted(&format!("after step {}", steps.names[index]))),
        }
        steps.refused.push(why);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_remembers_the_checks_of_its_load_that_failed() {
        let knowledge = json!({ "rows": "2000" });
        for faults in [vec!["table sbtest1: rows is 1999, must be 2000".to_owned()], Vec::new()] {
            let loaded = Loaded { knowledge: knowledge.clone(), faults };
            assert_eq!(Loaded::deserialize(json!(loaded)).unwrap(), loaded);
        }
    }
}
