//! Options of the classic OLTP tests. This module also answers what a plan asks about them:
//! mistakes, warnings, needs, steps and a forecast.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;

use dbdyno_model::{Cold, DataMode, Given, PlanDuration, named, scalar, with_defaults};
use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::oltp::operation::{prepared, statement_slots};
use crate::oltp::steps::ROW_BYTES;
use crate::options::{ConcurrencyLevels, concurrency_levels};
use crate::options::{Protocol, Verify, first_problem, schema_problem, table_options_problem};
use crate::settle::{Settle, both_problem};
use crate::step::{StepOptions, forecast, outlines};

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
        /// Warm-up before a step's measurement begins, in whole seconds.
        #[schemars(extend("x-whole-seconds" = true))]
        pub warmup: PlanDuration = PlanDuration::from_secs(0),
        /// When a connection sends its next operation.
        pub arrivals: OltpArrivals = OltpArrivals::Closed,
        /// Operations per second of all connections together, for `arrivals = "constant"` and
        /// `"poisson"`: one step per rate.
        #[schemars(inner(range(min = 1, max = 100_000_000)), extend("uniqueItems" = true))]
        pub rates: Vec<u32> = Vec::new(),
        /// Arrivals that may wait for a connection; the oldest beyond are given up
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
        /// All statements of a transaction use one table, as in the original before 1.0; otherwise
        /// each group draws its own.
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
        /// The lowest id of each table; above 2147483647 it proves that ids of more than 31 bits
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
        /// How statements are sent. `auto` prepares all but those of the test insert, as the
        /// original does, except that the original's load is text.
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
        /// `zipfian`: ranks are spread over the ids by a fixed permutation; otherwise rank 1 is id
        /// 1.
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

    /// Returns the concurrency levels. Each is a number of connections and, where there is one, a
    /// rate over all of them.
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

/// Which version of the original the defaults follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OltpProfile {
    /// Versions 1.0 and 1.1.
    #[serde(rename = "sysbench-1")]
    Sysbench1,
    /// Version 0.5, as the reports of 2012 used it.
    #[serde(rename = "sysbench-0.5")]
    Sysbench05,
}

/// Type of the columns `id` and `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdType {
    /// 32 bits, as in the original.
    Integer,
    /// 64 bits: tables of more than 2,147,483,647 rows.
    Bigint,
}

/// How rows travel to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadMethod {
    /// Multi-row INSERTs of up to 512 KiB, as in the original; prepared, unless `protocol` is
    /// `text`.
    Insert,
    /// The database's own way for bulk: LOAD DATA LOCAL INFILE, COPY FROM STDIN, or prepared
    /// INSERTs in long transactions; 4 MiB of text at a time, and no file anywhere.
    Stream,
}

named! {
    /// One of the eight classic tests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum OltpTest {
        /// One row by its id.
        PointSelect = "point-select",
        /// Point selects and four kinds of ranges in a transaction.
        ReadOnly = "read-only",
        /// The reads, then the writes, in one transaction.
        ReadWrite = "read-write",
        /// Two updates, a delete and an insert in a transaction.
        WriteOnly = "write-only",
        /// `k = k + 1` of one row.
        UpdateIndex = "update-index",
        /// A new `c` for one row.
        #[serde(alias = "update-nonindex")]
        UpdateNonIndex = "update-non-index",
        /// One new row.
        Insert = "insert",
        /// One row by its id; the table empties.
        Delete = "delete",
    }
}

named! {
    /// When a connection sends its next operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum OltpArrivals {
        /// When the one before is answered.
        Closed = "closed",
        /// At equal distances, whatever the server does.
        Constant = "constant",
        /// After random gaps, as independent users come, whatever the server does.
        Poisson = "poisson",
    }
}

/// How the pauses of a closed loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Think {
    /// All of the same length.
    Fixed,
    /// Of random length; `think_time` is the mean.
    Exponential,
}

/// How ids are drawn from 1 to the table's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    Uniform,
    /// Mostly from a band in the middle, as version 1.0 draws: from the upper three quarters of the
    /// band.
    Special,
    /// Mostly from a band in the middle, as versions before 1.0 draw: from the whole band.
    SpecialWhole,
    /// The mean of some uniform draws.
    Gaussian,
    /// Few small ids get most of the draws.
    Pareto,
    /// The id's rank is its number: id 1 is the most frequent.
    Zipfian,
}

impl OltpTest {
    /// Returns whether the test changes rows.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::PointSelect | Self::ReadOnly)
    }

    /// Returns whether its statements are between BEGIN and COMMIT.
    pub const fn is_transaction(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite | Self::WriteOnly)
    }
}

/// Code of an error that a server answers with: a number of MySQL or MariaDB, an SQLSTATE of
/// PostgreSQL, or `all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ErrorCode(pub String);

impl JsonSchema for ErrorCode {
    fn schema_name() -> Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Code of an error: a number such as 1213, an SQLSTATE such as \"40P01\", or \"all\".",
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 65535 }, { "type": "string", "pattern": "^[0-9A-Za-z_]+$" }]
        })
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the code of an error, such as 1213 or \"40P01\", or \"all\"";
        scalar(deserializer, expected, |given| match given {
            Given::Number(number) if number.parse::<u16>().is_ok() => Ok(Self(number)),
            Given::Number(number) => {
                Err(format!("{number} is not an error number: error numbers are from 1 to 65535"))
            }
            Given::Text(text) => {
                let is_code =
                    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                is_code.then(|| Self(text.to_owned())).ok_or_else(|| format!("`{text}` is not an error code"))
            }
        })
    }
}

/// Highest id of a 32-bit column, which `id` is unless the plan says otherwise.
const MOST_ID: u64 = i32::MAX as u64;
/// Highest id of a 64-bit column. No one has disks for more rows, and sums of millions of such ids
/// fit into 64 bits.
const MOST_BIG_ID: u64 = 1_000_000_000_000;

impl WorkloadOptions for OltpOptions {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        tables_problem(self)
            .or_else(|| schema_problem(self))
            .or_else(|| statements_problem(self))
            .or_else(|| rates_problem(self))
            .or_else(|| distribution_problem(self))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let writes = self.tests.iter().filter(|test| test.writes() && self.use_existing);
        existing_warning(writes.map(|test| test.name().to_owned()).collect())
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.most_connections(),
            data_bytes: Some(self.loaded_rows().saturating_mul(ROW_BYTES)),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != Protocol::Text,
            existing_tables: self.use_existing,
            row_streams: self.load_method == LoadMethod::Stream && !self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        let most = self.connections.iter().copied().max().unwrap_or(0);
        let tests = self.tests.iter().filter(|test| self.prepares(**test));
        let of_test =
            |test: &OltpTest| prepared(&statement_slots(*test, self, false), self.tables, with_begin);
        u64::from(most) * tests.map(of_test).max().unwrap_or(0)
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

/// Refuses a test whose operations have no statement. Its rate would be that of the client's empty
/// loop.
fn statements_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let test = oltp.tests.iter().find(|test| statement_slots(**test, oltp, false).is_empty())?;
    let (key, why) = match test {
        OltpTest::PointSelect | OltpTest::Insert | OltpTest::Delete => return None,
        OltpTest::UpdateIndex => ("index_updates", "index_updates is 0"),
        OltpTest::UpdateNonIndex => ("non_index_updates", "non_index_updates is 0"),
        OltpTest::ReadOnly => {
            ("skip_trx", "skip_trx leaves out BEGIN and COMMIT, and point selects and ranges are off")
        }
        OltpTest::WriteOnly => ("skip_trx", "skip_trx leaves out BEGIN and COMMIT, and all writes are off"),
        OltpTest::ReadWrite => {
            ("skip_trx", "skip_trx leaves out BEGIN and COMMIT, and all reads and writes are off")
        }
    };
    let remedy = "ask for at least one, or leave the test out of tests";
    Some((key, format!("the test {} has no statement, because {why}: {remedy}", test.name())))
}

/// Returns the first option about arrivals that does not go with the others.
pub(crate) fn rates_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let is_closed = oltp.arrivals == OltpArrivals::Closed;
    let events = "events is for arrivals = \"closed\"; with a rate, time says how many there are";
    let rates = "rates are for arrivals = \"constant\" and arrivals = \"poisson\"; a closed loop has none";
    let backlog = "max_backlog is for a step with a rate; in a closed loop nothing waits";
    let thinks = "think_time is for arrivals = \"closed\"; a rate does not wait for answers";
    let contradiction = first_problem([
        (!is_closed && oltp.events.is_some(), "events", events),
        (is_closed && !oltp.rates.is_empty(), "rates", rates),
        (is_closed && oltp.max_backlog.is_some(), "max_backlog", backlog),
        (!is_closed && !oltp.think_time.0.is_zero(), "think_time", thinks),
    ]);
    let message = format!(
        "arrivals = \"{}\" needs rates: name at least one number of operations per second, e.g. rates = [1000, 5000]",
        oltp.arrivals.name()
    );
    contradiction.or_else(|| first_problem([(!is_closed && oltp.rates.is_empty(), "rates", &message)]))
}

fn distribution_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let is_lost = oltp.zipfian_scrambled && oltp.distribution != Distribution::Zipfian;
    first_problem([(is_lost, "zipfian_scrambled", "zipfian_scrambled is for distribution = \"zipfian\"")])
}

/// Returns the first option of the tables that is out of its range, or that contradicts another.
/// The result is the key inside `[workload.NAME]`, and a message that says what to write. `oltp`
/// may be the part of another workload that describes its tables.
pub(crate) fn tables_problem(oltp: &OltpOptions) -> Option<Mistake> {
    table_number_problem(oltp)
        .or_else(|| first_id_problem(oltp))
        .or_else(|| {
            let message = "index_before_load wants an index on k, and create_secondary = false wants none";
            first_problem([(oltp.index_before_load && !oltp.create_secondary, "index_before_load", message)])
        })
        .or_else(|| table_options_problem(&oltp.create_table_options))
}

fn table_number_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let most = most_id(oltp);
    [("table_size", oltp.table_size), ("first_id", oltp.first_id)].into_iter().find_map(|(key, value)| {
        let message = number_problem(key, value, &(1..=most))?;
        let help = if most == MOST_ID && value > most { WIDER } else { "" };
        Some((key, message + help))
    })
}

/// Returns what to write when `value` is outside `range`.
fn number_problem(key: &str, value: u64, range: &RangeInclusive<u64>) -> Option<String> {
    (!range.contains(&value))
        .then(|| format!("{key} is {value}, but must be {} to {}", range.start(), range.end()))
}

const WIDER: &str = "; with id = \"bigint\" it may be greater";

fn most_id(oltp: &OltpOptions) -> u64 {
    if oltp.id == IdType::Bigint { MOST_BIG_ID } else { MOST_ID }
}

/// Checks the last id. It may be too high although `first_id` and `table_size` are each within
/// their range.
fn first_id_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let (last, most) = (oltp.last_id(), most_id(oltp));
    (last > most).then(|| {
        let help = if most == MOST_ID { WIDER } else { "" };
        let message =
            format!("first_id and table_size make {last} the last id, but it must be at most {most}");
        ("first_id", message + help)
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::{WorkloadOptions, warnings};

    use super::*;
    use crate::plans::parse;

    #[test]
    fn every_number_of_connections_and_every_rate_gives_a_step_of_its_own_name() {
        let options = OltpOptions {
            tests: vec![OltpTest::PointSelect, OltpTest::ReadWrite],
            connections: vec![1, 16],
            ..OltpOptions::default()
        };
        let names = options.step_names().join(" ");
        assert_eq!(names, "load index point-select.c1 point-select.c16 read-write.c1 read-write.c16");
        let with_rates = OltpOptions { arrivals: OltpArrivals::Constant, rates: vec![100, 5000], ..options };
        let names = OltpOptions { connections: vec![4], create_secondary: false, ..with_rates }
            .step_names()
            .join(" ");
        assert_eq!(
            names,
            "load point-select.c4.r100 point-select.c4.r5000 read-write.c4.r100 read-write.c4.r5000"
        );
    }

    #[test]
    fn the_first_measured_step_follows_load_and_index_where_they_exist() {
        let first = |options: OltpOptions| options.step_names()[options.load_steps()].clone();
        let default = OltpOptions::default;
        assert_eq!(first(default()), "point-select.c1");
        assert_eq!(first(OltpOptions { create_secondary: false, ..default() }), "point-select.c1");
        assert_eq!(first(OltpOptions { index_before_load: true, ..default() }), "point-select.c1");
        assert_eq!(first(OltpOptions { use_existing: true, ..default() }), "point-select.c1");
    }

    #[test]
    fn a_test_is_named_as_plans_write_it() {
        for test in OltpTest::ALL {
            assert_eq!(serde_json::to_value(test).unwrap(), test.name());
        }
    }

    #[test]
    fn codes_of_errors_are_numbers_or_words() {
        let read =
            |text: &str| serde_json::from_str::<Vec<ErrorCode>>(text).map_err(|error| error.to_string());
        let codes = read("[1213, \"40P01\", \"all\"]").unwrap();
        assert_eq!(codes.iter().map(|code| code.0.as_str()).collect::<Vec<_>>(), ["1213", "40P01", "all"]);
        assert_eq!(serde_json::to_value(&codes[0]).unwrap(), "1213");
        for wrong in ["[-1]", "[70000]", "[\"\"]", "[\"a b\"]", "[true]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    fn most(workload: &str) -> u64 {
        let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n{workload}\n");
        parse(&text, "p.toml")
            .unwrap_or_else(|error| panic!("{error}"))
            .workload
            .most_prepared_statements(true)
    }

    #[test]
    fn each_connection_prepares_each_kind_of_statement_on_each_table() {
        let sweep = "tests = [\"read-write\"]\ntables = 4\nconnections = \"1..4096\"";
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}")), (9 * 4 + 2) * 4096);
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}\nprotocol = \"text\"")), 0);
        assert_eq!(most("[workload.oltp]\ntests = [\"point-select\"]\nconnections = [16]\ntables = 2"), 32);
        let micro = "[workload.microbenchmarks]\ntables = 2\nconnections = [8]\nsteps = ";
        let counts = "tests = [\"read-only\"]\ncount_ranges = 1\nconnections = [8]\ntables = 2";
        assert_eq!(most(&format!("[workload.oltp]\n{counts}")), (6 * 2 + 2) * 8);
        assert_eq!(most(&format!("{micro}[\"point-query\", \"insert\"]")), 16);
        assert_eq!(most(&format!("{micro}[\"read-write*\"]")), (9 * 2 + 2) * 8);
        let sum = "[\"read-only-sum*\"]\nsequence = \"32\"";
        assert_eq!(most(&format!("{micro}{sum}")), (2 * 2 + 2) * 8);
        assert_eq!(most("[workload.insert-benchmark]"), 0);
    }

    #[test]
    fn begin_and_commit_count_where_they_are_prepared() {
        let plan = |options: &str| {
            let text = format!(
                "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.oltp]\n{options}\n"
            );
            parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
        };
        let transaction = plan("tests = [\"read-write\"]\nconnections = [1000]");
        assert_eq!(transaction.workload.most_prepared_statements(true), 11_000);
        assert_eq!(transaction.workload.most_prepared_statements(false), 10_000);
        let without =
            plan("tests = [\"read-write\"]\nconnections = [1000]\nskip_trx = true\nrange_selects = false");
        assert_eq!(without.workload.most_prepared_statements(true), 5_000);
    }

    #[test]
    fn steps_that_write_into_tables_of_others_are_reported() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\naddress = \"mysql://root@localhost/sbtest\"\n[workload.oltp]\n\
             use_existing = true\ntests = [\"read-only\", \"insert\"]\n[workload.microbenchmarks]\nuse_existing = true\n\
             steps = [\"scan\", \"update-one\"]\n",
            "test.toml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        insta::assert_snapshot!(warnings(&plan).join("\n"), @r"
        update-one will change rows of tables that are not dbdyno's (use_existing)
        insert will change rows of tables that are not dbdyno's (use_existing)
        ");
    }
}
