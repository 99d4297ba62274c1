//! The list of steps: load, index, then each test at each concurrency level, and how much disk they
//! take. Estimates are exact for the length of tests, and everything else is guessed.

use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_plan::{Rest, Size, StepEstimate, StepOutline, grouped, numbered, seconds};

use crate::oltp::options::{LoadMethod, OltpOptions, OltpTest};
use crate::options::Verify;
use crate::settle::{Settle, SettleWait};
use crate::step::{DataSize, RunLength, Step, StepOptions, checked, load_steps};

/// Figures that other workloads on such tables have too.
pub(crate) const ROW_LOADED: &str = "oltp row loaded";
pub(crate) const ROW_READ: &str = "oltp row read";
/// Bytes of a row's columns: two whole numbers, 120 and 60 characters.
const COLUMN_BYTES: f64 = 188.0;
/// Factor for what storage engines add to a row, with space left free in pages.
const PAGE_FACTOR: f64 = 1.25;
/// Bytes of one row of an index on a whole number.
const INDEX_BYTES: f64 = 20.0;
/// Bytes of a row with its index in InnoDB's files, measured.
pub(crate) const ROW_BYTES: u64 = 220;
/// Rows that tests are assumed to write per second, for redo and binary logs, and rows that an
/// operation writes.
const WRITES_PER_SECOND: f64 = 20_000.0;
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
            let is_rested = test.writes() && !self.data.puts_back_each_step();
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

    /// Returns the length that the plan gives, or this number of operations.
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

    use crate::plans::parse;

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
