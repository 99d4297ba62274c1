//! Forecasts the Insert Benchmark. Exact: the length of read-write steps (as long as the server
//! keeps the rate) and the settle pause. All else is guessed from assumed speeds, for data that
//! fits in memory; with data that does not, l.i1 and l.i2 take longer.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, Speed, StepEstimate, grouped, numbered, seconds};

use crate::insert_benchmark::options::InsertBenchmark;
use crate::options::Verify;

pub(crate) fn estimate(benchmark: &InsertBenchmark, speed: &Speed, size: &Size) -> Forecast {
    let load_only = InsertBenchmark { write_rows: 0, rates: Vec::new(), ..benchmark.clone() };
    Forecast {
        steps: OnServer { benchmark, speed }.steps(),
        disk_bytes: disk_bytes(benchmark, size),
        loaded_bytes: disk_bytes(&load_only, size),
    }
}

struct OnServer<'a> {
    benchmark: &'a InsertBenchmark,
    speed: &'a Speed,
}

impl OnServer<'_> {
    fn steps(&self) -> Vec<StepEstimate> {
        let benchmark = self.benchmark;
        let (write_1, write_2) = benchmark.write_split();
        let commit = &benchmark.rows_per_commit;
        let mut steps =
            vec![StepEstimate::new("prepare", "server and tables", seconds(self.speed.prepare_seconds))];
        steps.push(self.load());
        steps.push(self.index());
        steps.push(self.write("l.i1", write_1, commit.write_1));
        steps.push(self.write("l.i2", write_2, commit.write_2));
        steps.extend(benchmark.settling().estimate("after l.i2", benchmark.original_wait()));
        for (name, rate) in
            benchmark.rates.iter().flat_map(|rate| [(format!("qr{rate}"), rate), (format!("qp{rate}"), rate)])
        {
            let both = if benchmark.deletes { "inserts and deletes" } else { "inserts" };
            let length = benchmark.read_write_time;
            steps.push(StepEstimate::new(&name, &format!("{length} at {rate} {both}/s a client"), length.0));
        }
        steps.extend(self.verify());
        steps
    }

    fn load(&self) -> StepEstimate {
        let per_client = rows_us(self.benchmark.load_rows, self.speed.load_row_us)
            + self.commits_us(self.benchmark.load_rows, self.benchmark.rows_per_commit.load);
        let detail = format!("{} rows", grouped(self.benchmark.loaded_rows()));
        StepEstimate::new("l.i0", &detail, self.all_clients(per_client))
    }

    fn index(&self) -> StepEstimate {
        let indexes = self.benchmark.secondary_indexes;
        let per_client = rows_us(self.benchmark.load_rows, self.speed.index_row_us) * f64::from(indexes);
        let rows = grouped(self.benchmark.loaded_rows());
        StepEstimate::new("l.x", &format!("{indexes} indexes on {rows} rows"), self.all_clients(per_client))
    }

    /// A write step: each row goes into the table and its indexes, and with deletes another one
    /// leaves them.
    fn write(&self, name: &str, rows: u64, rows_per_commit: u32) -> StepEstimate {
        let entries = f64::from(1 + self.benchmark.secondary_indexes);
        let one_way =
            rows_us(rows, self.speed.write_entry_us * entries) + self.commits_us(rows, rows_per_commit);
        // The two connections of a client work side by side where the server lets them.
        let ways = if self.benchmark.deletes && self.speed.is_one_writer { 2.0 } else { 1.0 };
        let all = grouped(rows.saturating_mul(self.benchmark.clients.into()));
        let out = if self.benchmark.deletes { " in, as many out" } else { "" };
        StepEstimate::new(name, &format!("{all} rows{out}"), self.all_clients(one_way * ways))
    }

    fn verify(&self) -> Option<StepEstimate> {
        let times = match self.benchmark.verify {
            Verify::EachStep => self.benchmark.step_names().len(),
            Verify::End => 1,
            Verify::Off => return None,
        };
        let once = rows_us(self.benchmark.load_rows, self.speed.verify_row_us);
        let checks = numbered(times as u64, "check");
        let detail = format!("{checks} of {} rows", grouped(self.benchmark.loaded_rows()));
        Some(StepEstimate::new("verify", &detail, self.all_clients(once * times as f64)))
    }

    fn commits_us(&self, rows: u64, rows_per_commit: u32) -> f64 {
        rows.div_ceil(rows_per_commit.max(1).into()) as f64 * self.speed.commit_us
    }

    /// The time for all clients, when one of them alone needs `client_us`.
    fn all_clients(&self, client_us: f64) -> Duration {
        let clients = self.benchmark.clients;
        let rounds = f64::from(clients) / f64::from(clients.min(self.speed.parallel_clients).max(1));
        seconds(client_us * rounds / 1e6)
    }
}

fn rows_us(rows: u64, row_us: f64) -> f64 {
    rows as f64 * row_us
}

/// Bytes of the data directory at its largest: after the index build with its sort files, or at the
/// end.
fn disk_bytes(benchmark: &InsertBenchmark, size: &Size) -> u64 {
    let indexes = f64::from(benchmark.secondary_indexes);
    let data_length = (f64::from(benchmark.data_length_min) + f64::from(benchmark.data_length_max)) / 2.0;
    // The sizes hold for the original's 10 to 20 characters of data.
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

/// Rows that all clients insert after the load.
fn written_rows(benchmark: &InsertBenchmark) -> f64 {
    let (write_1, write_2) = benchmark.write_split();
    let rates: f64 = benchmark.rates.iter().map(|rate| f64::from(*rate)).sum();
    let background = 2.0 * rates * benchmark.read_write_time.0.as_secs_f64();
    (write_1 as f64 + write_2 as f64 + background) * f64::from(benchmark.clients)
}
