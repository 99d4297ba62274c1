//! Tests the number of statements that a step sends, and how closely deletes follow inserts.

use std::time::Duration;

use dbdyno_db::mysql;
use dbdyno_db::null::Request;
use dbdyno_loadgen::{ArrivalProcess, Arrivals, Limit, Role};
use dbdyno_model::PlanDuration;
use dbdyno_workloads::insert_benchmark::InsertBenchmark;
use dbdyno_workloads::insert_benchmark::options::{InsertBenchmarkOptions, WriterArrivals};
use dbdyno_workloads::settle::SettleWait;
use dbdyno_workloads::{AnyWorkload, Workload};

use super::engine::{record_step, run_step};
use super::recorded::{Recorded, rows_of_text};

/// Returns options with row counts that no commit size divides.
fn odd() -> InsertBenchmarkOptions {
    InsertBenchmarkOptions {
        clients: 2,
        load_rows: 10_001,
        write_rows: 10_009,
        read_write_time: PlanDuration(Duration::from_millis(350)),
        settle_wait: Some(SettleWait::Fixed(PlanDuration(Duration::ZERO))),
        ..InsertBenchmarkOptions::default()
    }
}

/// The numbers of statements that each client sends in the steps of [`odd`]: the rows divided by
/// the commit size, rounded up.
const EXPECTED: [(&str, usize, usize, usize); 10] = [
    // The columns are: step, INSERTs, rows per INSERT, DELETEs.
    ("l.i0", 101, 100, 0),
    ("l.x", 1, 100, 0),
    // 80 % of 10,009 rows are 8007, and 20 % are 2002.
    ("l.i1", 161, 50, 161),
    ("l.i2", 401, 5, 401),
    // At 100, 500 and 1000 rows per second, 0.35 s are 35, 175 and 350 rows.
    ("qr100", 1, 50, 1),
    ("qp100", 1, 50, 1),
    ("qr500", 4, 50, 4),
    ("qp500", 4, 50, 4),
    ("qr1000", 7, 50, 7),
    ("qp1000", 7, 50, 7),
];

#[test]
fn all_ten_steps_send_exactly_the_originals_statements() {
    let mut recorded = Recorded::new(&odd(), mysql::capabilities("innodb", false));
    let steps = recorded.workload.steps();
    assert_eq!(steps, EXPECTED.map(|(name, ..)| name));
    let folder = tempfile::tempdir().unwrap();
    let mut session = recorded.runtime.block_on(recorded.database_server.connect()).unwrap();
    for (index, (step, inserts, rows, deletes)) in EXPECTED.into_iter().enumerate() {
        let Recorded { workload, runtime, .. } = &mut recorded;
        run_step(workload, index, &mut session, runtime, false, folder.path());
        let requests = recorded.journal.take();
        for client in 1..=2 {
            let sent = texts(&requests, client);
            let of = |head: &str| -> Vec<&str> {
                sent.iter().copied().filter(|sql| sql.starts_with(head)).collect()
            };
            assert_eq!(of("INSERT").len(), inserts, "{step}");
            assert!(of("INSERT").iter().all(|sql| rows_of_text(sql).len() == rows), "{step}");
            assert_eq!(of("DELETE").len(), deletes, "{step}");
            assert!(of("DELETE").iter().all(|sql| sql.ends_with(&format!(" LIMIT {rows}"))), "{step}");
            let queries = of("SELECT ").len();
            assert_eq!(queries > 0, step.starts_with('q'), "{step} sent {queries} queries");
            assert!(lead(&sent, &of("DELETE")) <= 9, "{step}");
        }
    }
}

/// Returns the statements on the table of `client`, in the order in which they were sent.
fn texts(requests: &[Request], client: u32) -> Vec<&str> {
    let table = format!(" pi{client} ");
    let statements = requests.iter().filter_map(|request| match request {
        Request::Query(sql) => Some(sql.as_str()),
        _ => None,
    });
    statements.filter(|sql| sql.contains(&table)).collect()
}

/// Returns the highest number of statements by which INSERTs or DELETEs were ahead of the other
/// kind. It is 0 for a step without DELETEs.
fn lead(sent: &[&str], deletes: &[&str]) -> i64 {
    if deletes.is_empty() {
        return 0;
    }
    let step = |sql: &&str| match &sql[..6] {
        "INSERT" => 1,
        "DELETE" => -1,
        _ => 0,
    };
    let ahead = sent.iter().scan(0_i64, |ahead, sql| {
        *ahead += step(sql);
        Some(ahead.abs())
    });
    ahead.max().unwrap_or(0)
}

#[test]
fn each_client_has_one_connection_for_each_kind_and_its_inserter_decides_the_end() {
    let recorded = Recorded::new(&odd(), mysql::capabilities("innodb", true));
    for (step, expected) in [
        ("l.i0", &["insert"][..]),
        ("l.x", &["index"]),
        ("l.i2", &["insert", "delete"]),
        ("qr100", &["insert", "delete", "query"]),
        ("qp500", &["insert", "delete", "query"]),
    ] {
        let tasks = recorded.tasks(step);
        for client in 1..=2 {
            let of_client: Vec<_> = tasks.specs().filter(|(spec, _)| spec.client == client).collect();
            assert_eq!(of_client.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), expected, "{step}");
            for (spec, kind) in of_client {
                let query = kind == "query";
                // In the original, the inserter and the deleter each can end the queries. In dbdyno
                // only the inserter can.
                let decides = kind == "insert" || kind == "index";
                assert_eq!(spec.role == Role::Decides, decides, "{step} {kind}");
                assert_eq!(spec.limit == Limit::UntilClientEnds, query, "{step} {kind}");
                assert!(!query || matches!(spec.arrivals, Arrivals::Closed));
                assert_eq!(spec.coupling.is_some(), expected.contains(&"delete") && !query, "{step} {kind}");
            }
        }
    }
}

#[test]
fn inserts_and_deletes_of_a_read_write_step_share_one_schedule() {
    for arrivals in [WriterArrivals::Even, WriterArrivals::Poisson, WriterArrivals::Burst] {
        let recorded = Recorded::new(
            &InsertBenchmarkOptions { arrivals, ..InsertBenchmarkOptions::default() },
            mysql::capabilities("innodb", true),
        );
        for (step, per_second) in [("qr100", 2), ("qp500", 10), ("qr1000", 20)] {
            let tasks = recorded.tasks(step);
            let arrivals: Vec<Arrivals> = tasks
                .specs()
                .filter(|(_, kind)| *kind != "query")
                .map(|(spec, _)| spec.arrivals.clone())
                .collect();
            assert_eq!(arrivals.len(), 2);
            assert_eq!(arrivals[0].to_string(), arrivals[1].to_string());
            assert_eq!(arrivals[0].due(1), arrivals[1].due(1));
            match &arrivals[0] {
                Arrivals::Burst { per_second: burst } => assert_eq!(*burst, per_second),
                even @ Arrivals::Open(ArrivalProcess::Constant { .. }) => {
                    assert_eq!(even.due(per_second), Some(Duration::from_secs(1)))
                }
                random => assert_eq!(random.to_string(), format!("poisson {per_second}/s")),
            }
        }
    }
}

#[test]
fn random_writers_keep_their_rate_and_all_that_was_due_is_counted() {
    let options = InsertBenchmarkOptions {
        clients: 2,
        arrivals: WriterArrivals::Poisson,
        rates: vec![1000],
        read_write_time: PlanDuration(Duration::from_secs(1)),
        ..InsertBenchmarkOptions::default()
    };
    let mut recorded = Recorded::new(&options, mysql::capabilities("innodb", false));
    let folder = tempfile::tempdir().unwrap();
    let mut session = recorded.runtime.block_on(recorded.database_server.connect()).unwrap();
    let index = recorded.index_of("qr1000");
    let Recorded { workload, runtime, .. } = &mut recorded;
    let (end, _, record) = record_step(workload, index, &mut session, runtime, false, folder.path());
    let writers = end.tasks.iter().filter(|task| record.spec.kinds[task.kind].kind != "query");
    assert!(writers.clone().count() == 4 && writers.clone().all(|task| task.done == 20), "{:?}", end.tasks);
    for kind in ["insert", "delete"] {
        let due = |client| -> u64 {
            let of = record.intervals.iter().filter(|of| of.kind == kind && of.client == client);
            of.map(|interval| interval.due).sum()
        };
        assert_eq!([due(1), due(2)], [20, 20], "{kind}");
    }
    let target = record.spec.target.as_ref().unwrap();
    assert!((target.rows_per_second - 2_000.0).abs() < 1e-9, "{target:?}");
    let (from_us, to_us) = record.window().unwrap();
    assert!(to_us - from_us >= 999_000, "{from_us} to {to_us}");
    // This checks the schedule, in which all 20 statements are due within one second whatever was
    // drawn. On a busy machine the step itself may end later.
    for (spec, kind) in recorded.tasks("qr1000").specs().filter(|(_, kind)| *kind != "query") {
        let length = spec.arrivals.due(20).unwrap();
        assert!(length.abs_diff(Duration::from_secs(1)) < Duration::from_micros(1), "{kind} {length:?}");
    }
}

#[test]
fn arrivals_of_every_kind_say_how_they_differ_from_the_original() {
    let reported = |arrivals| {
        let all = InsertBenchmark::deviations(&InsertBenchmarkOptions {
            arrivals,
            ..InsertBenchmarkOptions::default()
        });
        let found: Vec<_> = all.into_iter().filter(|one| one.topic == "arrivals").collect();
        assert_eq!(found.len(), 1, "{arrivals:?}");
        found[0].here.clone()
    };
    assert!(reported(WriterArrivals::Even).contains("equal distances"));
    assert!(reported(WriterArrivals::Poisson).contains("random times"));
    assert!(reported(WriterArrivals::Burst).contains("without queues"));
}
