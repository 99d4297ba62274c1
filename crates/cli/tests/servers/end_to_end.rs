//! The whole way on each server: from a base directory and an option file to a valid record and a clean machine.

use dbdyno_record::{CellRecord, Run, StepRecord};

use crate::support::{Desk, faults, findings};
use crate::watch::{process_is_there, server};
use crate::{MARIADB_10_1, MARIADB_10_11, MY_CNF, MYSQL_5_6, MYSQL_8_0, small_plan, variant};

const STEPS: [&str; 6] = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100"];

fn a_small_run_is_complete_and_valid(prefix: &str, product: &str) {
    let desk = Desk::new();
    desk.write("my.cnf", MY_CNF);
    desk.write("p.toml", &small_plan(&variant("a", prefix, "my_cnf = \"my.cnf\""), ""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.warnings, [""; 0]);
    let cell = &run.cells[0];
    assert_eq!(cell.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), STEPS);
    let server = server(cell).unwrap();
    assert_eq!(server.product, product);
    assert!(server.version.starts_with(prefix.split_once('-').unwrap().1), "{}", server.version);
    assert_eq!(server.settings["innodb_buffer_pool_size"], (64 << 20).to_string());
    assert_eq!(run.manifest.variants[0].config, MY_CNF);
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    cell.steps.iter().for_each(tables_are_as_expected);
    deletes_happened(cell);
    costs_are_charged_to_the_server(&dir);
    the_servers_own_counters_are_recorded(cell);
    nothing_is_left_behind(&dir, server.pid.unwrap());
}

fn tables_are_as_expected(step: &StepRecord) {
    let checks = step.checks();
    assert_eq!(checks.iter().map(|check| check.table.as_str()).collect::<Vec<_>>(), ["pi1", "pi2"]);
    for check in checks {
        assert!(check.is_ok() && check.parts.len() >= 8, "{}: {check:?}", step.name);
    }
}

fn rows(step: &StepRecord, kind: &str) -> u64 {
    step.intervals.iter().filter(|interval| interval.kind == kind).map(|interval| interval.rows).sum()
}

/// From l.i1 on, as many rows go as come.
fn deletes_happened(cell: &CellRecord) {
    let written: Vec<_> = cell
        .steps
        .iter()
        .map(|step| (step.name.as_str(), rows(step, "insert"), rows(step, "delete")))
        .collect();
    for (name, inserted, deleted) in &written {
        match *name {
            "l.i0" => assert_eq!((*inserted, *deleted), (6000, 0)),
            "l.x" => {}
            "l.i1" => assert_eq!((*inserted, *deleted), (1600, 1600)),
            "l.i2" => assert_eq!((*inserted, *deleted), (400, 400)),
            _ => assert_eq!((*inserted, *deleted), (200, 200), "{name}"),
        }
    }
}

fn costs_are_charged_to_the_server(dir: &std::path::Path) {
    let findings = findings(dir);
    for step in &findings.workloads[0].steps {
        let run = &step.variants[0].runs[0];
        let cost = &run.cost;
        assert!(run.rate > 0.0, "{}: {run:?}", step.name);
        assert!(cost.client_cpu_us.is_some_and(|cpu| cpu > 0.0), "{}: {cost:?}", step.name);
        if step.name.starts_with('q') {
            // Shorter steps may end between two ticks of the counters.
            assert!(cost.server_cpu_us.is_some_and(|cpu| cpu > 0.0), "{}: {cost:?}", step.name);
            assert!(run.metrics.rss.is_some_and(|rss| rss > 0.0), "{}: {:?}", step.name, run.metrics);
            assert!(run.metrics.dbgb1.is_some_and(|size| size > 0.0), "{}: {:?}", step.name, run.metrics);
        }
        if step.name != "l.x" {
            assert!(cost.fsyncs_per_commit.is_some_and(|fsyncs| fsyncs > 0.0), "{}: {cost:?}", step.name);
        }
    }
}

fn the_servers_own_counters_are_recorded(cell: &CellRecord) {
    for step in &cell.steps {
        let status = &step.counters["status"];
        let (first, last) = (status.lines.first().unwrap(), status.lines.last().unwrap());
        // Not Innodb_buffer_pool_read_requests: MariaDB 10.11.5 leaves it at 0.
        let key = "Handler_read_next";
        if step.name.starts_with('q') {
            assert!(last.values[key] > first.values[key], "{} {key}", step.name);
        }
        assert!(step.counters["server"].lines.len() >= 2, "{}", step.name);
    }
}

fn nothing_is_left_behind(dir: &std::path::Path, pid: u32) {
    assert!(!process_is_there(pid), "server {pid} still runs");
    assert!(!dir.join("data").exists(), "data is left in {}", dir.display());
    assert!(dir.join("logs/1-a-insert-benchmark.log").is_file(), "the server's log is not kept");
}

#[test]
fn mariadb_10_1_with_xtradb() {
    a_small_run_is_complete_and_valid(MARIADB_10_1, "MariaDB");
}

#[test]
fn mariadb_10_11() {
    a_small_run_is_complete_and_valid(MARIADB_10_11, "MariaDB");
}

#[test]
fn mysql_5_6() {
    a_small_run_is_complete_and_valid(MYSQL_5_6, "MySQL");
}

#[test]
fn mysql_8_0() {
    a_small_run_is_complete_and_valid(MYSQL_8_0, "MySQL");
}
