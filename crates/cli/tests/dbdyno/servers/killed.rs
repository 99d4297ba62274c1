//! Tests servers, and dbdyno itself, that die at start or in the middle of a step.

mod moments;

use std::time::{Duration, Instant};

use dbdyno_analyse::{Code, VariantStep};
use dbdyno_record::{CellEvent, Outcome, Run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::servers::watch::{children_of, process_is_there, server_of, wait_until_gone};
use crate::servers::{
    MARIADB_10_1, MARIADB_10_11, MARIADB_11_8, MYSQL_8_0, POSTGRES_15, small_plan, variant,
};
use crate::support::{Desk, findings, texts, wait_until_in_step};

const SQLITE: &str =
    "[[variant]]\nname = \"other\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";

/// Each variant with the outcome of its cell.
fn outcomes(run: &Run) -> Vec<(String, Option<Outcome>)> {
    let mut ended: Vec<_> = run.cells.iter().map(|cell| (cell.id.variant.clone(), cell.outcome())).collect();
    ended.sort_by(|left, right| left.0.cmp(&right.0));
    ended
}

fn one_failed_and_the_other_completed(run: &Run) {
    let expected =
        [("other".to_owned(), Some(Outcome::Completed)), ("victim".to_owned(), Some(Outcome::Failed))];
    assert_eq!(outcomes(run), expected);
}

#[test]
#[ignore = "in cargo xtask test --all: kills servers"]
fn a_mariadb_killed_in_mid_step_fails_its_cell_and_the_rest_goes_on() {
    a_server_killed_in_mid_step_fails_its_cell_and_the_rest_goes_on(MARIADB_10_11);
}

/// PostgreSQL's other processes end after the first one is killed, and the data are removed only
/// then.
#[test]
fn a_postgres_killed_in_mid_step_fails_its_cell_and_the_rest_goes_on() {
    a_server_killed_in_mid_step_fails_its_cell_and_the_rest_goes_on(POSTGRES_15);
}

fn a_server_killed_in_mid_step_fails_its_cell_and_the_rest_goes_on(prefix: &str) {
    let desk = Desk::new();
    let variants = variant("victim", prefix, "") + SQLITE;
    desk.write("p.toml", &small_plan(&variants, "read_write_time = \"3s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    let pid = server_of(&dir, "victim").pid.unwrap();
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
    let ended = running.wait();
    ended.expect_code(4);
    one_failed_and_the_other_completed(&Run::open(&dir).unwrap());
    let error = ended.err.lines().find(|line| line.starts_with("error: block 1 victim")).unwrap();
    assert!(error.contains("step qr100") && error.contains("the server ended with signal: 9"), "{error}");
    let findings = findings(&dir);
    assert!(texts(&findings).iter().any(|warning| warning.contains("signal: 9")), "{:?}", texts(&findings));
    // The steps that the victim finished before stay in the findings.
    let loaded = &findings.workloads[0].steps[0];
    let has_loaded = |variant: &VariantStep| variant.runs.iter().any(|run| run.rate > 0.0);
    assert!(loaded.variants.iter().all(has_loaded), "{loaded:?}");
    assert!(!dir.join("data").exists());
}

/// All server processes are suspended in the middle of a step, and then Ctrl-C is pressed. The
/// server cannot stop, and dbdyno must not wait for it for ever.
#[test]
#[ignore = "in cargo xtask test --all: kills servers"]
fn a_server_that_is_frozen_for_good_is_killed_with_its_children_and_its_data_go() {
    for prefix in [MARIADB_10_11, POSTGRES_15] {
        let desk = Desk::new();
        desk.write("p.toml", &small_plan(&variant("victim", prefix, ""), "read_write_time = \"10m\""));
        let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
        let dir = desk.run_dir();
        wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
        let first = server_of(&dir, "victim").pid.unwrap();
        let family = [vec![first], children_of(first)].concat();
        for pid in &family {
            kill(Pid::from_raw(i32::try_from(*pid).unwrap()), Signal::SIGSTOP).unwrap();
        }
        let asked = Instant::now();
        running.signal(Signal::SIGINT);
        let ended = running.wait();
        ended.expect_code(130);
        // The plan's time limit for a stop is five minutes.
        assert!(asked.elapsed() < Duration::from_secs(240), "{prefix}: {:?}", asked.elapsed());
        family.iter().for_each(|pid| wait_until_gone(*pid));
        assert!(!dir.join("data").exists(), "{prefix}: {}", ended.err);
        assert_eq!(outcomes(&Run::open(&dir).unwrap()), [("victim".to_owned(), Some(Outcome::Interrupted))]);
    }
}

/// At a shutdown of the machine the server may die first. Its cell must still be repeated by a
/// resumed run.
#[test]
#[ignore = "in cargo xtask test --all: kills servers"]
fn a_signal_to_dbdyno_and_its_server_interrupts_the_cell_and_a_resumed_run_repeats_it() {
    let desk = Desk::new();
    desk.write("p.toml", &small_plan(&variant("victim", MARIADB_10_11, ""), "read_write_time = \"3s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    let pid = server_of(&dir, "victim").pid.unwrap();
    // dbdyno is suspended so that it notices both at once, however late the second one arrives.
    running.signal(Signal::SIGSTOP);
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
    running.signal(Signal::SIGTERM);
    running.signal(Signal::SIGCONT);
    running.wait().expect_code(130);
    let outcomes = |dir| outcomes(&Run::open(dir).unwrap());
    assert_eq!(outcomes(&dir), [("victim".to_owned(), Some(Outcome::Interrupted))]);
    desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]).expect_ok();
    assert_eq!(outcomes(&dir), [("victim".to_owned(), Some(Outcome::Completed))]);
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn a_server_that_dies_at_start_shows_its_logs_last_lines_and_the_rest_goes_on() {
    let desk = Desk::new();
    desk.write("bad.cnf", "[mysqld]\nno_such_option = 1\n");
    let variants = variant("victim", MARIADB_10_1, "own_config = \"bad.cnf\"") + SQLITE;
    desk.write("p.toml", &small_plan(&variants, ""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(4);
    let dir = desk.run_dir();
    one_failed_and_the_other_completed(&Run::open(&dir).unwrap());
    assert!(
        ended.err.contains("error: block 1 victim insert-benchmark failed: MariaDB 10.1"),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("unknown variable 'no_such_option=1'"), "{}", ended.err);
    assert!(
        ended.err.ends_with("error: 1 cell failed; the report has the reasons and the completed cells\n"),
        "{}",
        ended.err
    );
    let report = desk.dbdyno(&["report", dir.to_str().unwrap(), "--format", "md"]);
    assert!(report.expect_ok().out.contains("no_such_option"), "{}", report.out);
    assert!(!dir.join("data").exists());
}

#[test]
#[ignore = "in cargo xtask test --all: kills servers"]
fn a_killed_dbdyno_leaves_no_mysql_and_its_run_goes_on() {
    a_killed_dbdyno_leaves_no_server_and_its_run_goes_on(MYSQL_8_0);
}

#[test]
fn a_killed_dbdyno_leaves_no_postgres_and_its_run_goes_on() {
    a_killed_dbdyno_leaves_no_server_and_its_run_goes_on(POSTGRES_15);
}

fn a_killed_dbdyno_leaves_no_server_and_its_run_goes_on(prefix: &str) {
    let desk = Desk::new();
    desk.write("p.toml", &small_plan(&variant("victim", prefix, ""), "read_write_time = \"2s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    let pid = server_of(&dir, "victim").pid.unwrap();
    assert!(process_is_there(pid));
    running.signal(Signal::SIGKILL);
    assert_eq!(running.wait().code, None);
    wait_until_gone(pid);
    desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]).expect_ok();
    assert_eq!(outcomes(&Run::open(&dir).unwrap()), [("victim".to_owned(), Some(Outcome::Completed))]);
    assert!(!dir.join("data").exists());
}

/// A server reads its option file at every start. If a user edits the file during a run, later
/// cells must not be affected.
#[test]
#[ignore = "in cargo xtask test --all: kills dbdyno, another version"]
fn an_option_file_that_changes_during_a_run_changes_none_of_its_cells() {
    let desk = Desk::new();
    let configured =
        |capacity: u32| desk.write("my.cnf", &format!("[mysqld]\ninnodb_io_capacity = {capacity}\n"));
    configured(300);
    let text =
        small_plan(&variant("victim", MARIADB_10_11, "own_config = \"my.cnf\""), "read_write_time = \"2s\"");
    desk.write("p.toml", &format!("blocks = 2\n{text}"));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    configured(400);
    wait_until_in_step(&mut running, &dir, "2/victim/insert-benchmark/qr100");
    running.signal(Signal::SIGKILL);
    assert_eq!(running.wait().code, None);
    desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]).expect_ok();
    let run = Run::open(&dir).unwrap();
    let capacity = |cell: &dbdyno_record::CellRecord| {
        cell.events.iter().find_map(|event| match event {
            CellEvent::Server { server, .. } => server.settings.get("innodb_io_capacity").cloned(),
            _ => None,
        })
    };
    let found: Vec<_> = run.cells.iter().map(capacity).collect();
    assert_eq!(found, [Some("300".to_owned()), Some("300".to_owned())]);
    let warnings = findings(&dir).warnings;
    assert!(!warnings.iter().any(|warning| warning.code == Code::SettingsChanged), "{warnings:?}");
}

#[test]
fn ctrl_c_stops_the_server_and_removes_its_data() {
    let desk = Desk::new();
    desk.write("p.toml", &small_plan(&variant("victim", MARIADB_11_8, ""), "read_write_time = \"5s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    let pid = server_of(&dir, "victim").pid.unwrap();
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    assert!(!process_is_there(pid) && !dir.join("data").exists());
}
