//! Tests of [`Rest::Quiet`] on real MySQL and MariaDB servers: the wait ends when the deferred work
//! has fallen below its limits.

#![allow(clippy::unwrap_used, reason = "everything here is a test or a part of one")]

use std::path::PathBuf;
use std::time::Duration;

use dbdyno_db::mysql::capabilities;
use dbdyno_db::{
    AnySession, Bounds, Class, DatabaseAddress, DatabaseServer, DbError, Quiet, Rest, Session, Settling,
    deferred_work, settle,
};

use crate::mysql_server::Server;
use crate::mysql_server::bases::required;
use crate::shared;

const DIRTY: &str = "dirty_bytes";
const BOUNDS: Bounds = Bounds {
    dirty_share: 0.02,
    redo_share: 0.1,
    history_length: 1000,
    dead_rows_share: 0.01,
    device_bytes_per_second: 8_000_000,
};

#[tokio::test]
async fn mariadb_is_waited_for_until_its_dirty_pages_are_few() {
    let server = shared::mariadb().await;
    check(&server).await;
}

#[tokio::test]
async fn mysql_is_waited_for_until_its_dirty_pages_are_few() {
    let server = shared::mysql().await;
    check(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_10_1_is_waited_for_until_its_dirty_pages_are_few() {
    check_all(required("mariadb-10.1.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_10_11_is_waited_for_until_its_dirty_pages_are_few() {
    check_all(required("mariadb-10.11.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mysql_5_6_is_waited_for_until_its_dirty_pages_are_few() {
    check_all(required("mysql-5.6.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mysql_8_0_is_waited_for_until_its_dirty_pages_are_few() {
    check_all(required("mysql-8.0.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn every_further_line_is_waited_for_until_its_dirty_pages_are_few() {
    let mysql = ["mysql-5.5.", "mysql-5.7.", "mysql-9"];
    let mariadb = ["mariadb-10.2.", "mariadb-10.5.", "mariadb-11.4.", "mariadb-11.8"];
    for prefix in mysql.into_iter().chain(mariadb) {
        check_all(required(prefix)).await;
    }
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: kills its server"]
async fn a_server_that_dies_while_it_settles_is_lost_and_not_waited_for() {
    let mut server = Server::start(&required("mariadb-10.11.")[0]).await;
    let mut session = loaded(&server).await;
    let capabilities = capabilities("InnoDB", true);
    let tables = ["pi1".to_owned()];
    // With this limit, which no history list can meet, the wait would last until the cap.
    let never = Bounds { history_length: -1, ..BOUNDS };
    let settling = settle(&mut session, &capabilities, &tables, quiet(60, never), true);
    let killing = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.kill();
    };
    let (settled, ()) = tokio::join!(settling, killing);
    assert_eq!(settled.unwrap_err().class, Class::Lost);
}

async fn check_all(bases: Vec<PathBuf>) {
    for base in bases {
        check(&Server::start(&base).await).await;
    }
}

async fn check(server: &Server) {
    let mut session = loaded(server).await;
    let work = deferred_work(&mut session, &capabilities("InnoDB", true)).await.unwrap();
    for level in [DIRTY, "checkpoint_age_bytes", "history_list_length"] {
        assert!(work.levels.contains_key(level), "{}: {work:?}", server.name);
    }
    assert!(work.levels["checkpoint_age_bytes"] > 1 << 20, "{}: {work:?}", server.name);
    // The pool has 64 MiB, and the server keeps a part of them for its own use.
    assert!((60..=64).contains(&(work.capacities["buffer_pool_bytes"] >> 20)), "{}: {work:?}", server.name);
    assert!(work.capacities["redo_capacity_bytes"] >= 1 << 23, "{}: {work:?}", server.name);

    let capped = settled(&mut session, quiet(1, BOUNDS)).await.unwrap();
    assert!(!capped.is_quiet && capped.took >= capped.cap, "{}: {capped:?}", server.name);
    let bound = capped.bounds[DIRTY];
    // Which level is above its limit depends on the server's progress during the load.
    let is_over =
        |(level, value): (&String, &i64)| capped.bounds.get(level).is_some_and(|bound| value > bound);
    assert!(capped.before.iter().any(is_over), "{}: {capped:?}", server.name);

    // With more I/O capacity the server flushes the remaining pages within seconds.
    run(&mut session, "SET GLOBAL innodb_io_capacity = 2000").await;
    let calm = settled(&mut session, quiet(120, BOUNDS)).await.unwrap();
    assert!(calm.is_quiet && calm.missed.is_empty(), "{}: {calm:?}", server.name);
    let dirty: Vec<i64> = calm.samples.iter().map(|(_, levels)| levels[DIRTY]).collect();
    let [.., before_last, last] = dirty.as_slice() else { panic!("{dirty:?}") };
    assert!(*last <= bound && *before_last <= bound, "{}: {dirty:?} against {bound}", server.name);
    assert_eq!(setting(&mut session).await, 90, "{}: settings are restored", server.name);
}

/// A session on a server that has about 25 MB of dirty pages and may write only a few of them per
/// second.
async fn loaded(server: &Server) -> AnySession {
    let capabilities = capabilities("InnoDB", true);
    let connect = |options| {
        let database_server =
            DatabaseServer { address: DatabaseAddress::Mysql(options), capabilities: capabilities.clone() };
        async move { database_server.connect().await.unwrap() }
    };
    let mut root = connect(server.root()).await;
    run(&mut root, "CREATE DATABASE settled").await;
    let mut session = connect(server.root().with_database("settled")).await;
    for sql in [
        "SET GLOBAL innodb_max_dirty_pages_pct = 90",
        "SET GLOBAL innodb_io_capacity = 100",
        "SET GLOBAL innodb_adaptive_flushing = OFF",
        "CREATE TABLE pi1 (id bigint auto_increment primary key, data varchar(600)) ENGINE=InnoDB",
        "INSERT INTO pi1 (data) VALUES (repeat('x', 600))",
    ] {
        run(&mut session, sql).await;
    }
    for _ in 0..15 {
        run(&mut session, "INSERT INTO pi1 (data) SELECT data FROM pi1").await;
    }
    session
}

fn quiet(cap_seconds: u64, bounds: Bounds) -> Rest {
    Rest::Quiet(Quiet { cap: Duration::from_secs(cap_seconds), bounds, device: None })
}

async fn settled(session: &mut AnySession, rest: Rest) -> Result<Settling, DbError> {
    let report = settle(session, &capabilities("InnoDB", true), &["pi1".to_owned()], rest, true).await?;
    Ok(report.settling.expect("it settled by state"))
}

async fn run(session: &mut AnySession, sql: &str) {
    session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn setting(session: &mut AnySession) -> i64 {
    let rows = session.rows("SELECT round(@@GLOBAL.innodb_max_dirty_pages_pct)").await.unwrap();
    dbdyno_db::first_i64(&rows).unwrap()
}
