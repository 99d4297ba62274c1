//! Forecasts the classic OLTP workload. Exact: the length of its tests. All else is guessed.

use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_plan::{Forecast, Size, StepEstimate, grouped, numbered, seconds};

use crate::oltp::options::{LoadMethod, Oltp};
use crate::options::Verify;

/// Figures that other workloads on such tables have too.
pub(crate) const ROW_LOADED: &str = "oltp row loaded";
pub(crate) const ROW_READ: &str = "oltp row read";
pub(crate) const OPERATION: &str = "operation";
/// Bytes of a row's columns: two whole numbers, 120 and 60 characters.
const COLUMN_BYTES: f64 = 188.0;
/// What storage engines add to a row, with space left free in pages.
const PAGE_FACTOR: f64 = 1.25;
/// One row of an index on a whole number.
const INDEX_BYTES: f64 = 20.0;
/// Bytes of a row with its index in InnoDB's files, measured.
pub(crate) const ROW_BYTES: u64 = 220;
/// Rows that tests are taken to write a second, for redo and binary logs, and that an operation
/// writes.
const WRITES_PER_SECOND: f64 = 20_000.0;
const WRITES_PER_OPERATION: f64 = 10.0;

pub(crate) fn estimate(oltp: &Oltp, size: &Size) -> Forecast {
    let loaded_bytes = table_bytes(oltp, size, Duration::ZERO);
    Forecast {
        steps: steps(oltp, loaded_bytes.saturating_sub(size.log_bytes)),
        disk_bytes: disk_bytes(oltp, size),
        loaded_bytes,
    }
}

/// Start, load and index.
pub(crate) fn table_steps(oltp: &Oltp) -> Vec<StepEstimate> {
    let rows = oltp.loaded_rows();
    let connections = oltp.load_connections;
    let detail = format!("{} rows", grouped(rows));
    let rows = rows as f64;
    let mut steps = vec![StepEstimate::of_work("prepare", "server and tables", "server started", 1.0)];
    if !oltp.use_existing {
        let figure = match oltp.load_method {
            LoadMethod::Insert => ROW_LOADED,
            LoadMethod::Stream => "oltp row streamed",
        };
        let kept = if oltp.index_before_load { rows } else { 0.0 };
        let load = StepEstimate::new("load", &detail, Duration::ZERO);
        steps.push(load.and(figure, rows, connections).and("oltp row kept indexed", kept, connections));
        if oltp.has_index_step() {
            // A table's index is built by one connection.
            let index = StepEstimate::new("index", &format!("1 index on {detail}"), Duration::ZERO);
            steps.push(index.and("oltp row indexed", rows, connections.min(oltp.tables)));
        }
    }
    steps
}

fn steps(oltp: &Oltp, data_bytes: u64) -> Vec<StepEstimate> {
    let mut steps = table_steps(oltp);
    if !oltp.use_existing {
        steps.extend(oltp.settling().estimate("after the load", Duration::ZERO, data_bytes));
    }
    for (test, connections, rate) in oltp.test_steps() {
        let name = Oltp::step_name(test, connections, rate);
        let at = rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        let what = oltp.events.map_or_else(
            || with_warm_up(oltp.warmup_length(), oltp.time.0),
            |events| format!("{} operations", grouped(events)),
        );
        let detail = format!("{what} on {}{at}", numbered(connections, "connection"));
        steps.push(match oltp.length() {
            Some(length) => StepEstimate::new(&name, &detail, length),
            None => {
                let operations = oltp.events.unwrap_or(0) as f64;
                StepEstimate::new(&name, &detail, Duration::ZERO).and(OPERATION, operations, connections)
            }
        });
    }
    let writing = oltp.test_steps().iter().filter(|(test, ..)| test.writes()).count();
    steps.extend(checks(oltp.verify, writing, oltp.loaded_rows()));
    steps
}

/// `5s warm-up and 30s`
pub(crate) fn with_warm_up(warm_up: Duration, length: Duration) -> String {
    let length = PlanDuration(length);
    if warm_up.is_zero() {
        length.to_string()
    } else {
        format!("{} warm-up and {length}", PlanDuration(warm_up))
    }
}

/// How long a step writes, at the rate that tests are taken to write with.
fn writing(oltp: &Oltp) -> Duration {
    let of_operations = || oltp.events.unwrap_or(0) as f64 * WRITES_PER_OPERATION / WRITES_PER_SECOND;
    oltp.length().unwrap_or_else(|| seconds(of_operations()))
}

/// Reading tables of `rows` rows after the steps that write.
pub(crate) fn checks(verify: Verify, writing_steps: usize, rows: u64) -> Option<StepEstimate> {
    let checks = match verify {
        Verify::Off => return None,
        Verify::End => 1,
        // The first one reads what the load has made, or what is there.
        Verify::EachStep => 1 + writing_steps,
    };
    let detail = format!("{} of {} rows", numbered(checks, "check"), grouped(rows));
    Some(StepEstimate::of_work("verify", &detail, ROW_READ, rows as f64 * checks as f64))
}

fn disk_bytes(oltp: &Oltp, size: &Size) -> u64 {
    let steps = oltp.test_steps().iter().filter(|(test, ..)| test.writes()).count();
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    table_bytes(oltp, size, writing(oltp).saturating_mul(steps))
}

/// Tables and logs, after `writing` of steps that write.
pub(crate) fn table_bytes(oltp: &Oltp, size: &Size, writing: Duration) -> u64 {
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

    use crate::plans::parse;

    #[test]
    fn tests_take_their_time_and_all_else_is_guessed() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.oltp]\n\
             tests = [\"point-select\", \"read-write\"]\ntable_size = 1_000_000\nconnections = [1, 16]\n\
             warmup = \"2s\"\npace = \"constant\"\nrates = [500]\n",
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
