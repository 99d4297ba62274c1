//! Runs sysbench scripts unchanged. Their commands are steps, and their events are operations.
//!
//! Each connection has a Lua state of its own, as each thread of sysbench has. A statement suspends
//! the state, so that thousands of connections share a load thread. The API is that of sysbench
//! 1.0.20 and 1.1, with the global functions from before 1.0. Where it differs, `deviations.toml`
//! says so in every record.

mod draws;
mod files;
mod host;
mod machine;
pub mod options;
mod pattern;
mod request;
mod steps;
mod task;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dbdyno_db::AnySession;
use dbdyno_loadgen::StepEnd;
use dbdyno_plan::Values;
use dbdyno_record::{Check, Deviation, Outcome, StepSpec};
use mlua::Function;
use serde::Serialize;
use serde_json::{Map, json};

use crate::deviations::of_rows;
use crate::step::{StepOptions, WorkloadParts};
use crate::sysbench::files::SysbenchScript;
use crate::sysbench::machine::{EventOutcome, Machine, StateIdentity, error_text, plain};
use crate::sysbench::options::{Offers, SysbenchOptions, values_problem};
use crate::sysbench::request::Reply;
use crate::sysbench::steps::{Act, SysbenchStep};
use crate::sysbench::task::SysbenchTask;
use crate::workload::{self, sha256};
use crate::{Context, Error, Original, Philox, Result, Steps, Tasks, Work, Workload, checks, summaries};

pub use crate::sysbench::options::OwnOption;

/// Highest number of bytes of output that are kept. A script prints fewer in a step, unless it
/// prints in each event.
const MOST_PRINTED: usize = 1 << 20;

/// What scripts print, from all states of a step. It is kept until it is asked for, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct ScriptOutput(Mutex<String>);

impl ScriptOutput {
    pub(crate) fn add(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() + text.len() <= MOST_PRINTED {
            all.push_str(text);
        }
    }

    /// Returns what was printed since the last call.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What all connections of a cell must know.
pub(crate) struct SysbenchSetup {
    pub(crate) options: SysbenchOptions,
    pub(crate) context: Context,
    /// The script's commands and options. An error is reported when the first step begins.
    offers: OnceLock<Result<Offers, String>>,
    printed: ScriptOutput,
    /// How many numbers `sysbench.rand.unique` has given out.
    unique: AtomicU32,
    /// Whether the script has asked for a connection.
    pub(crate) asks: AtomicBool,
}

impl SysbenchSetup {
    fn new(options: &SysbenchOptions, context: Context) -> Arc<Self> {
        let (options, offers) = (options.clone(), OnceLock::new());
        Arc::new(Self {
            options,
            context,
            offers,
            printed: ScriptOutput::default(),
            unique: AtomicU32::new(0),
            asks: AtomicBool::new(false),
        })
    }

    /// Returns the set-up for a script that is only inspected.
    fn without_database(options: &SysbenchOptions) -> Arc<Self> {
        Self::new(options, summaries::context())
    }

    fn next_unique(&self) -> u32 {
        draws::unique(self.unique.fetch_add(1, Ordering::Relaxed), self.context.draws)
    }

    /// Inspects the script once, with another set-up, and keeps the answer in this one.
    fn inspected(&self) -> &Result<Offers, String> {
        self.offers.get_or_init(|| {
            let own = Self::new(&self.options, self.context.clone());
            Offers::of(&own, "run").map_err(|(_, problem)| problem)
        })
    }

    pub(crate) fn script(&self) -> Option<&SysbenchScript> {
        self.inspected().as_ref().ok().map(|offers| &offers.script)
    }

    fn is_parallel(&self, command: &str) -> bool {
        self.inspected().as_ref().is_ok_and(|offers| offers.commands.get(command) == Some(&true))
    }

    /// Returns the error about a mistake in the script, or about a failed call of the script.
    fn failed(&self, message: String) -> Error {
        Error::Script { script: self.options.script.clone(), message }
    }

    /// Returns the hash of every file that was read, in their order.
    pub(crate) fn hash(&self) -> Option<String> {
        let files = self.script()?.files();
        Some(sha256(files.iter().map(|(_, text)| &**text)))
    }
}

pub struct Sysbench {
    setup: Arc<SysbenchSetup>,
    steps: Vec<SysbenchStep>,
    /// The state in which `init` ran. It is kept for `done`.
    main: Option<Machine>,
}

impl Sysbench {
    /// Runs the script's `init` as sysbench does, in a state of its own.
    async fn init(&mut self, index: usize) -> Result<()> {
        let step = &self.steps[index];
        let Some(script) = self.setup.script() else { return Ok(()) };
        let stream = crate::step::stream(&step.name, self.setup.context.draws);
        let identity =
            StateIdentity { tid: 0, threads: step.connections(&self.setup), command: "run", stream };
        let failed = |message| self.setup.failed(message);
        let mut machine = Machine::new(&self.setup, script, identity).map_err(failed)?;
        if let EventOutcome::Failed(failure) = machine.start("init", Reply::Nothing).await {
            return Err(failed(failure.message));
        }
        self.main = Some(machine);
        Ok(())
    }

    /// Runs the script's `done`, and drops the state.
    pub async fn end(&mut self) -> Result<()> {
        let Some(mut machine) = self.main.take() else { return Ok(()) };
        let outcome = machine.start("finish", Reply::Nothing).await;
        machine.close().await;
        match outcome {
            EventOutcome::Failed(failure) => Err(self.setup.failed(failure.message)),
            _ => Ok(()),
        }
    }

    /// Returns the script's files with their texts, for the record.
    fn sources(&self) -> Result<Work> {
        let offers = self.setup.inspected();
        let offers = offers.as_ref().map_err(|problem| self.setup.failed(problem.clone()))?;
        let files = offers.script.files().into_iter();
        let texts = files.map(|(path, text)| (path.display().to_string(), json!(&*text)));
        Ok(workload::script_entry(&self.setup.hash(), texts.collect()))
    }

    fn printed(&self) -> Option<Work> {
        let text = self.setup.printed.take();
        (!text.is_empty()).then(|| Work::new("script printed", Duration::ZERO, [("text", json!(text))]))
    }
}

impl Steps for Sysbench {
    fn spec(&self, index: usize) -> StepSpec {
        self.steps[index].spec(&self.setup)
    }
}

impl Workload for Sysbench {
    const NAME: &'static str = "sysbench";
    const PURPOSE: &'static str =
        "scripts of sysbench, unchanged: its oltp_*.lua, sysbench-tpcc, and your own";
    const WORDS: &'static str = include_str!("words.toml");
    const VERSION: u32 = 1;
    const ORIGINAL: Original = crate::oltp::Oltp::ORIGINAL;

    type Options = SysbenchOptions;
    type ConnectionTask = SysbenchTask;

    fn follows(_: &SysbenchOptions) -> &'static str {
        "sysbench 1.0.20 and 1.1, the Lua API"
    }

    fn deviations(options: &SysbenchOptions) -> Vec<Deviation> {
        let settles = !options.use_existing && options.settling().after_steps().is_some();
        let mut values = options.values();
        values.insert("settles".to_owned(), json!(settles));
        of_rows(include_str!("deviations.toml"), &values)
    }

    fn new(options: &SysbenchOptions, context: Context) -> Self {
        Self { setup: SysbenchSetup::new(options, context), steps: options.list(), main: None }
    }

    fn parts(&self) -> WorkloadParts<'_, SysbenchOptions> {
        let SysbenchSetup { options, context, .. } = &*self.setup;
        WorkloadParts { options, context, steps: &self.steps }
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let mut works = vec![];
        if index == 0 {
            works.push(self.sources()?);
        }
        // Only a server that is not dbdyno's own can hold tables of an earlier run.
        if index == 0 && self.steps[0].loads && !self.setup.context.owned {
            works.extend(self.run_once("cleanup").await?);
        }
        if matches!(self.steps[index].kind, Act::Run { .. }) {
            let SysbenchSetup { options, context, .. } = &*self.setup;
            let step = &self.steps[index].name;
            works.extend(checks::before(context, &options.checks, step, session).await?);
            self.init(index).await?;
        }
        Ok(works)
    }

    fn tasks(&self, index: usize) -> Tasks<SysbenchTask> {
        self.steps[index].tasks(&self.setup)
    }

    async fn check(&mut self, _: usize, end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        let is_over = end.outcome == Outcome::Completed;
        if !is_over || !self.setup.context.stores_data() {
            return Ok(Vec::new());
        }
        checks::compare(&self.setup.options.checks, session).await
    }

    async fn after_step(&mut self, _: usize, _: &mut AnySession) -> Result<Vec<Work>> {
        self.end().await?;
        Ok(self.printed().into_iter().collect())
    }
}

/// Statistics of the run so far, or since the previous report, as a script's hooks receive them.
/// Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stat {
    pub threads_running: u32,
    pub time_interval: f64,
    pub time_total: f64,
    pub events: u64,
    pub reads: u64,
    pub writes: u64,
    pub other: u64,
    pub errors: u64,
    pub reconnects: u64,
    pub latency_pct: f64,
    pub latency_min: f64,
    pub latency_max: f64,
    pub latency_avg: f64,
    pub latency_sum: f64,
    /// Number of events of a target rate that are due and have not begun.
    pub queue_length: u64,
    /// Number of events that have begun and not ended.
    pub concurrency: u64,
}

impl Sysbench {
    /// Returns the workload for the one command that `options` name.
    pub fn alone(options: &SysbenchOptions, context: Context) -> Result<Self, String> {
        if let Some((_, problem)) = values_problem(options) {
            return Err(problem);
        }
        let setup = SysbenchSetup::new(options, context);
        let command = options.commands.first().map_or("run", String::as_str);
        let own = SysbenchSetup::new(&setup.options, setup.context.clone());
        let offers = Offers::of(&own, command).map_err(|(_, problem)| problem)?;
        setup.printed.add(&own.printed.take());
        let names = offers.commands.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        if command != "help" && !offers.commands.contains_key(command) {
            return Err(format!("script {} has no command {command}; it has {names}", options.script));
        }
        let _ = setup.offers.set(Ok(offers));
        Ok(Self { setup, steps: options.list(), main: None })
    }

    pub fn own_options(&self) -> Vec<OwnOption> {
        self.setup.inspected().as_ref().map_or_else(|_| Vec::new(), |offers| offers.options.clone())
    }

    pub fn has_help(&self) -> bool {
        self.setup.inspected().as_ref().is_ok_and(|offers| offers.commands.contains_key("help"))
    }

    pub fn take_printed(&self) -> String {
        self.setup.printed.take()
    }

    /// Returns whether the script has asked for a connection to a database.
    pub fn asks_database(&self) -> bool {
        self.setup.asks.load(Ordering::Relaxed)
    }

    /// Runs the script's `init`.
    pub async fn begin(&mut self) -> Result<()> {
        self.init(0).await
    }

    /// Hands `stat` to the script's hook `report_intermediate` or `report_cumulative`. The result is
    /// whether the script has that hook.
    pub fn report(&self, kind: &str, stat: &Stat) -> Result<bool, String> {
        let Some(machine) = &self.main else { return Ok(false) };
        machine.report(kind, stat).map_err(|error| error_text(&error))
    }

    pub async fn help(&mut self) -> Result<()> {
        self.run_once("help").await.map(|_| ())
    }

    /// Runs a command once, outside of any step, if the script has it. The command is `cleanup`,
    /// which removes the tables of an earlier run, or `help`.
    async fn run_once(&mut self, command: &str) -> Result<Option<Work>> {
        let Ok(offers) = self.setup.inspected() else { return Ok(None) };
        if !offers.commands.contains_key(command) {
            return Ok(None);
        }
        let began = Instant::now();
        let identity = StateIdentity { tid: 0, threads: 1, command, stream: Philox::new(0, 0) };
        let failed = |message| self.setup.failed(message);
        let mut machine = Machine::new(&self.setup, &offers.script, identity).map_err(failed)?;
        let outcome = machine.start("command", Reply::Name(command.to_owned())).await;
        machine.close().await;
        match outcome {
            EventOutcome::Failed(failure) => Err(failed(failure.message)),
            _ => Ok(Some(Work::new(format!("script's {command}"), began.elapsed(), Map::new()))),
        }
    }
}

impl Machine {
    /// Calls a hook, which may print and must not wait.
    fn report(&self, kind: &str, stat: &Stat) -> mlua::Result<bool> {
        let table = self.lua.create_table()?;
        for (name, value) in stat.values() {
            table.set(name, plain(&self.lua, &value)?)?;
        }
        self.host.resumed.set(Instant::now());
        self.api.get::<Function>("report")?.call((kind, table))
    }
}
