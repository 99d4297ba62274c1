//! Makes the steps of the classic tests: load, index, then each test at each concurrency level. It
//! says what records have about each step, how connections share its work, and how much disk the
//! steps take. Estimates are exact for the length of tests, and everything else is guessed.

use std::sync::Arc;
use std::time::Duration;

use dbdyno_db::RowStream;
use dbdyno_loadgen::{ArrivalProcess, Arrivals, Draws, Limit, Schedule, ThinkTime};
use dbdyno_model::PlanDuration;
use dbdyno_plan::{Rest, Size, StepEstimate, StepOutline, grouped, numbered, seconds};
use dbdyno_record::{KindSpec, OperationClass, StepSpec, Unit};
use serde_json::{Map, Value, json};

use crate::oltp::OltpSetup;
use crate::oltp::load::{LoadForm, LoadPlan};
use crate::oltp::operation::{StatementSlot, statement_slots};
use crate::oltp::options::{
    IdType, LoadMethod, OltpArrivals, OltpOptions, OltpTest, OltpTest as Test, Think,
};
use crate::oltp::rows::{C_LENGTH, PAD_LENGTH};
use crate::oltp::sql::{self, OltpStatement};
use crate::options::Verify;
use crate::settle::{Settle, SettleWait};
use crate::step::{self, add_run, clients, fnv1a, protocol, step_spec};
use crate::step::{DataSize, RunLength, Step, StepOptions, checked, load_steps};

/// Returns the limit at which connection `number` (from 0) ends its part of a test.
pub(crate) fn limit(options: &OltpOptions, number: u32, connections: u32) -> Limit {
    match (options.length(), options.events) {
        (None, Some(events)) => Limit::Operations(share(events, number, connections)),
        (length, _) => Limit::Time(length.unwrap_or_default()),
    }
}

/// Returns the part of connection `number` (from 0) in `operations` of all connections. It is at
/// least one.
pub(crate) fn share(operations: u64, number: u32, connections: u32) -> u64 {
    let connections = u64::from(connections);
    let more = u64::from(u64::from(number) < operations % connections);
    (operations / connections + more).max(1)
}

/// Returns the arrivals of each connection in step `name`. With a rate, all connections share one
/// schedule, from which each takes the next operation when it becomes free.
pub(crate) fn arrivals(
    name: &str,
    (connections, rate): (u32, Option<u32>),
    options: &OltpOptions,
    seed: u64,
) -> Vec<Arrivals> {
    if let Some(rate) = rate {
        let schedule = schedule(name, (options.arrivals, rate), options.max_backlog, seed);
        return vec![Arrivals::Shared(Arc::new(schedule)); connections as usize];
    }
    let stream = fnv1a(format!("{name} pace").as_bytes());
    let draws = |connection| Draws::new(seed, stream, connection);
    let mean = options.think_time.0;
    let arrivals = |connection| match options.think {
        _ if mean.is_zero() => Arrivals::Closed,
        Think::Fixed => Arrivals::Thinking(ThinkTime::Fixed { time: mean, draws: draws(connection) }),
        Think::Exponential => Arrivals::Thinking(ThinkTime::Exponential { mean, draws: draws(connection) }),
    };
    (0..connections).map(arrivals).collect()
}

/// Returns the schedule by which operations of step `name` are due. At most `max_backlog` of them
/// wait for a connection.
pub(crate) fn schedule(
    name: &str,
    (arrivals, rate): (OltpArrivals, u32),
    max_backlog: Option<u64>,
    seed: u64,
) -> Schedule {
    let (operations, per) = (u64::from(rate), Duration::from_secs(1));
    let arrival_process = if arrivals == OltpArrivals::Poisson {
        ArrivalProcess::poisson(
            operations,
            per,
            Draws::new(seed, fnv1a(format!("{name} pace").as_bytes()), 0),
        )
    } else {
        ArrivalProcess::Constant { operations, per, phase: Duration::ZERO }
    };
    match max_backlog {
        Some(most) => Schedule::with_max_backlog(arrival_process, most),
        None => Schedule::new(arrival_process),
    }
}

/// Returns the name and the class of an operation of `test`, and the label of its rate.
pub(crate) const fn labels(test: Test) -> (&'static str, OperationClass, &'static str) {
    match test {
        Test::PointSelect => ("query", OperationClass::Query, "queries/s"),
        Test::ReadOnly | Test::ReadWrite | Test::WriteOnly => {
            ("transaction", OperationClass::Other, "transactions/s")
        }
        Test::UpdateIndex | Test::UpdateNonIndex => ("update", OperationClass::Other, "updates/s"),
        Test::Insert => ("insert", OperationClass::Insert, "inserts/s"),
        Test::Delete => ("delete", OperationClass::Delete, "deletes/s"),
    }
}

/// Returns the label of the rate of `test`, which counts operations. Where one operation is several
/// updates, the rate is not one of updates.
fn rate_label(test: Test, options: &OltpOptions) -> &'static str {
    match test {
        Test::UpdateIndex if options.index_updates > 1 => "operations/s",
        Test::UpdateNonIndex if options.non_index_updates > 1 => "operations/s",
        test => labels(test).2,
    }
}

pub(crate) fn spec(step: &OltpStep, setup: &OltpSetup) -> StepSpec {
    let (unit, label, clients) = match step.kind {
        OltpStepKind::Load => (Unit::Rows, "rows/s", LoadPlan::new(setup).connections),
        OltpStepKind::Index => (Unit::Rows, "indexed rows/s", LoadPlan::new(setup).index_connections()),
        OltpStepKind::Test { test, connections, rate } => {
            (Unit::Operations, rate_label(test, &setup.options), clients(connections, rate))
        }
    };
    let kind = kind_spec(step, setup);
    let is_timed = matches!(step.kind, OltpStepKind::Test { .. }) && setup.options.events.is_none();
    step_spec((&step.name, clients), (unit, label), is_timed, kind, options(step, setup))
}

fn options(step: &OltpStep, setup: &OltpSetup) -> Map<String, Value> {
    let mut map = Map::from_iter([
        ("tables".to_owned(), json!(setup.options.tables)),
        ("table_size".to_owned(), json!(setup.options.table_size)),
        ("seed".to_owned(), json!(setup.context.seed)),
    ]);
    if step.kind == OltpStepKind::Load {
        map.insert("load_method".to_owned(), json!(setup.options.load_method));
        let bytes = setup.options.loaded_rows() * column_bytes(&setup.options);
        map.insert("column_bytes".to_owned(), json!(bytes));
    }
    if let OltpStepKind::Test { connections, rate, .. } = step.kind {
        map.insert("seed".to_owned(), json!(setup.context.draws));
        map.insert("connections".to_owned(), json!(connections));
        let options = &setup.options;
        add_run(&mut map, (options.events, options.time.0), options.warmup_length(), rate);
    }
    map
}

fn kind_spec(step: &OltpStep, setup: &OltpSetup) -> KindSpec {
    match step.kind {
        OltpStepKind::Load => load_kind(&LoadPlan::new(setup), &setup.options),
        OltpStepKind::Index => {
            let statement = sql::create_index(1).replace("_1 ", "_? ").replace("sbtest1", "sbtest?");
            KindSpec {
                rows_per_operation: u32::try_from(setup.options.table_size).unwrap_or(u32::MAX),
                statements_per_operation: 1,
                ..step::kind_spec("index", OperationClass::Index, statement)
            }
        }
        OltpStepKind::Test { test, connections, rate } => {
            let statement_slots = statement_slots(test, &setup.options, setup.client_ids());
            let arrivals = arrivals(&step.name, (connections, rate), &setup.options, setup.context.draws);
            let (name, class, _) = labels(test);
            KindSpec {
                connections_per_client: connections / clients(connections, rate),
                arrivals: arrivals.first().map_or_else(String::new, ToString::to_string),
                ..test_kind((name, class), &statement_slots, setup.options.prepares(test), setup)
            }
        }
    }
}

/// Returns a kind of operation that has the statements in `statement_slots`, over one connection
/// per client. Each operation is sent when the one before is answered.
pub(crate) fn test_kind(
    (name, class): (&str, OperationClass),
    statement_slots: &[StatementSlot],
    is_prepared: bool,
    setup: &OltpSetup,
) -> KindSpec {
    KindSpec {
        protocol: protocol(is_prepared),
        rows_per_operation: rows(statement_slots, &setup.options),
        statements_per_operation: u32::try_from(statement_slots.len()).unwrap_or(u32::MAX),
        user_bytes_per_operation: user_bytes(statement_slots, &setup.options),
        ..step::kind_spec(name, class, statements(statement_slots, setup))
    }
}

/// Returns the load's kind of operation. It is one statement, or one transaction of INSERTs of
/// single rows.
fn load_kind(plan: &LoadPlan, options: &OltpOptions) -> KindSpec {
    let rows_per_operation = u32::try_from(plan.rows_per_statement).unwrap_or(u32::MAX);
    let (is_prepared, statements, statement) = match plan.form {
        LoadForm::Text | LoadForm::Prepared => {
            let prefix = sql::load_prefix("sbtest?", plan.with_ids);
            let id = if plan.with_ids { "?, " } else { "" };
            (plan.prepares(), 1, format!("{prefix}({id}?, '?', '?'), ..."))
        }
        LoadForm::Stream(form) => {
            let sql = sql::load_rows("sbtest?", form, plan.with_ids);
            match form {
                RowStream::LocalInfile | RowStream::CopyIn => (false, 1, sql),
                RowStream::PreparedRows => (true, rows_per_operation.saturating_add(2), sql),
            }
        }
    };
    KindSpec {
        protocol: protocol(is_prepared),
        rows_per_operation,
        statements_per_operation: statements,
        user_bytes_per_operation: f64::from(rows_per_operation) * column_bytes(options) as f64,
        ..step::kind_spec("insert", OperationClass::Insert, statement)
    }
}

/// Returns the bytes of a row's four columns as they are declared and filled. Rates in bytes per
/// second count these.
fn column_bytes(options: &OltpOptions) -> u64 {
    let number = if options.id == IdType::Bigint { 8 } else { 4 };
    2 * number + (C_LENGTH + PAD_LENGTH) as u64
}

/// Returns the rows that the statements of an operation ask for or change. A range near a table's
/// end has fewer.
fn rows(statement_slots: &[StatementSlot], options: &OltpOptions) -> u32 {
    let rows = |place: &StatementSlot| match place.kind {
        OltpStatement::Begin | OltpStatement::Commit => 0,
        OltpStatement::SimpleRange | OltpStatement::OrderRange | OltpStatement::DistinctRange => {
            options.range_size
        }
        OltpStatement::Points(_, rows) | OltpStatement::HotPoints(rows) | OltpStatement::ListUpdate(rows) => {
            rows
        }
        OltpStatement::Range(_, more) => more + 1,
        OltpStatement::Scan => u32::try_from(options.table_size).unwrap_or(u32::MAX),
        _ => 1,
    };
    statement_slots.iter().map(rows).fold(0, u32::saturating_add)
}

/// Returns the bytes of the columns that the statements of an operation insert or set. Deleted rows
/// count 0.
fn user_bytes(statement_slots: &[StatementSlot], options: &OltpOptions) -> f64 {
    let k = (column_bytes(options) - (C_LENGTH + PAD_LENGTH) as u64) / 2;
    let bytes = |place: &StatementSlot| match place.kind {
        OltpStatement::IndexUpdate => k,
        OltpStatement::NonIndexUpdate => C_LENGTH as u64,
        OltpStatement::ListUpdate(rows) => u64::from(rows) * C_LENGTH as u64,
        OltpStatement::Insert | OltpStatement::NewRow | OltpStatement::NewRowWithId => column_bytes(options),
        _ => 0,
    };
    statement_slots.iter().map(bytes).sum::<u64>() as f64
}

/// Returns each statement once, with how often an operation has it, in the form
/// `BEGIN; 10 x SELECT c FROM sbtest? WHERE id=?; ...`.
pub(crate) fn statements(statement_slots: &[StatementSlot], setup: &OltpSetup) -> String {
    let writes = statement_slots.iter().any(|place| place.kind.is_write());
    let mut kinds: Vec<(OltpStatement, u32)> = Vec::new();
    for place in statement_slots {
        match kinds.iter_mut().find(|entry| entry.0 == place.kind) {
            Some(entry) => entry.1 += 1,
            None => kinds.push((place.kind, 1)),
        }
    }
    let text = |(kind, times): (OltpStatement, u32)| {
        let sql = sql::statement_of(setup, kind, "sbtest?", writes);
        if times > 1 { format!("{times} x {sql}") } else { sql }
    };
    kinds.into_iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Names of the figures for one row. Other workloads on such tables use them too.
pub(crate) const ROW_LOADED: &str = "oltp row loaded";
pub(crate) const ROW_READ: &str = "oltp row read";
/// Bytes of a row's columns: two whole numbers, 120 and 60 characters.
const COLUMN_BYTES: f64 = 188.0;
/// Factor for what storage engines add to a row, and for free space in pages.
const PAGE_FACTOR: f64 = 1.25;
/// Bytes of one row of an index on a whole number.
const INDEX_BYTES: f64 = 20.0;
/// Bytes of a row with its index in InnoDB's files, measured.
pub(crate) const ROW_BYTES: u64 = 220;
/// Rows that tests are assumed to write per second. The size of redo and binary logs depends on it.
const WRITES_PER_SECOND: f64 = 20_000.0;
/// Rows that an operation is assumed to write.
const WRITES_PER_OPERATION: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OltpStepKind {
    Load,
    Index,
    /// A test at one concurrency level. `rate` is over all connections.
    Test {
        test: OltpTest,
        connections: u32,
        rate: Option<u32>,
    },
}

pub(crate) type OltpStep = Step<OltpStepKind>;

impl StepOptions for OltpOptions {
    type Kind = OltpStepKind;

    fn list(&self) -> Vec<OltpStep> {
        let detail = format!("{} rows", grouped(self.loaded_rows()));
        let (rows, connections) = (self.loaded_rows() as f64, self.load_connections);
        let mut steps = Vec::new();
        if !self.use_existing {
            let figure = match self.load_method {
                LoadMethod::Insert => ROW_LOADED,
                LoadMethod::Stream => "oltp row streamed",
            };
            let kept = if self.index_before_load { rows } else { 0.0 };
            let load = StepEstimate::new("load", &detail, Duration::ZERO).and(figure, rows, connections);
            let load = StepOutline::new(load.and("oltp row kept indexed", kept, connections));
            let outline = StepOutline { is_checked: true, ..load };
            steps.push(Step { kind: OltpStepKind::Load, outline });
        }
        if self.create_secondary && !self.index_before_load && !self.use_existing {
            // A table's index is built by one connection.
            let index = StepEstimate::new("index", &format!("1 index on {detail}"), Duration::ZERO);
            let index = index.and("oltp row indexed", rows, connections.min(self.tables));
            steps.push(Step { kind: OltpStepKind::Index, outline: StepOutline::new(index) });
        }
        let (what, levels) = (self.length_in_words(), self.levels());
        let step = |test: OltpTest, (connections, rate): (u32, Option<u32>)| {
            let at = rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
            let detail = format!("{what} on {}{at}", numbered(connections, "connection"));
            let is_rested = test.writes() && !self.data.restores_each_step();
            let outline = StepOutline {
                changes_data: test.writes(),
                is_checked: test.writes(),
                rest: if is_rested { Rest::EachWrite } else { Rest::Never },
                ..self.run_length(self.events).outline(test.name(), (connections, rate), &detail)
            };
            Step { kind: OltpStepKind::Test { test, connections, rate }, outline }
        };
        let tests = self.tests.iter().flat_map(|test| levels.iter().map(move |level| step(*test, *level)));
        checked(load_steps(steps).into_iter().chain(tests).collect(), self.verify)
    }

    fn settling(&self) -> Settle {
        Settle::chosen(self.settle.as_ref(), self.settle_wait.map(SettleWait::Fixed))
    }

    fn data_size(&self, size: &Size) -> DataSize {
        let loaded = table_bytes(self, size, Duration::ZERO);
        let writing = self.list().iter().filter(|step| !step.loads && step.changes_data).count();
        let written = writing_time(self).saturating_mul(u32::try_from(writing).unwrap_or(u32::MAX));
        let disk = table_bytes(self, size, written);
        DataSize { settled: loaded.saturating_sub(size.log_bytes), loaded, disk }
    }

    fn checks(&self) -> Option<(Verify, &'static str, u64)> {
        Some((self.verify, ROW_READ, self.loaded_rows()))
    }
}

impl OltpOptions {
    fn length_in_words(&self) -> String {
        match self.events {
            Some(events) => format!("{} operations", grouped(events)),
            None => with_warm_up(self.warmup.0, self.time.0),
        }
    }

    /// Returns the length of a test: `operations` where it is a number, and otherwise the plan's
    /// time.
    pub(crate) fn run_length(&self, operations: Option<u64>) -> RunLength {
        let (warmup, time) = (self.warmup.0, self.time.0);
        RunLength { warmup, time, time_cap: self.time_cap, operations }
    }
}

/// Formats a length, such as `5s warm-up and 30s`.
pub(crate) fn with_warm_up(warm_up: Duration, length: Duration) -> String {
    let length = PlanDuration(length);
    if warm_up.is_zero() {
        length.to_string()
    } else {
        format!("{} warm-up and {length}", PlanDuration(warm_up))
    }
}

/// Returns how long a step writes, at the rate that tests are assumed to write with.
fn writing_time(oltp: &OltpOptions) -> Duration {
    let of_operations = || oltp.events.unwrap_or(0) as f64 * WRITES_PER_OPERATION / WRITES_PER_SECOND;
    oltp.length().unwrap_or_else(|| seconds(of_operations()))
}

/// Returns the bytes of tables and logs, after steps that write for `writing`.
pub(crate) fn table_bytes(oltp: &OltpOptions, size: &Size, writing: Duration) -> u64 {
    if size.row_bytes <= 0.0 || oltp.use_existing {
        return size.log_bytes;
    }
    let indexes = 1.0 + f64::from(u8::from(oltp.create_secondary));
    let rows = oltp.loaded_rows() as f64;
    // An index is sorted in files of its own before it is built.
    let tables = rows * (COLUMN_BYTES * PAGE_FACTOR + 2.0 * indexes * INDEX_BYTES);
    let written = WRITES_PER_SECOND * writing.as_secs_f64();
    let binlog = (rows + written) * if size.binlog_row_bytes > 0 { 2.0 * COLUMN_BYTES } else { 0.0 };
    ((tables + binlog) as u64).saturating_add(size.log_bytes)
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::{Basis, estimate};

    use super::*;
    use crate::plans::parse;

    #[test]
    fn many_connections_are_recorded_as_few_clients() {
        let pairs = [1, 16, 64, 65, 100, 256, 1000, 1024, 4096, 127].map(|n| (n, clients(n, None)));
        assert_eq!(
            pairs,
            [
                (1, 1),
                (16, 16),
                (64, 64),
                (65, 65),
                (100, 50),
                (256, 64),
                (1000, 50),
                (1024, 64),
                (4096, 64),
                (127, 127)
            ]
        );
        assert_eq!(clients(64, Some(1000)), 1);
    }

    #[test]
    fn a_rate_counts_updates_where_each_operation_is_one_update() {
        let several = OltpOptions { index_updates: 5, non_index_updates: 2, ..OltpOptions::default() };
        for test in [Test::UpdateIndex, Test::UpdateNonIndex] {
            assert_eq!(rate_label(test, &OltpOptions::default()), "updates/s");
            assert_eq!(rate_label(test, &several), "operations/s");
        }
        assert_eq!(rate_label(Test::ReadWrite, &several), "transactions/s");
    }

    #[test]
    fn tests_take_their_time_and_all_else_is_guessed() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.oltp]\n\
             tests = [\"point-select\", \"read-write\"]\ntable_size = 1_000_000\nconnections = [1, 16]\n\
             warmup = \"2s\"\narrivals = \"constant\"\nrates = [500]\n",
            "test.toml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let estimate = estimate(&plan, &Basis::default());
        let line =
            |step: &super::StepEstimate| format!("{} | {} | {:.1?}\n", step.name, step.detail, step.duration);
        let table: String = estimate.cells[0].steps.iter().map(line).collect();
        insta::assert_snapshot!(table, @r"
        prepare | server and tables | 3.5s
        load | 1,000,000 rows | 1.3s
        index | 1 index on 1,000,000 rows | 1.1s
        settle | cleanup after the load, until quiet, 10m at most | 17.8s
        point-select.c1.r500 | 2s warm-up and 10s on 1 connection at 500/s | 12.0s
        point-select.c16.r500 | 2s warm-up and 10s on 16 connections at 500/s | 12.0s
        read-write.c1.r500 | 2s warm-up and 10s on 1 connection at 500/s | 12.0s
        read-write.c16.r500 | 2s warm-up and 10s on 16 connections at 500/s | 12.0s
        verify | 3 checks of 1,000,000 rows | 1.8s
        ");
        assert!(
            (1 << 30..3 << 30).contains(&estimate.cells[0].disk_bytes),
            "{}",
            estimate.cells[0].disk_bytes
        );
    }
}
