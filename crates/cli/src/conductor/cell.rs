//! Runs one cell: one variant on fresh data runs all steps of one workload. Each step gets the data
//! and the server state that the plan specifies.
//!
//! With `design = "alternate"` the servers of all variants stay up, and each step of a block runs
//! on one server after the other. A temporary slowdown of the machine then affects all of them.

use std::collections::BTreeMap;

use dbdyno_db::server::Snapshot;
use dbdyno_db::{AnySession, ConnectionLog, Description, Session, Tls, describe};
use dbdyno_plan::{WorkloadOptions, further_cells};
use dbdyno_record::{CellEvent, CellId, CellWriter, ConnectionClass, Outcome, ServerInfo};
use dbdyno_report::warning_text;
use dbdyno_workloads::{AnyWorkload, Context, Work};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conductor::database::Database;
use crate::conductor::reset::{DataChange, Reset, StepStart, reset_before};
use crate::conductor::step::{StepResult, StepTask};
use crate::conductor::{CellEnding, Conductor, OpenCell, RunTally, Stop, ending};
use crate::exit::ExitError;
use crate::load::{self, time_seed};
use crate::plan::prepare::PreparedVariant;
use crate::{limits, time};

/// A server that has answered the first server queries, and the workload that is opened on it.
pub(super) struct Described {
    /// The session for set-up and checks. It runs beside the load.
    pub(super) session: AnySession,
    pub(super) workload: Box<dyn AnyWorkload>,
    pub(super) server: ServerInfo,
}

impl Conductor<'_> {
    /// Runs one cell. It locks and starts the database, runs the steps, and ends the database. The
    /// cell's server may stop while that of the `next` cell starts.
    pub(super) fn cell(
        &mut self,
        cell: &mut OpenCell<'_>,
        next: Option<&CellId>,
    ) -> Result<CellEnding, Stop> {
        self.progress.cell(cell.id, self.plan.blocks.max(cell.id.block));
        // This discards the connections that read the variant's settings back before the run,
        // because they do not belong to its first cell.
        self.connections(cell.id);
        self.lock(cell)?;
        let snapshot = self.snapshot(cell.id);
        let ended = match self.start(cell, snapshot.as_ref()) {
            Ok(mut database) => {
                let ending_after_last_step = self
                    .described(cell, &database)
                    .and_then(|described| self.steps(cell, &mut database, described, snapshot.as_ref()));
                let ended = ending(ending_after_last_step.map(|()| cell.ending_after_last_step()))?;
                let ended = self.explained(ended, &mut cell.writer, &database)?;
                self.give_back(cell, next, database)?;
                ended
            }
            Err(stop) => ending(Err(stop))?,
        };
        self.still_locked(cell, ended)
    }

    /// Returns the classes of connections to the cell's variant since the last call, with the TLS
    /// version and the cipher that each has agreed on.
    pub(super) fn connections(&self, id: &CellId) -> Vec<ConnectionClass> {
        let variant = self.prepared(id).ok();
        let log = variant.and_then(|variant| variant.connection_settings.tls.as_ref()).map(Tls::log);
        let classes = log.map_or_else(Vec::new, ConnectionLog::take);
        classes
            .into_iter()
            .map(|found| {
                let (tls_version, cipher) =
                    found.encryption.map(|agreed| (agreed.version, agreed.cipher)).unzip();
                ConnectionClass { class: found.class, connections: found.connections, tls_version, cipher }
            })
            .collect()
    }

    /// Makes sure that the cell's database is locked, and reports other work on it.
    fn lock(&mut self, cell: &mut OpenCell<'_>) -> Result<(), Stop> {
        let locked = self.runtime.block_on(self.advisory_locks.renew(&cell.id.variant));
        self.warn(&mut cell.writer, locked.map_err(Stop::failed)?)?;
        let other_statements = self.runtime.block_on(self.advisory_locks.other_statements(&cell.id.variant));
        self.warn(&mut cell.writer, other_statements)?;
        let others = self.advisory_locks.others.new_ones();
        Ok(self.warn(&mut cell.writer, others)?)
    }

    /// Returns the ending of a cell whose database another run may have locked meanwhile.
    fn still_locked(&mut self, cell: &mut OpenCell<'_>, ended: CellEnding) -> Result<CellEnding, Stop> {
        if self.cancelled() {
            return Ok(ended);
        }
        let locked = self.runtime.block_on(self.advisory_locks.renew(&cell.id.variant));
        let taken = match locked {
            Ok(lost) => {
                self.warn(&mut cell.writer, lost)?;
                return Ok(ended);
            }
            Err(taken) => taken,
        };
        // The time of the loss is unknown, so any step may have run with the other run's load, and
        // with its rows in the tables.
        cell.writer.event(&CellEvent::Invalid { at: time::now(), reason: taken.clone() })?;
        let (outcome, message) = ended;
        Ok(match outcome {
            Outcome::Completed => (Outcome::Failed, Some(taken)),
            Outcome::Failed => {
                (outcome, Some(message.map_or(taken.clone(), |why| format!("{why}; {taken}"))))
            }
            Outcome::Interrupted => (outcome, message),
        })
    }

    pub(super) fn warn(
        &self,
        writer: &mut CellWriter,
        texts: impl IntoIterator<Item = String>,
    ) -> Result<(), ExitError> {
        for text in texts {
            self.progress.line(&format!("warning: {text}"));
            writer.event(&CellEvent::Warning { at: time::now(), text })?;
        }
        Ok(())
    }

    /// Adds to a failed ending the cause that the server's exit or its log shows.
    pub(super) fn explained(
        &self,
        mut ending: CellEnding,
        writer: &mut CellWriter,
        database: &Database,
    ) -> Result<CellEnding, ExitError> {
        let exit_report = database.exit_report();
        if !database.owned {
            // These statements belong to a check or a pause that was cut off. Those of a step are
            // reported with the step.
            let cancelled = self.cancel_abandoned(database);
            self.warn(writer, cancelled.err())?;
        }
        if ending.0 == Outcome::Failed
            && let Some(words) = exit_report.or_else(|| database.complaints())
        {
            ending.1 = Some(format!("{}; {words}", ending.1.unwrap_or_default()));
        }
        Ok(ending)
    }

    pub(crate) fn prepared(&self, id: &CellId) -> Result<&PreparedVariant, ExitError> {
        let found = self.variants.iter().find(|variant| variant.info.name == id.variant);
        found.ok_or_else(|| {
            ExitError::ours(format!("the run names a variant {} that its plan lacks", id.variant))
        })
    }

    /// Queries the server's description, and opens the workload on it.
    pub(super) fn described(
        &mut self,
        cell: &mut OpenCell<'_>,
        database: &Database,
    ) -> Result<Described, Stop> {
        let OpenCell { id, writer, .. } = cell;
        for text in database.notes() {
            writer.event(&CellEvent::Note { at: time::now(), text })?;
        }
        let described = self.answered("asking the server what it is", async {
            let mut session = database.connect_to_probe().await?;
            let description = describe(&mut session).await?;
            session.lift_own_limits().await?;
            let room = limits::check_server(&mut session, self.plan).await;
            Ok::<_, dbdyno_db::DbError>((session, description, room))
        });
        let described = described.ok_or_else(|| Stop::interrupted("before the first step"))?;
        let (session, description, room) = described.map_err(Stop::failed)?;
        let server = server_info(description, database);
        if let Some(text) = self.warming_note(id, &server) {
            writer.event(&CellEvent::Note { at: time::now(), text })?;
        }
        writer.event(&CellEvent::Server { at: time::now(), server: server.clone() })?;
        room.map_err(Stop::failed)?;
        let context = Context {
            database_server: database.database_server.clone(),
            owned: database.owned,
            seed: self.plan.seed,
            draws: self.seed_of_measured_steps(id),
            device: database.device_gauge(),
        };
        let workload = load::workload(self.plan, &id.workload, context).ok_or_else(|| {
            ExitError::ours(format!("the run names a workload {} that its plan lacks", id.workload))
        })?;
        Ok(Described { session, workload, server })
    }

    /// Returns the seed for a cell's measured steps. It is the plan's seed, except on tables that
    /// stay from cell to cell. There each cell gets a new seed, because an update with the value
    /// that a row already has changes nothing.
    fn seed_of_measured_steps(&self, id: &CellId) -> u64 {
        let loads = |options: &dyn WorkloadOptions| options.steps().iter().any(|step| step.loads);
        let options = self.plan.workload.get(&id.workload);
        if options.is_none_or(loads) { self.plan.seed } else { time_seed() }
    }

    /// Records work outside the measured time, and reports a server that did not settle.
    pub(crate) fn write_works(
        &self,
        writer: &mut CellWriter,
        works: Result<Vec<Work>, dbdyno_workloads::Error>,
    ) -> Result<(), Stop> {
        for Work { name, duration, details, warning } in works.map_err(Stop::failed)? {
            if let Some(why) = dbdyno_analyse::unsettled_warning(&details) {
                self.progress.line(&format!("warning: {}", warning_text(&why)));
            }
            self.warn(writer, warning)?;
            let duration_us = time::to_us(duration);
            writer.event(&CellEvent::Work { at: time::now(), name, duration_us, details })?;
        }
        Ok(())
    }
}

pub(crate) fn server_info(description: Description, database: &Database) -> ServerInfo {
    let [major, minor, patch] = description.version;
    let capabilities = &database.database_server.capabilities;
    let missing = capabilities.foreign.iter().flat_map(|foreign| foreign.missing.clone());
    ServerInfo {
        product: description.product,
        speaks: description.foreign.map(|foreign| foreign.speaks),
        missing: missing.collect(),
        version: format!("{major}.{minor}.{patch}"),
        version_text: description.version_text,
        engine: Some(description.engine).filter(|engine| !engine.is_empty()),
        tables_engine: capabilities.engine.clone(),
        pid: database.pid(),
        cpus: database.effective_cpus(),
        memory_limit_bytes: database.cgroup().map(|group| group.memory_limit_bytes),
        settings: description.settings,
        session: description.session,
        sources: description.sources,
    }
}

/// Minimum width of a step's name in the line that reports it.
const MIN_WIDTH: usize = 8;

/// State that the steps of one cell share.
pub(super) struct CellSteps<'a> {
    pub(super) id: &'a CellId,
    pub(super) writer: &'a mut CellWriter,
    pub(super) database: &'a mut Database,
    pub(super) workload: &'a mut dyn AnyWorkload,
    names: Vec<String>,
    name_width: usize,
    /// The state of the workload before any table existed.
    initial_state: Value,
    began_on_copy: bool,
    /// The content checks that failed after the load of the current tables.
    pub(super) misloaded: Vec<String>,
    has_measured: bool,
    /// The steps that the server refused while the others could run.
    refused: &'a mut Vec<String>,
}

/// State of the tables after the load. It is kept with a snapshot of the tables.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Loaded {
    #[serde(rename = "workload")]
    saved_state: Value,
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
        let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(MIN_WIDTH);
        let initial_state = workload.saved_state();
        Self {
            id: cell.id,
            writer: &mut cell.writer,
            database,
            workload,
            names,
            name_width,
            initial_state,
            began_on_copy: false,
            misloaded: Vec::new(),
            has_measured: false,
            refused: &mut cell.refused,
        }
    }

    fn restore_state(&mut self, snapshot: &Snapshot) -> Result<(), Stop> {
        let Loaded { saved_state, faults } =
            Loaded::deserialize(&snapshot.info.saved_state).map_err(Stop::failed)?;
        self.misloaded = faults;
        self.workload.restore_state(&saved_state).map_err(Stop::failed)
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

    /// Gives step `index` the server state and the data that the plan specifies.
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
        let loaded = Loaded { saved_state: steps.workload.saved_state(), faults: steps.misloaded.clone() };
        // A repeated load would warm the caches, so they are emptied after the load and not now.
        let now = Reset { is_cold: reset.is_cold && reset.data != DataChange::Reload, ..reset };
        let restarted =
            self.reset_before(steps.id, steps.writer, steps.database, session, now, json!(loaded));
        let mut session = restarted.map_err(here)?;
        if reset.data == DataChange::Restore
            && let Some(snapshot) = self.snapshot(steps.id)
        {
            steps.restore_state(&snapshot).map_err(here)?;
        }
        if reset.data == DataChange::Reload {
            steps.misloaded.clear();
            steps.workload.restore_state(&steps.initial_state).map_err(|error| here(Stop::failed(error)))?;
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

    /// Runs one step with the work before and after it. `is_repeated` says that the step runs again
    /// only to make the data.
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
        let StepResult { ending: (outcome, message), mismatches } =
            step.run(steps.writer, steps.workload, session)?;
        if index < steps.workload.load_steps() {
            steps.misloaded.extend(mismatches);
            // An index build may find the same rows missing as the load before it.
            steps.misloaded.sort();
            steps.misloaded.dedup();
        }
        if outcome != Outcome::Completed {
            let stop = Stop::Cell((outcome, message)).at(&format!("step {name}"));
            return self.go_on_after_failure(steps, index, stop, session);
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

    /// Goes on after a failed step that leaves the data as they were, because the later steps do
    /// not depend on it. A step that has lost the server ends the cell.
    fn go_on_after_failure(
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

/// Servers that stay up from block to block, by variant.
#[derive(Default)]
pub(super) struct RunningServers(BTreeMap<String, StartedServer>);

/// A server that stays up, with its workload loaded.
struct StartedServer {
    database: Database,
    session: AnySession,
    workload: Box<dyn AnyWorkload>,
    info: ServerInfo,
    misloaded: Vec<String>,
}

impl Conductor<'_> {
    /// Runs the cells of one block. Every measured step runs on one server after the other, in an
    /// order that is random for each step.
    pub(super) fn round(
        &mut self,
        cells: &[CellId],
        up: &mut RunningServers,
        tally: &mut RunTally,
    ) -> Result<(), ExitError> {
        let Some(block) = cells.first().map(|cell| cell.block) else { return Ok(()) };
        let mut open = cells.iter().map(|id| self.begun(id)).collect::<Result<Vec<_>, _>>()?;
        self.bring_up(&mut open, up)?;
        for index in self.measured_steps(&mut open, up) {
            for variant in self.variant_order(block, index) {
                let Some(cell) =
                    open.iter_mut().find(|cell| cell.id.variant == variant && cell.ended.is_none())
                else {
                    continue;
                };
                if self.cancelled() {
                    cell.ended = Some(ending(Err(Stop::interrupted("between two steps")))?);
                    continue;
                }
                let Some(mut server) = up.0.remove(&variant) else { continue };
                self.progress.cell(cell.id, self.plan.blocks.max(block));
                match self.step_on(cell, &mut server, index) {
                    Ok(()) => {
                        up.0.insert(variant, server);
                    }
                    Err(stop) => self.end_failed_cell(cell, stop, server.database)?,
                }
            }
        }
        for mut cell in open {
            let ended = cell.ended.take().unwrap_or_else(|| cell.ending_after_last_step());
            self.ended(cell, ended, tally)?;
        }
        Ok(())
    }

    /// Starts and loads the servers that are not up yet, one after the other.
    fn bring_up(&mut self, open: &mut [OpenCell<'_>], up: &mut RunningServers) -> Result<(), ExitError> {
        for cell in open.iter_mut() {
            if self.cancelled() {
                break;
            }
            self.progress.cell(cell.id, self.plan.blocks.max(cell.id.block));
            // This discards the connections that read the variant's settings back before the run,
            // because they do not belong to its first cell.
            self.connections(cell.id);
            if let Some(server) = up.0.get(&cell.id.variant) {
                let server = server.info.clone();
                cell.writer.event(&CellEvent::Server { at: time::now(), server })?;
            } else if let Some(server) = self.start_and_load(cell)? {
                up.0.insert(cell.id.variant.clone(), server);
            }
        }
        Ok(())
    }

    /// Starts a cell's server and loads its data. It is `None` when that failed, which ends the
    /// cell.
    fn start_and_load(&mut self, cell: &mut OpenCell<'_>) -> Result<Option<StartedServer>, ExitError> {
        let database = match self.start(cell, None) {
            Ok(database) => database,
            Err(stop) => {
                cell.ended = Some(ending(Err(stop))?);
                return Ok(None);
            }
        };
        let Described { session, workload, server: info } = match self.described(cell, &database) {
            Ok(described) => described,
            Err(stop) => return self.end_failed_cell(cell, stop, database).map(|()| None),
        };
        let mut server = StartedServer { database, session, workload, info, misloaded: Vec::new() };
        for index in 0..server.workload.load_steps() {
            if let Err(stop) = self.step_on(cell, &mut server, index) {
                return self.end_failed_cell(cell, stop, server.database).map(|()| None);
            }
        }
        Ok(Some(server))
    }

    /// Returns the block's measured steps. It asks the first server that is up, because all servers
    /// have the same steps.
    fn measured_steps(&self, open: &mut [OpenCell<'_>], up: &mut RunningServers) -> Vec<usize> {
        let Some(cell) = open.iter_mut().find(|cell| up.0.contains_key(&cell.id.variant)) else {
            return Vec::new();
        };
        let Some(server) = up.0.get_mut(&cell.id.variant) else { return Vec::new() };
        let loads = server.workload.load_steps();
        let steps = CellSteps::new(cell, &mut server.database, &mut *server.workload);
        self.steps_of(&steps, loads)
    }

    /// Returns the variants in the order in which they run a step. The order is random for each
    /// step.
    fn variant_order(&self, block: u32, index: usize) -> Vec<String> {
        /// A number above any workload's number of steps.
        const STRIDE: u32 = 10_007;
        let draw = block.wrapping_mul(STRIDE).wrapping_add(index as u32);
        further_cells(self.plan, draw, |_| true).into_iter().map(|cell| cell.variant).collect()
    }

    fn step_on(
        &mut self,
        cell: &mut OpenCell<'_>,
        server: &mut StartedServer,
        index: usize,
    ) -> Result<(), Stop> {
        let mut steps = CellSteps::new(cell, &mut server.database, &mut *server.workload);
        steps.misloaded = std::mem::take(&mut server.misloaded);
        let went = self.one_step(&mut steps, index, &mut server.session, false);
        server.misloaded = steps.misloaded;
        went
    }

    /// Ends a failed cell together with its server. The next block starts a new server.
    fn end_failed_cell(
        &mut self,
        cell: &mut OpenCell<'_>,
        stop: Stop,
        database: Database,
    ) -> Result<(), ExitError> {
        let ended = ending(Err(stop))?;
        cell.ended = Some(self.explained(ended, &mut cell.writer, &database)?);
        let odd = self.end_of(database);
        self.warn_of_run(odd)
    }

    pub(super) fn all_down(&mut self, up: RunningServers) -> Result<(), ExitError> {
        for server in up.0.into_values() {
            self.progress.busy("stopping");
            self.runtime.block_on(server.session.close());
            let odd = self.end_of(server.database);
            self.warn_of_run(odd)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_remembers_the_checks_of_its_load_that_failed() {
        let saved_state = json!({ "rows": "2000" });
        for faults in [vec!["table sbtest1: rows is 1999, must be 2000".to_owned()], Vec::new()] {
            let loaded = Loaded { saved_state: saved_state.clone(), faults };
            assert_eq!(Loaded::deserialize(json!(loaded)).unwrap(), loaded);
        }
    }
}
