//! Tests a server that dbdyno did not start and that is killed and started again in the middle of a
//! step.

use std::process::{Command, Stdio};
use std::time::Duration;

use dbdyno_analyse::{Code, Warning};
use dbdyno_db::server::{Server, ServerSpec, find_named};
use dbdyno_record::{Outcome, Run, StepEvent, StepRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::servers::watch::ask;
use crate::servers::{MARIADB_10_11, require, small_plan};
use crate::support::{Desk, Ended, faults, findings, templates, wait_for, wait_until_in_step};

const STEP: &str = "1/theirs/insert-benchmark/qr100";

/// A small buffer pool, and durable commits, so that a killed server forgets none.
const MY_CNF: &str = "[mysqld]\ninnodb_buffer_pool_size = 64M\ninnodb_flush_log_at_trx_commit = 1\n";

/// Runs a plan against a server that is killed in the middle of a step and started again on its
/// data. The restart comes one second after all six connections were lost, or after the step has
/// failed.
fn run_over_a_restart(desk: &Desk, load: &str) -> Ended {
    desk.write("my.cnf", MY_CNF);
    let base = find_named(&require(MARIADB_10_11)).unwrap();
    let (my_cnf, folder) = (desk.path("my.cnf"), desk.path("theirs"));
    let spec = ServerSpec::new(&base, Some(&my_cnf), &folder, templates()).unwrap();
    let server = Server::start(&spec).unwrap();
    ask(&server.options(None), &["CREATE USER bench@localhost", "GRANT ALL ON *.* TO bench@localhost"]);
    let address = format!("mysql://bench@localhost/bench?socket={}", server.socket().display());
    let variant = format!("[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n");
    // The time cap is high, so that the step waits for the server however long its start takes.
    let options = "read_write_time = \"8s\"\ntime_cap = 100.0";
    desk.write("p.toml", &format!("{}\n{load}", small_plan(&variant, options)));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, STEP);

    let line = &server.command_line;
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGKILL).unwrap();
    let events = dir.join("cells").join(STEP).join("events.jsonl");
    wait_for("the step to lose its connections", || {
        let text = std::fs::read_to_string(&events).unwrap();
        let is_over = text.contains("\"event\":\"ended\"");
        let are_lost = text.matches("\"event\":\"connection_lost\"").count() >= 6;
        ((is_over || are_lost) && !server.is_running()).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
    let mut again =
        Command::new(&line[0]).args(&line[1..]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ended = running.wait();
    again.kill().unwrap();
    again.wait().unwrap();
    ended
}

fn step(run: &Run, name: &str) -> StepRecord {
    run.cells[0].steps.iter().find(|step| step.name == name).unwrap().clone()
}

#[test]
#[ignore = "in cargo xtask test --all: kills servers"]
fn with_reconnect_a_step_goes_on_over_a_restart_and_its_outage_is_recorded() {
    let desk = Desk::new();
    let load =
        "[load]\nlost_connections = \"reconnect\"\nreconnect_wait_max = \"200ms\"\nreconnect_for = \"10m\"\n";
    run_over_a_restart(&desk, load).expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    let hit = step(&run, "qr100");
    assert_eq!(hit.outcome(), Some(Outcome::Completed));
    let count = |wanted: fn(&StepEvent) -> bool| hit.events.iter().filter(|event| wanted(event)).count();
    let lost = count(|event| matches!(event, StepEvent::ConnectionLost { .. }));
    let back = count(|event| matches!(event, StepEvent::Reconnected { .. }));
    // The two clients have three connections each. A connection that queries ends with its client's
    // inserts, which may all have been overdue when the server came back.
    assert!(lost >= 6 && (lost - 2..=lost).contains(&back), "{lost} lost, {back} back");
    // Each of the six connections was without a server for a second.
    let down_us: u64 = hit.intervals.iter().map(|interval| interval.down_us).sum();
    assert!(down_us >= 6_000_000, "{down_us}");
    assert!(hit.intervals.iter().any(|interval| interval.down > 0));
    assert_eq!(hit.intervals.last().unwrap().down, 0);
    let findings = findings(&dir);
    let is_of_step = |warning: &Warning| {
        warning.code == Code::OutageOfSchedule && warning.places == ["block 1 theirs qr100"]
    };
    assert!(findings.warnings.iter().any(is_of_step), "{:?}", findings.warnings);
    // Later steps use new connections, and no step is invalid.
    assert_eq!(step(&run, "qp100").outcome(), Some(Outcome::Completed));
    assert_eq!(faults(&findings), [""; 0]);
}

#[test]
#[ignore = "in cargo xtask test --all: kills servers"]
fn without_reconnect_the_step_fails_with_the_first_lost_connection() {
    let desk = Desk::new();
    run_over_a_restart(&desk, "").expect_code(4);
    let run = Run::open(&desk.run_dir()).unwrap();
    let hit = step(&run, "qr100");
    assert_eq!(hit.outcome(), Some(Outcome::Failed));
    assert!(!hit.events.iter().any(|event| matches!(event, StepEvent::ConnectionLost { .. })));
    assert!(run.cells[0].steps.iter().all(|step| step.name != "qp100"));
}
