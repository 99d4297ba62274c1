//! Tests on a real database (SQLite) that the tables have the right contents after each step, and
//! that verification finds wrong contents.

use std::time::Duration;

use dbdyno_db::{AnySession, DatabaseAddress, DatabaseServer, Session, sqlite};
use dbdyno_model::PlanDuration;
use dbdyno_record::Check;
use dbdyno_workloads::insert_benchmark::InsertBenchmark;
use dbdyno_workloads::insert_benchmark::options::InsertBenchmarkOptions;
use dbdyno_workloads::settle::SettleWait;
use dbdyno_workloads::{Context, Workload};
use tokio::runtime::{Builder, Runtime};

use super::engine::run_step;

struct Bench {
    workload: InsertBenchmark,
    session: AnySession,
    runtime: Runtime,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(options: &InsertBenchmarkOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options_of_file = sqlite::Options {
            path: folder.path().join("ib.db"),
            pragmas: vec![("journal_mode".to_owned(), "wal".to_owned())],
            busy_timeout: Duration::from_secs(60),
        };
        sqlite::create_marked(&options_of_file).unwrap();
        let database_server = DatabaseServer {
            address: DatabaseAddress::Sqlite(options_of_file),
            capabilities: sqlite::capabilities(),
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let session = runtime.block_on(database_server.connect()).unwrap();
        let context = Context { database_server, owned: true, seed: 5, draws: 5, device: None };
        Self { workload: InsertBenchmark::new(options, context), session, runtime, folder }
    }

    fn step(&mut self, index: usize) -> Vec<Check> {
        let Self { workload, session, runtime, folder } = self;
        run_step(workload, index, session, runtime, true, folder.path()).1
    }

    fn sql(&mut self, sql: &str) {
        self.runtime.block_on(self.session.query(sql.as_bytes())).unwrap();
    }
}

fn options() -> InsertBenchmarkOptions {
    InsertBenchmarkOptions {
        clients: 2,
        load_rows: 2050,
        write_rows: 1000,
        rates: vec![200],
        read_write_time: PlanDuration(Duration::from_millis(600)),
        settle_wait: Some(SettleWait::Fixed(PlanDuration(Duration::ZERO))),
        ..InsertBenchmarkOptions::default()
    }
}

#[test]
fn tables_hold_the_rows_of_every_step_and_keep_their_size_once_deletes_begin() {
    // SQLite ignores the first id, so the option must not confuse the check.
    let mut bench = Bench::new(&InsertBenchmarkOptions { first_id: 3_000_000_000, ..options() });
    for (index, rows) in [2100, 2200, 2200, 2200, 2200, 2200].into_iter().enumerate() {
        let checks = bench.step(index);
        assert_eq!(checks.len(), 2, "one a table");
        for check in checks {
            assert!(check.is_ok(), "step {index}: {check:?}");
            assert_eq!(check.parts[0].actual, rows, "step {index}");
            let deletes = usize::from(index >= 2);
            assert_eq!(
                check.parts.len(),
                8 + deletes,
                "contents, ids, and rows deleted where there are deletes"
            );
        }
    }
}

/// Returns the names of the checks that find the table of client 2 wrong after `sql`.
fn found_after(sql: &str) -> Vec<String> {
    let mut bench = Bench::new(&options());
    bench.step(0);
    bench.step(1);
    bench.sql(sql);
    let checks = bench.step(2);
    assert!(checks[0].is_ok(), "{:?}", checks[0]);
    let wrong = checks[1].parts.iter().filter(|part| part.expected != part.actual);
    wrong.map(|part| part.name.clone()).collect()
}

#[test]
fn a_changed_column_is_found() {
    // This is the last row, so no DELETE removes it again.
    let change = |column| format!("UPDATE pi2 SET {column} = {column} + 1 WHERE transactionid = 2200");
    for column in ["cashregisterid", "customerid", "productid", "price"] {
        assert_eq!(found_after(&change(column)), [format!("sum({column})")]);
    }
}

#[test]
fn a_missing_row_and_an_extra_row_are_found() {
    let lost = found_after("DELETE FROM pi2 WHERE transactionid = 2100");
    assert!(lost.contains(&"rows".to_owned()), "{lost:?}");
    let twice = found_after(
        "INSERT INTO pi2 (cashregisterid, customerid, productid, price) \
         SELECT cashregisterid, customerid, productid, price FROM pi2 WHERE transactionid = 2100",
    );
    assert!(twice.contains(&"rows".to_owned()), "{twice:?}");
}

#[test]
fn rows_that_others_delete_are_found() {
    let lost = found_after("DELETE FROM pi2 WHERE transactionid > 1000");
    assert!(lost.contains(&"rows".to_owned()), "{lost:?}");
}
