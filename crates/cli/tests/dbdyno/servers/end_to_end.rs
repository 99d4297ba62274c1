//! Tests a whole run on each server, from a base directory and an option file to a valid record and
//! a clean machine.

use dbdyno_record::{CellRecord, Run, StepRecord};

use crate::servers::watch::{process_is_there, server};
use crate::servers::{
    MARIADB_10_1, MARIADB_10_11, MARIADB_11_8, MY_CNF, MYSQL_5_5, MYSQL_5_6, MYSQL_8_0, POSTGRES_9_6,
    POSTGRES_15, POSTGRES_18, POSTGRESQL_CONF, small_plan, variant,
};
use crate::support::{Desk, faults, findings};

const STEPS: [&str; 6] = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100"];

/// The differences between products that matter to these tests.
struct Product {
    name: &'static str,
    /// The text of the product's option file, and the setting that it changes.
    option_file: &'static str,
    setting: (&'static str, &'static str),
    /// Number of parts in the check of a table. The check has more parts where the ids are known.
    checked: usize,
    /// The status counter for rows that queries read.
    reads: &'static str,
    /// Whether the server counts its fsyncs.
    counts_fsyncs: bool,
    /// Length of a read-write step in seconds. It is longer where counters are reported with a
    /// delay of one second.
    seconds: u32,
}

const MYSQL: Product = Product {
    name: "MySQL",
    option_file: MY_CNF,
    setting: ("innodb_buffer_pool_size", "67108864"),
    checked: 8,
    // Innodb_buffer_pool_read_requests is unsuitable, because MariaDB 10.11.5 leaves it at 0.
    reads: "Handler_read_next",
    counts_fsyncs: true,
    seconds: 1,
};

const MARIADB: Product = Product { name: "MariaDB", ..MYSQL };

const POSTGRES: Product = Product {
    name: "PostgreSQL",
    option_file: POSTGRESQL_CONF,
    setting: ("shared_buffers", "64MB"),
    checked: 5,
    reads: "pg_stat_database.tup_returned",
    counts_fsyncs: false,
    seconds: 2,
};

fn a_small_run_is_complete_and_valid(prefix: &str, product: &Product) {
    let desk = Desk::new();
    desk.write("options.cnf", product.option_file);
    let options = format!("read_write_time = \"{}s\"", product.seconds);
    desk.write("p.toml", &small_plan(&variant("a", prefix, "own_config = \"options.cnf\""), &options));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.warnings, [""; 0]);
    let cell = &run.cells[0];
    assert_eq!(cell.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), STEPS);
    let server = server(cell).unwrap();
    assert_eq!(server.product, product.name);
    assert!(server.version.starts_with(prefix.split_once('-').unwrap().1), "{}", server.version);
    assert_eq!(server.settings[product.setting.0], product.setting.1);
    assert_eq!(run.manifest.variants[0].config, product.option_file);
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    cell.steps.iter().for_each(|step| tables_are_as_expected(step, product.checked));
    deletes_happened(cell, product.seconds);
    costs_are_charged_to_the_server(&dir, product.counts_fsyncs);
    the_servers_own_counters_are_recorded(cell, product.reads);
    nothing_is_left_behind(&dir, server.pid.unwrap());
}

fn tables_are_as_expected(step: &StepRecord, parts: usize) {
    let checks = step.checks();
    assert_eq!(checks.iter().map(|check| check.table.as_str()).collect::<Vec<_>>(), ["pi1", "pi2"]);
    for check in checks {
        assert!(check.is_ok() && check.parts.len() >= parts, "{}: {check:?}", step.name);
    }
}

fn rows(step: &StepRecord, kind: &str) -> u64 {
    step.intervals.iter().filter(|interval| interval.kind == kind).map(|interval| interval.rows).sum()
}

/// From l.i1 on, as many rows are deleted as are inserted.
fn deletes_happened(cell: &CellRecord, seconds: u32) {
    let written: Vec<_> = cell
        .steps
        .iter()
        .map(|step| (step.name.as_str(), rows(step, "insert"), rows(step, "delete")))
        .collect();
    // Two clients insert 100 rows per second each.
    let scheduled = u64::from(2 * 100 * seconds);
    for (name, inserted, deleted) in &written {
        match *name {
            "l.i0" => assert_eq!((*inserted, *deleted), (6000, 0)),
            "l.x" => {}
            "l.i1" => assert_eq!((*inserted, *deleted), (1600, 1600)),
            "l.i2" => assert_eq!((*inserted, *deleted), (400, 400)),
            _ => assert_eq!((*inserted, *deleted), (scheduled, scheduled), "{name}"),
        }
    }
}

fn costs_are_charged_to_the_server(dir: &std::path::Path, counts_fsyncs: bool) {
    let findings = findings(dir);
    for step in &findings.workloads[0].steps {
        let run = &step.variants[0].runs[0];
        let cost = &run.cost;
        assert!(run.rate > 0.0, "{}: {run:?}", step.name);
        if step.name.starts_with('q') {
            // Shorter steps may end between two samples, or between two ticks of the counters.
            assert!(cost.client_cpu_us.is_some_and(|cpu| cpu > 0.0), "{}: {cost:?}", step.name);
            assert!(cost.server_cpu_us.is_some_and(|cpu| cpu > 0.0), "{}: {cost:?}", step.name);
            assert!(run.metrics.rss.is_some_and(|rss| rss > 0.0), "{}: {:?}", step.name, run.metrics);
            assert!(run.metrics.dbgb1.is_some_and(|size| size > 0.0), "{}: {:?}", step.name, run.metrics);
            if counts_fsyncs {
                assert!(cost.fsyncs_per_commit.is_some_and(|fsyncs| fsyncs > 0.0), "{}: {cost:?}", step.name);
            }
        }
    }
}

fn the_servers_own_counters_are_recorded(cell: &CellRecord, reads: &str) {
    for step in &cell.steps {
        let status = &step.counters["status"];
        let (first, last) = (status.value(reads, 0).unwrap(), status.value(reads, status.len() - 1).unwrap());
        if step.name.starts_with('q') {
            assert!(last > first, "{} {reads}", step.name);
        }
        assert!(step.counters["server"].len() >= 2, "{}", step.name);
    }
}

fn nothing_is_left_behind(dir: &std::path::Path, pid: u32) {
    assert!(!process_is_there(pid), "server {pid} still runs");
    assert!(!dir.join("data").exists(), "data is left in {}", dir.display());
    assert!(dir.join("logs/1-a-insert-benchmark.log").is_file(), "the server's log is not kept");
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn mariadb_10_1_with_xtradb() {
    a_small_run_is_complete_and_valid(MARIADB_10_1, &MARIADB);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn mariadb_10_11() {
    a_small_run_is_complete_and_valid(MARIADB_10_11, &MARIADB);
}

#[test]
fn mariadb_11_8() {
    a_small_run_is_complete_and_valid(MARIADB_11_8, &MARIADB);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn mysql_5_5() {
    a_small_run_is_complete_and_valid(MYSQL_5_5, &MYSQL);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn mysql_5_6() {
    a_small_run_is_complete_and_valid(MYSQL_5_6, &MYSQL);
}

#[test]
fn mysql_8_0() {
    a_small_run_is_complete_and_valid(MYSQL_8_0, &MYSQL);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn postgres_9_6() {
    a_small_run_is_complete_and_valid(POSTGRES_9_6, &POSTGRES);
}

#[test]
fn postgres_15() {
    a_small_run_is_complete_and_valid(POSTGRES_15, &POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn postgres_18() {
    a_small_run_is_complete_and_valid(POSTGRES_18, &POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn the_size_of_a_database_on_myrocks_is_that_of_the_engines_own_files() {
    // Each row has random values: one of 1000 cash registers, 10,000 products, 100,000 customers
    // and 500 prices. No engine can store them in fewer bytes, however well it compresses, and the
    // table definitions contain nothing of these values.
    let lowest = 6000.0 * (1e3_f64 * 1e4 * 1e5 * 5e2).log2() / 8.0;
    let desk = Desk::new();
    desk.write("p.toml", &small_plan(&variant("a", MARIADB_11_8, "options.engine = \"rocksdb\""), ""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    assert_eq!(faults(&findings(&desk.run_dir())), [""; 0]);
    for step in &Run::open(&desk.run_dir()).unwrap().cells[0].steps {
        let size = &step.counters["size"];
        let [database, all] =
            ["database_bytes", "data_dir_bytes"].map(|key| size.value(key, size.len() - 1).unwrap() as f64);
        assert!(database > lowest && database < all, "{}: {database} of {all}", step.name);
    }
}
