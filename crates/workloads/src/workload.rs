//! Defines what a workload is: its options, the tasks of each step, and its own work between steps.
//! [`Kind`] and [`AnyWorkload`] are objects that hide a workload's types, so that one list can hold
//! all workloads.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use dbdyno_db::{AnySession, DatabaseServer, DeviceGauge, drop_binlog, tables};
use dbdyno_loadgen::{
    ConnectionTask, HostMessage, HostShare, Observer, Step, StepCommand, StepEnd, TaskSpec,
};
use dbdyno_plan::{StepOutline, TableError, Values, WorkloadKind, WorkloadOptions, WorkloadTable};
use dbdyno_record::{Check, Deviation, Execution, StepSpec, StepWriter, WorkloadInfo};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::deviations::of_surroundings;
use crate::settle::cleanup;
use crate::step::{StepOptions, WorkloadParts};
use crate::summaries::{self, WorkloadSummary};
use crate::{Error, Original, Result, Surroundings, checks};

/// Where a workload runs, which is one cell's database.
#[derive(Debug, Clone)]
pub struct Context {
    pub database_server: DatabaseServer,
    /// Whether the database is dbdyno's own, so that global settings may be changed and binary logs
    /// dropped.
    pub owned: bool,
    /// Seed of the loaded rows. It is the same for every variant and block.
    pub seed: u64,
    /// Seed of the draws of measured steps, in the classic tests and in scripts. It is the seed of
    /// the rows, except on tables that stay from cell to cell. There it differs in each cell,
    /// because an UPDATE that sends the value of an earlier cell would change nothing.
    pub draws: u64,
    /// The device of the data directory. Its traffic must end before a server counts as quiet. It
    /// is `None` where the device cannot be seen.
    pub device: Option<DeviceGauge>,
}

impl Context {
    /// Returns whether the database stores rows. Only the null driver stores none.
    pub(crate) const fn stores_data(&self) -> bool {
        self.database_server.capabilities.stores_data
    }

    /// Drops the binary logs of a server that dbdyno owns.
    async fn drop_binlog(&self, session: &mut AnySession) -> Result<()> {
        if !self.owned {
            return Ok(());
        }
        let dropped = drop_binlog(session, &self.database_server.capabilities).await;
        dropped.map(|_| ()).map_err(Error::during("dropping binary logs"))
    }
}

/// Work between steps that is recorded but not part of any rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub name: String,
    pub duration: Duration,
    pub details: Map<String, Value>,
    /// A message about a setting of the plan that the database does not have. It becomes a warning
    /// of the cell.
    pub warning: Option<String>,
}

impl Work {
    pub fn new<K: Into<String>>(
        name: impl Into<String>,
        duration: Duration,
        details: impl IntoIterator<Item = (K, Value)>,
    ) -> Self {
        let details = details.into_iter().map(|(key, value)| (key.into(), value)).collect();
        Self { name: name.into(), duration, details, warning: None }
    }
}

/// A statement of a step that the server is asked to explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The statement's name within the step.
    pub statement: String,
    /// The text with values for its parameters, which are the same in every variant.
    pub sql: String,
    /// Whether it is executed once more, with the server counting rows and times by operator.
    pub is_executed: bool,
}

/// Describes a workload and its steps in one cell. A workload keeps the state that it needs from
/// step to step, for example which rows exist.
pub trait Steps {
    /// Returns the state of the workload, for example which rows exist. [`Steps::restore_state`]
    /// takes it over. It is empty where the options alone determine the data.
    fn saved_state(&self) -> Value {
        json!({})
    }

    /// Takes over `saved_state`, because the database holds the data for which
    /// [`Steps::saved_state`] returned it, perhaps in another cell.
    fn restore_state(&mut self, _knowledge: &Value) -> Result<()> {
        Ok(())
    }

    /// Returns the specification of step `index`.
    fn spec(&self, index: usize) -> StepSpec;

    /// Returns the state on which [`Workload::tasks`] of step `index` depends besides options and
    /// context. Hosts that each run a part of the tasks take it over. The result is `None` for a
    /// step that one host runs alone.
    fn tasks_state(&self, _index: usize) -> Option<Value> {
        None
    }

    /// Takes over what [`Steps::tasks_state`] returned on another host.
    fn take_tasks_state(&mut self, _state: &Value) {}

    /// Returns the statements of step `index` that look for rows. When the step is over and
    /// verified, the server is asked how it executes them.
    fn explained(&self, _index: usize) -> Vec<Explained> {
        Vec::new()
    }

    /// Returns the executions of the step that ran last, each with its own time. The list is empty
    /// for workloads whose steps are many short operations.
    fn executions(&self) -> Vec<Execution> {
        Vec::new()
    }

    /// Returns why [`Workload::check`] has compared nothing of `table`.
    fn unchecked(&self, _table: &str) -> String {
        "a connection was lost during a statement, or statements failed after part of their work; its content is unknown"
            .to_owned()
    }
}

/// Returns `length` times `factor`, or the longest time that a `Duration` can hold, where the
/// product is longer.
pub(crate) fn multiplied(length: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(length.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// Returns how long a step of `length` may take. This is `factor` times its length, and 10 s more,
/// because each connection may once be slow to answer.
pub(crate) fn capped(length: Duration, factor: f64) -> Duration {
    multiplied(length, factor).saturating_add(Duration::from_secs(10))
}

/// The connections of a step. Each task is built on the thread that will run it.
pub type Tasks<L> = Vec<(TaskSpec, Factory<L>)>;
type Factory<L> = Box<dyn FnOnce() -> L + Send>;

/// Returns one of the [`Tasks`].
pub(crate) fn planned<L>(
    spec: TaskSpec,
    build: impl FnOnce() -> L + Send + 'static,
) -> (TaskSpec, Factory<L>) {
    (spec, Box::new(build))
}

/// A workload: what it is, its options, and its work in a cell. A new workload is a folder that
/// implements this, with an entry in [`crate::ALL`].
pub trait Workload: Steps + Sized + 'static {
    /// Name in plans, records and lists.
    const NAME: &'static str;
    /// What the workload is for, in a sentence.
    const PURPOSE: &'static str;
    /// The text of its `words.toml`, which describes each step for lists.
    const WORDS: &'static str;
    /// Version of the workload. It rises with any change of rows, statements or order, because runs
    /// of different versions are not comparable.
    const VERSION: u32;
    /// The original's rest between servers, and how it reaches a server.
    const ORIGINAL: Original;

    /// Its table in a plan.
    type Options: StepOptions + Default + DeserializeOwned + JsonSchema;
    type ConnectionTask: ConnectionTask + 'static;

    /// Adds to its table those defaults that depend on other keys, before options are made from it.
    fn add_defaults(_table: &mut WorkloadTable<'_>) {}

    /// Returns its steps with default options, in one list for each order.
    fn summaries() -> Vec<WorkloadSummary> {
        summaries::of::<Self>(&Self::Options::default())
    }

    /// Returns which original it follows with these options.
    fn follows(options: &Self::Options) -> &'static str;

    /// Returns every respect in which it differs from the original with these options.
    fn deviations(options: &Self::Options) -> Vec<Deviation>;

    /// Returns the workload with `options` over the database of `context`.
    fn new(options: &Self::Options, context: Context) -> Self;

    /// Returns what the workload was made from.
    fn parts(&self) -> WorkloadParts<'_, Self::Options>;

    /// Returns the names of its tables, or `None` where only the database knows them. The rows of
    /// such tables are then counted after each step.
    fn tables(&self) -> Option<Vec<String>> {
        None
    }

    /// Brings the database into the state in which step `index` can begin.
    fn before_step(
        &mut self,
        index: usize,
        session: &mut AnySession,
    ) -> impl Future<Output = Result<Vec<Work>>>;

    /// Returns the connections of step `index`.
    fn tasks(&self, index: usize) -> Tasks<Self::ConnectionTask>;

    /// Takes over the results of step `index`, and compares the database with the expected
    /// contents.
    fn check(
        &mut self,
        index: usize,
        end: &StepEnd,
        session: &mut AnySession,
    ) -> impl Future<Output = Result<Vec<Check>>>;

    /// Does what this workload needs after step `index`, before the server is brought to rest.
    fn after_step(
        &mut self,
        _index: usize,
        _session: &mut AnySession,
    ) -> impl Future<Output = Result<Vec<Work>>> {
        async { Ok(Vec::new()) }
    }
}

/// A workload that plans can name, whatever its types are.
pub trait Kind: WorkloadKind {
    /// Returns what the workload is for, in a sentence.
    fn purpose(&self) -> String;

    /// Returns its steps with its default options, as they are on a database with its defaults.
    /// There is one list for each order.
    fn summaries(&self) -> Vec<WorkloadSummary>;

    /// Returns what the record says about the workload with `options` under `name`. The result is
    /// `None` for options of another workload.
    fn info(&self, name: &str, options: &dyn WorkloadOptions, around: &Surroundings) -> Option<WorkloadInfo>;

    /// Returns the workload with `options` over the database of `context`. The result is `None` for
    /// options of another workload.
    fn open(&self, options: &dyn WorkloadOptions, context: Context) -> Option<Box<dyn AnyWorkload>>;
}

pub struct Entry<W>(PhantomData<fn() -> W>);

impl<W: Workload> Entry<W> {
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<W: Workload> WorkloadKind for Entry<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn read(&self, mut table: WorkloadTable<'_>) -> Result<Box<dyn WorkloadOptions>, TableError> {
        W::add_defaults(&mut table);
        let options: W::Options = table.read()?;
        Ok(Box::new(options))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<W::Options>()
    }
}

impl<W: Workload> Kind for Entry<W> {
    fn purpose(&self) -> String {
        W::PURPOSE.to_owned()
    }

    fn summaries(&self) -> Vec<WorkloadSummary> {
        W::summaries()
    }

    fn info(&self, name: &str, options: &dyn WorkloadOptions, around: &Surroundings) -> Option<WorkloadInfo> {
        let options: &W::Options = (options as &dyn Any).downcast_ref()?;
        let around = of_surroundings(&W::ORIGINAL, around);
        let needs = options.needs();
        Some(WorkloadInfo {
            name: name.to_owned(),
            version: W::VERSION,
            follows: W::follows(options).to_owned(),
            options: Values::values(options),
            deviations: W::deviations(options).into_iter().chain(around).collect(),
            load_steps: options.load_steps(),
            steps: options.step_names(),
            data_bytes: needs.data_bytes,
            connections: needs.connections,
        })
    }

    fn open(&self, options: &dyn WorkloadOptions, context: Context) -> Option<Box<dyn AnyWorkload>> {
        Some(Box::new(W::new((options as &dyn Any).downcast_ref()?, context)))
    }
}

/// Work on a database that the caller waits for.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// A [`Workload`] over one cell, whatever its tasks are. The conductor works with it step by step.
/// Types are erased here, once per step: [`AnyWorkload::run`] hands tasks of their own type to the
/// load engine.
pub trait AnyWorkload: Steps {
    /// Returns what the plan says about each step.
    fn outlines(&self) -> Vec<&StepOutline>;

    /// Returns the specification of step `index` for the record, with the step's meaning.
    fn recorded_spec(&self, index: usize) -> StepSpec;

    /// Returns the names of the steps, in order.
    fn steps(&self) -> Vec<String> {
        self.outlines().into_iter().map(|step| step.name.clone()).collect()
    }

    /// Returns how many of the first steps only make the data.
    fn load_steps(&self) -> usize {
        self.outlines().into_iter().filter(|step| step.loads).count()
    }

    /// Brings the database into the state in which step `index` can begin.
    fn before<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>>;

    /// Runs step `index` on its tasks.
    fn run(
        &self,
        index: usize,
        step: Step<'_>,
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error>;

    /// Returns the connections of step `index`, as the load engine sees them.
    fn task_specs(&self, index: usize) -> Vec<TaskSpec>;

    /// Runs one host's part of step `index`.
    fn run_part(
        &self,
        index: usize,
        step: &Step<'_>,
        part: HostShare,
        commands: Receiver<StepCommand<Instant>>,
        say: &dyn Fn(HostMessage),
    ) -> Result<(), dbdyno_loadgen::Error>;

    /// Checks step `index` with [`Workload::check`].
    fn verify<'a>(
        &'a mut self,
        index: usize,
        end: &'a StepEnd,
        session: &'a mut AnySession,
    ) -> Boxed<'a, Vec<Check>>;

    /// Does the work that belongs after step `index`: first the workload's own, then the cleanup
    /// before the next step.
    fn after<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>>;
}

impl<W: Workload> AnyWorkload for W {
    fn outlines(&self) -> Vec<&StepOutline> {
        self.parts().steps.iter().map(|step| &step.outline).collect()
    }

    fn recorded_spec(&self, index: usize) -> StepSpec {
        let spec = self.spec(index);
        StepSpec { meaning: summaries::meaning(W::WORDS, &spec), ..spec }
    }

    fn before<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>> {
        Box::pin(async move {
            let works = self.before_step(index, session).await?;
            self.parts().context.drop_binlog(session).await?;
            Ok(works)
        })
    }

    fn run(
        &self,
        index: usize,
        step: Step<'_>,
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error> {
        dbdyno_loadgen::run(step, self.tasks(index), writer, observer)
    }

    fn task_specs(&self, index: usize) -> Vec<TaskSpec> {
        self.tasks(index).into_iter().map(|(spec, _)| spec).collect()
    }

    fn run_part(
        &self,
        index: usize,
        step: &Step<'_>,
        part: HostShare,
        commands: Receiver<StepCommand<Instant>>,
        say: &dyn Fn(HostMessage),
    ) -> Result<(), dbdyno_loadgen::Error> {
        dbdyno_loadgen::run_part(step, self.tasks(index), part, commands, say)
    }

    fn verify<'a>(
        &'a mut self,
        index: usize,
        end: &'a StepEnd,
        session: &'a mut AnySession,
    ) -> Boxed<'a, Vec<Check>> {
        Box::pin(self.check(index, end, session))
    }

    fn after<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>> {
        Box::pin(async move {
            let mut works = self.after_step(index, session).await?;
            let tables = match self.tables() {
                Some(tables) => tables,
                None => {
                    let (tables, counted) = count_rows(session).await?;
                    works.extend(counted);
                    tables
                }
            };
            let parts = self.parts();
            parts.context.drop_binlog(session).await?;
            if parts.settles_after(index) {
                let settle = (&parts.options.settling(), parts.options.original_wait());
                works.push(cleanup(session, parts.context, &tables, settle, &parts.steps[index].name).await?);
            }
            Ok(works)
        })
    }
}

/// Returns the tables of the database, and the number of rows in each where there are any tables.
async fn count_rows(session: &mut AnySession) -> Result<(Vec<String>, Option<Work>)> {
    let names = tables(session).await.map_err(Error::during("listing the tables"))?;
    let began = Instant::now();
    let mut rows = Vec::new();
    for table in &names {
        rows.push((table, json!(checks::count(session, table).await?)));
    }
    let work = (!names.is_empty()).then(|| Work::new("count rows", began.elapsed(), rows));
    Ok((names, work))
}

/// Returns the SHA-256 hash of all `texts`, in their order.
pub(crate) fn sha256<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    texts.for_each(|text| hash.update(text.as_bytes()));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the entry for the record about scripts that were read: their hash, and their files with
/// their texts.
pub(crate) fn script_entry(hash: &impl Serialize, files: Map<String, Value>) -> Work {
    Work::new("read script", Duration::ZERO, [("sha256", json!(hash)), ("files", Value::Object(files))])
}
