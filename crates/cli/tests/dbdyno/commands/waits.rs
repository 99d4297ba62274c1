//! Tests how long a client waits for a server, a pooler or a login, and what dbdyno says about the
//! wait: in the sysbench and pgbench commands and in plans.

use std::path::Path;

use nix::sys::signal::Signal;

use super::known_answer::listening;
use crate::support::pooler::{self, Place};
use crate::support::{Desk, Ended, Running, figure, wait_for};

/// Starts a PostgreSQL server behind a pooler in the folder `pool`. The pooler serves `most`
/// clients at once.
fn pooled(desk: &Desk, most: usize, place: Place) -> Running {
    let server = listening(desk, &["--protocol", "postgres", "--socket", ".", "--delay", "constant 1ms"]);
    let name = ".s.PGSQL.5432";
    std::fs::create_dir(desk.path("pool")).unwrap();
    pooler::start(&desk.path("pool").join(name), &desk.path(name), most, place);
    desk.write("s.sql", "SELECT 1;\n");
    desk.write(
        "own.lua",
        "function thread_init() drv = sysbench.sql.driver() con = drv:connect() end
         function event() con:query('SELECT 1') end\n",
    );
    server
}

fn folder(desk: &Desk) -> String {
    desk.path("pool").display().to_string()
}

fn pgbench(desk: &Desk, words: &[&str]) -> Ended {
    let place = ["pgbench", "-h", &folder(desk), "-U", "any", "-n", "-M", "simple", "-f", "s.sql"];
    desk.dbdyno(&[&place, words, &["any"]].concat())
}

/// When there are more clients than the pooler serves, each waiting client is served once another
/// has ended.
#[test]
fn clients_that_have_ended_make_room_in_a_pooler_for_those_that_wait() {
    let desk = Desk::new();
    let _server = pooled(&desk, 2, Place::Freed);
    let ended = pgbench(&desk, &["-c", "8", "-j", "2", "-t", "5"]);
    assert!(ended.expect_ok().out.contains("actually processed: 40/40"), "{}", ended.out);
    // Clients that are still waiting when the time is over run one transaction each.
    let ended = pgbench(&desk, &["-c", "6", "-T", "1"]);
    let done = figure(&ended.expect_ok().out, "number of transactions actually processed:");
    assert!(done > 6, "{}", ended.out);
}

fn sysbench(desk: &Desk, words: &[&str]) -> std::process::Command {
    let place = format!("--pgsql-host={}", folder(desk));
    desk.command(
        &[&["sysbench", "own.lua", "--db-driver=pgsql", &place, "--pgsql-user=any", "--threads=6"], words]
            .concat(),
    )
}

#[test]
fn a_step_whose_connections_never_get_a_place_ends_at_its_cap_and_says_how_many() {
    let desk = Desk::new();
    let _server = pooled(&desk, 2, Place::Lost);
    let ended = desk.ended(&mut sysbench(&desk, &["--time=1", "--forced-shutdown=1", "run"]));
    ended.expect_code(1);
    let says =
        ["not done after its time cap of 2 s: 4 of 6 connections (client ", "pooler", "max_connections"];
    assert!(says.iter().all(|part| ended.err.contains(part)), "{}", ended.err);
}

#[test]
#[ignore = "in cargo xtask test --all: half a minute"]
fn waiting_connections_are_reported_while_the_step_runs() {
    let desk = Desk::new();
    let _server = pooled(&desk, 2, Place::Lost);
    let running = desk.start(&mut sysbench(&desk, &["--time=3600", "run"]));
    let says = "4 of 6 connections have had no answer to their first statement for ";
    wait_for("a word on those that wait", || running.said().contains(says).then_some(()));
    // A process that was started in the background may ignore SIGINT.
    running.signal(Signal::SIGTERM);
    running.wait();
}

/// Options of a server that answers no login before this delay.
const LATE: [&str; 2] = ["--login-delay", "1500ms"];

fn late(desk: &Desk, protocol: &str, socket: &str) -> Running {
    listening(desk, &[&["--protocol", protocol, "--socket", socket], &LATE[..]].concat())
}

fn fails_by_its_key(ended: &Ended, key: &str) {
    assert!(ended.code.is_some_and(|code| code > 0), "{ended:?}");
    assert!(ended.err.contains(key), "{ended:?}");
    let others = ["login_timeout", "--thread-init-timeout", "PGCONNECT_TIMEOUT"];
    assert!(!others.iter().any(|other| *other != key && ended.err.contains(other)), "{ended:?}");
}

#[test]
fn sysbench_waits_for_a_login_as_long_as_thread_init_timeout_says() {
    let desk = Desk::new();
    desk.write(
        "own.lua",
        "function thread_init() drv = sysbench.sql.driver() con = drv:connect() end
         function event() con:query('SELECT 1') end\n",
    );
    let _server = late(&desk, "mysql", "s");
    let run = |seconds: &str| {
        let words = ["sysbench", "own.lua", "--mysql-socket=s", "--mysql-user=any", "--threads=3"];
        let limit = format!("--thread-init-timeout={seconds}");
        desk.dbdyno(&[&words[..], &[&limit, "--events=6", "--time=0", "run"]].concat())
    };
    fails_by_its_key(&run("1"), "--thread-init-timeout");
    assert_eq!(figure(&run("300").expect_ok().out, "total number of events:"), 6);
}

#[test]
fn pgbench_waits_for_a_login_as_long_as_pgconnect_timeout_says() {
    let desk = Desk::new();
    desk.write("s.sql", "SELECT 1;\n");
    let _server = late(&desk, "postgres", ".");
    let run = |seconds: &str| {
        let folder = desk.path("").display().to_string();
        let words = ["pgbench", "-h", &folder, "-U", "any", "-n", "-f", "s.sql", "-c", "3", "-t", "2", "any"];
        desk.ended(desk.command(&words).env("PGCONNECT_TIMEOUT", seconds))
    };
    fails_by_its_key(&run("1"), "PGCONNECT_TIMEOUT");
    assert!(run("300").expect_ok().out.contains("actually processed: 6/6"));
}

/// The limit applies to the first login of a plan and to all later ones.
#[test]
fn a_plan_waits_for_a_login_as_long_as_login_timeout_says() {
    let desk = Desk::new();
    let _server = late(&desk, "mysql", "s");
    let run = |limit: &str| {
        let text = plan(&desk.path("s"), limit);
        desk.write("p.toml", &text);
        desk.dbdyno(&["run", "p.toml"])
    };
    fails_by_its_key(&run("1s"), "login_timeout");
    run("300s").expect_ok();
}

fn plan(socket: &Path, limit: &str) -> String {
    format!(
        "name = \"test\"\nblocks = 1\n[host]\ncpus = \"shared\"\n[[variant]]\nname = \"a\"\n\
         address = \"mysql://any@localhost/a?socket={}\"\n[load]\nlogin_timeout = \"{limit}\"\n[workload.oltp]\n\
         tests = [\"point-select\"]\ntable_size = 100\nconnections = [2]\ntime = \"1s\"\nsettle = {{ by = \"none\" }}\n\
         load_connections = 1\ncreate_secondary = false\nverify = \"off\"\n",
        socket.display()
    )
}
