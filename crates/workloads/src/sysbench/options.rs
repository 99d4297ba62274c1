//! Options of a sysbench script, and the commands and options that the script itself defines. To
//! find these, the script is loaded once, without a database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dbdyno_loadgen::Failure;
use dbdyno_model::{Cold, DataMode, PlanDuration, with_defaults};
use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, Values, WorkloadOptions, data_problem};
use dbdyno_record::ErrorClass;
use mlua::{Lua, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Philox;
use crate::checks::{self, SqlCheck};
use crate::oltp::options::{Distribution, ErrorCode, OltpArrivals, OltpOptions, rates_problem};
use crate::options::{ConcurrencyLevels, concurrency_levels, first_problem, schema_problem};
use crate::settle::Settle;
use crate::step::{StepOptions, forecast, outlines};
use crate::sysbench::files::SysbenchScript;
use crate::sysbench::machine::{Machine, StateIdentity, error_text};
use crate::sysbench::{SysbenchSetup, host};

/// Codes that mean a lost connection in a list of errors to ignore.
const LOST: [&str; 4] = ["2006", "2013", "2011", "2055"];

/// How a script's prepared statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PsMode {
    /// Prepared by the server.
    Auto,
    /// As text, with their parameters filled in.
    Disable,
}

/// What a script may do beyond its folder and its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Allowed {
    /// Read and write files anywhere.
    Files,
    /// Start programs: `os.execute`, `io.popen`, `os.remove`, `os.rename`.
    Os,
}

with_defaults! {
    /// `[workload.sysbench]`: a script of sysbench, unchanged. Steps are its commands, in order;
    /// `run` is a step for each number of connections and each rate.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename = "Sysbench", deny_unknown_fields, default)]
    pub struct SysbenchOptions {
        /// A file, or the name of one of sysbench's own scripts.
        pub script: String = "oltp_read_write".to_owned(),
        /// The script's own options, by their names.
        pub options: BTreeMap<String, Value> = BTreeMap::new(),
        /// Commands in the order in which they run. Those before `run` only make the data.
        #[schemars(extend("uniqueItems" = true))]
        pub commands: Vec<String> = vec!["prepare".to_owned(), "run".to_owned()],
        /// Numbers of connections of `run`, in the order in which they run.
        #[serde(deserialize_with = "concurrency_levels")]
        #[schemars(with = "ConcurrencyLevels", extend("x-asked" = true))]
        pub connections: Vec<u32> = vec![1],
        /// Connections of commands that the script runs in parallel, such as `prepare`.
        #[schemars(range(min = 1, max = 1_024))]
        pub prepare_connections: u32 = 4,
        /// Length of each `run`, without its warm-up.
        #[schemars(extend("x-step-time" = true, "x-asked" = true))]
        pub time: PlanDuration = PlanDuration::from_secs(10),
        /// Events of each `run`, all connections together, in place of `time`; the warm-up is left
        /// out then.
        #[schemars(range(min = 1))]
        pub events: Option<u64> = None,
        /// With `events`: `time` ends a `run` too. For the original's command line.
        #[serde(skip)]
        pub time_ends_too: bool = false,
        /// Warm-up before the measurement of a `run` begins, in whole seconds.
        #[schemars(extend("x-whole-seconds" = true))]
        pub warmup: PlanDuration = PlanDuration::from_secs(0),
        /// When a connection begins its next event.
        pub arrivals: OltpArrivals = OltpArrivals::Closed,
        /// Events per second of all connections together, for `arrivals = "constant"` and
        /// `"poisson"`: one step per rate.
        #[schemars(inner(range(min = 1, max = 100_000_000)), extend("uniqueItems" = true))]
        pub rates: Vec<u32> = Vec::new(),
        /// Events of a rate that may wait for a connection; the oldest beyond are given up and
        /// counted.
        pub max_backlog: Option<u64> = None,
        /// What `sysbench.rand.default` draws from. `special` is the default of version 1.0,
        /// `uniform` that of 1.1.
        pub rand_type: Distribution = Distribution::Uniform,
        #[schemars(range(min = 1, max = 1_000))]
        pub rand_spec_iter: u32 = 12,
        #[schemars(range(min = 1, max = 100))]
        pub rand_spec_pct: u32 = 1,
        #[schemars(range(min = 0, max = 99))]
        pub rand_spec_res: u32 = 75,
        #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
        pub rand_pareto_h: f64 = 0.2,
        #[schemars(range(min = 0.0, max = 100.0))]
        pub rand_zipfian_exp: f64 = 0.8,
        pub db_ps_mode: PsMode = PsMode::Auto,
        /// Errors after which an event begins again; any other error fails it. When left out:
        /// deadlocks, lock waits and the like, and PostgreSQL's duplicate keys.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ignore_errors: Option<Vec<ErrorCode>> = None,
        /// The first event that fails ends the step, as in the original; otherwise 100 in a row do.
        pub strict: bool = false,
        /// `sysbench.opt.validate`. For the original's command line.
        #[serde(skip)]
        pub validate: bool = false,
        /// What a script may do beyond its folder and its database: nothing unless it is named
        /// here.
        #[schemars(extend("uniqueItems" = true))]
        pub allow: Vec<Allowed> = Vec::new(),
        /// What the state of one connection may take.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub memory_mb: u32 = 64,
        /// Statements that are sent before the first and after each step, and what they must
        /// answer.
        pub checks: Vec<SqlCheck> = Vec::new(),
        /// The tables are there and belong to others: `prepare` is left out, and nothing is
        /// dropped.
        pub use_existing: bool = false,
        /// How the server is brought to rest between the last command that makes data and the first
        /// `run`; until its state is quiet when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle: Option<Settle> = None,
        /// The data with which a measured step begins: `"preserve"`, `"restart"`, `"reset"`, `"restore"`,
        /// `"restore-each-step"`.
        pub data: DataMode = DataMode::Preserve,
        /// Steps that begin with a server that has just been started and with empty caches: `true`,
        /// or a list of steps. Needs root.
        pub cold: Cold = Cold::All(false),
        /// A `run` that is not done after this many times its length is cut off and recorded as
        /// failed.
        #[schemars(range(min = 1.0))]
        pub time_cap: f64 = 4.0,
    }
}

impl SysbenchOptions {
    /// Returns those options that mean the same as in the workload `oltp`: sweeps, times, arrivals
    /// and distributions.
    pub(crate) fn shared(&self) -> OltpOptions {
        OltpOptions {
            connections: self.connections.clone(),
            time: self.time,
            events: self.events,
            warmup: self.warmup,
            arrivals: self.arrivals,
            rates: self.rates.clone(),
            max_backlog: self.max_backlog,
            time_cap: self.time_cap,
            ..self.distribution()
        }
    }

    /// Returns the options on which draws depend.
    pub(crate) fn distribution(&self) -> OltpOptions {
        OltpOptions {
            distribution: self.rand_type,
            special_iterations: self.rand_spec_iter,
            special_percent: self.rand_spec_pct,
            special_share: self.rand_spec_res,
            pareto_h: self.rand_pareto_h,
            zipfian_exponent: self.rand_zipfian_exp,
            ..OltpOptions::default()
        }
    }

    pub(crate) fn allows_os(&self) -> bool {
        self.allow.contains(&Allowed::Os)
    }

    fn allows_files(&self) -> bool {
        self.allow.contains(&Allowed::Files)
    }

    /// Returns the longest time for which a script may run without a statement. It is the time that
    /// a `run` may take, but at most one minute.
    pub(crate) fn longest_stretch(&self) -> Duration {
        const MOST: Duration = Duration::from_secs(60);
        self.shared().length().map_or(MOST, |length| length.mul_f64(self.time_cap).min(MOST))
    }

    pub(crate) fn step_commands(&self) -> impl Iterator<Item = &String> {
        self.commands.iter().filter(|command| !self.use_existing || *command != "prepare")
    }
}

impl WorkloadOptions for SysbenchOptions {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        values_problem(self)
            .or_else(|| commands_problem(self))
            .or_else(|| checks::problem(&self.checks))
            .or_else(|| script_problem(self))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        let most = self.connections.iter().copied().max().unwrap_or(1);
        let only_runs = self.step_commands().all(|command| command == "run");
        Needs {
            connections: if only_runs { most } else { most.max(self.prepare_connections) },
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.db_ps_mode == PsMode::Auto,
            existing_tables: self.use_existing,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

/// Returns the first value that is out of its range, or does not go with another.
pub(crate) fn values_problem(options: &SysbenchOptions) -> Option<Mistake> {
    schema_problem(options).or_else(|| rates_problem(&options.shared()))
}

fn commands_problem(options: &SysbenchOptions) -> Option<Mistake> {
    let has_run = options.commands.iter().any(|command| command == "run");
    let without = "commands has no \"run\", so that nothing would be measured";
    first_problem([(!has_run, "commands", without)])
}

/// Checks that the script can be loaded, and has the plan's options and commands.
fn script_problem(options: &SysbenchOptions) -> Option<Mistake> {
    let setup = SysbenchSetup::without_database(options);
    let offers = match Offers::of(&setup, "run") {
        Ok(offers) => offers,
        Err(mistake) => return Some(mistake),
    };
    let missing = options.step_commands().find(|command| !offers.commands.contains_key(*command))?;
    let names = offers.commands.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let key = if missing == "run" { "script" } else { "commands" };
    Some((key, format!("script {} has no command {missing}; it has {names}", options.script)))
}

impl SysbenchSetup {
    /// Returns whether prepared statements are sent as text.
    pub(crate) fn is_text_only(&self) -> bool {
        self.options.db_ps_mode == PsMode::Disable
    }

    /// Returns the bytes that one state may take.
    pub(crate) fn memory_bytes(&self) -> usize {
        (self.options.memory_mb as usize) << 20
    }

    /// Returns whether an event begins again after `failure`.
    pub(crate) fn ignores(&self, failure: &Failure) -> bool {
        /// PostgreSQL's unique violation. sysbench ignores it on PostgreSQL and nowhere else.
        const UNIQUE_VIOLATION: &str = "23505";
        match &self.options.ignore_errors {
            Some(codes) if failure.class == ErrorClass::Lost => {
                codes.iter().any(|code| code.0 == "all" || LOST.contains(&code.0.as_str()))
            }
            Some(codes) => codes.iter().any(|code| code.0 == "all" || code.0 == failure.code),
            None => failure.class == ErrorClass::Retry || failure.code == UNIQUE_VIOLATION,
        }
    }
}

/// Returns sysbench's own options as `sysbench.opt` has them. There is no address and no password,
/// because a script needs none.
pub(crate) fn option_table(lua: &Lua, setup: &SysbenchSetup, threads: u32) -> mlua::Result<Table> {
    let options = &setup.options;
    let table = lua.create_table()?;
    table.set("threads", threads)?;
    table.set("num_threads", threads)?;
    table.set("time", options.time.0.as_secs())?;
    table.set("events", options.events.unwrap_or(0))?;
    table.set("warmup_time", options.warmup.0.as_secs())?;
    table.set("rate", options.rates.first().copied().unwrap_or(0))?;
    table.set("report_interval", 0)?;
    table.set("percentile", 95)?;
    table.set("histogram", false)?;
    table.set("verbosity", 3)?;
    table.set("debug", false)?;
    table.set("validate", options.validate)?;
    table.set("rand_type", options.values().get("rand_type").and_then(Value::as_str))?;
    table.set("rand_seed", setup.context.draws)?;
    table.set("rand_spec_iter", options.rand_spec_iter)?;
    table.set("rand_spec_pct", options.rand_spec_pct)?;
    table.set("rand_spec_res", options.rand_spec_res)?;
    table.set("rand_pareto_h", options.rand_pareto_h)?;
    table.set("rand_zipfian_exp", options.rand_zipfian_exp)?;
    table.set("db_driver", host::driver_name(setup))?;
    table.set("db_ps_mode", if setup.is_text_only() { "disable" } else { "auto" })?;
    table.set("db_debug", false)?;
    table.set("myisam_max_rows", 1_000_000)?;
    if let Some(engine) = &setup.context.database_server.capabilities.engine {
        table.set("mysql_table_engine", engine.as_str())?;
        if !options.options.contains_key("mysql_storage_engine") {
            table.set("mysql_storage_engine", engine.as_str())?;
        }
    }
    Ok(table)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnOption {
    pub name: String,
    pub description: String,
    /// Kind of the option: `BOOL`, `INT`, `SIZE`, `DOUBLE`, `STRING`, `LIST`, `FILE`.
    pub kind: String,
    pub default: Option<String>,
}

/// The commands and options that a script defines.
#[derive(Debug, Clone)]
pub(crate) struct Offers {
    /// Its options, sorted by name.
    pub(crate) options: Vec<OwnOption>,
    /// Its commands, each with whether all connections run it at the same time.
    pub(crate) commands: BTreeMap<String, bool>,
    pub(crate) script: SysbenchScript,
}

impl Offers {
    /// Loads the script of `setup` as if to run `command`, and returns its commands and options.
    pub(crate) fn of(setup: &Arc<SysbenchSetup>, command: &str) -> Result<Self, Mistake> {
        let options = &setup.options;
        let script = SysbenchScript::find(&options.script, options.allows_files())
            .map_err(|error| ("script", error.to_string()))?;
        let identity = StateIdentity { tid: 0, threads: 1, command, stream: Philox::new(0, 0) };
        let mistake = |key, problem: String| (key, format!("script {}: {problem}", script.given));
        let machine =
            Machine::loaded(setup, &script, identity).map_err(|problem| mistake("script", problem))?;
        machine.set_options(identity.threads).map_err(|problem| mistake("options", problem))?;
        let offered = machine.options_part().and_then(|(_, offers)| offers.call(()));
        let (list, commands): (Vec<Table>, BTreeMap<String, bool>) =
            offered.map_err(|error| mistake("script", error_text(&error)))?;
        let option = |entry: Table| -> mlua::Result<OwnOption> {
            Ok(OwnOption {
                name: entry.get(1)?,
                description: entry.get(2)?,
                kind: entry.get(3)?,
                default: entry.get(4)?,
            })
        };
        let options = list.into_iter().map(option).collect::<mlua::Result<Vec<_>>>();
        let options = options.map_err(|error| ("script", error_text(&error)))?;
        Ok(Self { options, commands, script })
    }
}
