//! Forecasts the Insert Benchmark. Exact: the length of read-write steps (as long as the server
//! keeps the rate) and the settle pause. All else is guessed from figures of data that fit in
//! memory; with data that do not, l.i1 and l.i2 take longer.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, StepEstimate, grouped, numbered};

use crate::insert_benchmark::options::InsertBenchmark;
use crate::options::Verify;

pub(crate) fn estimate(benchmark: &InsertBenchmark, size: &Size) -> Forecast {
    let load_only = InsertBenchmark { write_rows: 0, rates: Vec::new(), ..benchmark.clone() };
    let loaded_bytes = disk_bytes(&load_only, size);
    Forecast {
        steps: steps(benchmark, loaded_bytes.saturating_sub(size.log_bytes)),
        disk_bytes: disk_bytes(benchmark, size),
        loaded_bytes,
    }
}

fn steps(benchmark: &InsertBenchmark, data_bytes: u64) -> Vec<StepEstimate> {
    let (write_1, write_2) = benchmark.write_split();
    let commit = &benchmark.rows_per_commit;
    let mut steps = vec![StepEstimate::of_work("prepare", "server and tables", "server started", 1.0)];
    steps.push(load(benchmark));
    steps.push(index(benchmark));
    steps.push(write(benchmark, "l.i1", write_1, commit.write_1));
    steps.push(write(benchmark, "l.i2", write_2, commit.write_2));
    steps.extend(benchmark.settling().estimate("after l.i2", benchmark.original_wait(), data_bytes));
    for (name, rate) in
        benchmark.rates.iter().flat_map(|rate| [(format!("qr{rate}"), rate), (format!("qp{rate}"), rate)])
    {
        let both = if benchmark.deletes { "inserts and deletes" } else { "inserts" };
        let length = benchmark.read_write_time;
        steps.push(StepEstimate::new(&name, &format!("{length} at {rate} {both}/s a client"), length.0));
    }
    steps.extend(verify(benchmark));
    steps
}

fn load(benchmark: &InsertBenchmark) -> StepEstimate {
    let (rows, clients) = (benchmark.loaded_rows(), benchmark.clients);
    let commits = all_clients(benchmark, commits(benchmark.load_rows, benchmark.rows_per_commit.load));
    StepEstimate::new("l.i0", &format!("{} rows", grouped(rows)), Duration::ZERO)
        .and("insert-benchmark row loaded", rows as f64, clients)
        .and("commit", commits, clients)
}

fn index(benchmark: &InsertBenchmark) -> StepEstimate {
    let (rows, indexes) = (benchmark.loaded_rows(), benchmark.secondary_indexes);
    let detail = format!("{indexes} indexes on {} rows", grouped(rows));
    let entries = rows as f64 * f64::from(indexes);
    StepEstimate::new("l.x", &detail, Duration::ZERO).and(
        "insert-benchmark row indexed",
        entries,
        benchmark.clients,
    )
}

/// A write step: each row goes into the table and its indexes, and with deletes another one leaves
/// them, on a connection of its own.
fn write(benchmark: &InsertBenchmark, name: &str, rows: u64, rows_per_commit: u32) -> StepEstimate {
    let ways = if benchmark.deletes { 2 } else { 1 };
    let times = f64::from(ways);
    let connections = benchmark.clients.saturating_mul(ways);
    let entries = all_clients(benchmark, rows as f64) * f64::from(1 + benchmark.secondary_indexes);
    let commits = all_clients(benchmark, commits(rows, rows_per_commit));
    let all = grouped(rows.saturating_mul(benchmark.clients.into()));
    let out = if benchmark.deletes { " in, as many out" } else { "" };
    StepEstimate::new(name, &format!("{all} rows{out}"), Duration::ZERO)
        .and("insert-benchmark entry written", entries * times, connections)
        .and("commit", commits * times, connections)
}

fn verify(benchmark: &InsertBenchmark) -> Option<StepEstimate> {
    let times = match benchmark.verify {
        Verify::EachStep => benchmark.step_names().len(),
        Verify::End => 1,
        Verify::Off => return None,
    };
    let (checks, rows) = (numbered(times as u64, "check"), benchmark.loaded_rows());
    let detail = format!("{checks} of {} rows", grouped(rows));
    let rows = rows as f64 * times as f64;
    Some(StepEstimate::of_work("verify", &detail, "insert-benchmark row checked", rows))
}

fn commits(rows: u64, rows_per_commit: u32) -> f64 {
    rows.div_ceil(rows_per_commit.max(1).into()) as f64
}

fn all_clients(benchmark: &InsertBenchmark, of_client: f64) -> f64 {
    of_client * f64::from(benchmark.clients)
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
