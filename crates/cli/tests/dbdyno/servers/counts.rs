//! Compares servers' counts of statements, transactions and changed rows, and the rows that they
//! keep, with the statements that dbdyno reports.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbdyno_db::mysql::MysqlSession;
use dbdyno_db::server::Server;
use dbdyno_db::{Session, first_i64};
use dbdyno_record::{Run, StepEvent, StepRecord};

use crate::servers::postgres;
use crate::servers::shared::{self, COUNTED_MARIADB, COUNTED_POSTGRES};
use crate::servers::sysbench::{ExternalServer, ServerHandle};
use crate::servers::watch::ask;
use crate::support::{Desk, faults, figure, findings, wait_for};

/// Reserves the servers' counters and settings for the caller until it drops the guard.
fn alone() -> (MutexGuard<'static, ()>, ExternalServer) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (turn, ExternalServer::Mysql(ServerHandle::Shared(&COUNTED_MARIADB)))
}

/// The number of statements that clients have sent to the server, including logouts, without those
/// from this session.
struct Questions {
    runtime: tokio::runtime::Runtime,
    session: MysqlSession,
    own: u64,
}

impl Questions {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = runtime.block_on(MysqlSession::connect(&COUNTED_MARIADB.options(None))).unwrap();
        Self { runtime, session, own: 0 }
    }

    fn status(&mut self, name: &str) -> u64 {
        self.own += 1;
        let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let rows = self.runtime.block_on(self.session.rows(&sql)).unwrap();
        rows[0][1].as_deref().unwrap().parse().unwrap()
    }

    /// Reads the count once all other sessions have ended, because the server counts their logouts
    /// too.
    fn read(&mut self) -> u64 {
        wait_for("the other sessions to end", || (self.status("Threads_connected") == 1).then_some(()));
        self.status("Questions") - self.own
    }
}

/// The number of rows that were changed in the database's only table since the server began to
/// count.
fn changed(database: &str) -> u64 {
    let asks = format!(
        "SELECT COALESCE(SUM(ROWS_CHANGED), 0) FROM information_schema.TABLE_STATISTICS WHERE TABLE_SCHEMA = '{database}'"
    );
    number(database, &asks).cast_unsigned()
}

fn number(database: &str, sql: &str) -> i64 {
    first_i64(&ask(&COUNTED_MARIADB.options(Some(database)), &[sql])).unwrap()
}

#[test]
fn rows_are_kept_where_the_server_does_not_commit_each_statement_by_itself() {
    let (_turn, theirs) = alone();
    let (desk, database) = (Desk::new(), shared::database());
    theirs.create(&database);
    let run = |script: &str, command: &str| {
        let options = ["--threads=2", "--table-size=300", "--events=200", "--time=0"];
        theirs.run_dbdyno(&desk, &database, script, &options, command)
    };
    ask(&COUNTED_MARIADB.options(None), &["SET GLOBAL autocommit = 0"]);
    let ended =
        [("oltp_insert", "prepare"), ("oltp_insert", "run")].map(|(script, command)| run(script, command));
    let rows = number(&database, "SELECT COUNT(*) FROM sbtest1");
    let deleted = run("oltp_delete", "run");
    ask(&COUNTED_MARIADB.options(None), &["SET GLOBAL autocommit = 1"]);
    ended.iter().chain([&deleted]).for_each(|ended| _ = ended.expect_ok());
    assert_eq!(rows, 500);
}

#[test]
fn each_run_changes_as_many_rows_as_it_has_events() {
    let (_turn, theirs) = alone();
    let (desk, database) = (Desk::new(), shared::database());
    theirs.create(&database);
    let run = |options: &[&str], command: &str| {
        let options = [&["--events=200", "--time=0"], options].concat();
        let before = changed(&database);
        let ended = theirs.run_dbdyno(&desk, &database, "oltp_update_non_index", &options, command);
        let out = ended.expect_ok().out.clone();
        (changed(&database) - before, out)
    };
    ask(&COUNTED_MARIADB.options(None), &["SET GLOBAL userstat = 1"]);
    run(&[], "prepare");
    for _ in 0..3 {
        let (changed, out) = run(&[], "run");
        assert_eq!((changed, figure(&out, "write:"), figure(&out, "other:")), (200, 200, 0), "{out}");
    }
    // The same seed gives the same values, so the second run changes fewer rows.
    run(&["--rand-seed=5"], "run");
    let (changed, out) = run(&["--rand-seed=5"], "run");
    assert!(changed < 200, "{changed}");
    assert_eq!(
        (figure(&out, "write:"), figure(&out, "write:") + figure(&out, "other:")),
        (changed, 200),
        "{out}"
    );
}

#[test]
fn cells_on_tables_that_stay_change_rows_each_time_and_name_their_seeds() {
    let (_turn, theirs) = alone();
    let (desk, database) = (Desk::new(), shared::database());
    theirs.create(&database);
    theirs.run_dbdyno(&desk, &database, "oltp_insert", &["--table-size=300"], "prepare").expect_ok();
    let options = "tests = [\"update-non-index\"]\nuse_existing = true\ntable_size = 300\nevents = 100\nconnections = [1]\n";
    let address = theirs.address(&database);
    let plan = format!(
        "name = \"twice\"\nblocks = 2\n[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n[workload.oltp]\n{options}"
    );
    desk.write("p.toml", &plan);
    ask(&COUNTED_MARIADB.options(None), &["SET GLOBAL userstat = 1"]);
    let before = changed(&database);
    for name in ["first", "second"] {
        desk.dbdyno(&["run", "p.toml", "--out", name]).expect_ok();
    }
    assert_eq!(changed(&database) - before, 400);
    let mut seeds = std::collections::BTreeSet::new();
    for name in ["first", "second"] {
        let run_dir = std::fs::read_dir(desk.path(name)).unwrap().next().unwrap().unwrap().path();
        for cell in Run::open(&run_dir).unwrap().cells {
            seeds.insert(cell.steps[0].spec.options["seed"].as_u64().unwrap());
        }
    }
    assert_eq!(seeds.len(), 4, "{seeds:?}");
}

/// Each event is restarted once, after an error that the server raises.
const AGAIN: &str = "\
function thread_init() con = sysbench.sql.driver():connect() end
local tries = 0
function event()
   con:query('BEGIN')
   con:query('UPDATE sbtest1 SET k = k + 1 WHERE id = 1')
   tries = tries + 1
   if tries % 2 == 1 then con:query(\"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213\") end
   con:query('COMMIT')
end
";

#[test]
fn statements_of_restarted_events_agree_with_the_servers_questions() {
    let (_turn, theirs) = alone();
    let (desk, database) = (Desk::new(), shared::database());
    theirs.create(&database);
    theirs.run_dbdyno(&desk, &database, "oltp_insert", &["--table-size=10"], "prepare").expect_ok();
    let script = desk.write("again.lua", AGAIN).display().to_string();
    let mut questions = Questions::new();
    let mut run = |events: &str| {
        let before = questions.read();
        let ended = theirs.run_dbdyno(&desk, &database, &script, &[events, "--time=0"], "run");
        let out = ended.expect_ok().out.clone();
        let ours = figure(&out, "queries:") + figure(&out, "ignored errors:");
        (questions.read() - before, ours, figure(&out, "ignored errors:"))
    };
    let (few, many) = (run("--events=20"), run("--events=50"));
    assert_eq!((few.2, many.2), (20, 50));
    assert_eq!(many.0 - few.0, many.1 - few.1, "what logins and this test ask is the same in both");
}

/// Each workload with options in which `SIZE` is a placeholder.
const WORKLOADS: [(&str, &str); 6] = [
    (
        "oltp",
        "tests = [\"read-write\", \"update-non-index\", \"insert\", \"point-select\"]\ntable_size = 500\nevents = SIZE\n\
         connections = [1]\nload_connections = 1\nsettle = { by = \"none\" }\n",
    ),
    (
        "microbenchmarks",
        "steps = [\"point-query.pre\", \"update-index\", \"write-only*\", \"delete\"]\ntable_size = 500\n\
         operations = SIZE\nconnections = [1]\nload_connections = 1\nsettle = { by = \"none\" }\n",
    ),
    (
        "insert-benchmark",
        "clients = 1\nload_rows = 2000\nwrite_rows = SIZE0\nrates = [100]\nread_write_time = \"1s\"\nsettle_wait = \"0s\"\n",
    ),
    (
        "sysbench",
        "script = \"oltp_read_write\"\noptions = { table_size = 500 }\nevents = SIZE\nconnections = [1]\n\
         settle = { by = \"none\" }\n",
    ),
    ("pgbench", "scale = 1\ntransactions = SIZE\nconnections = [1]\nsettle = { by = \"none\" }\n"),
    (
        "dbt3",
        "scale_factor = 0.01\nqueries = [1, 6]\nrepetitions = SIZE\nload_connections = 1\nsettle = { by = \"none\" }\n",
    ),
];

/// Runs a workload in a new database. Returns the database's name, the run's folder, and the desk
/// that contains it.
fn run(server: &Server, (workload, options): (&str, &str), size: u32) -> (String, std::path::PathBuf, Desk) {
    let (desk, database) = (Desk::new(), shared::database());
    let address = shared::address(server, server.base.family.facts().superuser, &database);
    let options = options.replace("SIZE", &size.to_string());
    desk.write(
        "p.toml",
        &format!(
            "name = \"counts\"\n[host]\nsampling = false\n[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\n\
             [workload.{workload}]\n{options}"
        ),
    );
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(faults(&findings(&dir)), Vec::<String>::new(), "{workload}");
    (database, dir, desk)
}

/// The number of statements that the run's record reports for all connections in all steps.
fn statements(run_dir: &Path) -> u64 {
    let run = Run::open(run_dir).unwrap();
    run.cells.iter().flat_map(|cell| &cell.steps).map(of_step).sum()
}

fn of_step(step: &StepRecord) -> u64 {
    const NONE: [&str; 3] = ["connect", "script", "reconnect"];
    let of_kind = |kind: &dbdyno_record::KindSpec| {
        let counted = step.events.iter().filter_map(|event| match event {
            StepEvent::Statement { kind: of, statement, done, .. } if *of == kind.kind => {
                Some((statement, *done))
            }
            _ => None,
        });
        // Commands of pgbench that query no server and whole scripts have times too, but they are
        // not statements.
        let asks = |name: &str| !NONE.contains(&name) && !name.ends_with("-set");
        let counted: Vec<u64> = counted.filter(|(name, _)| asks(name)).map(|(_, done)| done).collect();
        let intervals = || step.intervals.iter().filter(|interval| interval.kind == kind.kind);
        let done: u64 = intervals().map(|interval| interval.done).sum();
        let refused: u64 = intervals().map(|interval| interval.errors.retry + interval.errors.refused).sum();
        let sent = if counted.is_empty() {
            done * u64::from(kind.statements_per_operation)
        } else {
            counted.iter().sum()
        };
        sent + refused
    };
    let lookups = step.events.iter().filter(|event| matches!(event, StepEvent::Lookup { .. })).count();
    step.spec.kinds.iter().map(of_kind).sum::<u64>() + lookups as u64
}

#[test]
#[ignore = "in cargo xtask test --all: twelve runs"]
fn statements_of_every_workload_agree_with_the_servers_questions() {
    let (_turn, _) = alone();
    let mut questions = Questions::new();
    for workload in WORKLOADS {
        let mut of_size = |size| {
            let before = questions.read();
            let (_, dir, _desk) = run(&COUNTED_MARIADB, workload, size);
            (questions.read() - before, statements(&dir))
        };
        let (few, many) = (of_size(20), of_size(50));
        let difference = |of: fn((u64, u64)) -> u64| of(many) as i64 - of(few) as i64;
        let (theirs, ours) = (difference(|counts| counts.0), difference(|counts| counts.1));
        assert_ne!(ours, 0, "{}", workload.0);
        assert_eq!(theirs, ours, "{}: {few:?} {many:?}", workload.0);
    }
}

/// The number of operations that were answered in a run.
fn operations(run_dir: &Path) -> u64 {
    let run = Run::open(run_dir).unwrap();
    let intervals = run.cells.iter().flat_map(|cell| &cell.steps).flat_map(|step| &step.intervals);
    intervals.map(|interval| interval.done).sum()
}

#[test]
#[ignore = "in cargo xtask test --all: eight runs"]
fn operations_of_every_workload_agree_with_the_servers_transactions() {
    let (_turn, _) = alone();
    for workload in WORKLOADS.into_iter().filter(|(name, _)| *name != "insert-benchmark" && *name != "dbt3") {
        let of_size = |size| {
            let (database, dir, _desk) = run(&COUNTED_POSTGRES, workload, size);
            let sql = format!(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{database}'"
            );
            let counted = postgres::number(&COUNTED_POSTGRES.options(Some("postgres")), &sql).unwrap();
            (counted, operations(&dir) as i64)
        };
        let (few, many) = (of_size(20), of_size(50));
        assert!(many.1 > few.1, "{}", workload.0);
        assert_eq!(many.0 - few.0, many.1 - few.1, "{}: {few:?} {many:?}", workload.0);
    }
}
