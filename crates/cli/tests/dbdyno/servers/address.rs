//! Tests runs at an address. Only one run at a time may use a database, the server's settings may
//! differ from what clients need, and no statement may stay at work.

use std::time::Duration;

use dbdyno_db::Session;
use dbdyno_db::mysql::MysqlSession;
use dbdyno_db::server::Server;
use dbdyno_record::{Outcome, Run};
use nix::sys::signal::Signal;

use crate::servers::external::{PASSWORD, address, external_server};
use crate::servers::shared::{self, MARIADB, MYSQL, POSTGRES};
use crate::servers::watch::ask;
use crate::servers::{MARIADB_10_11, small_plan};
use crate::support::{Desk, Ended, faults, findings, texts, wait_for, wait_until_in_step};

const OLTP: &str =
    "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 1000\nevents = 100\n";

/// A variant in `database` at `server`, with the further lines `more`.
fn at(name: &str, server: &Server, database: &str, more: &str) -> String {
    let address = address(server, database);
    format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\npassword_env = \"PASSWORD\"\n{more}\n")
}

fn command(desk: &Desk, args: &[&str]) -> std::process::Command {
    let mut command = desk.command(args);
    command.env("PASSWORD", PASSWORD);
    command
}

fn ran(desk: &Desk, plan: &str) -> Ended {
    desk.write("p.toml", plan);
    desk.ended(&mut command(desk, &["run", "p.toml"]))
}

fn count(server: &Server, sql: &str) -> u64 {
    ask(&server.options(None), &[sql])[0][0].as_deref().unwrap().parse().unwrap()
}

#[test]
fn a_second_run_in_the_same_database_is_refused_until_the_first_has_ended() {
    let (desk, server, database) = (Desk::new(), &*MARIADB, &*shared::database());
    // Variants in the same run share their database.
    let variants = at("one", server, database, "")
        + &at("two", server, database, "options.column_definitions = \"always\"");
    desk.write("p.toml", &small_plan(&variants, "read_write_time = \"4s\""));
    let mut first = desk.start(&mut command(&desk, &["run", "p.toml"]));
    wait_until_in_step(&mut first, &desk.run_dir(), "1/one/insert-benchmark/qr100");
    let second = desk.ended(&mut command(&desk, &["run", "p.toml", "--out", "others"]));
    second.expect_code(4);
    let why = "is in use by another run of dbdyno (connection ";
    assert!(
        second.err.contains(&format!("variant one: database {database} at ")) && second.err.contains(why),
        "{}",
        second.err
    );
    assert!(second.err.contains(" of bench@localhost); wait until that has ended"), "{}", second.err);
    let begun = std::fs::read_dir(desk.path("others")).map_or(0, Iterator::count);
    assert_eq!(begun, 0, "a run was begun");
    first.wait().expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
    ran(&desk, &format!("name = \"p\"\n{}{OLTP}", at("one", server, database, ""))).expect_ok();
}

#[test]
fn a_second_run_in_the_same_postgres_database_is_refused_too() {
    let (desk, database) = (Desk::new(), &*shared::database());
    let address = shared::address(&POSTGRES, "postgres", database);
    let variant = |name: &str| format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    desk.write("p.toml", &small_plan(&(variant("one") + &variant("two")), "read_write_time = \"4s\""));
    let mut first = desk.start(&mut desk.command(&["run", "p.toml"]));
    wait_until_in_step(&mut first, &desk.run_dir(), "1/one/insert-benchmark/qr100");
    let second = desk.dbdyno(&["run", "p.toml", "--out", "others"]);
    second.expect_code(4);
    let why = format!("variant one: database {database} at ");
    assert!(second.err.contains(&why) && second.err.contains(" of postgres@localhost)"), "{}", second.err);
    first.wait().expect_ok();
    desk.write("p.toml", &format!("name = \"p\"\n{}{OLTP}", variant("one")));
    desk.dbdyno(&["run", "p.toml", "--out", "others"]).expect_ok();
}

#[test]
fn a_lock_that_was_lost_is_taken_again_and_the_record_says_so() {
    let (desk, server, database) = (Desk::new(), &*MYSQL, &*shared::database());
    desk.write("p.toml", &small_plan(&at("one", server, database, ""), "read_write_time = \"4s\""));
    let mut run = desk.start(&mut command(&desk, &["run", "p.toml"]));
    wait_until_in_step(&mut run, &desk.run_dir(), "1/one/insert-benchmark/qr100");
    let owner = count(server, &format!("SELECT IS_USED_LOCK('dbdyno:{database}')"));
    ask(&server.options(None), &[&format!("KILL {owner}")]);
    run.wait().expect_ok();
    let warnings = texts(&findings(&desk.run_dir()));
    let lost = format!("the connection that held the lock on database {database} at ");
    assert!(warnings.iter().any(|text| text.contains(&lost)), "{warnings:?}");
}

#[test]
fn a_database_that_another_run_uses_at_a_cells_end_fails_the_cell_and_all_its_steps() {
    let (desk, server, database) = (Desk::new(), &*MYSQL, &*shared::database());
    desk.write("p.toml", &small_plan(&at("one", server, database, ""), "read_write_time = \"4s\""));
    let mut run = desk.start(&mut command(&desk, &["run", "p.toml"]));
    wait_until_in_step(&mut run, &desk.run_dir(), "1/one/insert-benchmark/qr100");
    let owner = count(server, &format!("SELECT IS_USED_LOCK('dbdyno:{database}')"));
    ask(&server.options(None), &[&format!("KILL {owner}")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // This session stands for another run. Its lock lasts as long as its connection.
    let _other = runtime.block_on(async {
        let mut session = MysqlSession::connect(&server.options(None)).await.unwrap();
        session.query(format!("DO GET_LOCK('dbdyno:{database}', 60)").as_bytes()).await.unwrap();
        session
    });
    let ended = run.wait();
    ended.expect_code(4);
    let why = "is in use by another run of dbdyno (connection ";
    assert!(ended.err.contains(why), "{}", ended.err);
    let dir = desk.run_dir();
    assert_eq!(Run::open(&dir).unwrap().cells[0].outcome(), Some(Outcome::Failed));
    let faults = faults(&findings(&dir));
    assert_eq!(faults.len(), 6, "{faults:#?}");
    assert!(faults.iter().all(|fault| fault.contains("Invalid") && fault.contains(why)), "{faults:#?}");
}

/// If the load continued with the next statement, the table would have a gap.
#[test]
fn a_load_whose_connection_is_lost_ends_although_lost_connections_are_opened_again() {
    let (desk, server, database) = (Desk::new(), &*MARIADB, &*shared::database());
    let load = "[load]\nlost_connections = \"reconnect\"\n";
    let workload = OLTP.replace("table_size = 1000", "table_size = 2_000_000\nverify = \"off\"");
    desk.write("p.toml", &format!("name = \"p\"\n{}{load}{workload}", at("one", server, database, "")));
    let run = desk.start(&mut command(&desk, &["run", "p.toml"]));
    let inserting = format!(
        "SELECT MAX(id) FROM information_schema.processlist \
         WHERE db = '{database}' AND command = 'Execute' AND info LIKE 'INSERT INTO sbtest1%'"
    );
    let connection = wait_for("an INSERT", || ask(&server.options(None), &[&inserting])[0][0].clone());
    ask(&server.options(None), &[&format!("KILL {connection}")]);
    run.wait().expect_code(4);
    let run = Run::open(&desk.run_dir()).unwrap();
    let steps: Vec<_> = run.cells[0].steps.iter().map(|step| (step.name.as_str(), step.outcome())).collect();
    assert_eq!(steps, [("load", Some(Outcome::Failed))]);
    let faults = faults(&findings(&desk.run_dir()));
    assert!(faults[0].contains("the connection was lost while it sent rows of the load: "), "{faults:?}");
}

#[test]
#[ignore = "in cargo xtask test --all: a server of its own"]
fn a_server_whose_sessions_do_not_commit_by_themselves_is_measured_all_the_same() {
    let desk = Desk::new();
    let server = external_server(&desk, MARIADB_10_11);
    ask(&server.options(None), &["SET GLOBAL autocommit = 0"]);
    let plan = small_plan(&at("one", &server, "bench", ""), "") + OLTP;
    ran(&desk, &plan).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
}

/// Where the server does not have the requested engine, it uses InnoDB, unless its SQL mode makes
/// it refuse.
#[test]
#[ignore = "in cargo xtask test --all: a server of its own"]
fn tables_with_another_engine_than_requested_fail_the_cell() {
    let desk = Desk::new();
    let server = external_server(&desk, MARIADB_10_11);
    ask(&server.options(None), &["SET GLOBAL sql_mode = ''"]);
    let variants = at("inno", &server, "bench", "options.engine = \"INNODB\"")
        + &at("rocks", &server, "bench", "options.engine = \"rocksdb\"");
    for workload in [OLTP.to_owned(), small_plan("", "").split_once("\n\n").unwrap().1.to_owned()] {
        let ended = ran(&desk, &format!("name = \"p\"\n{variants}{workload}"));
        ended.expect_code(4);
        let run = Run::open(&desk.run_dir()).unwrap();
        let outcomes: Vec<_> = run.cells.iter().map(|cell| cell.outcome().unwrap()).collect();
        assert_eq!(outcomes, [Outcome::Completed, Outcome::Failed]);
        let why = "was to be made with engine rocksdb and has InnoDB";
        assert!(ended.err.contains(why) && ended.err.contains("NO_ENGINE_SUBSTITUTION"), "{}", ended.err);
        std::fs::remove_dir_all(desk.path("runs")).unwrap();
    }
}

#[test]
fn statements_that_a_stopped_run_waited_for_are_cancelled() {
    check_cancelled(1);
}

#[test]
fn statements_at_work_are_cancelled_when_a_run_is_stopped_at_once() {
    check_cancelled(2);
}

/// Another session has locked the table. While statements wait for that lock, the server does not
/// check whether their clients are still there.
fn check_cancelled(signals: u32) {
    let (desk, server, database) = (Desk::new(), &*MYSQL, &*shared::database());
    desk.write("p.toml", &small_plan(&at("one", server, database, ""), "read_write_time = \"60s\""));
    let mut run = desk.start(&mut command(&desk, &["run", "p.toml"]));
    wait_until_in_step(&mut run, &desk.run_dir(), "1/one/insert-benchmark/qr100");
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE DB = '{database}' AND STATE LIKE 'Waiting for table metadata%'"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The lock lasts as long as its connection.
    let locker = runtime.block_on(async {
        let mut session = MysqlSession::connect(&server.options(Some(database))).await.unwrap();
        session.query(b"LOCK TABLES pi1 WRITE, pi2 WRITE").await.unwrap();
        session
    });
    wait_for("statements that wait", || (count(server, &waiting) > 0).then_some(()));
    for _ in 0..signals {
        run.signal(Signal::SIGINT);
        // The kernel merges signals that arrive at the same time.
        std::thread::sleep(Duration::from_millis(1500));
    }
    let ended = run.wait();
    ended.expect_code(130);
    assert_eq!(count(server, &waiting), 0, "{}", ended.err);
    assert!(!ended.err.contains("may still run on"), "{}", ended.err);
    runtime.block_on(locker.close());
}

#[test]
fn statements_of_others_in_the_database_are_reported() {
    let (desk, server, database) = (Desk::new(), &*MARIADB, &*shared::database());
    let plan = format!("name = \"p\"\n{}{OLTP}", at("one", server, database, ""));
    ran(&desk, &plan).expect_ok();
    std::fs::remove_dir_all(desk.path("runs")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _at_work = runtime.block_on(async {
        let mut session = MysqlSession::connect(&server.options(Some(database))).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(2), session.query(b"SELECT SLEEP(600)")).await;
        assert!(answer.is_err());
        session
    });
    ran(&desk, &plan).expect_ok();
    let warnings = texts(&findings(&desk.run_dir()));
    let reported = |text: &String| {
        text.contains("other statements were running in") && text.contains("SELECT SLEEP(600)")
    };
    assert!(warnings.iter().any(reported), "{warnings:?}");
}
