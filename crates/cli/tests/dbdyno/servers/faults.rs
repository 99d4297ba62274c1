//! Tests faults around servers: deep folders, taken ports, other programs' data, and a server that
//! does not stop.

use std::net::TcpListener;

use dbdyno_record::{Outcome, Run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::servers::shared::{MARIADB, at};
use crate::servers::watch::{server_of, state};
use crate::servers::{
    MARIADB_10_1, MARIADB_10_11, MY_CNF, MYSQL_5_5, MYSQL_8_0, POSTGRES_15, POSTGRES_18, small_plan, variant,
};
use crate::support::{Desk, faults, findings, texts, wait_for, wait_until_in_step};

const SQLITE: &str =
    "[[variant]]\nname = \"other\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";

/// A folder whose path is twice as long as a socket's path may be.
fn deep(desk: &Desk) -> std::path::PathBuf {
    let folder = desk.path(&["a-folder-below-a-folder"; 9].join("/"));
    assert!(folder.as_os_str().len() > 2 * 107);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Old installers start a server on their own socket, so each data directory is made below that
/// folder too.
#[test]
#[ignore = "in cargo xtask test --all: other versions, servers that hang"]
fn servers_run_below_a_folder_that_is_deeper_than_the_path_of_a_socket_may_be() {
    let run = |prefix: &str| {
        let desk = Desk::new();
        let deep = deep(&desk);
        let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 1000\nevents = 100\n";
        desk.write("p.toml", &format!("name = \"p\"\n{}{workload}", variant("a", prefix, "")));
        let mut command = desk.command(&["run", desk.path("p.toml").to_str().unwrap()]);
        desk.ended(command.current_dir(&deep).env_remove("DBDYNO_TEMPLATES")).expect_ok();
        let run = std::fs::read_dir(deep.join("runs")).unwrap().next().unwrap().unwrap().path();
        let findings = findings(&run);
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1), "{prefix}");
        let log = std::fs::read_dir(run.join("logs")).unwrap().next().unwrap().unwrap().path();
        assert!(log.as_os_str().len() > 2 * 107, "{}", log.display());
    };
    std::thread::scope(|scope| {
        for prefix in [MARIADB_10_1, MYSQL_5_5, MYSQL_8_0, POSTGRES_18] {
            scope.spawn(move || run(prefix));
        }
    });
}

#[test]
fn a_folder_for_sockets_that_is_too_deep_is_refused_before_anything_starts() {
    let desk = Desk::new();
    let deep = deep(&desk);
    desk.write("p.toml", &small_plan(&variant("a", POSTGRES_15, ""), ""));
    let ended = desk.ended(desk.command(&["run", "p.toml"]).env("TMPDIR", &deep));
    ended.expect_code(3);
    let (begin, end) = ("error: socket path ", "longer than 107 bytes; set TMPDIR to a shorter folder\n");
    assert!(ended.err.starts_with(begin) && ended.err.ends_with(end), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert_eq!(desk.run_dirs(), Vec::<std::path::PathBuf>::new());
    // SQLite needs no socket.
    desk.write("p.toml", &small_plan(SQLITE, ""));
    desk.ended(desk.command(&["run", "p.toml"]).env("TMPDIR", &deep)).expect_ok();
}

/// Servers listen only on their private sockets, whatever their option files say.
#[test]
#[ignore = "in cargo xtask test --all: other versions, servers that hang"]
fn taken_ports_do_not_matter() {
    // If a port cannot be bound, another program already uses it.
    let _taken: Vec<_> = [3306, 33060, 5432].map(|port| TcpListener::bind(("127.0.0.1", port))).into();
    let desk = Desk::new();
    desk.write("my.cnf", "[mysqld]\nport = 3306\nbind_address = 127.0.0.1\n");
    desk.write("pg.conf", "port = 5432\nlisten_addresses = '127.0.0.1'\n");
    let variants = variant("maria", MARIADB_10_11, "own_config = \"my.cnf\"")
        + &variant("mysql", MYSQL_8_0, "own_config = \"my.cnf\"")
        + &variant("pg", POSTGRES_18, "own_config = \"pg.conf\"");
    desk.write("p.toml", &small_plan(&variants, ""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 3));
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn foreign_data_at_a_cells_data_path_are_left_alone_and_the_rest_goes_on() {
    let desk = Desk::new();
    desk.write(
        "p.toml",
        &small_plan(&(variant("victim", MARIADB_10_11, "") + SQLITE), "read_write_time = \"3s\""),
    );
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    let precious = dir.join("data/1-victim-insert-benchmark/precious");
    std::fs::create_dir_all(precious.parent().unwrap()).unwrap();
    std::fs::write(&precious, "years of work").unwrap();
    let ended = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    ended.expect_code(4);
    let refusal = "exists and is not a data directory that dbdyno made";
    assert!(ended.err.contains(refusal), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "years of work");
    let mut outcomes: Vec<_> = Run::open(&dir)
        .unwrap()
        .cells
        .iter()
        .map(|cell| (cell.id.variant.clone(), cell.outcome().unwrap()))
        .collect();
    outcomes.sort_by(|left, right| left.0.cmp(&right.0));
    let expected = [("other".to_owned(), Outcome::Completed), ("victim".to_owned(), Outcome::Failed)];
    assert_eq!(outcomes, expected);
}

/// Makes a run whose first server was suspended while it stopped. It is `None` if the server had
/// ended before. MySQL 8.0 logs when it begins to stop, and takes a second for it.
fn held_at_its_stop() -> Option<Desk> {
    let desk = Desk::new();
    let variants = variant("victim", MYSQL_8_0, "") + SQLITE;
    desk.write("p.toml", &(small_plan(&variants, "") + "[host]\nstop_timeout = \"2s\"\n"));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let log = wait_for("the server's log", || {
        let logs = std::fs::read_dir(dir.join("logs")).ok()?;
        logs.flatten().map(|log| log.path()).find(|path| path.to_string_lossy().contains("victim"))
    });
    wait_until_in_step(&mut running, &dir, "1/victim/insert-benchmark/qr100");
    let pid = server_of(&dir, "victim").pid.unwrap();
    wait_for("the server's stop", || {
        let text = std::fs::read(&log).unwrap();
        let is_asked = String::from_utf8_lossy(&text).contains("Received SHUTDOWN from user");
        (is_asked || !running.is_running()).then_some(())
    });
    let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGSTOP);
    let is_held = wait_for("the server to stall", || match state(pid) {
        Some('T') => Some(true),
        None | Some('Z' | 'X') => Some(false),
        Some(_) => None,
    });
    running.wait().expect_ok();
    is_held.then_some(desk)
}

#[test]
#[ignore = "in cargo xtask test --all: holds a server"]
fn a_server_that_hangs_at_its_stop_keeps_its_results_and_the_record_says_so() {
    let desk = wait_for("a server that did not end before it could be held", held_at_its_stop);
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
    let killed = "the server had to be killed: it did not stop within 2 s (host.stop_timeout)";
    assert!(texts(&findings).iter().any(|warning| warning.contains(killed)), "{:?}", texts(&findings));
    assert!(!dir.join("data").exists());
}

/// 256 connections with nine statements on each of eight tables exceed the 16382 prepared
/// statements that a server allows by default.
#[test]
fn a_plan_that_prepares_more_statements_than_the_server_holds_is_refused_before_the_load() {
    let desk = Desk::new();
    let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"read-write\"]\ntables = 8\nconnections = 256\ntime = \"1s\"\n";
    desk.write("p.toml", &format!("name = \"p\"\n{}{workload}", at("a", &MARIADB, "")));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(4);
    let why = "the plan prepares 18944 statements (each kind on each table, BEGIN and COMMIT, for each connection), and the server holds 16382";
    assert!(ended.err.contains(why), "{}", ended.err);
}

/// The folder in which InnoDB sorts has less space than the index entries need.
#[test]
#[ignore = "in cargo xtask test --all: other versions, servers that hang"]
fn an_index_that_the_server_cannot_build_ends_the_cell() {
    let workloads = [
        ("oltp", "index", "tests = [\"point-select\"]\ntable_size = 50_000\nevents = 100\n"),
        ("insert-benchmark", "l.x", "clients = 1\nload_rows = 50_000\nsettle_wait = \"0s\"\n"),
    ];
    for (workload, step, options) in workloads {
        let desk = Desk::new();
        let small = desk.path("small");
        std::fs::create_dir(&small).unwrap();
        let sorting = format!("innodb_tmpdir = {}\ninnodb_sort_buffer_size = 64K\n", small.display());
        desk.write("my.cnf", &format!("{MY_CNF}{sorting}"));
        let more = "own_config = \"my.cnf\"";
        let variants = variant("maria", MARIADB_10_11, more) + &variant("mysql", MYSQL_8_0, more);
        let load = "[load]\nlost_connections = \"reconnect\"\n";
        desk.write("p.toml", &format!("name = \"p\"\n{variants}{load}[workload.{workload}]\n{options}"));
        let script = "mount -t tmpfs -o size=256k small small && $DBDYNO run p.toml";
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).env("DBDYNO", env!("CARGO_BIN_EXE_dbdyno"));
        desk.prepare(&mut command);
        let ended = desk.ended(&mut command);
        ended.expect_code(4);
        let run = Run::open(&desk.run_dir()).unwrap();
        assert_eq!(run.cells.len(), 2);
        for cell in &run.cells {
            let last = cell.steps.last().unwrap();
            assert_eq!((last.name.as_str(), last.outcome()), (step, Some(Outcome::Failed)), "{}", ended.err);
            assert_eq!(cell.outcome(), Some(Outcome::Failed));
        }
    }
}

/// The warning is needed because no one watches a progress line that goes to a file.
#[test]
#[ignore = "in cargo xtask test --all: holds a server for 30 seconds"]
fn a_server_that_hangs_in_a_load_is_reported() {
    let desk = Desk::new();
    let workload = "[workload.oltp]\ntests = [\"point-select\"]\ntable_size = 5_000_000\nevents = 100\n";
    desk.write("p.toml", &format!("name = \"p\"\n{}{workload}", variant("a", MARIADB_10_11, "")));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/a/oltp/load");
    let pid = Pid::from_raw(i32::try_from(server_of(&dir, "a").pid.unwrap()).unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    let words = "warning: load: no operation has ended for 30";
    wait_for("a word of it", || running.said().contains(words).then_some(()));
    kill(pid, Signal::SIGCONT).unwrap();
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
}

/// Counting this many rows takes longer than a millisecond on any machine.
#[test]
#[ignore = "in cargo xtask test --all: other versions, servers that hang"]
fn a_check_of_the_tables_that_exceeds_the_plans_limit_fails_its_cell_and_says_which_setting_it_was() {
    let desk = Desk::new();
    let variants = variant("maria", MARIADB_10_11, "") + &variant("pg", POSTGRES_18, "");
    let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 300_000\nevents = 100\n";
    desk.write("p.toml", &format!("name = \"p\"\n{variants}[host]\nstatement_timeout = \"1ms\"\n{workload}"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(4);
    for name in ["maria", "pg"] {
        let start = format!("error: block 1 {name} oltp failed");
        let error = ended.err.lines().find(|line| line.starts_with(&start)).expect(&ended.err);
        assert!(
            error.contains(
                "no answer within 1ms; see what the server does, or raise statement_timeout in [host]"
            ),
            "{error}"
        );
    }
}
