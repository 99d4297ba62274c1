//! What a workload is: its options, the tasks of each step, and its own work between them.

use std::future::Future;
use std::time::Duration;

use dbdyno_db::{AnySession, DeviceGauge, Endpoint, drop_binlog};
use dbdyno_loadgen::{ConnectionTask, TaskSpec, StepEnd};
use dbdyno_plan::Table;
use dbdyno_record::{Check, Deviation, Execution, StepSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::summaries::{self, WorkloadSummary};
use crate::step::{Cell, StepOptions};
use crate::{Error, Original, Result};

/// Where a workload runs: one cell's database.
#[derive(Debug, Clone)]
pub struct Context {
    pub endpoint: Endpoint,
    /// The database is dbdyno's own: global settings may be changed and binary logs dropped.
    pub owned: bool,
    /// Seed of the loaded rows; the same for every variant and block.
    pub seed: u64,
    /// Seed of what measured steps of the classic tests and of scripts draw. That of the rows, but
    /// on tables that stay from cell to cell another one in each: an UPDATE that sends the value
    /// of an earlier cell changes nothing.
    pub draws: u64,
    /// The device of the data directory, whose traffic ends before a server counts as quiet; `None`
    /// where it is not seen.
    pub device: Option<DeviceGauge>,
}

impl Context {
    /// Whether rows stay where they are put.
    pub(crate) const fn stores_data(&self) -> bool {
        self.endpoint.capabilities.stores_data
    }

    /// Drops the binary logs of a server of ours.
    pub(crate) async fn drop_binlog(&self, session: &mut AnySession) -> Result<()> {
        if !self.owned {
            return Ok(());
        }
        let dropped = drop_binlog(session, &self.endpoint.capabilities).await;
        dropped.map(|_| ()).map_err(Error::during("dropping binary logs"))
    }
}

/// Work between steps that is recorded but not part of any rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub name: String,
    pub duration: Duration,
    pub details: Map<String, Value>,
    /// What the plan wants and the database does not have: a warning of the cell.
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

/// A statement of a step, for the server to explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Its name within the step.
    pub statement: String,
    /// With values for its parameters: the same in every variant.
    pub sql: String,
    /// It is executed once more, and the server counts rows and times by operator.
    pub is_executed: bool,
}

/// What a workload over one cell says of itself and its steps. It keeps what it must know from step
/// to step (which rows exist, for instance).
pub trait Steps {
    /// What it knows of the data now (which rows there are), to be taken over by [`Steps::restore_state`];
    /// nothing where the options say it all.
    fn knowledge(&self) -> Value {
        json!({})
    }

    /// The database holds the data of which [`Steps::knowledge`] said this, perhaps in another
    /// cell.
    fn restore_state(&mut self, _knowledge: &Value) -> Result<()> {
        Ok(())
    }

    /// What step `index` is.
    fn spec(&self, index: usize) -> StepSpec;

    /// What [`Workload::tasks`] of step `index` depends on besides options and context, for several
    /// hosts that each run a part of them; `None` of a step that one host runs.
    fn tasks_state(&self, _index: usize) -> Option<Value> {
        None
    }

    /// Takes over what [`Steps::tasks_state`] has said on another host.
    fn take_tasks_state(&mut self, _state: &Value) {}

    /// Statements of step `index` that look for rows. The server is asked how it executes them when
    /// the step is over and verified.
    fn explained(&self, _index: usize) -> Vec<Explained> {
        Vec::new()
    }

    /// The executions of the step that ran last, whose times count by themselves; empty for
    /// workloads of many operations.
    fn executions(&self) -> Vec<Execution> {
        Vec::new()
    }

    /// Why [`Workload::check`] has compared nothing of `table`.
    fn unchecked(&self, _table: &str) -> String {
        "a connection was lost during a statement, or statements failed after part of their work; its content is unknown"
            .to_owned()
    }
}

/// So many times `length`; the longest time where that is more.
pub(crate) fn multiplied(length: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(length.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// Longest time of a step of `length`: `factor` times as long, and more, as connections may be slow
/// to answer once.
pub(crate) fn capped(length: Duration, factor: f64) -> Duration {
    multiplied(length, factor).saturating_add(Duration::from_secs(10))
}

/// The connections of a step. Each task is built on the thread that will run it.
pub type Tasks<L> = Vec<(TaskSpec, Factory<L>)>;
type Factory<L> = Box<dyn FnOnce() -> L + Send>;

/// One of [`Tasks`].
pub(crate) fn planned<L>(
    spec: TaskSpec,
    build: impl FnOnce() -> L + Send + 'static,
) -> (TaskSpec, Factory<L>) {
    (spec, Box::new(build))
}

/// A workload: what it is, its options, and its way through a cell. A folder implements it and gets
/// an entry in [`crate::ALL`].
pub trait Workload: Steps + Sized + 'static {
    /// Name in plans, records and lists.
    const NAME: &'static str;
    /// What it is for, in a sentence.
    const PURPOSE: &'static str;
    /// What lists say of each step: its `words.toml`.
    const WORDS: &'static str;
    /// Rises with any change of rows, statements or order: runs of different versions are not
    /// comparable.
    const VERSION: u32;
    /// What is around the original's steps.
    const ORIGINAL: Original;

    /// Its table in a plan.
    type Options: StepOptions + Default + DeserializeOwned + JsonSchema;
    type ConnectionTask: ConnectionTask + 'static;

    /// Lays defaults that depend on other keys under its table, before options are made of it.
    fn lay_under(_table: &mut Table<'_>) {}

    /// Its steps with default options: one list for each order.
    fn summaries() -> Vec<WorkloadSummary> {
        summaries::of::<Self>(&Self::Options::default())
    }

    /// Which original it follows with these options.
    fn follows(options: &Self::Options) -> &'static str;

    /// Every respect in which it differs from the original with these options.
    fn deviations(options: &Self::Options) -> Vec<Deviation>;

    /// The workload with `options` over the database of `context`.
    fn new(options: &Self::Options, context: Context) -> Self;

    /// What it was made of.
    fn cell(&self) -> Cell<'_, Self::Options>;

    /// Names of its tables; `None` where only the database knows them. The rows of those are then
    /// counted after each step.
    fn tables(&self) -> Option<Vec<String>> {
        None
    }

    /// Brings the database to where step `index` can begin.
    fn before_step(
        &mut self,
        index: usize,
        session: &mut AnySession,
    ) -> impl Future<Output = Result<Vec<Work>>>;

    /// The connections of step `index`.
    fn tasks(&self, index: usize) -> Tasks<Self::ConnectionTask>;

    /// Takes over what step `index` did, and compares the database with what must be there.
    fn check(
        &mut self,
        index: usize,
        end: &StepEnd,
        session: &mut AnySession,
    ) -> impl Future<Output = Result<Vec<Check>>>;

    /// What this workload does after step `index`, before the server is brought to rest.
    fn after_step(
        &mut self,
        _index: usize,
        _session: &mut AnySession,
    ) -> impl Future<Output = Result<Vec<Work>>> {
        async { Ok(Vec::new()) }
    }
}
