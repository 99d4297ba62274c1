//! `dbdyno known-answer`: it listens, serves a driver, stops at a signal and reports what it did.

use dbdyno_drivers::{Class, Endpoint, Param, Session, Target, mysql, postgres};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Desk, Running, wait_for};

/// A server on a socket in the desk's folder, which listens.
pub(super) fn listening(desk: &Desk, args: &[&str]) -> Running {
    let mut running = desk.start(&mut desk.command(&[&["known-answer"], args].concat()));
    wait_for("the server to listen", || {
        assert!(running.is_running(), "{}", running.said());
        let said = std::fs::read_to_string(desk.path("out.txt")).unwrap();
        said.starts_with("listening on ").then_some(())
    });
    running
}

/// Prepares a statement and executes it ten times.
async fn ask(endpoint: &Endpoint) {
    let mut session = endpoint.connect().await.unwrap();
    let statement = session.prepare("SELECT c FROM t WHERE id=?").await.unwrap();
    for number in 1..=10 {
        let outcome = session.execute(statement, &[Param::Int(number)]).await;
        match number {
            10 => assert_eq!(outcome.unwrap_err().class, Class::Retry),
            _ => assert_eq!(outcome.unwrap().rows, 2),
        }
    }
    session.close().await;
}

fn check(reported: &Value, protocol: &str, error: &str) {
    assert_eq!(reported["protocol"], protocol);
    assert_eq!(reported["behaviour"]["delay"], "constant 1ms");
    assert_eq!(reported["behaviour"]["error"], format!("{error} every 10"));
    assert_eq!(
        (&reported["requests"]["executions"], &reported["requests"]["prepares"]),
        (&10.into(), &1.into())
    );
    assert_eq!((&reported["faults"]["errors"], &reported["actual"]["count"]), (&1.into(), &10.into()));
    assert_eq!(reported["programmed"]["mean_us"], 1000.0);
    assert!(reported["actual"]["mean_us"].as_f64().unwrap() >= 1000.0, "{reported}");
}

#[tokio::test(flavor = "current_thread")]
async fn it_serves_mysql_until_sigterm_and_tells_what_it_did() {
    let desk = Desk::new();
    let args = ["--protocol", "mysql", "--socket", "s", "--rows", "2", "--delay", "constant 1ms"];
    let running = listening(&desk, &[&args[..], &["--error", "1213 every 10", "--threads", "1"]].concat());
    let target = Target::Mysql(mysql::Options::socket(desk.path("s"), "any"));
    ask(&Endpoint { target, capabilities: mysql::capabilities("", false) }).await;
    let second = desk.dbdyno(&["known-answer", "--protocol", "mysql", "--socket", "s"]);
    insta::assert_snapshot!(desk.refusal(&second), @"exit 3: error: s is in use: a server answers there; stop it, or name another socket");
    running.signal(Signal::SIGTERM);
    let ended = running.wait();
    ended.expect_ok();
    let json = ended.out.strip_prefix("listening on s\n").unwrap();
    check(&serde_json::from_str(json).unwrap(), "mysql", "1213");
    assert!(!desk.path("s").exists(), "the socket is left");
}

#[tokio::test(flavor = "current_thread")]
async fn it_serves_postgres_in_a_folder_and_writes_what_it_did_to_a_file() {
    let desk = Desk::new();
    let args = ["--protocol", "postgres", "--socket", ".", "--rows", "2", "--delay", "constant 1ms"];
    let running = listening(&desk, &[&args[..], &["--error", "40P01 every 10", "--stats", "j"]].concat());
    let path = postgres::socket_path(&desk.path(""), 5432);
    let target = Target::Postgres(postgres::Options::socket(path, "any"));
    ask(&Endpoint { target, capabilities: postgres::capabilities() }).await;
    running.signal(Signal::SIGINT);
    let ended = running.wait();
    ended.expect_ok();
    assert_eq!(ended.out, "listening on ./.s.PGSQL.5432\n");
    let json = std::fs::read_to_string(desk.path("j")).unwrap();
    check(&serde_json::from_str(&json).unwrap(), "postgres", "40P01");
}

/// Every script of Debian's package that has events.
const SCRIPTS: [&str; 11] = [
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
];

/// What a run says of statements and events.
fn statistics(text: &str) -> Vec<&str> {
    let names = [
        "read:",
        "write:",
        "other:",
        "total:",
        "transactions:",
        "ignored errors:",
        "total number of events:",
    ];
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| names.iter().any(|name| line.starts_with(name)));
    lines.map(|line| line.split(" (").next().unwrap_or(line).trim_end()).collect()
}

/// The server answers each statement at once, so that nothing but the scripts decides what is sent.
#[test]
#[ignore = "in cargo xtask test --all: the original sysbench"]
fn every_script_of_sysbench_does_as_much_in_both() {
    let desk = Desk::new();
    let running = listening(&desk, &["--protocol", "mysql", "--socket", "s"]);
    let socket = format!("--mysql-socket={}", desk.path("s").display());
    let words = [&socket, "--mysql-user=any", "--threads=1", "--events=30", "--time=0"];
    for script in SCRIPTS {
        let line: Vec<&str> = [script].into_iter().chain(words).chain(["run"]).collect();
        let sysbench = std::process::Command::new("sysbench").args(&line).output();
        let sysbench = sysbench.expect("sysbench; install it with `cargo xtask servers`");
        assert!(sysbench.status.success(), "{script}: {sysbench:?}");
        let ours = desk.dbdyno(&[&["sysbench"], &line[..]].concat()).expect_ok().out.clone();
        let theirs = String::from_utf8_lossy(&sysbench.stdout).into_owned();
        assert_eq!(statistics(&theirs).len(), 7, "{theirs}");
        if script == "bulk_insert" {
            // All of its rows go when the clock has stopped.
            assert_eq!(statistics(&ours).last(), statistics(&theirs).last());
        } else {
            assert_eq!(statistics(&ours), statistics(&theirs), "{script}");
        }
    }
    running.signal(Signal::SIGTERM);
    running.wait().expect_ok();
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    let desk = Desk::new();
    desk.write("file", "precious");
    let refusal = |args: &[&str]| {
        let ended = desk.dbdyno(&[&["known-answer", "--protocol", "mysql"], args].concat());
        desk.refusal(&ended)
    };
    insta::assert_snapshot!(refusal(&["--socket", "file"]), @"exit 2: error: file exists and is not a socket; name another path");
    insta::assert_snapshot!(refusal(&["--socket", "s", "--error", "40P01 every 1"]), @"exit 2: error: no error has the code 40P01; name an error number of MySQL, as 1213, or an SQLSTATE of PostgreSQL, as 40P01");
    insta::assert_snapshot!(refusal(&["--socket", "s", "--cpus", "8000"]), @"exit 3: error: cannot keep the server to CPUs [8000]: Invalid argument (os error 22); name CPUs that this process may use");
    assert!(
        refusal(&["--socket", "s", "--delay", "gamma 1ms"])
            .contains("no such delay; write none, constant 200us")
    );
    assert!(refusal(&[]).contains("<--socket <PATH>|--port <N>>"));
}
