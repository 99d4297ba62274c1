//! Runs pgbench scripts: the three that pgbench has built in, and the user's own. Scripts have
//! pgbench's expressions, commands and tables.
//!
//! A transaction is one pass over a script, which is drawn by weight. The code is written from
//! pgbench's manual and the formulas in its source. Every record lists where the workload differs
//! from pgbench, with the texts of `deviations.toml`.

mod expression;
mod load;
pub mod options;
mod random;
mod script;
mod sources;
mod steps;
mod task;
mod variables;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dbdyno_db::{AnySession, KeySource, Session, first_i64, tables};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes, StatementDone, StepEnd};
use dbdyno_plan::Values;
use dbdyno_record::{Check, Deviation, Outcome, StepSpec};
use serde_json::{Map, Value as Json, json};

use self::load::PgbenchLoadTask;
use self::options::{PartitionMethod, PgbenchOptions, Vacuum};
use self::script::Action;
use self::sources::{CLIENT, SCALE, SEEDS, Scripts};
use self::steps::PgbenchStep;
use self::task::PgbenchTask;
use self::variables::Variables;
use self::verify::Balances;
use crate::connection::any_task;
use crate::deviations::of_rows;
use crate::pgbench::variables::Value;
use crate::step::{StepOptions, WorkloadParts};
use crate::{Context, Error, Original, Philox, Result, Steps, Tasks, Work, Workload, checks};
pub use sources::{BUILTINS, Builtin, builtin};
pub use task::{Attempt, Ending, FailureKind, Listener, Skipped, Transaction};

any_task! {
    Load(Box<PgbenchLoadTask>),
    Run(Box<PgbenchTask>),
}

/// What all connections of a cell must know.
pub(crate) struct PgbenchSetup {
    pub(crate) options: PgbenchOptions,
    pub(crate) context: Context,
    pub(crate) scripts: Result<Scripts, String>,
    scale: AtomicU64,
    /// The settings of a run outside of a plan, or `None` in a plan. A run outside of a plan also
    /// times the commands that send nothing.
    pub(crate) alone: Option<Alone>,
}

/// The settings of a run outside of a plan that are not among its options.
pub struct Alone {
    pub listener: Arc<dyn Listener>,
    /// A failed transaction is not tried again once this much time has passed since its first try.
    pub latency_limit: Option<Duration>,
}

impl PgbenchSetup {
    fn new(options: &PgbenchOptions, context: Context, alone: Option<Alone>) -> Arc<Self> {
        // PostgreSQL and SQLite know END as another word for COMMIT. MySQL and MariaDB do not; only
        // they take keys from a table's counter.
        let knows_end = context.database_server.capabilities.key_source != KeySource::TableCounter;
        let scripts = options.scripts(if knows_end { "END" } else { "COMMIT" });
        let scale = AtomicU64::new(options.scale.into());
        Arc::new(Self { options: options.clone(), context, scripts, scale, alone })
    }

    pub(crate) fn scale(&self) -> u64 {
        self.scale.load(Ordering::Relaxed)
    }

    /// Gives a connection the variables that do not come from its scripts.
    fn give_variables(&self, client: u32, variables: &mut Variables) {
        let seed = self.context.draws;
        let [high, low, ..] = Philox::new(seed, 0).at(0, 0, 0);
        variables.set_value(SCALE, Value::Int(self.scale() as i64));
        variables.set_value(CLIENT, Value::Int(client.into()));
        // The first seed is `default_seed`, for hash functions. The second is `random_seed`.
        variables.set_value(SEEDS[0], Value::Int((u64::from(high) << 32 | u64::from(low)) as i64));
        variables.set_value(SEEDS[1], Value::Int(seed as i64));
        for (name, value) in &self.options.define {
            match value {
                Json::String(text) => variables.set_text(name, text),
                other => variables.set_text(name, &other.to_string()),
            }
        }
    }

    /// Returns the scripts' names, which `kept` interns for the life of the process.
    fn script_names(&self) -> Vec<&'static str> {
        let scripts = self.scripts.iter().flat_map(|scripts| &scripts.list);
        scripts.map(|source| sources::interned(source.name.clone())).collect()
    }

    /// Returns the index of a command among those of [`ScriptInfo`], which leaves out commands
    /// without a text.
    fn command_index(&self, (script, command): (usize, usize)) -> usize {
        let source = self.scripts.as_ref().ok().and_then(|scripts| scripts.list.get(script));
        let before = source.map_or(&[][..], |source| &source.commands[..command]);
        before.iter().filter(|command| !command.text.is_empty()).count()
    }

    /// Returns the name under which a command is counted: script, number and first word.
    fn command_name(&self, (script, command): (usize, usize)) -> &'static str {
        let Some(source) = self.scripts.as_ref().ok().and_then(|scripts| scripts.list.get(script)) else {
            return "";
        };
        let commands = &source.commands;
        // A jump is not written in the script, so it has no number.
        let is_written = |command: &&script::ScriptCommand| !matches!(command.action, Action::Jump(_));
        let number = commands[..=command].iter().filter(is_written).count();
        let text = commands[command].text.trim_start_matches('\\');
        let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
        sources::interned(format!("{}.{number}-{}", source.name, word.to_ascii_lowercase()))
    }
}

pub struct Pgbench {
    setup: Arc<PgbenchSetup>,
    steps: Vec<PgbenchStep>,
    /// Balances before the step that runs.
    balances: Option<Balances>,
}

/// A command of a script, for a report of its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCommand {
    /// The name under which its times are counted.
    pub name: &'static str,
    pub text: String,
}

/// A script, for a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptInfo {
    pub name: &'static str,
    /// pgbench's own title, or the file.
    pub title: String,
    pub weight: u64,
    pub commands: Vec<ScriptCommand>,
}

impl Pgbench {
    /// Returns the workload for a run outside of a plan, which reports the times of every command.
    pub fn alone(options: &PgbenchOptions, context: Context, alone: Alone) -> Result<Self, String> {
        if let Some((_, problem)) = options::values_problem(options) {
            return Err(problem);
        }
        let setup = PgbenchSetup::new(options, context, Some(alone));
        setup.scripts.as_ref().map_err(Clone::clone)?;
        Ok(Self { setup, steps: options.list(), balances: None })
    }

    pub fn scripts(&self) -> Vec<ScriptInfo> {
        let Ok(scripts) = &self.setup.scripts else { return Vec::new() };
        let names = self.setup.script_names().into_iter();
        let info = |(index, (source, name)): (usize, (&sources::ScriptSource, &'static str))| {
            let commands = source.commands.iter().enumerate();
            let shown = commands.filter(|(_, command)| !command.text.is_empty());
            let shown = shown.map(|(at, command)| ScriptCommand {
                name: self.setup.command_name((index, at)),
                text: command.text.clone(),
            });
            let title = source.builtin.map_or_else(|| source.given.clone(), |own| own.title.to_owned());
            ScriptInfo { name, title, weight: source.weight, commands: shown.collect() }
        };
        scripts.list.iter().zip(names).enumerate().map(info).collect()
    }

    /// Returns the number of accounts, in hundreds of thousands.
    pub fn scale(&self) -> u64 {
        self.setup.scale()
    }

    /// Takes the scale from the number of rows in `pgbench_branches`, which must exist.
    pub async fn find_scale(&mut self, session: &mut AnySession) -> Result<()> {
        let asking = Error::during("counting pgbench_branches");
        let cells = session.rows("select count(*) from pgbench_branches").await.map_err(asking)?;
        if let Some(branches) = first_i64(&cells).and_then(|count| u64::try_from(count).ok()) {
            self.setup.scale.store(branches.max(1), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns how the accounts are partitioned, and into how many tables. The result is `None`
    /// where they are in one.
    pub async fn partitions(&self, session: &mut AnySession) -> Option<(&'static str, i64)> {
        let sql = "select count(*), bool_or(p.partstrat = 'h') from pg_partitioned_table p \
                   join pg_inherits i on i.inhparent = p.partrelid \
                   where p.partrelid = to_regclass('pgbench_accounts')";
        // A server without partitions does not know the catalogue.
        let cells = session.rows(sql).await.ok()?;
        let count = first_i64(&cells).filter(|count| *count > 0)?;
        let is_hashed = cells.first()?.get(1)?.as_deref() == Some("t");
        let method = if is_hashed { PartitionMethod::Hash } else { PartitionMethod::Range };
        Some((method.name(), count))
    }

    /// Vacuums, and empties the history, as pgbench does before each run. It does neither and
    /// returns `None` if the options switch this off, or if the table of branches, tellers or
    /// history is missing.
    pub async fn make_ready(&self, session: &mut AnySession) -> Result<Option<Work>> {
        let names = tables(session).await.map_err(Error::during("listing the tables"))?;
        let has = |table: &str| names.iter().any(|name| name == table);
        let vacuum = self.setup.options.vacuum;
        let all_are_there =
            ["pgbench_branches", "pgbench_tellers", "pgbench_history"].iter().all(|name| has(name));
        if vacuum == Vacuum::None || !all_are_there {
            return Ok(None);
        }
        let capabilities = &self.setup.context.database_server.capabilities;
        let began = Instant::now();
        let mut statements = Vec::new();
        if capabilities.vacuumed_tables {
            statements.extend(["vacuum pgbench_branches", "vacuum pgbench_tellers"]);
        }
        // SQLite has no TRUNCATE. The capability `foreign_keys` tells it from the other servers,
        // because SQLite's existing tables take no foreign keys. Tables of some MySQL engines take
        // none either; for them, DELETE works as well.
        let empties = if capabilities.foreign_keys { "truncate table" } else { "delete from" };
        let emptied = format!("{empties} pgbench_history");
        statements.push(&emptied);
        if vacuum == Vacuum::All && capabilities.vacuumed_tables {
            statements.push("vacuum analyze pgbench_accounts");
        }
        for sql in statements {
            session.query(sql.as_bytes()).await.map_err(Error::during(sql))?;
        }
        Ok(Some(Work::new("vacuum", began.elapsed(), Map::new())))
    }

    fn scripts_read(&self) -> Result<&Scripts> {
        self.setup.scripts.as_ref().map_err(|problem| Error::Script {
            script: self.setup.options.files.join(", "),
            message: problem.clone(),
        })
    }

    /// Returns the scripts with their texts, for the record.
    fn sources(&self) -> Result<Work> {
        let scripts = self.scripts_read()?;
        let texts = scripts.list.iter().map(|source| (source.given.clone(), json!(source.text)));
        Ok(crate::workload::script_entry(&scripts.hash(), texts.collect()))
    }

    /// Returns whether the balances before and after a step are compared. Only pgbench's built-in
    /// scripts are known to change accounts and history by the same sum.
    fn compares_balances(&self) -> bool {
        let stores = self.setup.context.stores_data();
        let scripts = self.setup.scripts.as_ref();
        stores && scripts.is_ok_and(|scripts| scripts.list.iter().all(|source| source.builtin.is_some()))
    }
}

impl Steps for Pgbench {
    fn spec(&self, index: usize) -> StepSpec {
        self.steps[index].spec(&self.setup)
    }
}

impl Workload for Pgbench {
    const NAME: &'static str = "pgbench";
    const PURPOSE: &'static str = "scripts of pgbench: tpcb-like, simple-update, select-only, and your own";
    const WORDS: &'static str = include_str!("words.toml");
    const VERSION: u32 = 1;
    const ORIGINAL: Original = Original {
        rest: (Duration::ZERO, "none: it runs once"),
        transport: "as its command line says: a unix socket by default",
    };

    type Options = PgbenchOptions;
    type ConnectionTask = AnyTask;

    fn follows(_: &PgbenchOptions) -> &'static str {
        "pgbench of PostgreSQL 15"
    }

    fn deviations(options: &PgbenchOptions) -> Vec<Deviation> {
        let settles = options.has_load() && options.settling().after_steps().is_some();
        let mut values = options.values();
        values.insert("loads".to_owned(), json!(options.has_load()));
        values.insert("settles".to_owned(), json!(settles));
        of_rows(include_str!("deviations.toml"), &values)
    }

    fn new(options: &PgbenchOptions, context: Context) -> Self {
        Self { setup: PgbenchSetup::new(options, context, None), steps: options.list(), balances: None }
    }

    fn parts(&self) -> WorkloadParts<'_, PgbenchOptions> {
        let PgbenchSetup { options, context, .. } = &*self.setup;
        WorkloadParts { options, context, steps: &self.steps }
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let mut works = vec![];
        if index == 0 {
            works.push(self.sources()?);
            if let Some(message) = load::unsupported_tables(&self.setup) {
                return Err(Error::Script { script: self.setup.options.files.join(", "), message });
            }
        }
        // The step that loads has no kind.
        if self.steps[index].kind.is_some() {
            if self.setup.options.use_existing && self.compares_balances() {
                self.find_scale(session).await?;
            }
            let PgbenchSetup { options, context, .. } = &*self.setup;
            let step = &self.steps[index].name;
            works.extend(checks::before(context, &options.checks, step, session).await?);
            works.extend(self.make_ready(session).await?);
            if self.compares_balances() {
                self.balances = Some(Balances::read(session).await?);
            }
        }
        Ok(works)
    }

    fn tasks(&self, index: usize) -> Tasks<AnyTask> {
        self.steps[index].tasks(&self.setup)
    }

    async fn check(&mut self, index: usize, end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        let stores = self.setup.context.stores_data();
        if end.outcome != Outcome::Completed || !stores {
            return Ok(Vec::new());
        }
        let mut checks = match self.balances.take() {
            Some(before) => vec![before.compare(self.scripts_read()?, end, session).await?],
            None if self.steps[index].kind.is_none() => verify::loaded(&self.setup, session).await?,
            None => Vec::new(),
        };
        checks.extend(checks::compare(&self.setup.options.checks, session).await?);
        Ok(checks)
    }
}
