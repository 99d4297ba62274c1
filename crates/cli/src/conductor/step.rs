//! Runs one step: it starts the sampler, runs the load (from this process or from the client hosts
//! that the plan names), verifies the tables, and writes the record. The server's deferred work
//! (purge, compaction, dirty pages) is read before and after the step, outside of the measured
//! window.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use dbdyno_analyse::{Validity, Warning, failed_check, headline_rate, step_validity};
use dbdyno_db::{AnySession, Capabilities, Class, DbError, explain, explain_executed};
use dbdyno_loadgen::{Error, HostShare, Step, StepEnd, Threads};
use dbdyno_model::{ClientWait, CpuList};
use dbdyno_plan::client_wait;
use dbdyno_record::{
    CellId, CellWriter, CounterHeader, Manifest, Outcome, QueryPlan, StepEvent, StepRecord, StepWriter,
};
use dbdyno_report::{reason_brief, warning_text};
use dbdyno_sample::{Config, Mark, Sampler};
use dbdyno_workloads::{AnyWorkload, Explained};
use serde_json::{Map, Value};

use crate::clients::AgentTask;
use crate::conductor::database::Database;
use crate::conductor::profiling::StepProfiler;
use crate::conductor::{CellEnding, Conductor};
use crate::exit::ExitError;
use crate::load::{self, LoadClient};
use crate::progress::{FIRST_REPORT, StallWatch, Watcher};
use crate::time::{self, about};

pub(crate) struct StepTask<'a, 'b> {
    pub(crate) conductor: &'a Conductor<'b>,
    pub(crate) cell: &'a CellId,
    pub(crate) database: &'a Database,
    pub(crate) index: usize,
    pub(crate) name: &'a str,
    pub(crate) name_width: usize,
    /// Whether the step runs again, only to make the data. Its record is then kept apart, and no
    /// rate is reported.
    pub(crate) is_repeated: bool,
    /// Faults of the loaded tables on which the step runs.
    pub(crate) misloaded: &'a [String],
}

pub(crate) struct StepResult {
    pub(crate) ending: CellEnding,
    pub(crate) mismatches: Vec<String>,
}

impl StepTask<'_, '_> {
    /// Runs the step and writes its record. The files are synced when this returns.
    pub(crate) fn run(
        &self,
        cell: &CellWriter,
        workload: &mut dyn AnyWorkload,
        session: &mut AnySession,
    ) -> Result<StepResult, ExitError> {
        let spec = workload.recorded_spec(self.index);
        let mut writer = if self.is_repeated { cell.repeated(self.name)? } else { cell.step(self.name)? };
        writer.event(&StepEvent::Started { at: time::now(), spec: spec.clone() })?;
        let conductor = self.conductor;
        let before = self.deferred_work(session, &mut writer, "before the step")?;
        let warmup = workload.outlines()[self.index].warmup;
        let polled_ns = self.polled_ns();
        let sampler = self.sampler(&mut writer, warmup, polled_ns.clone())?;
        let profiler = StepProfiler::start(conductor, self.cell, self.name, self.database);
        let forecast = conductor.progress.forecast_of(self.name);
        conductor.progress.busy(self.name);
        let client = LoadClient {
            load: &conductor.plan.load,
            login_key: None,
            seed: conductor.plan.seed,
            threads: self.threads(polled_ns),
            cancel: &conductor.cancel,
        };
        let step = client.step(workload, self.index, &spec);
        let mut watcher = Watcher {
            progress: &conductor.progress,
            sampler: &sampler,
            spec: &spec,
            cell: self.cell,
            latency: String::new(),
            forecast,
            barrier: None,
            mark: Mark::default(),
            stall_watch: StallWatch::default(),
        };
        let end =
            self.put_load_on(workload, step, &mut writer, &mut watcher).map_err(|error| match error {
                dbdyno_loadgen::Error::Record(error) => ExitError::from(error),
                dbdyno_loadgen::Error::Thread(_) => ExitError::machine(error),
                dbdyno_loadgen::Error::Panicked(_) | dbdyno_loadgen::Error::MixedSchedules { .. } => {
                    ExitError::ours(error)
                }
            })?;
        let (barrier, silence) = (watcher.barrier, watcher.stall_watch.lasts);
        self.end_sampling(sampler, &mut writer)?;
        profiler.end(conductor, &mut writer, (barrier, end.outcome))?;
        if end.outcome != Outcome::Completed && silence >= FIRST_REPORT {
            let text =
                format!("the server had not answered for {} when step {} ended", about(silence), self.name);
            writer.event(&StepEvent::Warning { text })?;
        }
        let mut executions = workload.executions().into_iter();
        executions.try_for_each(|execution| writer.event(&StepEvent::Execution(execution)))?;
        // Abandoned statements would run beside the next step on the same server.
        let goes_on = !self.database.owned
            || end.outcome == Outcome::Completed
            || workload.outlines()[self.index].leaves_data;
        if goes_on && let Err(text) = conductor.cancel_abandoned(self.database) {
            conductor.progress.line(&format!("warning: {text}"));
            writer.event(&StepEvent::Warning { text })?;
        }
        if let Err(error) = self.reconnect(session, &end) {
            let ending = (Outcome::Failed, Some(error.to_string()));
            return self.end(writer, &end, StepResult { ending, mismatches: Vec::new() });
        }
        // This reading comes before the verification, because reads make the server finish some of
        // the work.
        let after = match end.outcome {
            Outcome::Completed => self.deferred_work(session, &mut writer, "after the step")?,
            Outcome::Failed | Outcome::Interrupted => None,
        };
        write_deferred_work(&writer, barrier, [before, after])?;
        let ran = self.finish(&mut writer, workload, session, &end)?;
        self.end(writer, &end, ran)
    }

    fn end_sampling(&self, sampler: Sampler, writer: &mut StepWriter) -> Result<(), ExitError> {
        /// Longest wait for the last sample once the user has stopped the run. A frozen server
        /// never gives one.
        const HURRY: Duration = Duration::from_millis(200);
        let stopped = if self.conductor.cancelled() { sampler.stop_within(HURRY) } else { sampler.stop() };
        match stopped {
            Ok(report) => {
                for text in report.warnings {
                    writer.event(&StepEvent::Warning { text })?;
                }
            }
            Err(error) => {
                writer.event(&StepEvent::Invalid { reason: format!("sampling failed: {error}") })?
            }
        }
        Ok(())
    }

    /// Writes the last event of a step, and reports the step.
    fn end(&self, mut writer: StepWriter, end: &StepEnd, ran: StepResult) -> Result<StepResult, ExitError> {
        let (outcome, message) = ran.ending.clone();
        let event = StepEvent::Ended { at: time::now(), at_us: end.at_us, outcome, message };
        writer.event(&event)?;
        writer.sync()?;
        self.say(&writer, outcome, ran.ending.1.as_deref());
        Ok(ran)
    }

    /// Connects again where connections of the load were lost, because this session is then lost
    /// too.
    fn reconnect(&self, session: &mut AnySession, end: &StepEnd) -> Result<(), DbError> {
        let was_lost = end.outcome == Outcome::Completed && end.tasks.iter().any(|task| task.reconnects > 0);
        if was_lost && let Some(connected) = self.conductor.unless_cancelled(self.database.connect()) {
            *session = connected?;
        }
        Ok(())
    }

    /// Reads the server's deferred work. It is `None` without sampling, and for a server that does
    /// not report it, which the record notes.
    fn deferred_work(
        &self,
        session: &mut AnySession,
        writer: &mut StepWriter,
        when: &str,
    ) -> Result<Option<DeferredWorkReading>, ExitError> {
        if !self.conductor.plan.host.sampling {
            return Ok(None);
        }
        let capabilities = &self.database.database_server.capabilities;
        match self.conductor.unless_cancelled(read_deferred_work(session, capabilities)) {
            None => Ok(None),
            Some(Ok(reading)) => Ok(reading),
            Some(Err(why)) => {
                let text = format!("deferred work of the server {when} is not known: {why}");
                writer.event(&StepEvent::Warning { text })?;
                // A session with an unread response is of no use to the verification.
                if let Some(Ok(again)) = self.conductor.unless_cancelled(self.database.connect()) {
                    *session = again;
                }
                Ok(None)
            }
        }
    }

    /// Verifies a step that ran to its end.
    fn finish(
        &self,
        writer: &mut StepWriter,
        workload: &mut dyn AnyWorkload,
        session: &mut AnySession,
        end: &StepEnd,
    ) -> Result<StepResult, ExitError> {
        let mut mismatches = Vec::new();
        if end.outcome != Outcome::Completed {
            return Ok(StepResult { ending: (end.outcome, end.message.clone()), mismatches });
        }
        for what in self.misloaded {
            let reason = format!("the tables were not loaded as they must be: {what}");
            writer.event(&StepEvent::Invalid { reason })?;
        }
        self.conductor.let_work(session);
        let checks = self
            .conductor
            .answered(&format!("{}  checking", self.name), workload.verify(self.index, end, session));
        let Some(checks) = checks else {
            let message = "interrupted by the user before the tables were checked".to_owned();
            return Ok(StepResult { ending: (Outcome::Interrupted, Some(message)), mismatches });
        };
        let ending = match checks {
            Ok(checks) => {
                for check in checks {
                    if check.parts.is_empty() {
                        let why = workload.unchecked(&check.table);
                        let text = format!("the content of table {} was not checked: {why}", check.table);
                        writer.event(&StepEvent::Warning { text })?;
                        continue;
                    }
                    if !check.is_ok() {
                        let reason = warning_text(&failed_check(&check));
                        mismatches.push(reason.clone());
                        writer.event(&StepEvent::Invalid { reason })?;
                    }
                    writer.event(&StepEvent::Check(check))?;
                }
                if !self.is_repeated {
                    self.explain(writer, workload, session)?;
                }
                (Outcome::Completed, None)
            }
            // The server still works, so the cell goes on. Only the rows of this step are unknown.
            Err(error) if is_refusal(&error) => {
                let reason = format!("the contents were not checked: {error}");
                writer.event(&StepEvent::Invalid { reason })?;
                (Outcome::Completed, None)
            }
            Err(error) => (Outcome::Failed, Some(error.to_string())),
        };
        Ok(StepResult { ending, mismatches })
    }

    /// Queries the server's plans for the step's statements. It does so after the step is measured,
    /// so that the queries warm no cache.
    fn explain(
        &self,
        writer: &mut StepWriter,
        workload: &dyn AnyWorkload,
        session: &mut AnySession,
    ) -> Result<(), ExitError> {
        for Explained { statement, sql, is_executed } in workload.explained(self.index) {
            let asked = async {
                match is_executed {
                    true => explain_executed(session, &sql).await,
                    false => explain(session, &sql).await,
                }
            };
            let asked = self.conductor.answered(&format!("{}  query plans", self.name), asked);
            let Some((form, answer)) = asked.flatten() else { continue };
            let (rows, error) = match answer {
                Ok(rows) => (rows, None),
                // The message leaves out the address, because it differs in each cell.
                Err(error) => (Vec::new(), Some(format!("{}: {}", error.code, error.message))),
            };
            let plan = QueryPlan { statement, sql, form: form.to_owned(), rows, error };
            writer.event(&StepEvent::QueryPlan(plan))?;
        }
        Ok(())
    }

    /// Returns a sampler that is ready to begin, or one that does nothing if the plan switches
    /// sampling off. The record lists the sources that are not sampled.
    fn sampler(
        &self,
        writer: &mut StepWriter,
        warmup: Duration,
        polled_ns: Option<Arc<[AtomicU64]>>,
    ) -> Result<Sampler, ExitError> {
        const OFF: &str = "sampling is off (`sampling = false` in `[host]`): CPU, memory, disk and \
                           the server's own counters were not measured, and the check for an \
                           overloaded client was not made";
        if !self.conductor.plan.host.sampling {
            writer.event(&StepEvent::Warning { text: OFF.to_owned() })?;
            return Ok(Sampler::off());
        }
        let sampler =
            Sampler::start(&self.sampler_config(warmup, polled_ns), |header| writer.counters(header))
                .map_err(ExitError::machine)?;
        for text in sampler.warnings() {
            writer.event(&StepEvent::Warning { text: text.clone() })?;
        }
        Ok(sampler)
    }

    fn sampler_config(&self, warmup: Duration, polled_ns: Option<Arc<[AtomicU64]>>) -> Config {
        Config {
            warmup,
            server_pid: self.database.pid(),
            server_tree: self.database.database_server.address.is_process_tree(),
            server_cgroup: self.database.cgroup().map(|group| group.folder.clone()),
            data_dir: self.database.data_dir.clone(),
            database_dir: self.database.database_dir.clone(),
            status: self.database.status_server(),
            server_cpus: self.server_cpus(),
            cpus: self.client_cpus(),
            polled_ns,
            waits: self.conductor.is_profiled(self.cell, self.name),
            ..Config::default()
        }
    }

    fn threads(&self, polled_ns: Option<Arc<[AtomicU64]>>) -> Threads {
        let blocking = self.database.database_server.capabilities.blocking;
        Threads { cpus: self.client_cpus(), blocking, polled_ns, ..load::threads(self.conductor.plan) }
    }

    /// Makes the counters of a spinning client's load threads, one per CPU of the client. A load
    /// thread beyond that number does not spin. It is `None` where threads sleep, and where the
    /// database works in the load threads.
    fn polled_ns(&self) -> Option<Arc<[AtomicU64]>> {
        let capabilities = &self.database.database_server.capabilities;
        let answers_here = capabilities.blocking || !capabilities.stores_data;
        if answers_here || client_wait(self.conductor.plan).wait == ClientWait::Sleep {
            return None;
        }
        self.client_cpus().map(|cpus| cpus.iter().map(|_| AtomicU64::new(0)).collect())
    }

    fn server_cpus(&self) -> Option<Vec<u32>> {
        Some(self.database.effective_cpus()?.parse::<CpuList>().ok()?.0)
    }

    fn client_cpus(&self) -> Option<Vec<u32>> {
        self.conductor.plan.host.client_cpus.as_ref().map(|list| list.0.clone())
    }

    /// Prints one line for the finished step, with its rate computed from the record just written.
    fn say(&self, writer: &StepWriter, outcome: Outcome, message: Option<&str>) {
        let CellId { block, variant, .. } = self.cell;
        let names = self.conductor.variants.iter().map(|variant| variant.info.name.chars().count());
        let width = names.max().unwrap_or(0);
        let head = format!("{block:>3}  {variant:<width$}  {:<steps$}", self.name, steps = self.name_width);
        let text = match outcome {
            Outcome::Completed if self.is_repeated => return,
            Outcome::Completed => headline(writer.dir(), variant, self.conductor.manifest.as_ref()),
            Outcome::Failed => format!("failed: {}", message.unwrap_or("no reason was given")),
            Outcome::Interrupted => "interrupted".to_owned(),
        };
        self.conductor.progress.line(&format!("{head} {text}"));
    }
}

/// Whether the server refused a statement of a check, for example by a time limit of its own.
fn is_refusal(error: &dbdyno_workloads::Error) -> bool {
    matches!(error, dbdyno_workloads::Error::Database { source, .. } if source.class == Class::Refused)
}

/// Writes `12,345 inserts/s  in 8.1 s` from the step's records, and why the figure must not be
/// used.
fn headline(step_dir: &Path, variant: &str, manifest: Option<&Manifest>) -> String {
    let step = StepRecord::open(step_dir);
    let Some((rate, seconds)) = headline_rate(&step) else { return "no common window".to_owned() };
    let figure = match step.spec.headline.unit.is_time() {
        true => dbdyno_report::seconds_text(rate),
        false => dbdyno_report::rate(Some(rate)),
    };
    let reason = match manifest.map(|manifest| step_validity(manifest, variant, &step)) {
        Some(Validity::Invalid { reasons }) => reasons.into_iter().next(),
        Some(_) => None,
        None => step.invalid_reasons().first().map(|reason| Warning::quoted(reason)),
    };
    let note = reason.map_or(String::new(), |reason| format!("  INVALID: {}", reason_brief(&reason)));
    format!("{figure:>12} {:<15} in {seconds:>7.1} s{note}", step.spec.headline.label)
}

impl StepTask<'_, '_> {
    /// Runs the load of a step. This process runs table loads and index builds itself. Client
    /// hosts, if there are any, share the connections of the other steps.
    pub(super) fn put_load_on(
        &self,
        workload: &mut dyn AnyWorkload,
        step: Step<'_>,
        writer: &mut StepWriter,
        watcher: &mut Watcher<'_>,
    ) -> Result<StepEnd, Error> {
        let database_server = &self.database.database_server;
        let manifest = self.conductor.manifest.as_ref();
        let (Some(hosts), Some(state), Some(login), Some(manifest)) = (
            &self.conductor.clients,
            workload.tasks_state(self.index),
            database_server.address.login(),
            manifest,
        ) else {
            return workload.run(self.index, step, writer, watcher);
        };
        let task = AgentTask {
            plan: manifest.plan.clone(),
            variant: self.cell.variant.clone(),
            workload: self.cell.workload.clone(),
            step: self.index,
            state,
            warmup: step.warmup,
            user: login.user.clone(),
            password: login.password.reveal().to_owned(),
            sets_autocommit: login.connection_settings.sets_autocommit,
            missing: database_server.capabilities.lacks().map(str::to_owned).collect(),
            draws: step.spec.options.get("seed").and_then(Value::as_u64).unwrap_or(manifest.plan.seed),
            part: HostShare::WHOLE,
        };
        hosts.run(&task, &step, &workload.task_specs(self.index), writer, watcher)
    }
}

/// Name of the counters that hold the readings.
const DEFERRED_WORK: &str = "deferred_work";
/// Longest wait for the query, which should take milliseconds.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(crate) struct DeferredWorkReading {
    at: Instant,
    levels: BTreeMap<String, i64>,
}

/// Asks the server for its deferred work. It is `None` when the server reports none, as is true of
/// the null database.
pub(crate) async fn read_deferred_work(
    session: &mut AnySession,
    capabilities: &Capabilities,
) -> Result<Option<DeferredWorkReading>, String> {
    let asked = tokio::time::timeout(ANSWER_MAX, dbdyno_db::deferred_work(session, capabilities)).await;
    let deferred_work = asked
        .map_err(|_| format!("no answer within {} s", ANSWER_MAX.as_secs()))?
        .map_err(|error| error.to_string())?;
    Ok((!deferred_work.levels.is_empty())
        .then(|| DeferredWorkReading { at: Instant::now(), levels: deferred_work.levels }))
}

/// Writes both readings, with their times relative to the barrier. It writes nothing for a step
/// that never reached its barrier, nor when one reading is missing, because one reading alone shows
/// no change.
pub(crate) fn write_deferred_work(
    writer: &StepWriter,
    barrier: Option<Instant>,
    readings: [Option<DeferredWorkReading>; 2],
) -> Result<(), ExitError> {
    let (Some(barrier), [Some(before), Some(after)]) = (barrier, readings) else { return Ok(()) };
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let header = CounterHeader { source: DEFERRED_WORK.to_owned(), about: Map::new() };
    let mut lines = writer.counters(header)?;
    lines.line(-micros(barrier.saturating_duration_since(before.at)), &before.levels)?;
    lines.line(micros(after.at.saturating_duration_since(barrier)), &after.levels)?;
    lines.sync()?;
    Ok(())
}
