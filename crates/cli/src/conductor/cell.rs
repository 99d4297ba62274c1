//! One cell: a variant with fresh data, through all steps of a workload.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dbdyno_drivers::{ConnectionLog, Tls, describe};
use dbdyno_record::{CellEvent, CellId, CellWriter, ConnectionClass, Outcome, ServerInfo};
use dbdyno_workloads::insert_benchmark::InsertBenchmark;
use dbdyno_workloads::oltp::Oltp;
use dbdyno_workloads::{Context, Work, Workload};

use crate::conductor::Conductor;
use crate::conductor::database::{Database, Place};
use crate::conductor::step::StepRun;
use crate::exit::{Ended, OURS};
use crate::{limits, time};

/// Place for the name of a step in the line that tells of it.
const LEAST_WIDTH: usize = 8;

/// How a cell or step ended, with the reason if it did not complete.
pub(crate) type Ending = (Outcome, Option<String>);

impl Conductor<'_> {
    /// Runs one cell and writes its record.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(crate) fn cell(&mut self, id: &CellId) -> Result<Ending, Ended> {
        let mut writer = self.writer.cell(id)?;
        writer.event(&CellEvent::Started { at: time::now() })?;
        self.progress.cell(id, self.plan.blocks);
        // The look at the variant before the run is no part of its first cell.
        self.connections(id);
        let ending = self.provided_cell(id, &mut writer)?;
        self.progress.cell_over();
        let (outcome, message) = ending.clone();
        let connections = self.connections(id);
        writer.event(&CellEvent::Ended { at: time::now(), outcome, message, connections })?;
        Ok(ending)
    }

    /// What the connections to the cell's variant agreed on since this was last asked.
    fn connections(&self, id: &CellId) -> Vec<ConnectionClass> {
        let variant = self.variants.iter().find(|variant| variant.info.name == id.variant);
        let log = variant.and_then(|variant| variant.tls.as_ref()).map(Tls::log);
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

    fn provided_cell(&mut self, id: &CellId, writer: &mut CellWriter) -> Result<Ending, Ended> {
        self.progress.busy("starting on fresh data");
        let Some(variant) = self.variants.iter().find(|variant| variant.info.name == id.variant) else {
            return Err(Ended::new(
                OURS,
                format!("the run names a variant {} that its plan lacks", id.variant),
            ));
        };
        let place = self.place(id);
        let database = match self.runtime.block_on(Database::provide(variant, &place)) {
            Ok(database) => database,
            Err(message) => {
                if !self.plan.host.keep_data {
                    // What is not dbdyno's stays; why the cell failed is said already.
                    let _ = dbdyno_provision::remove_data(&place.data_dir);
                }
                return Ok((Outcome::Failed, Some(message)));
            }
        };
        let mut ending = self.described_cell(id, writer, &database)?;
        if ending.0 == Outcome::Failed
            && let Some(obituary) = database.obituary()
        {
            ending.1 = Some(format!("{}; {obituary}", ending.1.unwrap_or_default()));
        }
        self.progress.busy("stopping");
        if let Some(warning) = database.end(self.plan.host.keep_data) {
            writer.event(&CellEvent::Warning { at: time::now(), text: warning })?;
        }
        Ok(ending)
    }

    fn place(&self, id: &CellId) -> Place {
        Place {
            data_dir: self.data_root.join(format!("{}-{}", id.block, id.variant)),
            template_dir: self.data_root.join("templates"),
            log: self.log_file(id),
            server_cpus: self.server_cpus.clone(),
        }
    }

    /// Logs of cells that run again are kept apart.
    fn log_file(&self, id: &CellId) -> PathBuf {
        let name = |attempt: u32| match attempt {
            1 => format!("{}-{}-{}.log", id.block, id.variant, id.workload),
            _ => format!("{}-{}-{}.{attempt}.log", id.block, id.variant, id.workload),
        };
        let file = |attempt| self.writer.logs_dir().join(name(attempt));
        (1..).map(file).find(|path| !path.exists()).unwrap_or_else(|| file(1))
    }

    fn described_cell(
        &mut self,
        id: &CellId,
        writer: &mut CellWriter,
        database: &Database,
    ) -> Result<Ending, Ended> {
        for text in database.notes() {
            writer.event(&CellEvent::Note { at: time::now(), text })?;
        }
        let described = self.runtime.block_on(async {
            let mut session = database.connect().await?;
            let description = describe(&mut session).await?;
            let room = limits::check_server(&mut session, &database.endpoint.target, self.plan).await;
            Ok::<_, dbdyno_drivers::DbError>((session, description, room))
        });
        let (session, description) = match described {
            Ok((session, description, Ok(()))) => (session, description),
            Ok((_, _, Err(message))) => return Ok((Outcome::Failed, Some(message))),
            Err(error) => return Ok((Outcome::Failed, Some(error.to_string()))),
        };
        let [major, minor, patch] = description.version;
        let server = ServerInfo {
            product: description.product,
            version: format!("{major}.{minor}.{patch}"),
            version_text: description.version_text,
            engine: Some(description.engine).filter(|engine| !engine.is_empty()),
            pid: database.pid(),
            settings: description.settings,
        };
        writer.event(&CellEvent::Server { at: time::now(), server })?;
        let context = Context {
            endpoint: database.endpoint.clone(),
            owned: database.owned,
            seed: self.plan.seed,
            device: database.device_gauge(),
        };
        let workloads = &self.plan.workload;
        match (id.workload.as_str(), &workloads.insert_benchmark, &workloads.oltp) {
            ("insert-benchmark", Some(options), _) => {
                self.steps(id, writer, database, InsertBenchmark::new(options, context), session)
            }
            ("oltp", _, Some(options)) => {
                self.steps(id, writer, database, Oltp::new(options, context), session)
            }
            (name, ..) => {
                Err(Ended::new(OURS, format!("the run names a workload {name} that its plan lacks")))
            }
        }
    }

    fn steps<W: Workload>(
        &mut self,
        id: &CellId,
        writer: &mut CellWriter,
        database: &Database,
        mut workload: W,
        mut session: dbdyno_drivers::AnySession,
    ) -> Result<Ending, Ended> {
        let names = workload.steps();
        let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(LEAST_WIDTH);
        for (index, name) in names.iter().enumerate() {
            let before = self.runtime.block_on(workload.before(index, &mut session));
            if let Some(failed) = self.write_works(writer, before)? {
                return Ok(failed);
            }
            let step = StepRun { conductor: self, cell: id, database, index, name, name_width };
            let (outcome, message) = step.run(writer, &mut workload, &mut session)?;
            if outcome != Outcome::Completed {
                let message = message.map(|message| format!("step {name}: {message}"));
                return Ok((outcome, message));
            }
            self.progress.passed(name);
            self.progress.busy("between steps");
            // The pause in it may last many minutes: Ctrl-C does not wait for its end.
            let after = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    after = workload.after(index, &mut session) => Some(after),
                    () = cancelled(&self.cancel) => None,
                }
            });
            if let Some(after) = after
                && let Some(failed) = self.write_works(writer, after)?
            {
                return Ok(failed);
            }
            if self.cancelled() {
                return Ok((
                    Outcome::Interrupted,
                    Some(format!("interrupted by the user after step {name}")),
                ));
            }
        }
        self.runtime.block_on(dbdyno_drivers::Session::close(session));
        Ok((Outcome::Completed, None))
    }

    /// Writes work beside the clock down; an ending if it failed.
    fn write_works(
        &self,
        writer: &mut CellWriter,
        works: Result<Vec<Work>, dbdyno_workloads::Error>,
    ) -> Result<Option<Ending>, Ended> {
        let works = match works {
            Ok(works) => works,
            Err(error) => return Ok(Some((Outcome::Failed, Some(error.to_string())))),
        };
        for Work { name, duration, details } in works {
            if let Some(text) = dbdyno_analyse::restless(&details) {
                self.progress.line(&format!("warning: {text}"));
            }
            let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            writer.event(&CellEvent::Work { at: time::now(), name, duration_us, details })?;
        }
        Ok(None)
    }
}

/// Ends when the user wants the run to end.
async fn cancelled(cancel: &AtomicBool) {
    const POLL: Duration = Duration::from_millis(50);
    while !cancel.load(Ordering::Relaxed) {
        tokio::time::sleep(POLL).await;
    }
}
