//! Options of the microbenchmarks, with the original's values where it has them. This module also
//! answers what a plan asks about them: mistakes, warnings, needs, steps and a forecast.

use std::time::Duration;

use dbdyno_model::{Cold, DataMode, PlanDuration, named, with_defaults};
use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};
use dbdyno_record::OperationClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::microbenchmarks::sequence::{chosen, fits};
use crate::microbenchmarks::steps::ReadyStep;
use crate::oltp::operation::prepared;
use crate::oltp::options::tables_problem;
use crate::oltp::options::{
    Distribution, IdType, LoadMethod, OltpOptions, OltpProfile, OltpTest, existing_warning,
};
use crate::oltp::steps::ROW_BYTES;
use crate::oltp::steps::labels;
use crate::options::{ConcurrencyLevels, concurrency_levels};
use crate::options::{Protocol, Verify, first_problem, schema_problem};
use crate::settle::{Settle, SettleWait, both_problem};
use crate::step::{StepOptions, forecast, outlines};
use crate::summaries::context;

pub use crate::microbenchmarks::sequence::MicroSequence;
pub use crate::microbenchmarks::sequence::{MicroConnections, MicroLength, MicroStep, Moment};

with_defaults! {
    /// `[workload.microbenchmarks]`: 27 small tests on tables `sbtest1`, `sbtest2`, ..., in the
    /// order of the published reports. The defaults are those of the reports on small servers: one
    /// table of 50 million rows, one connection.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename = "Microbenchmarks", deny_unknown_fields, default)]
    pub struct MicrobenchmarksOptions {
        pub sequence: MicroSequence = MicroSequence::FortyTwo,
        /// Steps of the sequence that run, by name or pattern, in the sequence's order:
        /// `["point-query*", "!*.warm"]`. The last pattern that fits a step decides; one with `!`
        /// takes steps away. Load and index always run.
        #[serde(alias = "tests")]
        pub steps: Vec<String> = vec!["*".to_owned()],
        #[schemars(range(min = 1, max = 10_000))]
        pub tables: u32 = 1,
        /// Rows of each table.
        #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-size" = true))]
        pub table_size: u64 = 50_000_000,
        /// Numbers of connections, in the order in which they run; each step runs on all of them
        /// before the next step begins.
        #[serde(deserialize_with = "concurrency_levels")]
        #[schemars(with = "ConcurrencyLevels", extend("x-asked" = true))]
        pub connections: Vec<u32> = vec![1],
        /// Length of most steps that read, without the warm-up.
        #[schemars(extend("x-step-time" = true))]
        pub read_time: PlanDuration = PlanDuration::from_secs(600),
        /// Length of most steps that write, without the warm-up.
        #[schemars(extend("x-step-time" = true))]
        pub write_time: PlanDuration = PlanDuration::from_secs(900),
        /// Length of scan.warmpre and scan.warm, which fill caches.
        #[schemars(extend("x-least-ms" = 1_000))]
        pub warm_scan_time: PlanDuration = PlanDuration::from_secs(60),
        /// Warm-up before a step's measurement begins, in whole seconds.
        #[schemars(extend("x-whole-seconds" = true))]
        pub warmup: PlanDuration = PlanDuration::from_secs(5),
        /// Operations of each step, all connections together, in place of a time; the warm-up is
        /// left out then. The scan of sequence 42 still reads each table once.
        #[schemars(range(min = 1))]
        pub operations: Option<u64> = None,
        /// Ids in the list of update-inlist. Its published name says 100, the original sends 10.
        // Every product takes a list of 10,000 ids in one statement.
        #[schemars(range(min = 1, max = 10_000))]
        pub update_inlist_ids: u32 = 10,
        /// Exponent of update-zipf.
        #[schemars(range(min = 0.0, max = 100.0))]
        pub zipfian_exponent: f64 = 0.8,
        /// Rows that a delete step took away are put back after it, outside of the clock. The
        /// original goes on with what is left.
        pub delete_refill: bool = false,
        /// How statements are sent. `auto` prepares all but those of insert and scan, as the
        /// original does, except that the original's load is text.
        pub protocol: Protocol = Protocol::Auto,
        /// A plain index on `id` in place of the primary key.
        pub secondary: bool = false,
        /// Text after the closing bracket of CREATE TABLE.
        pub create_table_options: String = String::new(),
        /// Which version's tables: `sysbench-0.5` has unsigned numbers and `MAX_ROWS = 1000000` on
        /// MySQL and MariaDB. Statements and draws are the same.
        pub profile: OltpProfile = OltpProfile::Sysbench1,
        /// Type of `id` and `k`.
        pub id: IdType = IdType::Integer,
        /// The lowest id of each table; above 2147483647 it proves that ids of more than 31 bits
        /// work.
        #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
        pub first_id: u64 = 1,
        /// The index on `k` is there before the load, which then keeps it up; there is no step
        /// `index`.
        pub index_before_load: bool = false,
        /// Connections that load. Each has an equal part of all rows; where tables are shared
        /// between them, the client gives the ids. Where rows stay in the order in which they came
        /// (PostgreSQL, MyISAM, Aria), each connection has whole tables. The original loads one
        /// table after the other over one connection.
        #[schemars(range(min = 1, max = 1_024))]
        pub load_connections: u32 = 4,
        /// How rows travel to the tables.
        pub load_method: LoadMethod = LoadMethod::Insert,
        /// The tables are there and belong to others: nothing is made, loaded or dropped, and the
        /// steps run on them.
        pub use_existing: bool = false,
        /// How the server is brought to rest after the load and after the steps that write. By its
        /// state by default; the original waits for a fixed time.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle: Option<Settle> = None,
        /// Short form of `settle = { by = "wait", wait = ... }`: `"original"` or a duration,
        /// counted from the start of cleanup.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle_wait: Option<SettleWait> = None,
        /// When the contents of tables are compared with what must be there. The original never
        /// does.
        pub verify: Verify = Verify::EachStep,
        /// What a step finds: `"preserve"` (the original: one table through the sequence),
        /// `"restart"`, `"reset"`, `"restore"`, `"restore-each-step"`.
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

/// A step with its number of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MicroLevel {
    /// The step's name, such as `point-query.pre`. With several concurrency levels it is
    /// `point-query.pre.c16`.
    pub name: String,
    pub step: MicroStep,
    /// The step's position in the whole sequence, from 0.
    pub place: usize,
    pub connections: u32,
}

impl MicrobenchmarksOptions {
    /// Returns the steps after load and index. These are the steps that the patterns choose, each
    /// at every concurrency level.
    pub fn levels(&self) -> Vec<MicroLevel> {
        let is_sweep = self.connections.len() > 1;
        let mut levels = Vec::new();
        for (place, &step) in self.sequence.steps().iter().enumerate() {
            if !chosen(&self.steps, &[&step.name(), &step.published_name()]) {
                continue;
            }
            match step.connections {
                MicroConnections::Tables => {
                    levels.push(MicroLevel { name: step.name(), step, place, connections: self.tables });
                }
                MicroConnections::Each => levels.extend(self.connections.iter().map(|&connections| {
                    let level = if is_sweep { format!(".c{connections}") } else { String::new() };
                    MicroLevel { name: format!("{}{level}", step.name()), step, place, connections }
                })),
            }
        }
        levels
    }

    /// Returns the length of a step without its warm-up, or `None` for a step that ends with its
    /// operations.
    pub fn length(&self, step: &MicroStep) -> Option<Duration> {
        if self.operations.is_some() {
            return None;
        }
        match step.length {
            MicroLength::Read => Some(self.read_time.0),
            MicroLength::Write => Some(self.write_time.0),
            MicroLength::WarmScan => Some(self.warm_scan_time.0),
            MicroLength::OneScan => None,
        }
    }

    /// Returns how long a step runs before its clock counts.
    pub fn warmup_of(&self, step: &MicroStep) -> Duration {
        self.length(step).map_or(Duration::ZERO, |_| self.warmup.0)
    }

    /// Returns the options with which the classic workload loads the same tables. They have no
    /// test.
    pub fn tables_part(&self) -> OltpOptions {
        OltpOptions {
            tests: Vec::new(),
            tables: self.tables,
            table_size: self.table_size,
            connections: vec![1],
            secondary: self.secondary,
            create_table_options: self.create_table_options.clone(),
            profile: self.profile,
            id: self.id,
            first_id: self.first_id,
            index_before_load: self.index_before_load,
            load_connections: self.load_connections,
            load_method: self.load_method,
            use_existing: self.use_existing,
            protocol: self.protocol,
            verify: self.verify,
            time_cap: self.time_cap,
            ..OltpOptions::default()
        }
    }

    /// Returns the options with which the classic workload draws and sends the operations of
    /// `step`.
    pub fn step_part(&self, step: &MicroStep) -> OltpOptions {
        let base =
            OltpOptions { range_size: step.range, profile: OltpProfile::Sysbench1, ..self.tables_part() };
        let one_range = |simple, sum, order, distinct| OltpOptions {
            simple_ranges: simple,
            sum_ranges: sum,
            order_ranges: order,
            distinct_ranges: distinct,
            ..base.clone()
        };
        match step.test {
            MicroTest::ReadOnlySimple => one_range(1, 0, 0, 0),
            MicroTest::ReadOnlySum => one_range(0, 1, 0, 0),
            MicroTest::ReadOnlyOrder => one_range(0, 0, 1, 0),
            MicroTest::ReadOnlyDistinct => one_range(0, 0, 0, 1),
            MicroTest::UpdateOne => OltpOptions { table_size: 1, ..base },
            MicroTest::UpdateZipf => OltpOptions {
                distribution: Distribution::Zipfian,
                zipfian_exponent: self.zipfian_exponent,
                ..base
            },
            _ => base,
        }
    }

    /// Returns the connections of the step that has the most.
    pub fn most_connections(&self) -> u32 {
        let levels = self.levels().iter().map(|level| level.connections).max().unwrap_or(0);
        levels.max(self.tables_part().most_connections())
    }

    /// Returns the rows of all tables together after the load.
    pub fn loaded_rows(&self) -> u64 {
        self.table_size.saturating_mul(self.tables.into())
    }
}

impl WorkloadOptions for MicrobenchmarksOptions {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        tables_problem(&self.tables_part())
            .or_else(|| schema_problem(self))
            .or_else(|| steps_problem(self))
            .or_else(|| hot_problem(self))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| refill_problem(self))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = warnings(self);
        if self.use_existing {
            let writes = self.levels().into_iter().filter(|level| level.step.test.writes());
            warnings.extend(existing_warning(writes.map(|level| level.name).collect()));
        }
        warnings
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.most_connections(),
            data_bytes: Some(self.loaded_rows().saturating_mul(ROW_BYTES)),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != Protocol::Text,
            existing_tables: self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        let of_level = |level: &MicroLevel| {
            let step = ReadyStep::new(self, level, &context());
            let each = prepared(&step.statement_slots(), self.tables, with_begin);
            if step.is_prepared() { u64::from(level.connections) * each } else { 0 }
        };
        self.levels().iter().map(of_level).max().unwrap_or(0)
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

/// Checks that each pattern fits a step. A misspelt pattern would leave steps out without a
/// message.
fn steps_problem(options: &MicrobenchmarksOptions) -> Option<Mistake> {
    let steps = options.sequence.steps();
    let is_met = |pattern: &&String| {
        let pattern = pattern.strip_prefix('!').unwrap_or(pattern);
        steps.iter().any(|step| fits(pattern, &step.name()) || fits(pattern, &step.published_name()))
    };
    if let Some(pattern) = options.steps.iter().find(|pattern| !is_met(pattern)) {
        let known: Vec<String> = steps.iter().map(MicroStep::name).collect();
        let message = format!("`{pattern}` fits no step of this sequence; steps: {}", known.join(" "));
        return Some(("steps", message));
    }
    let none = "steps choose none: name at least one, e.g. [\"point-query*\", \"!*.warm\"]";
    first_problem([(options.levels().is_empty(), "steps", none)])
}

/// Checks that the second half of the table has enough rows for hot-points, which reads rows after
/// the middle.
fn hot_problem(options: &MicrobenchmarksOptions) -> Option<Mistake> {
    let levels = options.levels();
    let hot = levels.iter().find(|level| level.step.test == MicroTest::HotPoints)?;
    let lowest = 2 * u64::from(hot.step.range);
    let message = format!(
        "table_size is {}, but hot-points needs {lowest} rows: make tables larger, or leave the step out with steps = [\"!hot-points\"]",
        options.table_size
    );
    first_problem([(options.table_size < lowest, "table_size", &message)])
}

/// Checks that rows can be put back as the load has made them, where nothing else brings them back.
fn refill_problem(options: &MicrobenchmarksOptions) -> Option<Mistake> {
    let again = format!(
        "delete_refill is for tables that go on; with data = \"{}\" each step begins on full ones: leave it out",
        options.data.name()
    );
    let no_load = "delete_refill puts rows back as the load makes them, and with use_existing there is no load: leave it out";
    first_problem([
        (options.delete_refill && options.use_existing, "delete_refill", no_load),
        (options.delete_refill && options.data.restores_each_step(), "delete_refill", &again),
    ])
}

/// Warns about delete steps that begin on tables that an earlier delete step has already emptied in
/// part.
fn warnings(options: &MicrobenchmarksOptions) -> Vec<String> {
    let count = options.levels().iter().filter(|level| level.step.test == MicroTest::Delete).count();
    if count > 1 && !options.delete_refill && !options.data.restores_each_step() {
        return vec![format!(
            "microbenchmarks: {count} delete steps follow each other, each on what the one before left; with \
             delete_refill = true, or data = \"restore-each-step\", each begins with full tables"
        )];
    }
    Vec::new()
}

named! {
    /// The microbenchmarks, in the order of their families. Names are the original's, and
    /// `words.toml` says what some of them leave out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MicroTest {
        PointQuery = "point-query",
        RandomPoints = "random-points",
        HotPoints = "hot-points",
        PointsCoveredPk = "points-covered-pk",
        PointsNotcoveredPk = "points-notcovered-pk",
        PointsCoveredSi = "points-covered-si",
        PointsNotcoveredSi = "points-notcovered-si",
        RangeCoveredPk = "range-covered-pk",
        RangeNotcoveredPk = "range-notcovered-pk",
        RangeCoveredSi = "range-covered-si",
        RangeNotcoveredSi = "range-notcovered-si",
        ReadOnlyCount = "read-only-count",
        Scan = "scan",
        ReadOnly = "read-only",
        ReadOnlySimple = "read-only-simple",
        ReadOnlySum = "read-only-sum",
        ReadOnlyOrder = "read-only-order",
        ReadOnlyDistinct = "read-only-distinct",
        UpdateInlist = "update-inlist",
        UpdateIndex = "update-index",
        UpdateNonindex = "update-nonindex",
        UpdateOne = "update-one",
        UpdateZipf = "update-zipf",
        WriteOnly = "write-only",
        ReadWrite = "read-write",
        Delete = "delete",
        Insert = "insert",
    }
}

/// Tests of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryFamily {
    /// They look up single values, one or a list of them.
    Points,
    /// They read ranges, or scan a whole table.
    Ranges,
    /// They send ten point selects and ranges.
    Transactions,
    /// They change rows in the same way as this classic test.
    Writes(OltpTest),
}

impl MicroTest {
    pub(crate) const fn family(self) -> QueryFamily {
        match self {
            Self::PointQuery | Self::RandomPoints | Self::HotPoints => QueryFamily::Points,
            Self::PointsCoveredPk | Self::PointsNotcoveredPk => QueryFamily::Points,
            Self::PointsCoveredSi | Self::PointsNotcoveredSi => QueryFamily::Points,
            Self::RangeCoveredPk | Self::RangeNotcoveredPk => QueryFamily::Ranges,
            Self::RangeCoveredSi | Self::RangeNotcoveredSi => QueryFamily::Ranges,
            Self::ReadOnlyCount | Self::Scan => QueryFamily::Ranges,
            Self::ReadOnly | Self::ReadOnlySimple | Self::ReadOnlySum => QueryFamily::Transactions,
            Self::ReadOnlyOrder | Self::ReadOnlyDistinct => QueryFamily::Transactions,
            Self::UpdateInlist | Self::UpdateNonindex => QueryFamily::Writes(OltpTest::UpdateNonIndex),
            Self::UpdateOne | Self::UpdateZipf => QueryFamily::Writes(OltpTest::UpdateNonIndex),
            Self::UpdateIndex => QueryFamily::Writes(OltpTest::UpdateIndex),
            Self::WriteOnly => QueryFamily::Writes(OltpTest::WriteOnly),
            Self::ReadWrite => QueryFamily::Writes(OltpTest::ReadWrite),
            Self::Delete => QueryFamily::Writes(OltpTest::Delete),
            Self::Insert => QueryFamily::Writes(OltpTest::Insert),
        }
    }

    pub const fn writes(self) -> bool {
        matches!(self.family(), QueryFamily::Writes(_))
    }

    /// Returns whether a sequence has the test with several ranges, so that its step's name must
    /// say which.
    pub(crate) const fn is_named_by_range(self) -> bool {
        matches!(self, Self::RandomPoints | Self::ReadOnly | Self::ReadWrite)
    }

    /// Returns the classic test that changes the contents of tables in the same way.
    pub(crate) const fn effect(self) -> OltpTest {
        match self.family() {
            QueryFamily::Points | QueryFamily::Ranges => OltpTest::PointSelect,
            QueryFamily::Transactions => OltpTest::ReadOnly,
            QueryFamily::Writes(test) => test,
        }
    }

    /// Returns the name and the class of an operation, and the label of its rate.
    pub(crate) const fn labels(self) -> (&'static str, OperationClass, &'static str) {
        match self {
            Self::Scan => ("scan", OperationClass::Scan, "rows/s"),
            test => labels(test.effect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::WorkloadOptions;

    use super::*;

    #[test]
    fn patterns_choose_steps_in_the_sequences_order() {
        let options = MicrobenchmarksOptions {
            steps: ["scan", "point-query*", "!*.warm", "read-only_range=10"].map(str::to_owned).to_vec(),
            ..MicrobenchmarksOptions::default()
        };
        assert_eq!(
            options.step_names().join(" "),
            "load index point-query.pre read-only_range=10 point-query scan"
        );
        let published = MicrobenchmarksOptions {
            steps: vec!["update-inlist_range=100".to_owned()],
            ..MicrobenchmarksOptions::default()
        };
        assert_eq!(published.step_names().join(" "), "load index update-inlist");
    }

    #[test]
    fn a_sweep_runs_each_step_at_every_concurrency_level_except_the_one_scan() {
        let options = MicrobenchmarksOptions {
            steps: vec!["scan".to_owned(), "delete".to_owned()],
            connections: vec![1, 8],
            tables: 4,
            ..MicrobenchmarksOptions::default()
        };
        assert_eq!(options.step_names().join(" "), "load index scan delete.c1 delete.c8");
        assert_eq!(options.most_connections(), 8);
        let newer = MicrobenchmarksOptions { sequence: MicroSequence::ThirtyTwo, ..options };
        assert_eq!(newer.step_names().join(" "), "load index scan.c1 scan.c8 delete.c1 delete.c8");
    }
}
