//! Forecasts the classic OLTP workload. Exact: the length of its tests. All else is guessed from
//! assumed speeds.

use std::time::Duration;

use dbdyno_plan::{Forecast, PlanDuration, Size, Speed, StepEstimate, grouped, numbered, seconds};

use crate::oltp::options::{LoadMethod, Oltp};
use crate::options::Verify;

/// What a row of 200 bytes costs more than a row of the Insert Benchmark, whose cost is assumed.
pub(crate) const ROW_FACTOR: f64 = 2.0;
/// What a row costs that the database streams in, compared with one of a multi-row INSERT.
const STREAM_FACTOR: f64 = 0.6;
/// Bytes of a row's columns: two whole numbers, 120 and 60 characters.
const COLUMN_BYTES: f64 = 188.0;
/// What storage engines add to a row, with space left free in pages.
const PAGE_FACTOR: f64 = 1.25;
/// One row of an index on a whole number.
const INDEX_BYTES: f64 = 20.0;
/// Bytes of a row with its index in InnoDB's files, measured.
pub(crate) const ROW_BYTES: u64 = 220;
/// Operations that a connection is taken to do a second, for steps that end with their operations.
pub(crate) const OPERATIONS_PER_SECOND: f64 = 2_000.0;
/// Rows that tests are taken to write a second, for redo and binary logs.
const WRITES_PER_SECOND: f64 = 20_000.0;

pub(crate) fn estimate(oltp: &Oltp, speed: &Speed, size: &Size) -> Forecast {
    Forecast {
        steps: steps(oltp, speed),
        disk_bytes: disk_bytes(oltp, size),
        loaded_bytes: table_bytes(oltp, size, Duration::ZERO),
    }
}

/// Start, load and index.
pub(crate) fn table_steps(oltp: &Oltp, speed: &Speed) -> Vec<StepEstimate> {
    let rows = oltp.loaded_rows();
    let lanes = oltp.load_connections.min(speed.parallel_clients).max(1);
    let all = |row_us: f64, lanes: u32| seconds(rows as f64 * row_us / f64::from(lanes) / 1e6);
    let detail = format!("{} rows", grouped(rows));
    let mut steps = vec![StepEstimate::new("prepare", "server and tables", seconds(speed.prepare_seconds))];
    if !oltp.use_existing {
        let row_us = match oltp.load_method {
            LoadMethod::Insert => speed.load_row_us * ROW_FACTOR,
            LoadMethod::Stream => speed.load_row_us * ROW_FACTOR * STREAM_FACTOR,
        };
        let kept_up = if oltp.index_before_load { speed.write_entry_us } else { 0.0 };
        steps.push(StepEstimate::new("load", &detail, all(row_us + kept_up, lanes)));
        if oltp.has_index_step() {
            // A table's index is built by one connection.
            let length = all(speed.index_row_us, lanes.min(oltp.tables));
            steps.push(StepEstimate::new("index", &format!("1 index on {detail}"), length));
        }
    }
    steps
}

fn steps(oltp: &Oltp, speed: &Speed) -> Vec<StepEstimate> {
    let mut steps = table_steps(oltp, speed);
    if !oltp.use_existing {
        steps.extend(oltp.settling().estimate("after the load", Duration::ZERO));
    }
    for (test, connections, rate) in oltp.test_steps() {
        let name = Oltp::step_name(test, connections, rate);
        let at = rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        let what = oltp.events.map_or_else(
            || with_warm_up(oltp.warmup_length(), oltp.time.0),
            |events| format!("{} operations", grouped(events)),
        );
        steps.push(StepEstimate::new(
            &name,
            &format!("{what} on {}{at}", numbered(connections, "connection")),
            length(oltp, connections),
        ));
    }
    let writing = oltp.test_steps().iter().filter(|(test, ..)| test.writes()).count();
    steps.extend(checks(oltp.verify, writing, oltp.loaded_rows(), speed));
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

/// Of one step; guessed where it ends with its operations.
fn length(oltp: &Oltp, connections: u32) -> Duration {
    let guessed = || oltp.events.unwrap_or(0) as f64 / f64::from(connections.max(1)) / OPERATIONS_PER_SECOND;
    oltp.length().unwrap_or_else(|| seconds(guessed()))
}

/// Reading tables of `rows` rows after the steps that write.
pub(crate) fn checks(verify: Verify, writing_steps: usize, rows: u64, speed: &Speed) -> Option<StepEstimate> {
    let checks = match verify {
        Verify::Off => return None,
        Verify::End => 1,
        // The first one reads what the load has made, or what is there.
        Verify::EachStep => 1 + writing_steps,
    };
    let each = rows as f64 * speed.verify_row_us * ROW_FACTOR / 1e6;
    let detail = format!("{} of {} rows", numbered(checks, "check"), grouped(rows));
    Some(StepEstimate::new("verify", &detail, seconds(each * checks as f64)))
}

fn disk_bytes(oltp: &Oltp, size: &Size) -> u64 {
    let writing = oltp.test_steps().into_iter().filter(|(test, ..)| test.writes());
    let lengths = writing.map(|(_, connections, _)| length(oltp, connections));
    table_bytes(oltp, size, lengths.fold(Duration::ZERO, Duration::saturating_add))
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
    use dbdyno_plan::estimate;

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
        let estimate = estimate(&plan);
        let line =
            |step: &super::StepEstimate| format!("{} | {} | {:.1?}\n", step.name, step.detail, step.duration);
        let table: String = estimate.cells[0].steps.iter().map(line).collect();
        insta::assert_snapshot!(table, @r"
        prepare | server and tables | 8.0s
        load | 1,000,000 rows | 2.0s
        index | 1 index on 1,000,000 rows | 1.0s
        settle | cleanup after the load, until quiet, 10m at most | 30.0s
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
