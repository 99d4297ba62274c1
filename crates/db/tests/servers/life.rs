//! Tests with real servers that are stopped and started again: on their own data, on copies of a
//! snapshot, under a memory limit, and when they hang.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_db::server::{Base, Data, Error, RuntimeDir, Server, ServerSpec, Snapshot};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::program::write_program;
use crate::support::{self, MARIADB, MYSQL, POSTGRES, Wanted, ask, base, new_folder, with_options};

const STOP: Duration = Duration::from_secs(60);

/// Old and new builds, and their names in the catalogue.
const OTHER_MYSQLS: [Wanted; 2] = [("mysql-5.6.", "mysql-5.6.24"), ("mariadb-10.11", "mariadb-10.11-debian")];
const OTHER_POSTGRESES: [Wanted; 2] = [("pg-9.6.", "pg-9.6.24"), ("pg-18.", "pg-18.6")];

fn spec(wanted: Wanted, folder: &Path) -> ServerSpec {
    with_options(&base(wanted), folder, "[mysqld]\ninnodb_buffer_pool_size = 32M\n")
}

const COUNT: &str = "SELECT COUNT(*) FROM d.t";
const ADD: &str = "INSERT INTO d.t VALUES (1)";
const MAKE: [&str; 3] = ["CREATE DATABASE d", "CREATE TABLE d.t (a INT)", ADD];

#[test]
fn a_server_starts_again_on_its_data_and_on_copies_of_a_snapshot_under_the_same_socket() {
    starts_again(MARIADB);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn other_servers_start_again_on_their_data_and_on_copies_of_a_snapshot() {
    [MYSQL].into_iter().chain(OTHER_MYSQLS).for_each(starts_again);
}

fn starts_again(wanted: Wanted) {
    let folder = new_folder();
    let spec = spec(wanted, folder.path());
    let server = Server::start(&spec).unwrap_or_else(|error| panic!("{}: {error}", wanted.0));
    ask(&server, &MAKE);
    let (socket, pid) = (server.socket().to_path_buf(), server.pid());
    let (stopped, runtime_dir) = server.into_running().stop_for_restart(STOP).unwrap();
    assert_eq!((stopped.code, stopped.killed), (Some(0), false), "{}", wanted.0);

    let server = spec.base.family.start(runtime_dir, &spec, Data::AsItIs).unwrap();
    assert_eq!((ask(&server, &[ADD, COUNT]), server.socket().to_path_buf()), ("2".to_owned(), socket));
    assert_ne!(server.pid(), pid);
    let (_, mut runtime_dir) = server.into_running().stop_for_restart(STOP).unwrap();

    let taken =
        Snapshot::take(&spec.data_dir, &folder.path().join("snapshot"), json!(2), &AtomicBool::new(false))
            .unwrap();
    for _ in 0..2 {
        taken.restore(&spec.data_dir, &AtomicBool::new(false)).unwrap();
        let server = spec.base.family.start(runtime_dir, &spec, Data::AsItIs).unwrap();
        assert_eq!(ask(&server, &[ADD, COUNT]), "3", "{}", wanted.0);
        runtime_dir = server.into_running().stop_for_restart(STOP).unwrap().1;
    }
}

#[test]
fn a_postgres_starts_on_copies_of_a_snapshot_too() {
    starts_on_copies(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn a_postgres_of_another_version_starts_on_copies_of_a_snapshot_too() {
    OTHER_POSTGRESES.into_iter().for_each(starts_on_copies);
}

fn starts_on_copies(wanted: Wanted) {
    let folder = new_folder();
    let spec = support::spec(&base(wanted), folder.path());
    let server = Server::start(&spec).unwrap_or_else(|error| panic!("{}: {error}", wanted.0));
    ask(&server, &["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"]);
    let (_, mut runtime_dir) = server.into_running().stop_for_restart(STOP).unwrap();
    let taken =
        Snapshot::take(&spec.data_dir, &folder.path().join("snapshot"), json!(1), &AtomicBool::new(false))
            .unwrap();
    for _ in 0..2 {
        taken.restore(&spec.data_dir, &AtomicBool::new(false)).unwrap();
        let server = spec.base.family.start(runtime_dir, &spec, Data::AsItIs).unwrap();
        let count = ask(&server, &["INSERT INTO t VALUES (1)", "SELECT COUNT(*) FROM t"]);
        assert_eq!(count, "2", "{}", wanted.0);
        runtime_dir = server.into_running().stop_for_restart(STOP).unwrap().1;
    }
}

/// Log messages of servers about clients that connected but did not log in, or that disconnected
/// without a goodbye.
const COMPLAINTS: [&str; 10] = [
    "Aborted connection",
    "Got an error reading",
    "Got packets out of order",
    "Got timeout reading",
    "unauthenticated",
    "This connection closed normally without authentication",
    "incomplete startup packet",
    "Connection reset by peer",
    "unexpected EOF on client connection",
    "FATAL:  the database system is",
];

/// The end of a log line that does not count as a complaint. A server that is stopped right after a
/// session may not have read the goodbye yet, so it ends the connection itself.
const ENDED_BY_ITSELF: &str = "(KILLED)";

fn complaints(log: &str) -> Vec<&str> {
    let is_complaint = |line: &&str| {
        !line.ends_with(ENDED_BY_ITSELF) && COMPLAINTS.iter().any(|complaint| line.contains(complaint))
    };
    log.lines().filter(is_complaint).collect()
}

/// Kills a server and starts it again, so that it has to recover before it answers.
fn recovered(wanted: Wanted, options: &str, folder: &Path) -> Server {
    let spec = with_options(&base(wanted), folder, options);
    let server = Server::start(&spec).unwrap_or_else(|error| panic!("{}: {error}", wanted.0));
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGKILL).unwrap();
    while server.is_running() {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(server);
    spec.base.family.start(RuntimeDir::new().unwrap(), &spec, Data::AsItIs).unwrap()
}

/// The servers log as much as they can about their connections.
#[test]
fn a_starting_or_recovering_server_logs_no_complaints_about_probes() {
    for (wanted, options) in [
        (MARIADB, "[mysqld]\ninnodb_buffer_pool_size = 32M\nlog_warnings = 9\n"),
        (MYSQL, "[mysqld]\ninnodb_buffer_pool_size = 32M\nlog_error_verbosity = 3\n"),
        (POSTGRES, "log_connections = on\nlog_disconnections = on\n"),
    ] {
        let folder = new_folder();
        recovered(wanted, options, folder.path()).stop().unwrap();
        let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
        assert_eq!(complaints(&log), [""; 0], "{}: {log}", wanted.0);
        if wanted == POSTGRES {
            assert_eq!(log.matches("connection authorized").count(), 2, "a login each start: {log}");
        }
    }
}

/// Some versions do not report the progress of their start in a file, so dbdyno probes them with
/// logins. They refuse and log these logins until they have recovered.
#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn log_lines_about_refused_probes_are_not_shown() {
    for wanted in OTHER_POSTGRESES {
        let folder = new_folder();
        let server = recovered(wanted, "log_connections = on\n", folder.path());
        assert_eq!(complaints(&server.log_tail(1_000)), [""; 0], "{}", wanted.0);
        assert_eq!(server.logged_errors(), None, "{}", wanted.0);
        server.stop().unwrap();
    }
}

#[test]
fn data_in_use_and_data_of_others_are_refused() {
    let folder = new_folder();
    let spec = spec(MARIADB, folder.path());
    let server = Server::start(&spec).unwrap();
    let refused =
        Snapshot::take(&spec.data_dir, &folder.path().join("snapshot"), json!(0), &AtomicBool::new(false));
    assert!(matches!(refused, Err(Error::StillRunning { .. })), "{refused:?}");
    server.stop().unwrap();
    std::fs::create_dir(folder.path().join("theirs")).unwrap();
    let theirs = ServerSpec { data_dir: folder.path().join("theirs"), ..spec };
    let refused = theirs.base.family.start(RuntimeDir::new().unwrap(), &theirs, Data::AsItIs);
    assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
}

/// The server scans a table that is larger than the limit. The page cache of the server's files
/// counts as the server's memory, so the limit applies to it.
#[test]
#[ignore = "in cargo xtask test --all: control groups"]
fn the_memory_limit_includes_the_page_cache_of_the_servers_files() {
    const LIMIT: u64 = 320 << 20;
    let folder = new_folder();
    let spec = spec(MARIADB, folder.path());
    let runtime_dir = RuntimeDir::new().unwrap().with_memory_limit(LIMIT).unwrap_or_else(|error| {
        panic!("a memory limit needs a control group that this process may make (run as root): {error}")
    });
    let group = runtime_dir.cgroup().unwrap().folder.clone();
    assert_eq!(runtime_dir.cgroup().unwrap().memory_limit_bytes, LIMIT);
    let server = spec.base.family.start(runtime_dir, &spec, Data::Fresh).unwrap();
    let member = std::fs::read_to_string(format!("/proc/{}/cgroup", server.pid())).unwrap();
    assert!(member.contains(group.file_name().unwrap().to_str().unwrap()), "{member}");
    let make = ["CREATE DATABASE d", "CREATE TABLE d.big (a LONGTEXT) ENGINE = MyISAM"];
    ask(&server, &[make[0], make[1], "INSERT INTO d.big VALUES (REPEAT('x', 1000000))"]);
    for _ in 0..9 {
        ask(&server, &["INSERT INTO d.big SELECT a FROM d.big"]);
    }
    ask(&server, &["SELECT MAX(LENGTH(a)) FROM d.big"]);
    let number = |names: [&str; 2]| -> u64 {
        let read = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse().ok();
        names.iter().find_map(|name| read(name)).unwrap()
    };
    let written = std::fs::metadata(spec.data_dir.join("d/big.MYD")).unwrap().len();
    assert!(written > LIMIT, "{written} bytes are no test");
    let used = number(["memory.current", "memory.usage_in_bytes"]);
    assert!(used <= LIMIT && used > LIMIT / 2, "{used} bytes");
    let events = std::fs::read_to_string(group.join("memory.events")).unwrap_or_default();
    let of_v2 = events.lines().find_map(|line| line.strip_prefix("max ")?.parse().ok());
    // dbdyno samples this counter as `limit_hits`.
    let hits = of_v2.unwrap_or_else(|| number(["memory.failcnt", "memory.failcnt"]));
    assert!(hits > 0, "the limit was never hit");
    server.stop().unwrap();
    assert!(!group.exists(), "the group outlives its server");
}

/// The buffer pool alone is larger than the limit.
#[test]
#[ignore = "in cargo xtask test --all: control groups"]
fn the_error_says_that_a_server_exceeded_its_memory_limit() {
    let folder = new_folder();
    let spec = spec(MYSQL, folder.path());
    let runtime_dir = RuntimeDir::new().unwrap().with_memory_limit(64 << 20).unwrap();
    let message = spec.base.family.start(runtime_dir, &spec, Data::Fresh).unwrap_err().to_string();
    assert!(message.contains("it needed more than its memory limit of 64 MiB"), "{message}");
}

#[test]
fn a_server_that_hangs_at_its_stop_is_killed_and_reported_as_killed() {
    let folder = new_folder();
    let spec = spec(MARIADB, folder.path());
    let hang = |server: &Server| {
        kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGSTOP).unwrap();
    };
    let server = Server::start(&spec).unwrap();
    hang(&server);
    let message = server.into_running().stop_for_restart(Duration::from_secs(1)).unwrap_err().to_string();
    assert!(message.contains("did not end within 1 s and was killed"), "{message}");
    let server = Server::start(&spec).unwrap();
    hang(&server);
    let stopped = server.into_running().stop_within(Duration::from_secs(1)).unwrap();
    assert!(stopped.killed && stopped.signal == Some(9), "{stopped:?}");
}

#[test]
fn a_server_that_was_killed_before_its_stop_is_not_at_rest() {
    let folder = new_folder();
    let server = Server::start(&spec(MARIADB, folder.path())).unwrap();
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGKILL).unwrap();
    while server.is_running() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let error = server.into_running().stop_for_restart(STOP).unwrap_err();
    assert!(matches!(error, Error::NotAtRest { .. }), "{error}");
    assert!(error.to_string().contains("signal 9"), "{error}");
}

/// The program is a script that stops itself with SIGSTOP before it executes the server.
#[test]
#[ignore = "in cargo xtask test --all: initialises a build of its own"]
fn a_server_that_hangs_at_its_start_is_stopped_after_the_time_limit() {
    let folder = new_folder();
    let real = base(MYSQL);
    let fake = folder.path().join("base");
    std::fs::create_dir_all(&fake).unwrap();
    for entry in std::fs::read_dir(&real.path).unwrap().flatten() {
        if entry.file_name() != "bin" {
            std::os::unix::fs::symlink(entry.path(), fake.join(entry.file_name())).unwrap();
        }
    }
    let real_program = real.program.display();
    let script = format!("case \"$*\" in *--socket=*) kill -STOP $$ ;; esac\nexec {real_program} \"$@\"");
    write_program(&fake.join("bin/mysqld"), &script);
    let base = Base::open(&fake).unwrap();
    // This build exists only in this test, so its template is removed with the test's folder.
    let template_dir = folder.path().join("templates");
    let start_timeout = Duration::from_secs(2);
    let spec = ServerSpec { base, template_dir, start_timeout, ..spec(MYSQL, folder.path()) };
    let message = Server::start(&spec).unwrap_err().to_string();
    assert!(message.contains("did not answer on its socket within 2 s and was stopped"), "{message}");
    let left = std::process::Command::new("pgrep").args(["-f", fake.to_str().unwrap()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "a process is left");
}
