//! Tests steps on tables that others have filled, on a real database (SQLite).

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_db::{AnySession, DatabaseAddress, DatabaseServer, Session, sqlite};
use dbdyno_loadgen::{ConnectionTask, Notes};
use dbdyno_workloads::microbenchmarks::Microbenchmarks;
use dbdyno_workloads::microbenchmarks::options::{MicroSequence, MicrobenchmarksOptions};
use dbdyno_workloads::options::Verify;
use dbdyno_workloads::{AnyWorkload, Context, Workload};

/// Returns the rows that each connection's scan counts, on two tables with these numbers of `rows`.
async fn scanned(rows: [u32; 2], verify: Verify) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let file = sqlite::Options { path, pragmas: Vec::new(), busy_timeout: Duration::from_secs(60) };
    sqlite::create_marked(&file).unwrap();
    let database_server =
        DatabaseServer { address: DatabaseAddress::Sqlite(file), capabilities: sqlite::capabilities() };
    let mut session = database_server.connect().await.unwrap();
    for (table, rows) in (1..).zip(rows) {
        fill(&mut session, table, rows).await;
    }
    let options = MicrobenchmarksOptions {
        sequence: MicroSequence::ThirtyTwo,
        use_existing: true,
        table_size: 5,
        tables: 2,
        connections: vec![2],
        steps: vec!["scan".to_owned()],
        verify,
        ..MicrobenchmarksOptions::default()
    };
    let mut workload = Microbenchmarks::new(
        &options,
        Context { database_server, owned: true, seed: 1, draws: 1, device: None },
    );
    assert_eq!(workload.steps(), ["scan"]);
    workload.before(0, &mut session).await.unwrap();
    let mut counted = Vec::new();
    for (_, factory) in workload.tasks(0) {
        let mut task = factory();
        task.open().await.unwrap();
        task.prepare(0, &mut Notes::default()).await.unwrap();
        counted.push(task.perform(0).await.unwrap().rows);
        task.close().await;
    }
    counted
}

async fn fill(session: &mut AnySession, table: u32, rows: u32) {
    let create = format!("CREATE TABLE sbtest{table} (id INTEGER PRIMARY KEY, k INTEGER, c TEXT, pad TEXT)");
    session.query(create.as_bytes()).await.unwrap();
    for id in 1..=rows {
        let insert = format!("INSERT INTO sbtest{table} VALUES ({id}, 1, 'c', 'pad')");
        session.query(insert.as_bytes()).await.unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_scan_counts_the_rows_of_the_table_and_not_the_table_size_in_the_plan() {
    for verify in [Verify::Off, Verify::EachStep] {
        assert_eq!(scanned([5, 8], verify).await, [5, 8], "{verify:?}");
    }
}

#[test]
fn connections_that_are_recorded_as_one_client_scan_the_same_table() {
    // 128 connections are recorded as 64 clients. Connection n scans table 1 + n mod 4.
    let options = MicrobenchmarksOptions {
        sequence: MicroSequence::ThirtyTwo,
        tables: 4,
        connections: vec![128],
        steps: vec!["scan".to_owned()],
        ..MicrobenchmarksOptions::default()
    };
    let desk = super::desk(&options);
    let mut tables_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (connection, (task, _)) in desk.workload.tasks(desk.index("scan")).into_iter().enumerate() {
        tables_of.entry(task.client).or_default().push(1 + connection % 4);
    }
    assert!(tables_of.keys().copied().eq(1..=64), "{tables_of:?}");
    assert!(tables_of.values().all(|tables| tables.len() == 2 && tables[0] == tables[1]), "{tables_of:?}");
}
