//! Options of the Insert Benchmark, with the original's values as defaults. This module also
//! answers what a plan asks about them: mistakes, warnings, needs, steps and a forecast.

use dbdyno_model::{Cold, DataMode, PlanDuration, with_defaults};
use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};
use dbdyno_products::{EMBEDDED, VariantKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::options::{Protocol, Verify, first_problem, schema_problem, table_options_problem};
use crate::settle::{Settle, SettleWait, both_problem};
use crate::step::{StepOptions, forecast, outlines};

with_defaults! {
    /// `[workload.insert-benchmark]`. Every default is the original's, except where a field says
    /// otherwise.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename = "InsertBenchmark", deny_unknown_fields, default)]
    pub struct InsertBenchmarkOptions {
        /// Clients; each has its own table and its own insert, delete and query connections.
        #[schemars(range(min = 1, max = 4_096), extend("x-asked" = true))]
        pub clients: u32 = 1,
        /// Rows that l.i0 loads into each table.
        #[schemars(range(min = 1, max = 1_125_899_906_842_624_u64), extend("x-size" = true))]
        pub load_rows: u64 = 10_000_000,
        /// Rows that l.i1 (80 %) and l.i2 (20 %) insert, and delete, in each table.
        #[schemars(range(min = 0, max = 1_125_899_906_842_624_u64), extend("x-size" = true))]
        pub write_rows: u64 = 20_000_000,
        /// Length of each read-write step.
        #[schemars(extend("x-step-time" = true))]
        pub read_write_time: PlanDuration = PlanDuration::from_secs(1800),
        /// Background inserts per second and client of the read-write steps; each rate gives a qr
        /// and a qp step.
        #[schemars(length(min = 1), inner(range(min = 1)), extend("uniqueItems" = true))]
        pub rates: Vec<u32> = vec![100, 500, 1000],
        pub rows_per_commit: RowsPerCommit = RowsPerCommit::default(),
        /// Delete as many rows as are inserted from l.i1 on, so that tables keep their size.
        pub deletes: bool = true,
        /// DELETE statements between two look-ups of the lowest id; 0 = only at a step's start.
        pub resync_rounds: u32 = 1000,
        /// How the background writers of read-write steps are spread over time. Even by default;
        /// the original sends the statements of each second in one burst.
        pub arrivals: WriterArrivals = WriterArrivals::Even,
        /// A read-write step that is not done after this many times `read_write_time` is cut off
        /// and recorded as failed. The original goes on without a limit.
        #[schemars(range(min = 1.0))]
        pub time_cap: f64 = 4.0,
        /// Query connections of each client in read-write steps.
        #[schemars(range(min = 1, max = 1_024))]
        pub query_connections: u32 = 1,
        /// LIMIT of range queries.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub rows_per_query: u32 = 10,
        /// Ids in the list of a point query.
        #[schemars(range(min = 1, max = 10_000))]
        pub points_per_query: u32 = 10,
        /// Point queries between two look-ups of the highest id.
        #[schemars(range(min = 1))]
        pub max_id_every: u32 = 100,
        #[schemars(range(min = 1, max = 2_147_483_647))]
        pub cashregisters: u32 = 1000,
        #[schemars(range(min = 1, max = 2_147_483_647))]
        pub products: u32 = 10_000,
        #[schemars(range(min = 1, max = 2_147_483_647))]
        pub customers: u32 = 100_000,
        #[schemars(range(min = 1, max = 2_147_483_647))]
        pub max_price: u32 = 500,
        /// Lowest and highest length of column `data`.
        // The column is a varchar of 4000 characters.
        #[schemars(range(min = 0, max = 4_000))]
        pub data_length_min: u32 = 10,
        #[schemars(range(min = 0, max = 4_000))]
        pub data_length_max: u32 = 20,
        /// How much of three quarters of `data` is random, in percent; the rest is the letter a.
        #[schemars(range(min = 0, max = 100))]
        pub data_random_percent: u32 = 50,
        /// Secondary indexes, 1 to 3; range queries need one.
        #[schemars(range(min = 1, max = 3))]
        pub secondary_indexes: u32 = 3,
        /// Text after the closing bracket of CREATE TABLE, e.g. a row format, a fill factor, an
        /// access method.
        pub create_table_options: String = String::new(),
        /// How statements are sent. `auto` is the original's way: text, but queries to PostgreSQL
        /// prepared; SQLite, which the original does not know, gets all of them prepared.
        pub protocol: Protocol = Protocol::Auto,
        /// Where `dateandtime` comes from. Addressed by default, so that every variant gets the
        /// same bytes; the original takes the wall clock.
        pub clock: Clock = Clock::Addressed,
        /// How the server is brought to rest between l.i2 and the first read-write step. By its
        /// state by default; the original waits for a fixed time.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle: Option<Settle> = None,
        /// Short form of `settle = { by = "wait", wait = ... }`: `"original"` or a duration,
        /// counted from the start of cleanup.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle_wait: Option<SettleWait> = None,
        /// When row counts and column sums are compared with what must be there. The original never
        /// does.
        pub verify: Verify = Verify::EachStep,
        /// The data with which a measured step begins: `"preserve"`, `"restart"`, `"restore"`.
        pub data: DataMode = DataMode::Preserve,
        /// Steps that begin with a server that has just been started and with empty caches: `true`,
        /// or a list of steps. Needs root.
        pub cold: Cold = Cold::All(false),
        /// Share of a background rate that counts as kept.
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
        pub sla_share: f64 = 0.95,
        /// The first id that tables give out; above 2147483647 it proves that ids of more than 31
        /// bits work.
        // A bigint key must not run out in the middle of a run.
        #[schemars(range(min = 1, max = 4_611_686_018_427_387_904_u64))]
        pub first_id: u64 = 1,
    }
}

with_defaults! {
    /// Rows in one INSERT, which is one transaction.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct RowsPerCommit {
        /// l.i0 and l.x
        #[schemars(range(min = 1, max = 100_000))]
        pub load: u32 = 100,
        /// l.i1
        #[schemars(range(min = 1, max = 100_000))]
        pub write_1: u32 = 50,
        /// l.i2
        #[schemars(range(min = 1, max = 100_000))]
        pub write_2: u32 = 5,
        /// Background writes of the read-write steps.
        #[schemars(range(min = 1, max = 100_000))]
        pub read_write: u32 = 50,
    }
}

/// How an open-loop stream is spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriterArrivals {
    /// One statement at a time, at equal distances; a late stream catches up.
    Even,
    /// One statement at a time, at random times that do not depend on each other; a late stream
    /// catches up.
    Poisson,
    /// All statements of a second at its start, lost time not made up: nearest to the original's
    /// way.
    Burst,
}

/// Where column `dateandtime` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// A function of client and operation number: one second every 10,000 rows of a client.
    Addressed,
    /// The client's wall clock, whole seconds, one value per statement.
    Wall,
}

impl InsertBenchmarkOptions {
    /// Steps that only make the data: `l.i0` and `l.x`.
    pub const LOAD_STEPS: usize = 2;

    /// Returns the rows that each client writes in l.i1 and in l.i2: 80 % and 20 % of `write_rows`,
    /// rounded, at least 1.
    pub fn write_split(&self) -> (u64, u64) {
        // No tie is possible, because neither 8 nor 2 times a whole number ends in 5.
        let tenths = |share: u64| {
            let product = u128::from(self.write_rows) * u128::from(share);
            u64::try_from((product + 5) / 10).unwrap_or(u64::MAX).max(1)
        };
        (tenths(8), tenths(2))
    }

    /// Returns the rows that l.i0 loads into all tables together.
    pub fn loaded_rows(&self) -> u64 {
        self.load_rows.saturating_mul(self.clients.into())
    }
}

/// Bytes of a row with its indexes in the steady state, from published figures for InnoDB.
const ROW_BYTES: u64 = 225;

impl WorkloadOptions for InsertBenchmarkOptions {
    fn check(&self, plan: &Plan) -> Option<Mistake> {
        schema_problem(self)
            .or_else(|| data_length_problem(self))
            .or_else(|| table_options_problem(&self.create_table_options))
            .or_else(|| data_problem(self, true))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| first_id_problem(self, plan))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let commit = self.rows_per_commit.read_write;
        let lowered: Vec<String> =
            self.rates.iter().filter(|rate| **rate < commit).map(ToString::to_string).collect();
        let rates = lowered.join(", ");
        let warning = format!(
            "background writes at {rates} rows per second commit that many rows at once, not {commit}"
        );
        if lowered.is_empty() { Vec::new() } else { vec![warning] }
    }

    fn needs(&self) -> Needs {
        let queries = if self.rates.is_empty() { 0 } else { self.query_connections };
        Needs {
            connections: self.clients.saturating_mul(1 + u32::from(self.deletes) + queries),
            data_bytes: Some(self.loaded_rows().saturating_mul(ROW_BYTES)),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol == Protocol::Prepared,
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

fn data_length_problem(benchmark: &InsertBenchmarkOptions) -> Option<Mistake> {
    let (lowest, highest) = (benchmark.data_length_min, benchmark.data_length_max);
    let reversed = format!("data_length_min is {lowest}, which is more than data_length_max ({highest})");
    first_problem([(lowest > highest, "data_length_min", &reversed)])
}

/// Refuses a first id above 1 for SQLite, because the database gives out the ids, and SQLite's
/// begin with 1.
fn first_id_problem(benchmark: &InsertBenchmarkOptions, plan: &Plan) -> Option<Mistake> {
    let first_id = benchmark.first_id;
    let embedded = plan.variants.iter().find(|variant| VariantKind::of(variant).is_embedded())?;
    let message = format!(
        "first_id is {first_id}, but variant `{}` is {}, where ids begin with 1: leave it out",
        embedded.name, EMBEDDED.products[0]
    );
    first_problem([(first_id > 1, "first_id", &message)])
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::WorkloadOptions;

    use super::*;
    use crate::step::StepOptions;

    #[test]
    fn a_rate_below_the_rows_of_a_commit_is_a_warning() {
        let found = InsertBenchmarkOptions { rates: vec![10, 20, 100], ..InsertBenchmarkOptions::default() }
            .warnings();
        insta::assert_snapshot!(found.join("\n"), @"background writes at 10, 20 rows per second commit that many rows at once, not 50");
    }

    #[test]
    fn the_ten_steps_come_in_the_original_order() {
        let names = InsertBenchmarkOptions::default().step_names().join(" ");
        assert_eq!(names, "l.i0 l.x l.i1 l.i2 qr100 qp100 qr500 qp500 qr1000 qp1000");
    }

    #[test]
    fn write_rows_split_into_four_fifths_and_a_fifth_and_never_into_none() {
        let split = |write_rows| {
            InsertBenchmarkOptions { write_rows, ..InsertBenchmarkOptions::default() }.write_split()
        };
        assert_eq!(split(20_000_000), (16_000_000, 4_000_000));
        assert_eq!(split(4), (3, 1));
        assert_eq!(split(3), (2, 1));
        assert_eq!(split(1), (1, 1));
        assert_eq!(split(0), (1, 1));
    }

    #[test]
    fn the_settle_pause_is_the_originals() {
        let settle = |clients, load_rows| {
            let benchmark =
                InsertBenchmarkOptions { clients, load_rows, ..InsertBenchmarkOptions::default() };
            benchmark.original_wait().as_secs()
        };
        assert_eq!(settle(4, 8_000_000), 92);
        assert_eq!(settle(1, 200_000_000), 260);
        assert_eq!(settle(4, 200_000_000), 860);
        assert_eq!(settle(12, 300_000_000), 1200);
        assert_eq!(settle(1, 499_999), 60);
        assert_eq!(settle(1, 500_000), 61);
    }
}
