//! Tests plans with pgbench scripts, and `dbdyno pgbench`: how a sleep ends, and what happens at a
//! rate that no client can keep up with.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::known_answer::listening;
use crate::support::{Desk, faults, figure, findings, wait_until_in_step};

/// Writes a plan whose script sleeps longer than any test waits.
fn sleeper(time: &str) -> Desk {
    let desk = Desk::new();
    desk.write("s.sql", "SELECT 1;\n\\sleep 100000 s\nSELECT 2;\n");
    desk.write(
        "p.toml",
        &format!(
            "name = \"test\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.pgbench]\nfiles = [\"s.sql\"]\n\
             init_steps = \"\"\nconnections = [2]\ntime = \"{time}\"\n"
        ),
    );
    desk
}

#[test]
fn a_sleep_ends_with_its_step() {
    let desk = sleeper("1s");
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let found = findings(&desk.run_dir());
    assert_eq!(found.run.cells_completed, 1, "{:?}", faults(&found));
}

#[test]
fn a_sleep_ends_when_the_user_stops_the_run() {
    let desk = sleeper("100000s");
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/a/pgbench/s.c2");
    running.signal(Signal::SIGINT);
    assert_eq!(running.wait().code, Some(130));
}

#[test]
fn partitions_are_refused_where_a_database_has_none() {
    let desk = Desk::new();
    for option in ["partitions = 2", "unlogged_tables = true"] {
        let variant = "[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n";
        desk.write(
            "p.toml",
            &format!("name = \"test\"\n{variant}[workload.pgbench]\n{option}\ntime = \"1s\"\n"),
        );
        let ended = desk.dbdyno(&["run", "p.toml", "--out", option.split(' ').next().unwrap()]);
        let says = "needs a server with such tables; leave it out or the variant";
        assert!(ended.code == Some(4) && ended.err.contains(says), "{ended:?}");
    }
}

/// Almost none of a hundred million transactions per second is sent in time. Counting the skipped
/// ones one by one would take minutes.
#[test]
fn transactions_skipped_at_an_impossible_rate_are_counted_at_once() {
    let desk = Desk::new();
    let _server = listening(&desk, &["--protocol", "postgres", "--socket", "."]);
    desk.write("s.sql", "SELECT 1;\n");
    let folder = desk.path("").display().to_string();
    let words = ["-h", &folder, "-U", "any", "-n", "-f", "s.sql", "-T1", "-R100000000", "-L1", "any"];
    let began = Instant::now();
    let ended = desk.dbdyno(&[&["pgbench"], &words[..]].concat());
    let skipped = figure(&ended.expect_ok().out, "number of transactions skipped:");
    assert!((90_000_000..100_100_000).contains(&skipped), "{}", ended.out);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
