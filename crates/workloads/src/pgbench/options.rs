//! Options of pgbench's scripts: which scripts run, on which data, and on how many connections.
//! This module also answers what a plan asks about them: mistakes, needs, steps and a forecast.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_model::{Cold, DataMode, PlanDuration, named, with_defaults};
use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources;
use super::steps::ACCOUNT_BYTES;
use super::variables::{invalid_name, is_name};
use crate::checks::{self, SqlCheck};
use crate::oltp::options;
use crate::oltp::options::{OltpArrivals, OltpOptions};
use crate::options::{ConcurrencyLevels, concurrency_levels};
use crate::options::{first_problem, schema_problem};
use crate::pgbench::sources::ACCOUNTS;
use crate::settle::Settle;
use crate::step::{StepOptions, forecast, outlines};

named! {
    /// How statements are sent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum QueryMode {
        /// As text, variables filled in.
        Simple = "simple",
        /// Parsed each time, variables as parameters.
        Extended = "extended",
        /// Prepared once for each connection.
        Prepared = "prepared",
    }
}

named! {
    /// How the partitions of `pgbench_accounts` divide its rows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum PartitionMethod {
        Range = "range",
        Hash = "hash",
    }
}

/// What is vacuumed before a run; the history is emptied with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vacuum {
    None,
    /// Branches and tellers.
    Small,
    /// All four tables.
    All,
}

with_defaults! {
    /// `[workload.pgbench]`: scripts of pgbench, its own and yours. A step for each number of
    /// connections and each rate.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename = "Pgbench", deny_unknown_fields, default)]
    pub struct PgbenchOptions {
        /// Files, or `tpcb-like`, `simple-update` and `select-only`; with `@N` a script is drawn N
        /// times as often as with `@1`.
        pub files: Vec<String> = vec!["tpcb-like".to_owned()],
        /// Size of the data, in units of 100,000 accounts.
        #[schemars(range(min = 1, max = 20_000_000), extend("x-size" = true))]
        pub scale: u32 = 1,
        /// How the tables are made, a letter for each part: d(rop), t(ables), g(enerate) or G (by
        /// the server), v(acuum), p(rimary keys), f(oreign keys). Nothing is made when it is empty.
        pub init_steps: String = "dtgvp".to_owned(),
        #[schemars(range(min = 10, max = 100))]
        pub fillfactor: u32 = 100,
        /// Partitions of the accounts; 0: one table. Needs a server with declarative partitions.
        #[schemars(range(min = 0, max = 2_147_483_647))]
        pub partitions: u32 = 0,
        pub partition_method: PartitionMethod = PartitionMethod::Range,
        /// Tables are not written to the write-ahead log. Needs a server that has such tables.
        pub unlogged_tables: bool = false,
        /// Variables of scripts.
        pub define: BTreeMap<String, serde_json::Value> = BTreeMap::new(),
        pub protocol: QueryMode = QueryMode::Simple,
        /// Numbers of connections, in the order in which they run.
        #[serde(deserialize_with = "concurrency_levels")]
        #[schemars(with = "ConcurrencyLevels", extend("x-asked" = true))]
        pub connections: Vec<u32> = vec![1],
        /// Length of each step, without its warm-up.
        #[schemars(extend("x-step-time" = true, "x-asked" = true))]
        pub time: PlanDuration = PlanDuration::from_secs(10),
        /// Transactions of each connection, in place of `time`; the warm-up is left out then.
        #[schemars(range(min = 1, max = 4_294_967_295_u64))]
        pub transactions: Option<u64> = None,
        /// Warm-up before the measurement begins, in whole seconds.
        #[schemars(extend("x-whole-seconds" = true))]
        pub warmup: PlanDuration = PlanDuration::from_secs(0),
        /// When a connection begins its next transaction. pgbench's `--rate` is `poisson`.
        pub arrivals: OltpArrivals = OltpArrivals::Closed,
        /// Transactions per second of all connections together, for `arrivals = "constant"` and
        /// `"poisson"`: one step per rate.
        #[schemars(inner(range(min = 1, max = 100_000_000)), extend("uniqueItems" = true))]
        pub rates: Vec<u32> = Vec::new(),
        /// With a rate: how many transactions may wait for a connection. Beyond that number, the oldest are dropped and counted.
        pub max_backlog: Option<u64> = None,
        /// With a rate: a transaction that is late by this much before it begins is given up and
        /// counted.
        pub latency_limit: Option<PlanDuration> = None,
        /// Each transaction has a connection of its own.
        pub connect: bool = false,
        /// How many times a transaction is tried if it meets a deadlock or a serialization failure.
        #[schemars(range(min = 1))]
        pub max_tries: u32 = 1,
        pub vacuum: Vacuum = Vacuum::Small,
        /// Statements that are sent before and after steps, and what they must answer.
        pub checks: Vec<SqlCheck> = Vec::new(),
        /// The tables are there and belong to others: nothing is made and nothing dropped.
        pub use_existing: bool = false,
        /// How the server is brought to rest after the load. When left out, the run waits until the server's state is quiet.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle: Option<Settle> = None,
        /// The data with which a measured step begins: `"preserve"`, `"restart"`, `"reset"`, `"restore"`,
        /// `"restore-each-step"`.
        pub data: DataMode = DataMode::Preserve,
        /// Steps that begin with a server that has just been started and with empty caches: `true`,
        /// or a list of steps. Needs root.
        pub cold: Cold = Cold::All(false),
        /// A step that is not done after this many times its length is cut off and recorded as
        /// failed.
        #[schemars(range(min = 1.0))]
        pub time_cap: f64 = 4.0,
    }
}

impl PgbenchOptions {
    /// Returns the options that mean the same in the workload `oltp`, as that workload's options:
    /// sweeps, times and arrivals. The others have their defaults.
    pub(crate) fn shared(&self) -> OltpOptions {
        OltpOptions {
            connections: self.connections.clone(),
            time: self.time,
            warmup: if self.transactions.is_some() { PlanDuration(Duration::ZERO) } else { self.warmup },
            arrivals: self.arrivals,
            rates: self.rates.clone(),
            max_backlog: self.max_backlog,
            time_cap: self.time_cap,
            ..OltpOptions::default()
        }
    }

    /// Returns the length of a step with its warm-up. It is `None` where steps end with their
    /// transactions.
    pub(crate) fn length(&self) -> Option<Duration> {
        self.transactions.is_none().then(|| self.warmup.0 + self.time.0)
    }

    /// Returns whether tables are made.
    pub(crate) fn has_load(&self) -> bool {
        !self.use_existing && !self.init_steps.is_empty()
    }

    /// Returns the number of accounts that the load makes.
    pub(crate) fn accounts(&self) -> u64 {
        ACCOUNTS * u64::from(self.scale)
    }

    /// Reads the scripts with their weights. `commit` is the word that ends a transaction in
    /// pgbench's own scripts.
    pub(crate) fn scripts(&self, commit: &str) -> Result<sources::Scripts, String> {
        sources::Scripts::read(&self.files, self.define.keys().map(String::as_str), commit)
    }
}

/// Letters of `init_steps`.
const INIT_STEPS: &str = "dtgGvpf";

impl WorkloadOptions for PgbenchOptions {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        values_problem(self)
            .or_else(|| checks::problem(&self.checks))
            .or_else(|| self.scripts("END").err().map(|problem| ("files", problem)))
            // `false`: no step needs the tables as the step before left them, so each may reload.
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        // `settling` is `settle`, or the defaults where the plan has no `settle`.
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.connections.iter().copied().max().unwrap_or(1),
            data_bytes: self.has_load().then(|| self.accounts() * ACCOUNT_BYTES),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != QueryMode::Simple,
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
pub(crate) fn values_problem(options: &PgbenchOptions) -> Option<Mistake> {
    schema_problem(options)
        .or_else(|| problem_beyond_schema(options))
        .or_else(|| options::rates_problem(&options.shared()))
}

fn problem_beyond_schema(options: &PgbenchOptions) -> Option<Mistake> {
    if let Some(letter) = options.init_steps.chars().find(|letter| !INIT_STEPS.contains(*letter)) {
        let message = format!("init_steps holds {letter}, but must be letters of {INIT_STEPS}");
        return Some(("init_steps", message));
    }
    if let Some(name) = options.define.keys().find(|name| !is_name(name)) {
        return Some(("define", format!("define has an {}", invalid_name(name))));
    }
    let is_limit_without_rate = options.rates.is_empty() && options.latency_limit.is_some();
    let no_rate = "latency_limit is for a step with a rate; in a closed loop nothing is late";
    first_problem([
        (options.files.is_empty(), "files", "files is empty: name a script, e.g. [\"tpcb-like\"]"),
        (is_limit_without_rate, "latency_limit", no_rate),
    ])
}
