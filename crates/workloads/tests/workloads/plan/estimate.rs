//! Tests forecasts of whole plans, with the Insert Benchmark as their workload.

use std::time::Duration;

use dbdyno_plan::{Basis, CellEstimate, Estimate, Plan, QUICKSTART, StepEstimate};
use dbdyno_workloads::plans::parse;

/// Returns the forecast for an unknown machine without earlier runs.
pub(super) fn estimate(plan: &Plan) -> Estimate {
    dbdyno_plan::estimate(plan, &Basis::default())
}

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
fn the_quickstart_takes_less_than_a_minute_and_little_disk() {
    let estimate = estimate(&plan(QUICKSTART));
    assert!((30..60).contains(&estimate.duration.as_secs()), "{:?}", estimate.duration);
    assert!(estimate.peak_disk_bytes < 128 << 20, "{} bytes", estimate.peak_disk_bytes);
    insta::assert_snapshot!(table(&estimate.cells[0]), @r"
    prepare | server and tables | 200.0ms
    l.i0 | 300,000 rows | 3.2s
    l.x | 3 indexes on 300,000 rows | 1.1s
    l.i1 | 16,000 rows in, as many out | 6.8s
    l.i2 | 4,000 rows in, as many out | 3.0s
    settle | cleanup and pause after l.i2 | 1.0s
    qr100 | 3s at 100 inserts and deletes/s per client | 3.0s
    qp100 | 3s at 100 inserts and deletes/s per client | 3.0s
    qr1000 | 3s at 1000 inserts and deletes/s per client | 3.0s
    qp1000 | 3s at 1000 inserts and deletes/s per client | 3.0s
    verify | 8 checks of 300,000 rows | 720.0ms
    ");
}

#[test]
fn the_published_set_up_is_shown_step_by_step() {
    let plan = plan(&format!("{TWO}clients = 4\nverify = \"end\"\n"));
    insta::assert_snapshot!(table(&estimate(&plan).cells[0]), @r"
    prepare | server and tables | 3.5s
    l.i0 | 40,000,000 rows | 65.0s
    l.x | 3 indexes on 40,000,000 rows | 39.0s
    l.i1 | 64,000,000 rows in, as many out | 1056.0s
    l.i2 | 16,000,000 rows in, as many out | 480.0s
    settle | cleanup after l.i2, until quiet, 10m at most | 274.0s
    qr100 | 30m at 100 inserts and deletes/s per client | 1800.0s
    qp100 | 30m at 100 inserts and deletes/s per client | 1800.0s
    qr500 | 30m at 500 inserts and deletes/s per client | 1800.0s
    qp500 | 30m at 500 inserts and deletes/s per client | 1800.0s
    qr1000 | 30m at 1000 inserts and deletes/s per client | 1800.0s
    qp1000 | 30m at 1000 inserts and deletes/s per client | 1800.0s
    verify | 1 check of 40,000,000 rows | 12.0s
    ");
}

#[test]
fn totals_are_the_sums_of_their_parts() {
    let estimate = estimate(&plan(&format!("{TWO}load_rows = 1000\n")));
    let cells: Duration = estimate.cells.iter().map(|cell| cell.duration).sum();
    assert_eq!(estimate.duration, cells * 3);
    for cell in &estimate.cells {
        assert_eq!(cell.duration, cell.steps.iter().map(|step| step.duration).sum::<Duration>());
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
fn data_behind_an_address_is_not_counted_on_the_local_disk() {
    let address = |name: &str| format!("[[variant]]\nname = \"{name}\"\naddress = \"mysql://u@h/d\"\n");
    let of = |variants: &str| {
        let options = "[workload.insert-benchmark]\nload_rows = 1000\n";
        estimate(&plan(&format!("name = \"p\"\nblocks = 3\n[host]\nkeep_data = true\n{variants}{options}")))
    };
    let only = of(&(address("a") + &address("b")));
    assert_eq!((only.peak_disk_bytes, only.address_disk_bytes), (0, Some(only.cells[0].disk_bytes)));
    let sqlite = "[[variant]]\nname = \"s\"\nserver = \"sqlite\"\n";
    let mixed = of(&(address("a") + sqlite));
    assert_eq!(mixed.peak_disk_bytes, of(sqlite).peak_disk_bytes);
    assert_eq!(of(sqlite).address_disk_bytes, None);
}

#[test]
fn innodb_needs_the_published_bytes_per_row() {
    let disk = |options: &str| estimate(&plan(&format!("{TWO}{options}"))).cells[0].disk_bytes as f64;
    let logs = 1280.0 * 1_048_576.0;
    // Nearly nothing is written to the 32 million rows, so the peak is the index build. With sort
    // files it takes 70.5 + 2 x 93.5 bytes per row, and the binlog takes 80.
    let short = "write_rows = 1\nread_write_time = \"1s\"\nrates = [1]\n";
    let built = (disk(&format!("load_rows = 32_000_000\n{short}")) - logs) / 32e6;
    assert!((built - 337.5).abs() < 0.1, "{built} bytes per row");
    let one_index = (disk(&format!("load_rows = 32_000_000\nsecondary_indexes = 1\n{short}")) - logs) / 32e6;
    assert!((built - one_index - 2.0 / 3.0 * (built - 150.5)).abs() < 0.2, "{one_index} bytes per row");
}

#[test]
fn without_deletes_tables_grow() {
    let disk = |options: &str| estimate(&plan(&format!("{TWO}{options}"))).cells[1].disk_bytes;
    let rows = "load_rows = 1000\nwrite_rows = 1_000_000\nread_write_time = \"1s\"\n";
    assert!(disk(&format!("{rows}deletes = false\n")) > disk(rows) + 100_000_000);
}

#[test]
fn absurd_numbers_do_not_overflow() {
    let most = u64::pow(2, 50);
    let mut plan = plan(&format!(
        "{TWO}clients = 4096\nload_rows = {most}\nwrite_rows = {most}\ndata_length_max = 4000\n"
    ));
    plan.blocks = u32::MAX;
    assert!(estimate(&plan).duration > Duration::from_secs(1 << 40));
}
