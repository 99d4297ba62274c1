//! Forecasts how long a plan takes and how much disk it needs.
//!
//! Exact parts: the length of read-write steps (as long as the server keeps the rate) and the settle pause. All else
//! is a guess from the assumed speeds of [`crate::speed`], for data that fits in memory; a plan whose data does not
//! takes longer in l.i1 and l.i2.

use std::time::Duration;

use crate::count_words::{grouped, numbered};
use crate::estimate_data::by_data_mode;
use crate::speed::{Size, Speed, assumed};
use crate::{InsertBenchmark, Plan, Variant, VariantKind, Verify, estimate_microbenchmarks, estimate_oltp};

/// Forecast of a whole plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// How often each cell runs.
    pub blocks: u32,
    /// One entry a variant and workload, in the plan's order; each runs once a block.
    pub cells: Vec<CellEstimate>,
    /// All cells of all blocks, and the rest between them.
    pub duration: Duration,
    /// Between two cells.
    pub rest: Duration,
    /// Initialised data directories that are kept to be copied, one a started server.
    pub template_bytes: u64,
    /// The most disk of this machine in use at one time: the templates, the snapshots of loaded data, and the largest data
    /// directory, or all of them with `host.keep_data`. The run directory's records come on top; they are small. What an address
    /// holds lies on the disk of the server's owner and is not in here.
    pub peak_disk_bytes: u64,
    /// The most disk that one cell takes of a server that others run; `None` in a plan without addresses.
    pub address_disk_bytes: Option<u64>,
}

/// Forecast of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellEstimate {
    pub variant: String,
    pub workload: String,
    /// In the order in which they run.
    pub steps: Vec<StepEstimate>,
    /// Sum of the steps.
    pub duration: Duration,
    /// Names of the steps that only the variant's first block runs: the load, where later blocks begin on a snapshot.
    pub once: Vec<String>,
    /// The cell's data directory at its largest. For an address: the same on another's disk.
    pub disk_bytes: u64,
}

/// Forecast of one step, or of work between steps (`prepare`, `settle`, `verify`).
#[derive(Debug, Clone, PartialEq)]
pub struct StepEstimate {
    pub name: String,
    /// How much there is to do: rows or seconds.
    pub detail: String,
    pub duration: Duration,
}

/// The forecast for a checked plan.
pub fn estimate(plan: &Plan) -> Estimate {
    let mut cells = Vec::new();
    let mut template_bytes = 0;
    for variant in &plan.variants {
        template_bytes += assumed(&variant.kind()).1.template_bytes;
        cells.extend(plan.workload.insert_benchmark.iter().map(|benchmark| cell(variant, benchmark)));
        let microbenchmarks = plan.workload.microbenchmarks.iter();
        cells.extend(microbenchmarks.map(|options| estimate_microbenchmarks::cell(variant, options)));
        cells.extend(plan.workload.oltp.iter().map(|oltp| estimate_oltp::cell(variant, oltp)));
    }
    for cell in &mut cells {
        by_data_mode(cell, plan);
    }
    let block: Duration = cells.iter().map(|cell| cell.duration).sum();
    let once: Duration = cells.iter().map(CellEstimate::once_duration).sum();
    let is_address = |cell: &&CellEstimate| {
        let variant = plan.variants.iter().find(|variant| variant.name == cell.variant);
        variant.is_some_and(|variant| matches!(variant.kind(), VariantKind::Address(_)))
    };
    let here: Vec<&CellEstimate> = cells.iter().filter(|cell| !is_address(cell)).collect();
    let address_disk_bytes = cells.iter().filter(is_address).map(|cell| cell.disk_bytes).max();
    let snapshots = here.iter().filter(|cell| !cell.once.is_empty());
    let snapshot_bytes = snapshots.fold(0_u64, |sum, cell| sum.saturating_add(cell.disk_bytes));
    let data_bytes = if plan.host.keep_data {
        let block_bytes = here.iter().fold(0_u64, |sum, cell| sum.saturating_add(cell.disk_bytes));
        block_bytes.saturating_mul(plan.blocks.into())
    } else {
        here.iter().map(|cell| cell.disk_bytes).max().unwrap_or(0)
    };
    let all_cells = u32::try_from(cells.len()).unwrap_or(u32::MAX).saturating_mul(plan.blocks);
    let rest = plan.host.rest.0;
    let rests = rest.saturating_mul(all_cells.saturating_sub(1));
    let worked = once.saturating_add(block.saturating_sub(once).saturating_mul(plan.blocks));
    let peak_disk_bytes = data_bytes.saturating_add(template_bytes).saturating_add(snapshot_bytes);
    Estimate {
        blocks: plan.blocks,
        cells,
        duration: worked.saturating_add(rests),
        rest,
        template_bytes,
        peak_disk_bytes,
        address_disk_bytes,
    }
}

fn cell(variant: &Variant, benchmark: &InsertBenchmark) -> CellEstimate {
    let (speed, size) = assumed(&variant.kind());
    let steps = Forecast { benchmark, speed }.steps();
    CellEstimate {
        variant: variant.name.clone(),
        workload: "insert-benchmark".to_owned(),
        duration: steps.iter().map(|step| step.duration).sum(),
        once: Vec::new(),
        disk_bytes: disk_bytes(benchmark, &size),
        steps,
    }
}

/// The insert benchmark on one kind of server.
struct Forecast<'a> {
    benchmark: &'a InsertBenchmark,
    speed: Speed,
}

impl Forecast<'_> {
    fn steps(&self) -> Vec<StepEstimate> {
        let benchmark = self.benchmark;
        let (write_1, write_2) = benchmark.write_split();
        let commit = &benchmark.rows_per_commit;
        let mut steps = vec![step("prepare", "server and tables", seconds(self.speed.prepare_seconds))];
        steps.push(self.load());
        steps.push(self.index());
        steps.push(self.write("l.i1", write_1, commit.write_1));
        steps.push(self.write("l.i2", write_2, commit.write_2));
        let settle = benchmark.settling();
        if settle.behind().is_some() {
            let rest = settle.forecast(benchmark.original_wait());
            steps.push(step("settle", &settle.detail("after l.i2"), rest));
        }
        for (name, rate) in
            benchmark.rates.iter().flat_map(|rate| [(format!("qr{rate}"), rate), (format!("qp{rate}"), rate)])
        {
            let both = if benchmark.deletes { "inserts and deletes" } else { "inserts" };
            let length = benchmark.read_write_time;
            steps.push(step(&name, &format!("{length} at {rate} {both}/s a client"), length.0));
        }
        steps.extend(self.verify());
        steps
    }

    fn load(&self) -> StepEstimate {
        let per_client = rows_us(self.benchmark.load_rows, self.speed.load_row_us)
            + self.commits_us(self.benchmark.load_rows, self.benchmark.rows_per_commit.load);
        step("l.i0", &format!("{} rows", grouped(self.benchmark.loaded_rows())), self.all_clients(per_client))
    }

    fn index(&self) -> StepEstimate {
        let indexes = self.benchmark.secondary_indexes;
        let per_client = rows_us(self.benchmark.load_rows, self.speed.index_row_us) * f64::from(indexes);
        let rows = grouped(self.benchmark.loaded_rows());
        step("l.x", &format!("{indexes} indexes on {rows} rows"), self.all_clients(per_client))
    }

    /// A write step: each row goes into the table and its indexes, and with deletes another one leaves them.
    fn write(&self, name: &str, rows: u64, rows_per_commit: u32) -> StepEstimate {
        let entries = f64::from(1 + self.benchmark.secondary_indexes);
        let one_way =
            rows_us(rows, self.speed.write_entry_us * entries) + self.commits_us(rows, rows_per_commit);
        // The two connections of a client work side by side where the server lets them.
        let ways = if self.benchmark.deletes && self.speed.is_one_writer { 2.0 } else { 1.0 };
        let all = grouped(rows.saturating_mul(self.benchmark.clients.into()));
        let detail = if self.benchmark.deletes {
            format!("{all} rows in, as many out")
        } else {
            format!("{all} rows")
        };
        step(name, &detail, self.all_clients(one_way * ways))
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
        Some(step("verify", &detail, self.all_clients(once * times as f64)))
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

/// Bytes of the data directory at its largest: after the index build with its sort files, or at the end.
pub(crate) fn disk_bytes(benchmark: &InsertBenchmark, size: &Size) -> u64 {
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

pub(crate) fn step(name: &str, detail: &str, duration: Duration) -> StepEstimate {
    StepEstimate { name: name.to_owned(), detail: detail.to_owned(), duration }
}

/// At most 1e15 seconds, so that sums of steps and cells cannot overflow whatever an unchecked plan says.
pub(crate) fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.min(1e15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QUICKSTART, parse};

    fn table(cell: &CellEstimate) -> String {
        let line = |step: &StepEstimate| format!("{} | {} | {:.1?}\n", step.name, step.detail, step.duration);
        cell.steps.iter().map(line).collect()
    }

    fn plan(text: &str) -> Plan {
        parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    const TWO: &str = "name = \"p\"\nblocks = 3\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n\
        [[variant]]\nname = \"b\"\nserver = \"sqlite\"\n[workload.insert-benchmark]\n";

    #[test]
    fn the_quickstart_takes_about_a_minute_and_little_disk() {
        let estimate = estimate(&plan(QUICKSTART));
        assert!((40..75).contains(&estimate.duration.as_secs()), "{:?}", estimate.duration);
        assert!(estimate.peak_disk_bytes < 128 << 20, "{} bytes", estimate.peak_disk_bytes);
        insta::assert_snapshot!(table(&estimate.cells[0]), @r"
        prepare | server and tables | 200.0ms
        l.i0 | 300,000 rows | 3.9s
        l.x | 3 indexes on 300,000 rows | 720.0ms
        l.i1 | 16,000 rows in, as many out | 1.3s
        l.i2 | 4,000 rows in, as many out | 1.8s
        settle | cleanup and pause after l.i2 | 1.0s
        qr100 | 3s at 100 inserts and deletes/s a client | 3.0s
        qp100 | 3s at 100 inserts and deletes/s a client | 3.0s
        qr500 | 3s at 500 inserts and deletes/s a client | 3.0s
        qp500 | 3s at 500 inserts and deletes/s a client | 3.0s
        qr1000 | 3s at 1000 inserts and deletes/s a client | 3.0s
        qp1000 | 3s at 1000 inserts and deletes/s a client | 3.0s
        verify | 10 checks of 300,000 rows | 900.0ms
        ");
    }

    #[test]
    fn the_published_set_up_is_shown_step_by_step() {
        let plan = plan(&format!("{TWO}clients = 4\nverify = \"end\"\n"));
        insta::assert_snapshot!(table(&estimate(&plan).cells[0]), @r"
        prepare | server and tables | 8.0s
        l.i0 | 40,000,000 rows | 90.0s
        l.x | 3 indexes on 40,000,000 rows | 30.0s
        l.i1 | 64,000,000 rows in, as many out | 672.0s
        l.i2 | 16,000,000 rows in, as many out | 528.0s
        settle | cleanup after l.i2, until quiet, 10m at most | 30.0s
        qr100 | 30m at 100 inserts and deletes/s a client | 1800.0s
        qp100 | 30m at 100 inserts and deletes/s a client | 1800.0s
        qr500 | 30m at 500 inserts and deletes/s a client | 1800.0s
        qp500 | 30m at 500 inserts and deletes/s a client | 1800.0s
        qr1000 | 30m at 1000 inserts and deletes/s a client | 1800.0s
        qp1000 | 30m at 1000 inserts and deletes/s a client | 1800.0s
        verify | 1 check of 40,000,000 rows | 3.0s
        ");
    }

    #[test]
    fn totals_are_the_sums_of_their_parts() {
        let estimate = estimate(&plan(&format!("{TWO}load_rows = 1000\n")));
        let cells: Duration = estimate.cells.iter().map(|cell| cell.duration).sum();
        assert_eq!(estimate.duration, cells * 3);
        for cell in &estimate.cells {
            assert_eq!(cell.duration, cell.steps.iter().map(|step| step.duration).sum());
        }
    }

    #[test]
    fn the_rest_between_cells_is_counted_and_there_is_none_before_the_first() {
        let text = format!("{TWO}load_rows = 1000\n");
        let none = estimate(&plan(&text));
        let rested =
            text.replace("[[variant]]\nname = \"a\"", "[host]\nrest = \"20m\"\n[[variant]]\nname = \"a\"");
        let twenty = Duration::from_secs(1200);
        let rested = estimate(&plan(&rested));
        assert_eq!((none.rest, rested.rest), (Duration::ZERO, twenty));
        assert_eq!(rested.duration, none.duration + 5 * twenty, "two variants in three blocks");
    }

    #[test]
    fn disk_is_one_data_directory_at_a_time_unless_they_are_kept() {
        let text = format!("{TWO}load_rows = 1000\n");
        let once = estimate(&plan(&text));
        let largest = once.cells.iter().map(|cell| cell.disk_bytes).max().expect("two cells");
        assert_eq!(once.template_bytes, 200 << 20);
        assert_eq!(once.peak_disk_bytes, largest + once.template_bytes);
        let kept = estimate(&plan(
            &text.replace("[[variant]]\nname = \"a\"", "[host]\nkeep_data = true\n[[variant]]\nname = \"a\""),
        ));
        let all: u64 = once.cells.iter().map(|cell| cell.disk_bytes).sum();
        assert_eq!(kept.peak_disk_bytes, 3 * all + once.template_bytes);
    }

    #[test]
    fn what_an_address_holds_is_not_on_this_disk() {
        let address = |name: &str| format!("[[variant]]\nname = \"{name}\"\naddress = \"mysql://u@h/d\"\n");
        let of = |variants: &str| {
            let options = "[workload.insert-benchmark]\nload_rows = 1000\n";
            estimate(&plan(&format!(
                "name = \"p\"\nblocks = 3\n[host]\nkeep_data = true\n{variants}{options}"
            )))
        };
        let only = of(&(address("a") + &address("b")));
        assert_eq!((only.peak_disk_bytes, only.address_disk_bytes), (0, Some(only.cells[0].disk_bytes)));
        let sqlite = "[[variant]]\nname = \"s\"\nserver = \"sqlite\"\n";
        let mixed = of(&(address("a") + sqlite));
        assert_eq!(mixed.peak_disk_bytes, of(sqlite).peak_disk_bytes);
        assert_eq!(of(sqlite).address_disk_bytes, None);
    }

    #[test]
    fn innodb_needs_the_published_bytes_a_row() {
        let disk = |options: &str| estimate(&plan(&format!("{TWO}{options}"))).cells[0].disk_bytes as f64;
        let logs = 1280.0 * 1_048_576.0;
        // 32 million rows, nearly nothing written: index build with sort files, 70.5 + 2 x 93.5 bytes, and 80 of binlog.
        let short = "write_rows = 1\nread_write_time = \"1s\"\nrates = [1]\n";
        let built = (disk(&format!("load_rows = 32_000_000\n{short}")) - logs) / 32e6;
        assert!((built - 337.5).abs() < 0.1, "{built} bytes a row");
        let one_index =
            (disk(&format!("load_rows = 32_000_000\nsecondary_indexes = 1\n{short}")) - logs) / 32e6;
        assert!((built - one_index - 2.0 / 3.0 * (built - 150.5)).abs() < 0.2, "{one_index} bytes a row");
    }

    #[test]
    fn without_deletes_tables_grow() {
        let disk = |options: &str| estimate(&plan(&format!("{TWO}{options}"))).cells[1].disk_bytes;
        let rows = "load_rows = 1000\nwrite_rows = 1_000_000\nread_write_time = \"1s\"\n";
        assert!(disk(&format!("{rows}deletes = false\n")) > disk(rows) + 100_000_000);
    }

    #[test]
    fn absurd_numbers_do_not_overflow() {
        let mut plan = plan(TWO);
        let benchmark = plan.workload.insert_benchmark.as_mut().expect("in the plan");
        (benchmark.clients, benchmark.load_rows, benchmark.write_rows) = (u32::MAX, u64::MAX, u64::MAX);
        (benchmark.data_length_min, benchmark.data_length_max) = (u32::MAX, u32::MAX);
        plan.blocks = u32::MAX;
        assert!(estimate(&plan).duration > Duration::from_secs(1 << 40));
    }
}
