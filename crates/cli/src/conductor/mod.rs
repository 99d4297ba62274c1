//! Runs a plan's blocks and cells in the recorded order. A cell is one workload on one variant
//! within one block. When a cell fails, the record says so, and the other cells still run.
//!
//! Before anything is measured, the server of each variant is started once to read its settings
//! back. Outside the measured time, every wait for a server ends when the user stops the run, and a
//! long wait is reported.

mod budget;
mod cell;
mod database;
mod locks;
mod profiling;
mod reset;
mod step;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dbdyno_analyse::numbered;
use dbdyno_analyse::parity::{compared, effective};
use dbdyno_db::server::Data;
use dbdyno_db::{AnySession, Session, describe};
use dbdyno_model::Design;
use dbdyno_plan::Plan;
use dbdyno_record::{CellEvent, CellId, CellWriter, Manifest, Outcome, RunEvent, RunWriter, ServerInfo};
use dbdyno_report::parity_refusal;
use tokio::runtime::Runtime;

use crate::clients::ClientHosts;
use crate::exit::{BoxedError, ExitError, INTERRUPTED};
use crate::plan::parity;
use crate::plan::prepare::PreparedVariant;
use crate::progress::{FIRST_REPORT, Progress};
use crate::time;
pub(crate) use budget::{Partial, RunClock, further_blocks, partial};
use cell::{RunningServers, server_info};
use database::{Database, Stopping};
pub(crate) use database::{data_root, kept_option_file, refuse_links, remove_data_of, remove_data_root};
pub(crate) use profiling::profiled;
pub(crate) use locks::{AdvisoryLocks, elsewhere, is_ended_process, sweep_run_files};
pub(crate) use reset::{TEMPLATES, snapshot_dir};

pub(crate) struct Conductor<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) variants: &'a [PreparedVariant],
    pub(crate) writer: RunWriter,
    /// The manifest by which completed steps are judged. It is `None` for a calibration, which
    /// drives the client to its limit on purpose. A step is then judged by its own record alone.
    pub(crate) manifest: Option<Manifest>,
    pub(crate) clock: RunClock,
    pub(crate) progress: Progress,
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) runtime: Runtime,
    pub(crate) data_root: PathBuf,
    pub(crate) template_dir: PathBuf,
    /// CPUs of the servers that are started. `None` means the CPUs of this thread.
    pub(crate) server_cpus: Option<Vec<u32>>,
    pub(crate) advisory_locks: AdvisoryLocks,
    /// Client hosts that run the load. It is `None` where this process runs it.
    pub(crate) clients: Option<ClientHosts>,
    /// Steps that run in the blocks that leave some steps out.
    pub(crate) partial: Partial,
    /// Steps that are profiled, in the profile blocks.
    pub(crate) profiled: Partial,
    /// The server of the previous cell, while it stops.
    pub(crate) stopping: Option<Stopping>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunTally {
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) interrupted: bool,
}

/// A cell that runs, with its record.
pub(crate) struct OpenCell<'a> {
    pub(crate) id: &'a CellId,
    pub(crate) writer: CellWriter,
    /// How the cell ended, once it has ended.
    ended: Option<CellEnding>,
    /// Reasons for the failed steps after which the cell went on. Each text names its step.
    refused: Vec<String>,
}

impl OpenCell<'_> {
    /// Returns the ending of a cell that has run to its last step.
    fn ending_after_last_step(&self) -> CellEnding {
        match &self.refused[..] {
            [] => (Outcome::Completed, None),
            [why] => (Outcome::Failed, Some(format!("{why}; the other steps ran"))),
            [first, ..] => {
                let failed = self.refused.len();
                (Outcome::Failed, Some(format!("{failed} steps failed, and the others ran; first {first}")))
            }
        }
    }
}

impl Conductor<'_> {
    /// Runs `cells` in order, then the cells that a budget of time adds. `before` counts the cells
    /// that an earlier process ran, because the run is complete when all of its cells are. It fails
    /// when the record cannot be written, because figures that cannot be kept need not be measured.
    pub(crate) fn run(&mut self, cells: &[CellId], before: RunTally) -> Result<RunTally, ExitError> {
        let mut tally = before;
        let mut up = RunningServers::default();
        let cancel = Arc::clone(&self.cancel);
        dbdyno_loadgen::watch_here(move || cancel.load(Ordering::Relaxed));
        let alternates = self.plan.design == Design::Alternate;
        let together = |a: &CellId, b: &CellId| alternates && a.block == b.block;
        let mut is_first = true;
        let mut more = Some(cells.to_vec());
        while let Some(cells) = more {
            let mut chunks = cells.chunk_by(together).peekable();
            while let Some(chunk) = chunks.next() {
                if !std::mem::take(&mut is_first) {
                    self.rest()?;
                }
                if self.cancelled() {
                    break;
                }
                match chunk {
                    [cell] if !alternates => {
                        let next = chunks.peek().and_then(|cells| cells.first());
                        let mut cell = self.begun(cell)?;
                        let ending = ending(self.cell(&mut cell, next))?;
                        self.ended(cell, ending, &mut tally)?;
                    }
                    block => self.round(block, &mut up, &mut tally)?,
                }
            }
            self.has_waited_for_stop()?;
            more = self.further_block()?;
            if more.is_none() {
                more = self.profile_blocks()?;
            }
        }
        self.all_down(up)?;
        tally.interrupted = self.cancelled();
        self.writer.event(&RunEvent::Ended { at: time::now(), outcome: tally.outcome() })?;
        self.progress.finish();
        Ok(tally)
    }

    fn begun<'id>(&mut self, id: &'id CellId) -> Result<OpenCell<'id>, ExitError> {
        let (at, elapsed_us) = self.clock.now();
        self.writer.event(&RunEvent::CellStarted { at, cell: id.clone(), elapsed_us })?;
        let mut writer = self.writer.cell(id)?;
        writer.event(&CellEvent::Started { at: time::now() })?;
        Ok(OpenCell { id, writer, ended: None, refused: Vec::new() })
    }

    fn ended(
        &mut self,
        cell: OpenCell<'_>,
        ending: CellEnding,
        tally: &mut RunTally,
    ) -> Result<(), ExitError> {
        let OpenCell { id, mut writer, .. } = cell;
        let (mut outcome, message) = ending;
        // A signal to all processes (a shutdown, a job's end) stops the server too. A failure is
        // then not the server's fault, and the cell is to run again.
        if outcome == Outcome::Failed && self.cancelled() {
            outcome = Outcome::Interrupted;
        }
        self.progress.cell_over();
        let connections = self.connections(id);
        let event = CellEvent::Ended { at: time::now(), outcome, message: message.clone(), connections };
        writer.event(&event)?;
        match outcome {
            Outcome::Completed => tally.completed += 1,
            Outcome::Failed => {
                tally.failed += 1;
                let why = message.as_deref().unwrap_or("no reason was given");
                self.progress.line(&format!("error: {id} failed: {why}"));
            }
            Outcome::Interrupted => {}
        }
        let (cell, (at, elapsed_us)) = (id.clone(), self.clock.now());
        self.writer.event(&RunEvent::CellEnded { at, cell, outcome, message, elapsed_us })?;
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Reports and records warnings that belong to no running cell.
    fn warn_of_run(&mut self, texts: impl IntoIterator<Item = String>) -> Result<(), ExitError> {
        for text in texts {
            self.progress.line(&format!("warning: {text}"));
            self.writer.event(&RunEvent::Warning { at: time::now(), text })?;
        }
        Ok(())
    }
}

impl RunTally {
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self { interrupted: true, .. } => Outcome::Interrupted,
            Self { failed: 0, .. } => Outcome::Completed,
            _ => Outcome::Failed,
        }
    }

    /// Returns the exit status that the tally means, if it is not 0.
    pub(crate) fn ended(&self) -> Result<(), ExitError> {
        if self.interrupted {
            return Err(ExitError::silent(INTERRUPTED));
        }
        if self.failed > 0 {
            let cells = numbered(self.failed, "cell");
            return Err(ExitError::server(format!(
                "{cells} failed; the report has the reasons and the completed cells"
            )));
        }
        Ok(())
    }
}

/// How a cell or step ended, with the reason if it did not complete.
pub(crate) type CellEnding = (Outcome, Option<String>);

#[derive(Debug)]
pub(crate) enum Stop {
    /// The cell is over, and the next one begins.
    Cell(CellEnding),
    /// The run is over, for example because the record cannot be written.
    Run(ExitError),
}

impl Stop {
    pub(crate) fn failed(why: impl ToString) -> Self {
        Self::Cell((Outcome::Failed, Some(why.to_string())))
    }

    pub(crate) fn interrupted(when: &str) -> Self {
        Self::Cell((Outcome::Interrupted, Some(format!("interrupted by the user {when}"))))
    }

    /// Puts the step or phase in which the cell ended in front of its reason.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Cell((outcome, why)) => Self::Cell((outcome, why.map(|why| format!("{place}: {why}")))),
            Self::Run(ended) => Self::Run(ended),
        }
    }
}

/// Returns the ending of a cell that has run to its end or was stopped.
pub(crate) fn ending(went: Result<CellEnding, Stop>) -> Result<CellEnding, ExitError> {
    match went {
        Ok(ending) | Err(Stop::Cell(ending)) => Ok(ending),
        Err(Stop::Run(ended)) => Err(ended),
    }
}

impl From<ExitError> for Stop {
    fn from(ended: ExitError) -> Self {
        Self::Run(ended)
    }
}

impl From<dbdyno_record::Error> for Stop {
    fn from(error: dbdyno_record::Error) -> Self {
        Self::Run(error.into())
    }
}

impl Conductor<'_> {
    /// Starts the server of each variant once and reads its settings back. It fails when the
    /// variants differ in settings that decide results and the plan does not allow that.
    pub(crate) fn refuse_unequal(&mut self) -> Result<(), ExitError> {
        parity::check_differs(self.plan)?;
        let mut subjects = Vec::new();
        for variant in self.variants {
            self.progress.busy("a look at the settings of each variant");
            let planned = parity::planned(self.plan, &variant.info.name);
            let server = match self.unless_cancelled(self.read_back(variant)) {
                Some(server) if !self.cancelled() => server,
                _ => return Err(ExitError::silent(INTERRUPTED)),
            };
            let server = server
                .map_err(|error| ExitError::server(format!("variant {}: {error}", variant.info.name)))?;
            subjects.push(effective(&variant.info, &server, &planned));
        }
        let circumstances = parity::circumstances_of(self.plan);
        let parity = compared(&subjects, &self.plan.differs, circumstances);
        let Some(refusal) = parity_refusal(&parity) else { return Ok(()) };
        self.writer.event(&RunEvent::Warning { at: time::now(), text: refusal.clone() })?;
        Err(ExitError::usage(refusal))
    }

    async fn read_back(&self, variant: &PreparedVariant) -> Result<ServerInfo, BoxedError> {
        let name = format!("look-{}", variant.info.name);
        let (data_dir, log) =
            (self.data_root.join(&name), self.writer.logs_dir().join(format!("{name}.log")));
        let database = self.database(variant, data_dir, log, None, Data::Fresh).await?;
        let described = async {
            let mut session = database.connect_to_probe().await?;
            let description = describe(&mut session).await;
            session.close().await;
            description
        };
        let server = described.await.map(|described| server_info(described, &database));
        // A fault of this shutdown is not reported. A lasting fault shows again when the server is
        // measured.
        let _ = database.end(false, self.plan.host.stop_timeout.0, &self.cancel);
        Ok(server?)
    }

    /// Waits for `work`. It is `None` when the user stops the run before the work is done.
    pub(crate) fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(unless_cancelled(&self.cancel, work))
    }

    /// Waits for server queries, as [`Self::unless_cancelled`] does. A query may take long, or the
    /// server may have stopped responding, so the progress line counts the time and a message
    /// reports it at intervals.
    pub(crate) fn answered<T>(&self, what: &str, queries: impl Future<Output = T>) -> Option<T> {
        self.progress.busy(what);
        self.unless_cancelled(async {
            tokio::select! {
                biased;
                done = queries => done,
                never = tell_of_waiting(&self.progress, what) => match never {},
            }
        })
    }

    /// Cancels statements that the server still executes for connections that were dropped before
    /// its response, so that they do not run beside a measurement. It waits until they have ended,
    /// but only briefly when the user stops the run.
    pub(crate) fn cancel_abandoned(&self, database: &Database) -> Result<(), String> {
        let limit = Duration::from_secs(if self.cancelled() { 1 } else { 15 });
        self.runtime.block_on(database.database_server.cancel_abandoned(limit))
    }

    /// Gives later statements of `session` the plan's time limit for statements whose time depends
    /// on the data.
    pub(crate) fn let_work(&self, session: &mut AnySession) {
        session.limit_statements(Some(self.plan.host.statement_timeout.0));
    }

    /// Leaves the machine idle between two cells for as long as the plan says, unless the user
    /// stops the run.
    fn rest(&mut self) -> Result<(), ExitError> {
        let length = self.plan.host.rest.0;
        if length.is_zero() || self.cancelled() {
            return Ok(());
        }
        let began = Instant::now();
        self.unless_cancelled(rest_until_over(&self.progress, began, length));
        self.progress.rested(length);
        self.writer.event(&RunEvent::Rested {
            at: time::now(),
            duration_us: time::to_us(began.elapsed()),
            elapsed_us: self.clock.elapsed_us(),
        })?;
        Ok(())
    }
}

async fn rest_until_over(progress: &Progress, began: Instant, length: Duration) {
    loop {
        let passed = began.elapsed();
        let left = length.saturating_sub(passed);
        if left.is_zero() {
            return;
        }
        progress.resting(passed, left);
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}

/// Reports how long `what` has taken, until the future is dropped.
async fn tell_of_waiting(progress: &Progress, what: &str) -> std::convert::Infallible {
    let began = Instant::now();
    let mut next_report = FIRST_REPORT;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let waited = began.elapsed();
        progress.busy(&format!("{what}  {}", time::clock(waited)));
        if waited >= next_report {
            next_report *= 2;
            progress.line(&format!("{what}: the server has not answered for {}", time::about(waited)));
        }
    }
}

async fn unless_cancelled<T>(cancel: &AtomicBool, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = cancelled(cancel) => None,
    }
}

async fn cancelled(cancel: &AtomicBool) {
    const POLL: Duration = Duration::from_millis(50);
    while !cancel.load(Ordering::Relaxed) {
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_is_waited_for_until_the_user_cancels() {
        let cancel = AtomicBool::new(false);
        assert_eq!(unless_cancelled(&cancel, async { 7 }).await, Some(7));
        let stop = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.store(true, Ordering::Relaxed);
        };
        let (waited, ()) = tokio::join!(unless_cancelled(&cancel, std::future::pending::<()>()), stop);
        assert_eq!(waited, None);
    }
}
