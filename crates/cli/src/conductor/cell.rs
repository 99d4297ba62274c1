//! Runs one cell: one variant with fresh data runs all steps of one workload.

use dbdyno_db::{AnySession, ConnectionLog, Description, Tls, describe};
use dbdyno_plan::WorkloadOptions;
use dbdyno_record::{CellEvent, CellId, CellWriter, ConnectionClass, Outcome, ServerInfo};
use dbdyno_report::warning_text;
use dbdyno_workloads::{AnyWorkload, Context, Work};

use crate::ad_hoc::time_seed;
use crate::conductor::start::Database;
use crate::conductor::{Conductor, Ending, OpenCell, Stop, ending};
use crate::exit::ExitError;
use crate::prepare::Prepared;
use crate::{limits, load, time};

/// A server that has said what it is, with a workload on it.
pub(super) struct Described {
    /// The session for set-up and checks. It runs beside the load.
    pub(super) session: AnySession,
    pub(super) workload: Box<dyn AnyWorkload>,
    pub(super) server: ServerInfo,
}

impl Conductor<'_> {
    /// Runs one cell. It locks and starts the database, runs the steps, and ends the database. The
    /// cell's server may stop while that of the `next` cell starts.
    pub(super) fn cell(&mut self, cell: &mut OpenCell<'_>, next: Option<&CellId>) -> Result<Ending, Stop> {
        self.progress.cell(cell.id, self.plan.blocks.max(cell.id.block));
        // Connections of the look at the variant before the run do not belong to its first cell.
        self.connections(cell.id);
        self.lock(cell)?;
        let snapshot = self.snapshot(cell.id);
        let ended = match self.start(cell, snapshot.as_ref()) {
            Ok(mut database) => {
                let walked = self
                    .described(cell, &database)
                    .and_then(|described| self.steps(cell, &mut database, described, snapshot.as_ref()));
                let ended = ending(walked.map(|()| cell.walked()))?;
                let ended = self.explained(ended, &mut cell.writer, &database)?;
                self.give_back(cell, next, database)?;
                ended
            }
            Err(stop) => ending(Err(stop))?,
        };
        self.still_locked(cell, ended)
    }

    /// Takes what the connections to the cell's variant have agreed on since the last call.
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
        let company = self.runtime.block_on(self.advisory_locks.company(&cell.id.variant));
        self.warn(&mut cell.writer, company)?;
        let others = self.advisory_locks.others.new_ones();
        Ok(self.warn(&mut cell.writer, others)?)
    }

    /// Returns the ending of a cell whose database another run may have locked meanwhile.
    fn still_locked(&mut self, cell: &mut OpenCell<'_>, ended: Ending) -> Result<Ending, Stop> {
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

    /// Adds to an ending what the server says of it.
    pub(super) fn explained(
        &self,
        mut ending: Ending,
        writer: &mut CellWriter,
        database: &Database,
    ) -> Result<Ending, ExitError> {
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

    pub(crate) fn prepared(&self, id: &CellId) -> Result<&Prepared, ExitError> {
        let found = self.variants.iter().find(|variant| variant.info.name == id.variant);
        found.ok_or_else(|| {
            ExitError::ours(format!("the run names a variant {} that its plan lacks", id.variant))
        })
    }

    /// Asks the server what it is, and opens the workload on it.
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
            draws: self.draws(id),
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
    fn draws(&self, id: &CellId) -> u64 {
        let loads = |options: &dyn WorkloadOptions| options.steps().iter().any(|step| step.loads);
        let options = self.plan.workload.get(&id.workload);
        if options.is_none_or(loads) { self.plan.seed } else { time_seed() }
    }

    /// Records work outside the clock, and reports a server that did not settle.
    pub(crate) fn write_works(
        &self,
        writer: &mut CellWriter,
        works: Result<Vec<Work>, dbdyno_workloads::Error>,
    ) -> Result<(), Stop> {
        for Work { name, duration, details, warning } in works.map_err(Stop::failed)? {
            if let Some(why) = dbdyno_analyse::restless(&details) {
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
