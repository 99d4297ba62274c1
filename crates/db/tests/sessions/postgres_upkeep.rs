//! Tests of upkeep, counters and descriptions on real PostgreSQL servers.

#![allow(clippy::unwrap_used, reason = "everything here is a test or a part of one")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dbdyno_db::postgres::{Options, capabilities};
use dbdyno_db::{
    AnySession, Bounds, DatabaseAddress, DatabaseServer, Quiet, Rest, Session, Settling, UpkeepReport,
    deferred_work, describe, drop_binlog, first_i64, settle, status, unreported,
};

use crate::mysql_server::bases::{found, required};
use crate::postgres_server::Server;
use crate::shared;

const WAIT: Duration = Duration::from_secs(2);

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(600);

const SIDE_BY_SIDE: usize = 4;

const DATABASE: &str = "upkeep";

#[tokio::test]
async fn postgres_comes_to_rest() {
    let server = shared::postgres().await;
    check(&server).await;
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn postgres_9_6_comes_to_rest() {
    check_all(&required("pg-9.6."));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn postgres_18_comes_to_rest() {
    check_all(&required("pg-18."));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn every_further_line_comes_to_rest() {
    let lines = ["pg-10", "pg-11", "pg-12", "pg-13", "pg-14", "pg-15", "pg-16", "pg-17"];
    // These are versions before their release. They are tested only if someone has installed them.
    let coming = ["pg-18-", "pg-19"];
    let bases = lines.into_iter().flat_map(required).chain(coming.into_iter().flat_map(found));
    check_all(&bases.collect::<Vec<_>>());
}

/// Checks several servers at the same time, because they wait most of the time.
fn check_all(bases: &[PathBuf]) {
    for some in bases.chunks(SIDE_BY_SIDE) {
        std::thread::scope(|scope| {
            for base in some {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                    runtime.unwrap().block_on(async {
                        // An autovacuum worker could be running at any moment, even on a system
                        // table.
                        let settings = ["autovacuum=off".to_owned()];
                        check(&Server::start_with(base, &settings).await).await;
                    });
                });
            }
        });
    }
}

async fn check(server: &Server) {
    let mut root = connected(server.root()).await;
    root.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await.unwrap();
    root.close().await;
    let mut session = connected(server.root().with_database(DATABASE)).await;
    check_description(server, &mut session).await;
    fill(&mut session).await;
    check_counters(server, &mut session).await;
    check_unreported(server, &mut session).await;
    check_owned(server, &mut session).await;
    check_foreign(&mut session).await;
    check_quiet(server, &mut session).await;
    assert!(!drop_binlog(&mut session, &capabilities()).await.unwrap());
}

async fn connected(options: Options) -> AnySession {
    let database_server =
        DatabaseServer { address: DatabaseAddress::Postgres(options), capabilities: capabilities() };
    database_server.connect().await.unwrap_or_else(|error| panic!("{error}"))
}

/// Makes two tables in which half of the rows are dead.
async fn fill(session: &mut AnySession) {
    for table in ["pi1", "pi2"] {
        for sql in [
            format!(
                "CREATE TABLE {table} (id bigserial primary key, data varchar(600)) WITH (autovacuum_enabled = off)"
            ),
            format!("INSERT INTO {table} (data) SELECT repeat('x', 100) FROM generate_series(1, 20000)"),
            format!("DELETE FROM {table} WHERE id <= 10000"),
        ] {
            session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    // A session's work appears in the statistics with a delay.
    let begun = Instant::now();
    while dead_rows(session).await < 20_000 && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn dead_rows(session: &mut AnySession) -> i64 {
    let sql = "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables";
    first_i64(&session.rows(sql).await.unwrap()).unwrap_or(0)
}

/// Checks that dead rows and log are deferred work until the upkeep, and that dead rows that an
/// open transaction needs are reported as missed at the cap.
async fn check_quiet(server: &Server, session: &mut AnySession) {
    let mut owner = connected(server.root().with_database(DATABASE)).await;
    owner.query(b"BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    owner.query(b"SELECT count(*) FROM pi1").await.unwrap();
    session.query(b"UPDATE pi1 SET data = data || 'z'").await.unwrap();
    let begun = Instant::now();
    while dead_rows(session).await < 10_000 && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let work = deferred_work(session, &capabilities()).await.unwrap();
    assert!(work.levels["dead_rows"] >= 10_000, "{}: {work:?}", server.name);
    assert!(work.levels["wal_since_checkpoint_bytes"] > 1 << 20, "{}: {work:?}", server.name);
    assert!(work.capacities["redo_capacity_bytes"] > 1 << 24, "{}: {work:?}", server.name);
    assert_eq!(work.levels["vacuums_running"], 0, "{}: {work:?}", server.name);

    let held = settling(session, 3, true).await;
    assert!(!held.is_quiet && held.missed == ["dead_rows"], "{}: {held:?}", server.name);
    owner.query(b"COMMIT").await.unwrap();
    let foreign = settling(session, 1, false).await;
    assert!(!foreign.bounds.contains_key("wal_since_checkpoint_bytes"), "{}: {foreign:?}", server.name);
    let calm = settling(session, 60, true).await;
    assert!(calm.bounds.contains_key("wal_since_checkpoint_bytes"), "{}: {calm:?}", server.name);
    assert!(calm.is_quiet, "{}: {calm:?}", server.name);
    let last = &calm.samples.last().unwrap().1;
    assert!(last["dead_rows"] <= calm.bounds["dead_rows"], "{}: {calm:?}", server.name);
    assert!(last["wal_since_checkpoint_bytes"] < work.levels["wal_since_checkpoint_bytes"]);
}

async fn settling(session: &mut AnySession, cap_seconds: u64, owned: bool) -> Settling {
    let bounds = Bounds {
        dirty_share: 0.02,
        redo_share: 0.1,
        history_length: 1000,
        dead_rows_share: 0.01,
        device_bytes_per_second: 0,
    };
    let rest = Rest::Quiet(Quiet { cap: Duration::from_secs(cap_seconds), bounds, device: None });
    let tables = ["pi1", "pi2"].map(str::to_owned);
    let report = settle(session, &capabilities(), &tables, rest, owned).await.unwrap();
    report.settling.expect("it settled by state")
}

async fn check_description(server: &Server, session: &mut AnySession) {
    let description = describe(session).await.unwrap();
    let version = server.name.strip_prefix("pg-").unwrap();
    assert_eq!((description.product.as_str(), description.engine.as_str()), ("PostgreSQL", "heap"));
    let numbers = description.version.map(|number| number.to_string()).join(".");
    assert!(numbers.starts_with(version.split('-').next().unwrap()), "{}: {numbers}", server.name);
    assert_eq!(description.settings["shared_buffers"], "32MB");
    assert_eq!(description.settings["fsync"], "off");
    assert!(description.settings.len() > 200, "{}", description.settings.len());
}

fn major(server: &Server) -> u32 {
    server.name["pg-".len()..].split(['.', '-']).next().unwrap().parse().unwrap()
}

/// Checks that a session that is no longer counted has reported its work. Before PostgreSQL 15 the
/// counters come from a file, so they are complete only after the file's maximum age.
async fn check_unreported(server: &Server, session: &mut AnySession) {
    let Some(alone) = unreported(session).await.unwrap() else {
        assert!(major(server) < 14, "{}", server.name);
        return;
    };
    assert_eq!((alone.sessions, alone.age.is_zero()), (1, major(server) >= 15), "{}", server.name);
    const INSERTED: &str = "pg_stat_database.tup_inserted";
    let before = status(session).await.unwrap()[INSERTED];
    let mut other = connected(server.root().with_database(DATABASE)).await;
    assert_eq!(unreported(session).await.unwrap().unwrap().sessions, 2, "{}", server.name);
    for _ in 0..100 {
        other.query(b"INSERT INTO pi1 (data) VALUES ('z')").await.unwrap();
    }
    other.close().await;
    let begun = Instant::now();
    while unreported(session).await.unwrap().unwrap().sessions > 1 {
        assert!(begun.elapsed() < PATIENCE, "{}", server.name);
    }
    tokio::time::sleep(alone.age).await;
    assert_eq!(status(session).await.unwrap()[INSERTED] - before, 100, "{}", server.name);
}

async fn check_counters(server: &Server, session: &mut AnySession) {
    let before = status(session).await.unwrap();
    session.query(b"INSERT INTO pi1 (data) SELECT 'y' FROM generate_series(1, 1000)").await.unwrap();
    let begun = Instant::now();
    let after = loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = status(session).await.unwrap();
        let counted = now["pg_stat_database.tup_inserted"] >= before["pg_stat_database.tup_inserted"] + 1000;
        if counted || begun.elapsed() > PATIENCE {
            break now;
        }
    };
    let more = |name: &str| after[name] - before[name];
    assert!(more("pg_stat_database.tup_inserted") >= 1000, "{}", server.name);
    assert!(more("pg_stat_database.xact_commit") >= 1, "{}", server.name);
    assert!(more("wal_position_bytes") > 50_000, "{}", server.name);
    assert!(after.contains_key("pg_stat_bgwriter.buffers_alloc"), "{}", server.name);
    let major = major(server);
    for (name, since, until) in [
        ("pg_stat_wal.wal_bytes", 14, 99),
        ("pg_stat_wal.wal_sync", 14, 17),
        ("pg_stat_io.writes", 16, 99),
        ("pg_stat_io.fsyncs", 16, 99),
        ("pg_stat_checkpointer.num_requested", 17, 99),
        ("pg_stat_bgwriter.checkpoints_req", 0, 16),
    ] {
        let has = (since..=until).contains(&major);
        assert_eq!(after.contains_key(name), has, "{}: {name} in {after:?}", server.name);
    }
    if major >= 14 {
        assert!(more("pg_stat_wal.wal_bytes") > 50_000, "{}", server.name);
    }
    assert!(!after.contains_key("pg_stat_database.stats_reset"), "words are left out");
}

async fn check_owned(server: &Server, session: &mut AnySession) {
    let start = Instant::now();
    let report = settled(session, true).await;
    assert!(start.elapsed() >= WAIT, "{}", server.name);
    let names: Vec<&str> = report.parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["vacuum pi1", "vacuum pi2", "checkpoint", "wait"], "{}", server.name);
    assert!(report.notes.is_empty() && report.settings.is_empty(), "{report:?}");
    assert!(report.facts["dead_rows_before"] >= 20_000, "{}: {report:?}", server.name);
    assert!(report.facts["dead_rows_after"] < 20_000, "{}: {report:?}", server.name);
    let analyzed = "SELECT count(*) FROM pg_stats WHERE tablename = 'pi2'";
    assert!(first_i64(&session.rows(analyzed).await.unwrap()).unwrap() > 0, "{}", server.name);
    let tables = ["absent".to_owned()];
    let error = settle(session, &capabilities(), &tables, Duration::ZERO, true).await.unwrap_err();
    assert_eq!(error.code, "42P01", "{error}");
}

async fn check_foreign(session: &mut AnySession) {
    let report = settled(session, false).await;
    let names: Vec<&str> = report.parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["vacuum pi1", "vacuum pi2", "wait"]);
    assert!(report.notes[0].contains("external server: "), "{report:?}");
}

async fn settled(session: &mut AnySession, owned: bool) -> UpkeepReport {
    let tables = ["pi1".to_owned(), "pi2".to_owned()];
    settle(session, &capabilities(), &tables, WAIT, owned).await.unwrap_or_else(|error| panic!("{error}"))
}
