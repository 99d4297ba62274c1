//! Tests the limits that the process is started with. Each limit ends a run with one sentence and
//! status 3.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::commands::{TWO_VARIANTS, plan, short_plan};
use crate::support::{Desk, Ended, wait_until_in_step};

/// Runs `dbdyno run p.toml` with the process limit `limit`.
fn limited(desk: &Desk, limit: &str) -> Ended {
    let mut shell = Command::new("sh");
    desk.prepare(&mut shell);
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" run p.toml"), env!("CARGO_BIN_EXE_dbdyno")]);
    desk.ended(&mut shell)
}

#[test]
fn a_file_size_limit_is_an_error_and_not_a_signal() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan(TWO_VARIANTS));
    for (blocks, file) in [(2, "manifest.json"), (100, "report.html")] {
        let ended = limited(&desk, &format!("-f {blocks}"));
        ended.expect_code(3);
        let errors: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("error: ")).collect();
        let [error] = errors[..] else { panic!("{}", ended.err) };
        assert!(
            error.starts_with("error: cannot write runs/")
                && error.contains(&format!("/{file}: File too large")),
            "{error}"
        );
    }
}

#[test]
fn too_low_a_limit_on_open_files_is_named() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan(TWO_VARIANTS));
    for limit in [8, 20, 60] {
        let ended = limited(&desk, &format!("-n {limit}"));
        ended.expect_code(3);
        assert!(
            ended.err.contains(&format!(" {limit};")) || ended.err.contains(&format!("now {limit})")),
            "{}",
            ended.err
        );
        assert!(ended.err.contains("open files") || ended.err.contains("open more files"), "{}", ended.err);
    }
}

#[test]
fn too_low_a_limit_on_address_space_is_named() {
    let desk = Desk::new();
    let plan = short_plan(TWO_VARIANTS)
        .replace("connections = [1]", "connections = [1, 1000]")
        .replace("events = 10", "events = 2000");
    desk.write("p.toml", &plan);
    let ended = limited(&desk, "-v 1500000");
    ended.expect_code(3);
    assert!(
        ended.err.contains("MiB of addresses, and this process may have 1464; raise ulimit -v"),
        "{}",
        ended.err
    );
}

#[test]
fn a_run_dumps_no_core_and_leaves_the_hard_limit_as_it_is() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"3s\""));
    let mut shell = Command::new("sh");
    desk.prepare(&mut shell);
    // The soft limit becomes the highest that the hard limit allows on this machine.
    let script = "ulimit -S -c $(ulimit -H -c); exec \"$0\" run p.toml";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_dbdyno")]);
    let mut running = desk.start(&mut shell);
    let dir = desk.run_dir();
    let first = dbdyno_record::Run::open(&dir).unwrap().manifest.order[0].variant.clone();
    wait_until_in_step(&mut running, &dir, &format!("1/{first}/insert-benchmark/qr100"));
    let core_limits = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let (own, of_run) = (core_limits("self"), core_limits(&running.pid().to_string()));
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    assert_eq!(of_run, ["0".to_owned(), own[1].clone()]);
}
