//! Uses scripts in place of servers and installers. The scripts never answer, never end, or print
//! control characters.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::commands::plan;
use crate::support::{Desk, Running, wait_for};

/// Longest time in which a run must end after Ctrl-C. All of the plan's own time limits are longer.
const SOON: Duration = Duration::from_secs(100);
/// Writes its own process id, its child's and its environment to files, ignores SIGTERM and SIGINT,
/// and runs for an hour.
const STAYS: &str = "trap '' TERM INT; env > environment; sleep 3600 & echo $$ $! > family.new; mv family.new family; wait; wait";

/// Starts a run on a server whose installer and program are these scripts. They run in the desk's
/// folder.
fn run(desk: &Desk, installer: &str, server: &str) -> Running {
    let here = desk.path("");
    let script = |what: &str| format!("cd {} && {{ {what}; }}", here.display());
    desk.fake_server(
        "server",
        &format!(
            "case \"$*\" in\n*--version*) echo 'mysqld  Ver 10.11.5-MariaDB for Linux on x86_64 (MariaDB Server)';;\n\
             *) {};;\nesac",
            script(server)
        ),
    );
    desk.write_program("server/scripts/mariadb-install-db", &script(installer));
    let variant = "[[variant]]\nname = \"silent\"\nbasedir = \"server\"";
    desk.write("p.toml", &plan(variant, ""));
    let mut command: Command = desk.command(&["run", "p.toml"]);
    command.env("DBDYNO_TEMPLATES", desk.path("templates")).env("BENCH_PASSWORD", "hunter2");
    desk.start(&mut command)
}

/// Returns the process ids of [`STAYS`] once they exist.
fn family(desk: &Desk) -> Vec<u32> {
    let text = wait_for("the script to begin", || std::fs::read_to_string(desk.path("family")).ok());
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn wait_for_the_end_of(family: &[u32]) {
    let lives = |pid: &u32| {
        let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
        !(stat.is_empty() || stat.contains(") Z"))
    };
    wait_for("the end of what was started", || (!family.iter().any(lives)).then_some(()));
}

#[test]
fn ctrl_c_ends_the_wait_for_an_installer_and_a_server_with_all_that_they_have_started() {
    for (installer, server) in [(STAYS, "exit 1"), ("true", STAYS)] {
        let desk = Desk::new();
        let running = run(&desk, installer, server);
        let family = family(&desk);
        let asked = Instant::now();
        running.signal(Signal::SIGINT);
        let ended = running.wait();
        ended.expect_code(130);
        assert!(asked.elapsed() < SOON, "it took {:?}: {}", asked.elapsed(), ended.err);
        wait_for_the_end_of(&family);
        let left = std::fs::read_dir(desk.run_dir().join("data")).into_iter().flatten().count();
        assert_eq!(left, 0, "data are left: {}", ended.err);
        let environment = std::fs::read_to_string(desk.path("environment")).unwrap();
        assert!(environment.contains("PATH=") && !environment.contains("hunter2"), "{environment}");
    }
}

#[test]
fn an_installer_ends_with_all_that_it_has_started_when_dbdyno_is_killed() {
    let desk = Desk::new();
    let running = run(&desk, STAYS, "exit 1");
    let family = family(&desk);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.wait().code, None);
    wait_for_the_end_of(&family);
}

#[test]
fn messages_of_a_server_cannot_control_the_terminal_and_long_lines_are_cut() {
    let desk = Desk::new();
    let boom = "printf '[ERROR] boom \\033[31mred\\033]0;title\\007 %05000d the end\\n' 7 >&2; exit 1";
    let ended = run(&desk, "true", boom).wait();
    ended.expect_code(4);
    assert!(ended.err.contains("[ERROR] boom \\x1b[31mred\\x1b]0;title\\x07 000"), "{}", ended.err);
    assert!(ended.err.contains('…') && ended.err.contains(" the end"), "{}", ended.err);
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap()]);
    for text in [&ended.err, &ended.out, &report.out] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    assert!(ended.err.lines().all(|line| line.chars().count() <= 700), "{}", ended.err);
    let events = std::fs::read_to_string(desk.run_dir().join("events.jsonl")).unwrap();
    assert!(events.contains(&"0".repeat(4_000)), "the record has the whole text");
}

#[test]
fn with_six_open_files_one_sentence_says_what_is_missing() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(crate::commands::TWO_VARIANTS, ""));
    for files in ["6", "7", "8"] {
        let mut shell = Command::new("sh");
        desk.prepare(&mut shell);
        let script = format!("ulimit -n {files}; exec \"$0\" run p.toml");
        let ended = desk.ended(shell.args(["-c", &script, env!("CARGO_BIN_EXE_dbdyno")]));
        ended.expect_code(3);
        let expected = format!(
            "error: cannot start an event loop: Too many open files (os error 24); let this process open more files (ulimit -n, now {files})\n"
        );
        assert_eq!(ended.err, expected, "{files} files");
    }
}
