//! Options of the classic OLTP workload, with the original's names and values.

use std::time::Duration;

use dbdyno_model::{Cold, DataMode, PlanDuration, with_defaults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::concurrency::{ConcurrencyLevels, concurrency_levels};
use crate::options::{Protocol, Verify};
use crate::settle::Settle;

pub use crate::oltp::option_words::{
    Distribution, ErrorCode, IdType, LoadMethod, OltpArrivals, OltpProfile, OltpTest, Think,
};

with_defaults! {
    /// `[workload.oltp]`: the classic OLTP tests on tables `sbtest1`, `sbtest2`, ... Options have
    /// the original's names and values, except where a field says otherwise. Defaults are those of
    /// the profile.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename = "Oltp", deny_unknown_fields, default)]
    pub struct OltpOptions {
        /// Which version of the original the defaults follow. `sysbench-0.5` has
        /// `one_table = true`, `protocol = "text"` and `distribution = "special-whole"`, and that
        /// version's tables and texts.
        pub profile: OltpProfile = OltpProfile::Sysbench1,
        /// Tests in the order in which they run; each gives a step for every number of connections
        /// and every rate.
        #[schemars(extend("uniqueItems" = true, "x-asked" = true))]
        pub tests: Vec<OltpTest> = vec![OltpTest::PointSelect, OltpTest::ReadOnly, OltpTest::ReadWrite],
        #[schemars(range(min = 1, max = 10_000))]
        pub tables: u32 = 1,
        /// Rows of each table.
        #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-size" = true))]
        pub table_size: u64 = 10_000,
        /// Numbers of connections, in the order in which they run.
        #[serde(deserialize_with = "concurrency_levels")]
        #[schemars(with = "ConcurrencyLevels", extend("x-asked" = true))]
        pub connections: Vec<u32> = vec![1],
        /// Length of each step, without its warm-up.
        #[schemars(extend("x-step-time" = true, "x-asked" = true))]
        pub time: PlanDuration = PlanDuration::from_secs(10),
        /// Operations of each step, all connections together, in place of `time`; the warm-up is
        /// left out then.
        #[schemars(range(min = 1))]
        pub events: Option<u64> = None,
        /// Load before the clock of a step counts, in whole seconds.
        #[schemars(extend("x-whole-seconds" = true))]
        pub warmup: PlanDuration = PlanDuration::from_secs(0),
        /// When a connection sends its next operation.
        pub arrivals: OltpArrivals = OltpArrivals::Closed,
        /// Operations a second of all connections together, for `arrivals = "constant"` and
        /// `"poisson"`: one step per rate.
        #[schemars(inner(range(min = 1, max = 100_000_000)), extend("uniqueItems" = true))]
        pub rates: Vec<u32> = Vec::new(),
        /// Arrivals of a paced step that may wait for a connection; the oldest beyond are given up
        /// and counted. Without a limit when left out.
        pub max_backlog: Option<u64> = None,
        /// Pause of a closed loop between an answer and the next operation. The original has none.
        pub think_time: PlanDuration = PlanDuration::from_secs(0),
        /// How that pause is spread.
        pub think: Think = Think::Fixed,
        /// Each connection is closed and opened again after so many operations, its statements
        /// prepared again, within the time of the last of them; 0 = never.
        pub reconnect: u64 = 0,
        /// Errors after which an operation begins again; any other error fails it. When left out:
        /// deadlocks, lock waits and the like, and an INSERT that finds its row put back by another
        /// connection.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ignore_errors: Option<Vec<ErrorCode>> = None,
        /// Rows that a range query spans.
        #[schemars(range(min = 1, max = 2_147_483_647))]
        pub range_size: u32 = 100,
        /// Point selects of a transaction; the test point-select always sends one.
        #[schemars(range(min = 0, max = 10_000))]
        pub point_selects: u32 = 10,
        #[schemars(range(min = 0, max = 10_000))]
        pub simple_ranges: u32 = 1,
        #[schemars(range(min = 0, max = 10_000))]
        pub sum_ranges: u32 = 1,
        #[schemars(range(min = 0, max = 10_000))]
        pub order_ranges: u32 = 1,
        #[schemars(range(min = 0, max = 10_000))]
        pub distinct_ranges: u32 = 1,
        /// Ranges that are counted, `SELECT count(c)`, after the others. Of sysbench.lua; version
        /// 1.1 has none.
        #[schemars(range(min = 0, max = 10_000))]
        pub count_ranges: u32 = 0,
        /// Whether transactions hold range queries at all.
        pub range_selects: bool = true,
        #[schemars(range(min = 0, max = 10_000))]
        pub index_updates: u32 = 1,
        #[schemars(range(min = 0, max = 10_000))]
        pub non_index_updates: u32 = 1,
        /// Pairs of a DELETE and an INSERT of the same id.
        #[schemars(range(min = 0, max = 10_000))]
        pub delete_inserts: u32 = 1,
        /// No BEGIN and COMMIT around the statements of a transaction.
        pub skip_trx: bool = false,
        /// All statements of a transaction use one table, as in the original before 1.0; else each
        /// group draws its own.
        pub one_table: bool = false,
        /// Ids are given out by the server; by the client when off.
        pub auto_inc: bool = true,
        /// A plain index on `id` in place of the primary key.
        pub secondary: bool = false,
        /// An index on `k`, built after the load in a step of its own.
        pub create_secondary: bool = true,
        /// The index on `k` is there before the load, which then keeps it up; there is no step
        /// `index`.
        pub index_before_load: bool = false,
        /// Type of `id` and `k`.
        pub id: IdType = IdType::Integer,
        /// The least id of each table; above 2147483647 it proves that ids of more than 31 bits
        /// work.
        #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
        pub first_id: u64 = 1,
        /// Text after the closing bracket of CREATE TABLE.
        pub create_table_options: String = String::new(),
        /// Connections that load. Each has an equal part of all rows; where tables are shared
        /// between them, the client gives the ids. Where rows stay in the order in which they came
        /// (PostgreSQL, MyISAM, Aria), each connection has whole tables. A database with one writer
        /// at a time is loaded by one.
        #[schemars(range(min = 1, max = 1_024))]
        pub load_connections: u32 = 4,
        /// How rows travel to the tables.
        pub load_method: LoadMethod = LoadMethod::Insert,
        /// The tables are there and belong to others: nothing is made, loaded or dropped, and the
        /// tests run on them.
        pub use_existing: bool = false,
        /// How statements travel; `auto` is prepared, but the test insert as text. The original's
        /// way but for its load, which is text.
        pub protocol: Protocol = Protocol::Auto,
        /// How ids, and `k` of new rows, are drawn; `k` of loaded rows is always uniform.
        pub distribution: Distribution = Distribution::Uniform,
        /// `special` and `gaussian`: uniform draws of which the mean is taken.
        #[schemars(range(min = 1, max = 1_000))]
        pub special_iterations: u32 = 12,
        /// `special`: width of the middle band in percent of the table.
        #[schemars(range(min = 1, max = 100))]
        pub special_percent: u32 = 1,
        /// `special`: share of the draws that fall into the middle band, in percent.
        #[schemars(range(min = 0, max = 99))]
        pub special_share: u32 = 75,
        /// `pareto`: this share of the ids gets all but this share of the draws.
        #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
        pub pareto_h: f64 = 0.2,
        #[schemars(range(min = 0.0, max = 100.0))]
        pub zipfian_exponent: f64 = 0.8,
        /// `zipfian`: ranks are spread over the ids by a fixed permutation; else rank 1 is id 1.
        pub zipfian_scrambled: bool = false,
        /// How the server is brought to rest between load and first test; until its state is quiet
        /// when left out. The original does not: a server that writes at a checkpoint then begins
        /// the tests at rest, and one that writes later does not.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle: Option<Settle> = None,
        /// Short form of `settle = { by = "wait", wait = ... }`, counted from the start of cleanup.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle_wait: Option<PlanDuration> = None,
        /// When the contents of tables are compared with what must be there. The original never
        /// does.
        pub verify: Verify = Verify::EachStep,
        /// What a measured step finds: `"preserve"`, `"restart"`, `"reset"`, `"restore"`,
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

impl OltpOptions {
    /// Returns the length of each step with its warm-up. It is `None` where steps end with their
    /// operations.
    pub fn length(&self) -> Option<Duration> {
        self.events.is_none().then(|| self.warmup_length() + self.time.0)
    }

    /// Returns how long each step runs before its clock counts.
    pub fn warmup_length(&self) -> Duration {
        if self.events.is_some() { Duration::ZERO } else { self.warmup.0 }
    }

    /// Returns the number of connections and rate over all connections, level by level.
    pub(crate) fn levels(&self) -> Vec<(u32, Option<u32>)> {
        let rates: Vec<Option<u32>> = match self.arrivals {
            OltpArrivals::Closed => vec![None],
            OltpArrivals::Constant | OltpArrivals::Poisson => self.rates.iter().copied().map(Some).collect(),
        };
        let levels = self.connections.iter().flat_map(|&count| rates.iter().map(move |&rate| (count, rate)));
        levels.collect()
    }

    /// Returns whether the statements of `test` are prepared. The original sends inserts as text.
    pub(crate) fn prepares(&self, test: OltpTest) -> bool {
        self.protocol.prepares(test != OltpTest::Insert)
    }

    /// Returns the connections of the step that has the most.
    pub fn most_connections(&self) -> u32 {
        let tests = self.connections.iter().copied().max().unwrap_or(0);
        tests.max(if self.use_existing { 0 } else { self.load_connections })
    }

    /// Returns the highest id of each table after the load.
    pub const fn last_id(&self) -> u64 {
        self.first_id.saturating_add(self.table_size.saturating_sub(1))
    }

    /// Returns the rows of all tables together after the load.
    pub fn loaded_rows(&self) -> u64 {
        self.table_size.saturating_mul(self.tables.into())
    }
}

/// Returns the warning about steps that write into tables that others made.
pub(crate) fn existing_warning(writes: Vec<String>) -> Vec<String> {
    let names = writes.join(", ");
    let warning = format!("{names} will change rows of tables that are not dbdyno's (use_existing)");
    if writes.is_empty() { Vec::new() } else { vec![warning] }
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::WorkloadOptions;

    use super::*;

    #[test]
    fn every_number_of_connections_and_every_rate_gives_a_step_of_its_own_name() {
        let options = OltpOptions {
            tests: vec![OltpTest::PointSelect, OltpTest::ReadWrite],
            connections: vec![1, 16],
            ..OltpOptions::default()
        };
        let names = options.step_names().join(" ");
        assert_eq!(names, "load index point-select.c1 point-select.c16 read-write.c1 read-write.c16");
        let paced = OltpOptions { arrivals: OltpArrivals::Constant, rates: vec![100, 5000], ..options };
        let names = OltpOptions { connections: vec![4], create_secondary: false, ..paced }.step_names().join(" ");
        assert_eq!(
            names,
            "load point-select.c4.r100 point-select.c4.r5000 read-write.c4.r100 read-write.c4.r5000"
        );
    }

    #[test]
    fn the_first_measured_step_comes_after_those_that_there_are_of_load_and_index() {
        let first = |options: OltpOptions| options.step_names()[options.load_steps()].clone();
        let default = OltpOptions::default;
        assert_eq!(first(default()), "point-select.c1");
        assert_eq!(first(OltpOptions { create_secondary: false, ..default() }), "point-select.c1");
        assert_eq!(first(OltpOptions { index_before_load: true, ..default() }), "point-select.c1");
        assert_eq!(first(OltpOptions { use_existing: true, ..default() }), "point-select.c1");
    }
}
