//! Scripts of sysbench, unchanged. Their commands are steps, and their events are operations.
//!
//! Each connection has a Lua state of its own, as each thread of sysbench has. A statement suspends the
//! state, so that thousands of connections share a load thread. The API is that of sysbench 1.0.20 and
//! 1.1, and the global functions from before 1.0. Where it differs, `deviations.toml` says so in every
//! record.

mod alone;
mod draws;
mod files;
mod host;
mod machine;
mod offers;
pub mod options;
mod parts;
mod pattern;
mod request;
mod steps;
mod task;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use dbdyno_db::AnySession;
use dbdyno_loadgen::StepEnd;
use dbdyno_plan::Values;
use dbdyno_record::{Check, Deviation, Outcome, StepSpec};
use serde_json::json;

pub use self::alone::Stat;
use self::files::SysbenchScript;
use self::machine::{EventOutcome, Machine, StateIdentity};
use self::offers::Offers;
pub use self::offers::OwnOption;
use self::options::SysbenchOptions;
use self::request::Reply;
use self::steps::{Act, SysbenchStep};
use self::task::SysbenchTask;
use crate::deviations::of_rows;
use crate::sources::{self, sha256};
use crate::step::{Cell, StepOptions};
use crate::{Context, Error, Original, Result, Steps, Tasks, Work, Workload, sql_checks, summaries};

/// More bytes than a script prints in a step, unless it prints in each event.
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
    /// What the script offers. An error is reported when the first step begins.
    offers: OnceLock<Result<Offers, String>>,
    pub(crate) printed: ScriptOutput,
    /// Numbers that `sysbench.rand.unique` has given out.
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
    pub(crate) fn without_database(options: &SysbenchOptions) -> Arc<Self> {
        Self::new(options, summaries::context())
    }

    pub(crate) fn next_unique(&self) -> u32 {
        draws::unique(self.unique.fetch_add(1, Ordering::Relaxed), self.context.draws)
    }

    /// Inspects the script once, with a set-up of its own, and keeps the answer in this one.
    fn look(&self) -> &Result<Offers, String> {
        self.offers.get_or_init(|| {
            let own = Self::new(&self.options, self.context.clone());
            Offers::of(&own, "run").map_err(|(_, problem)| problem)
        })
    }

    pub(crate) fn script(&self) -> Option<&SysbenchScript> {
        self.look().as_ref().ok().map(|offers| &offers.script)
    }

    pub(crate) fn is_parallel(&self, command: &str) -> bool {
        self.look().as_ref().is_ok_and(|offers| offers.commands.get(command) == Some(&true))
    }

    /// Returns what is wrong with the script, or with what it did.
    fn failed(&self, message: String) -> Error {
        Error::SysbenchScript { script: self.options.script.clone(), message }
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
        let stream = crate::specs::stream(&step.name, self.setup.context.draws);
        let place = StateIdentity { tid: 0, threads: step.connections(&self.setup), command: "run", stream };
        let failed = |message| self.setup.failed(message);
        let mut machine = Machine::new(&self.setup, script, place).map_err(failed)?;
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
        let offers = self.setup.look();
        let offers = offers.as_ref().map_err(|problem| self.setup.failed(problem.clone()))?;
        let files = offers.script.files().into_iter();
        let texts = files.map(|(path, text)| (path.display().to_string(), json!(&*text)));
        Ok(sources::read(&self.setup.hash(), texts.collect()))
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

    fn cell(&self) -> Cell<'_, SysbenchOptions> {
        let SysbenchSetup { options, context, .. } = &*self.setup;
        Cell { options, context, steps: &self.steps }
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let mut works = vec![];
        if index == 0 {
            works.push(self.sources()?);
        }
        // On a server of our own the data is new.
        if index == 0 && self.steps[0].loads && !self.setup.context.owned {
            works.extend(self.apart("cleanup").await?);
        }
        if matches!(self.steps[index].kind, Act::Run { .. }) {
            let SysbenchSetup { options, context, .. } = &*self.setup;
            let step = &self.steps[index].name;
            works.extend(sql_checks::before(context, &options.checks, step, session).await?);
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
        sql_checks::compare(&self.setup.options.checks, session).await
    }

    async fn after_step(&mut self, _: usize, _: &mut AnySession) -> Result<Vec<Work>> {
        self.end().await?;
        Ok(self.printed().into_iter().collect())
    }
}
