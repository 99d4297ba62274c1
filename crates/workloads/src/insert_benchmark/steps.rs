//! Makes the ten steps in the original's order, and estimates how long each takes.

use crate::insert_benchmark::options::{InsertBenchmarkOptions, WriterArrivals};
use dbdyno_db::Capabilities;
use dbdyno_loadgen::{ArrivalProcess, Arrivals, Draws};
use dbdyno_plan::{Rest, Size, StepEstimate, StepOutline, grouped};
use dbdyno_record::{Headline, KindSpec, OperationClass, StepSpec, Target, Unit, WindowRule};
use serde_json::{Map, json};
use std::time::Duration;

use crate::insert_benchmark::InsertSetup;
use crate::insert_benchmark::rows::{Purpose, stream};
use crate::insert_benchmark::sql::{self, RANGES};
use crate::options::Verify;
use crate::settle::Settle;
use crate::step::{self, protocol};
use crate::step::{DataSize, Step, StepOptions, checked};
use crate::workload::multiplied;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsertStepKind {
    Load,
    Index,
    Write,
    Range,
    Point,
}

/// What a connection does in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskKind {
    Insert,
    Index,
    Delete,
    Range,
    Point,
}

impl TaskKind {
    /// Returns its name in records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Index => "index",
            Self::Delete => "delete",
            Self::Range | Self::Point => "query",
        }
    }
}

/// What each client does in a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientPart {
    pub(crate) kind: InsertStepKind,
    /// Number of INSERT statements of each client.
    pub(crate) inserts: u64,
    pub(crate) rows_per_commit: u32,
    pub(crate) deletes: bool,
    /// Background rows per second and client, for read-write steps.
    pub(crate) rate: Option<u32>,
}

impl ClientPart {
    /// Returns the rows that each client inserts.
    pub(crate) fn rows(&self) -> u64 {
        self.inserts * u64::from(self.rows_per_commit)
    }
}

impl StepOptions for InsertBenchmarkOptions {
    type Kind = ClientPart;

    /// Returns the steps `l.i0`, `l.x`, `l.i1`, `l.i2`, then for each rate `qrR` (range queries) and
    /// `qpR` (point queries).
    fn list(&self) -> Vec<Step<ClientPart>> {
        let commit = &self.rows_per_commit;
        let (first, second) = self.write_split();
        let part = |kind, rows: u64, rows_per_commit: u32, deletes| ClientPart {
            kind,
            inserts: rows.div_ceil(u64::from(rows_per_commit.max(1))),
            rows_per_commit,
            deletes,
            rate: None,
        };
        let step = |estimate, kind| Step {
            kind,
            outline: StepOutline { is_checked: true, rest: Rest::EachWrite, ..StepOutline::new(estimate) },
        };
        let load = part(InsertStepKind::Load, self.load_rows, commit.load, false);
        let index = part(InsertStepKind::Index, commit.load.into(), commit.load, false);
        let load = step(self.load_estimate(load.inserts), load);
        let mut steps = vec![load, step(self.index_estimate(), index)];
        steps.iter_mut().for_each(|step| step.outline.loads = true);
        for (name, rows, rows_per_commit) in
            [("l.i1", first, commit.write_1), ("l.i2", second, commit.write_2)]
        {
            let part = part(InsertStepKind::Write, rows, rows_per_commit, self.deletes);
            steps.push(step(self.write_estimate(name, rows, part.inserts), part));
        }
        // The original cleans up once, before the first step that reads.
        steps[3].outline.rest = Rest::Always("after l.i2".to_owned());
        for &rate in &self.rates {
            for (prefix, kind) in [("qr", InsertStepKind::Range), ("qp", InsertStepKind::Point)] {
                let length = self.read_write_time;
                // The original lowers the commit size to the rate when it is larger.
                let rows_per_commit = commit.read_write.min(rate);
                let rows = (length.0.as_secs_f64() * f64::from(rate)).round() as u64;
                let both = if self.deletes { "inserts and deletes" } else { "inserts" };
                let detail = format!("{length} at {rate} {both}/s per client");
                let estimate = StepEstimate::new(&format!("{prefix}{rate}"), &detail, length.0);
                let part = part(kind, rows, rows_per_commit, self.deletes);
                let mut step = step(estimate, ClientPart { rate: Some(rate), ..part });
                step.outline.time_cap = Some(multiplied(length.0, self.time_cap));
                steps.push(step);
            }
        }
        checked(steps, self.verify)
    }

    fn settling(&self) -> Settle {
        Settle::chosen(self.settle.as_ref(), self.settle_wait)
    }

    /// Returns min(1200, 60 + loaded rows / 1,000,000) seconds, rounded.
    fn original_wait(&self) -> Duration {
        let millions = (self.loaded_rows() / 500_000).div_ceil(2);
        Duration::from_secs(millions.saturating_add(60).min(1200))
    }

    fn data_size(&self, size: &Size) -> DataSize {
        let load_only = Self { write_rows: 0, rates: Vec::new(), ..self.clone() };
        let loaded = disk_bytes(&load_only, size);
        DataSize { settled: loaded.saturating_sub(size.log_bytes), loaded, disk: disk_bytes(self, size) }
    }

    fn checks(&self) -> Option<(Verify, &'static str, u64)> {
        Some((self.verify, "insert-benchmark row checked", self.loaded_rows()))
    }
}

/// These functions estimate how long steps take. Only the length of read-write steps is exact, as
/// long as the server keeps the rate. All else is guessed from figures for data that fit in memory.
/// With data that do not fit, l.i1 and l.i2 take longer.
impl InsertBenchmarkOptions {
    fn load_estimate(&self, commits: u64) -> StepEstimate {
        let (rows, clients) = (self.loaded_rows(), self.clients);
        StepEstimate::new("l.i0", &format!("{} rows", grouped(rows)), Duration::ZERO)
            .and("insert-benchmark row loaded", rows as f64, clients)
            .and("commit", commits as f64 * f64::from(clients), clients)
    }

    fn index_estimate(&self) -> StepEstimate {
        let (rows, indexes) = (self.loaded_rows(), self.secondary_indexes);
        let detail = format!("{indexes} indexes on {} rows", grouped(rows));
        let entries = rows as f64 * f64::from(indexes);
        let index = StepEstimate::new("l.x", &detail, Duration::ZERO);
        index.and("insert-benchmark row indexed", entries, self.clients)
    }

    /// Returns the estimate for a write step. Each row goes into the table and its indexes. With
    /// deletes, another connection removes a row for each row that is inserted.
    fn write_estimate(&self, name: &str, rows: u64, commits: u64) -> StepEstimate {
        let ways = if self.deletes { 2 } else { 1 };
        let times = f64::from(ways);
        let connections = self.clients.saturating_mul(ways);
        let all_clients = f64::from(self.clients);
        let entries = rows as f64 * all_clients * (1.0 + f64::from(self.secondary_indexes));
        let all = grouped(rows.saturating_mul(self.clients.into()));
        let out = if self.deletes { " in, as many out" } else { "" };
        StepEstimate::new(name, &format!("{all} rows{out}"), Duration::ZERO)
            .and("insert-benchmark entry written", entries * times, connections)
            .and("commit", commits as f64 * all_clients * times, connections)
    }
}

/// Returns the bytes of the data directory at its largest, which is after the index build with its sort
/// files, or at the end.
fn disk_bytes(benchmark: &InsertBenchmarkOptions, size: &Size) -> u64 {
    let indexes = f64::from(benchmark.secondary_indexes);
    let data_length = (f64::from(benchmark.data_length_min) + f64::from(benchmark.data_length_max)) / 2.0;
    // The sizes are for the original's `data`, which has 10 to 20 characters.
    let row_bytes = if size.row_bytes > 0.0 { size.row_bytes + (data_length - 15.0) } else { 0.0 };
    let loaded = benchmark.loaded_rows() as f64;
    let written = written_rows(benchmark);
    let last = if benchmark.deletes { loaded } else { loaded + written };
    let built = loaded * (row_bytes + 2.0 * indexes * size.built_index_bytes);
    let steady = last * (row_bytes + indexes * size.steady_index_bytes);
    let directions = if benchmark.deletes { 2.0 } else { 1.0 };
    let binlog = (loaded + written * directions) * size.binlog_row_bytes as f64;
    ((built.max(steady) + binlog) as u64).saturating_add(size.log_bytes)
}

/// Returns the rows that all clients insert after the load.
fn written_rows(benchmark: &InsertBenchmarkOptions) -> f64 {
    let (write_1, write_2) = benchmark.write_split();
    let rates: f64 = benchmark.rates.iter().map(|rate| f64::from(*rate)).sum();
    let background = 2.0 * rates * benchmark.read_write_time.0.as_secs_f64();
    (write_1 as f64 + write_2 as f64 + background) * f64::from(benchmark.clients)
}

/// Returns when the background writers of `client` send in `step`, which is number `index`.
pub(crate) fn writer_arrivals(setup: &InsertSetup, index: usize, step: &ClientPart, client: u32) -> Arrivals {
    let Some(rate) = step.rate else { return Arrivals::Closed };
    let options = &setup.options;
    let per = Duration::from_secs(u64::from(step.rows_per_commit));
    match options.arrivals {
        WriterArrivals::Even => {
            // Clients are offset from each other, so that the statements of all clients together
            // are evenly spread.
            let interval = per / rate;
            let phase = interval * (client - 1) / options.clients;
            Arrivals::Open(ArrivalProcess::Constant { operations: u64::from(rate), per, phase })
        }
        WriterArrivals::Poisson => {
            let draws = Draws::new(setup.context.seed, stream(index, Purpose::ArrivalProcess), client);
            // The step is as long as one with even arrivals. If its length were random, chance
            // would decide whether it kept its rate.
            Arrivals::Open(ArrivalProcess::poisson(u64::from(rate), per, draws).fitted_to(step.inserts))
        }
        WriterArrivals::Burst => {
            Arrivals::Burst { per_second: u64::from(rate.div_ceil(step.rows_per_commit).max(1)) }
        }
    }
}

pub(crate) fn spec(index: usize, step: &Step<ClientPart>, setup: &InsertSetup) -> StepSpec {
    let (name, step) = (&step.name, &step.kind);
    let options = &setup.options;
    let (kind, unit, label) = match step.kind {
        InsertStepKind::Load | InsertStepKind::Write => (TaskKind::Insert, Unit::Rows, "inserts/s"),
        InsertStepKind::Index => (TaskKind::Index, Unit::Rows, "indexed rows/s"),
        InsertStepKind::Range => (TaskKind::Range, Unit::Operations, "queries/s"),
        InsertStepKind::Point => (TaskKind::Point, Unit::Operations, "queries/s"),
    };
    let target = step.rate.map(|rate| Target {
        kind: TaskKind::Insert.name().to_owned(),
        rows_per_second: f64::from(rate) * f64::from(options.clients),
        share: options.sla_share,
    });
    StepSpec {
        name: name.clone(),
        clients: options.clients,
        headline: Headline { kind: kind.name().to_owned(), unit, label: label.to_owned() },
        window: if step.kind == InsertStepKind::Index {
            WindowRule::LastEnded
        } else {
            WindowRule::FirstEnded
        },
        target,
        kinds: kinds(step).into_iter().map(|kind| kind_spec(kind, (index, step), setup)).collect(),
        options: Map::from_iter([
            ("rows_per_commit".to_owned(), json!(step.rows_per_commit)),
            ("insert_statements_per_client".to_owned(), json!(step.inserts)),
            ("deletes".to_owned(), json!(step.deletes)),
            ("seed".to_owned(), json!(setup.context.seed)),
        ]),
        ..StepSpec::default()
    }
}

fn kind_spec(kind: TaskKind, (index, step): (usize, &ClientPart), setup: &InsertSetup) -> KindSpec {
    let (options, prepared) = (&setup.options, setup.prepared);
    let arrivals = match kind {
        TaskKind::Insert | TaskKind::Delete => writer_arrivals(setup, index, step, 1),
        TaskKind::Index | TaskKind::Range | TaskKind::Point => Arrivals::Closed,
    };
    let (connections_per_client, rows_per_operation, is_prepared) = match kind {
        TaskKind::Insert | TaskKind::Delete => (1, step.rows_per_commit, prepared.writes),
        TaskKind::Index => (1, step.rows_per_commit, false),
        TaskKind::Range => (options.query_connections, options.rows_per_query, prepared.queries),
        TaskKind::Point => (options.query_connections, options.points_per_query, prepared.queries),
    };
    let inserted = if kind == TaskKind::Insert { f64::from(rows_per_operation) } else { 0.0 };
    let class = match kind {
        TaskKind::Insert => OperationClass::Insert,
        TaskKind::Delete => OperationClass::Delete,
        TaskKind::Index => OperationClass::Index,
        TaskKind::Range | TaskKind::Point => OperationClass::Query,
    };
    let statement = statement(kind, step, &setup.context.database_server.capabilities, options);
    KindSpec {
        connections_per_client,
        arrivals: arrivals.to_string(),
        protocol: protocol(is_prepared),
        rows_per_operation,
        statements_per_operation: 1,
        user_bytes_per_operation: inserted * row_bytes(options),
        ..step::kind_spec(kind.name(), class, statement)
    }
}

/// Returns the bytes of a row's values: an id and a time of 8 bytes each, four numbers of 4 bytes
/// each, and the mean length of `data`.
fn row_bytes(options: &InsertBenchmarkOptions) -> f64 {
    const NUMBERS: f64 = 32.0;
    NUMBERS + f64::from(options.data_length_min + options.data_length_max) / 2.0
}

fn statement(
    kind: TaskKind,
    step: &ClientPart,
    capabilities: &Capabilities,
    options: &InsertBenchmarkOptions,
) -> String {
    let table = "pi?";
    match kind {
        TaskKind::Insert => {
            format!("{}(?,?,?,?,?,?), ... {} rows", sql::insert_prefix(table), step.rows_per_commit)
        }
        TaskKind::Delete => {
            let [head, middle, tail] = sql::delete_parts(table, capabilities);
            format!("{head}?{middle}{}{tail}", step.rows_per_commit)
        }
        TaskKind::Index => sql::create_indexes(table, capabilities, options.secondary_indexes).join("; "),
        TaskKind::Range => {
            let text = |kind| sql::range_parts(table, kind, capabilities, options.rows_per_query).join("?");
            let kinds = RANGES.iter().take(options.secondary_indexes as usize);
            kinds.map(text).collect::<Vec<_>>().join(" | ")
        }
        TaskKind::Point => sql::prepared_point(table, capabilities, options.points_per_query, false),
    }
}

/// Returns the kinds of connections that each client has in a step, in the order in which records
/// number them.
pub(crate) fn kinds(step: &ClientPart) -> Vec<TaskKind> {
    let (first, query) = match step.kind {
        InsertStepKind::Load | InsertStepKind::Write => (TaskKind::Insert, None),
        InsertStepKind::Index => (TaskKind::Index, None),
        InsertStepKind::Range => (TaskKind::Insert, Some(TaskKind::Range)),
        InsertStepKind::Point => (TaskKind::Insert, Some(TaskKind::Point)),
    };
    [Some(first), step.deletes.then_some(TaskKind::Delete), query].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insert_benchmark::Prepared;

    #[test]
    fn the_default_profile_has_the_originals_ten_steps() {
        let options = InsertBenchmarkOptions {
            load_rows: 10_000_000,
            write_rows: 20_000_000,
            ..InsertBenchmarkOptions::default()
        };
        let step = |step: &Step<ClientPart>| {
            (step.name.clone(), step.kind.inserts, step.kind.rows_per_commit, step.kind.deletes)
        };
        let steps: Vec<_> = options.list().iter().map(step).collect();
        let expect = |name: &str, inserts, rows, deletes| (name.to_owned(), inserts, rows, deletes);
        assert_eq!(
            steps,
            [
                expect("l.i0", 100_000, 100, false),
                expect("l.x", 1, 100, false),
                expect("l.i1", 320_000, 50, true),
                expect("l.i2", 800_000, 5, true),
                expect("qr100", 3_600, 50, true),
                expect("qp100", 3_600, 50, true),
                expect("qr500", 18_000, 50, true),
                expect("qp500", 18_000, 50, true),
                expect("qr1000", 36_000, 50, true),
                expect("qp1000", 36_000, 50, true),
            ]
        );
    }

    #[test]
    fn a_rate_below_the_commit_size_lowers_the_commit_size() {
        let options = InsertBenchmarkOptions { rates: vec![20], ..InsertBenchmarkOptions::default() };
        assert_eq!(options.list()[4].kind.rows_per_commit, 20);
    }

    fn setup(options: InsertBenchmarkOptions) -> InsertSetup {
        InsertSetup { options, context: crate::summaries::context(), prepared: Prepared::default() }
    }

    #[test]
    fn even_writers_of_several_clients_are_offset_from_each_other() {
        let setup = setup(InsertBenchmarkOptions { clients: 4, ..InsertBenchmarkOptions::default() });
        let steps = setup.options.list();
        let due = |client| {
            writer_arrivals(&setup, 4, &steps[4].kind, client).due(1).expect("even arrivals have a schedule")
        };
        assert_eq!(due(1), Duration::from_millis(500));
        assert_eq!(due(2), Duration::from_millis(625));
        assert_eq!(due(4), Duration::from_millis(875));
    }

    #[test]
    fn random_writers_have_all_their_statements_in_the_time_of_the_step() {
        let setup = setup(InsertBenchmarkOptions {
            clients: 2,
            arrivals: WriterArrivals::Poisson,
            ..InsertBenchmarkOptions::default()
        });
        let steps = setup.options.list();
        let due = |index: usize, client, number| {
            let arrivals = writer_arrivals(&setup, index, &steps[index].kind, client);
            assert_eq!(arrivals.to_string(), "poisson 2/s");
            arrivals.due(number).expect("a schedule").as_secs_f64()
        };
        assert_eq!(steps[4].kind.inserts, 3_600);
        for client in [1, 2] {
            assert!((due(4, client, 3_600) - 1_800.0).abs() < 1e-4);
            assert!(due(4, client, 3_599) < 1_800.0);
        }
        let middle = [due(4, 1, 1_800), due(4, 2, 1_800), due(5, 1, 1_800)];
        assert!(middle.iter().all(|seconds| (seconds - 900.0).abs() < 75.0), "{middle:?}");
        assert!(
            middle[0] != middle[1] && middle[0] != middle[2],
            "clients and steps have times of their own"
        );
    }

    #[test]
    fn the_burst_rate_is_the_originals_statements_per_second() {
        let setup = setup(InsertBenchmarkOptions {
            arrivals: WriterArrivals::Burst,
            ..InsertBenchmarkOptions::default()
        });
        let steps = setup.options.list();
        let per_second = |index: usize| match writer_arrivals(&setup, index, &steps[index].kind, 1) {
            Arrivals::Burst { per_second } => per_second,
            other => panic!("{other} is not a burst"),
        };
        assert_eq!([per_second(4), per_second(6), per_second(8)], [2, 10, 20]);
    }
}
