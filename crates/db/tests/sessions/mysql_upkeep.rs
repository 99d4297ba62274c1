//! Tests of upkeep, counters and descriptions on real servers. They check that pages are flushed,
//! and that changed settings are restored.

#![allow(clippy::unwrap_used, reason = "everything here is a test or a part of one")]

use std::path::PathBuf;
use std::time::Duration;

use dbdyno_db::mysql::{Options, capabilities};
use dbdyno_db::{
    AnySession, Capabilities, DatabaseAddress, DatabaseServer, Session, UpkeepReport, describe, drop_binlog,
    first_i64, settle, status,
};

use crate::mysql_server::Server;
use crate::mysql_server::bases::required;
use crate::shared;

const WAIT: Duration = Duration::from_secs(4);
const DATABASE: &str = "ib";
const SETTING: &str = "innodb_max_dirty_pages_pct";

#[tokio::test]
async fn mariadb_comes_to_rest() {
    let server = shared::mariadb().await;
    check(&server).await;
}

#[tokio::test]
async fn mysql_comes_to_rest() {
    let server = shared::mysql().await;
    check(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_10_1_comes_to_rest() {
    check_all(required("mariadb-10.1.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_10_11_comes_to_rest() {
    check_all(required("mariadb-10.11.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mysql_5_6_comes_to_rest() {
    check_all(required("mysql-5.6.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mysql_8_0_comes_to_rest() {
    check_all(required("mysql-8.0.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn every_further_line_comes_to_rest() {
    for prefix in ["mysql-5.5.", "mysql-5.7.", "mysql-9", "mariadb-11.4.", "mariadb-11.8"] {
        check_all(required(prefix)).await;
    }
}

/// Few builds have the MyRocks plugin.
#[tokio::test]
#[ignore = "in cargo xtask test --all: builds with MyRocks"]
async fn myrocks_comes_to_rest() {
    const PLUGIN: &str = "lib/mysql/plugin/ha_rocksdb.so";
    let mut bases = ["mariadb-10.", "mariadb-11."].map(required).concat();
    bases.retain(|base| base.join("usr").join(PLUGIN).is_file() || base.join(PLUGIN).is_file());
    assert!(
        !bases.is_empty(),
        "no MariaDB here has MyRocks; fetch mariadb-10.5.23 with `cargo xtask servers`"
    );
    for base in bases {
        check_myrocks(&base).await;
    }
}

async fn check_myrocks(base: &std::path::Path) {
    let options = ["--loose-skip-ssl", "--plugin-load-add=ha_rocksdb"].map(str::to_owned);
    let server = Server::start_with(base, &options).await;
    let mut session = connected(server.root()).await;
    run(&mut session, "CREATE DATABASE ib").await;
    let mut session = connected(server.root().with_database(DATABASE)).await;
    run(
        &mut session,
        "CREATE TABLE pi1 (id bigint auto_increment primary key, data varchar(600)) ENGINE=RocksDB",
    )
    .await;
    run(&mut session, "INSERT INTO pi1 (data) VALUES (repeat('x', 600))").await;
    for _ in 0..10 {
        run(&mut session, "INSERT INTO pi1 (data) SELECT data FROM pi1").await;
    }
    let before = status(&mut session).await.unwrap();
    let report = settled(&mut session, &capabilities("rocksdb", true), Duration::ZERO, true).await;
    let after = status(&mut session).await.unwrap();
    let written = "Rocksdb_flush_write_bytes";
    assert!(after[written] > before[written], "{}: the memtable is in no file", server.name);
    let mut names: Vec<&str> = report.parts.iter().map(|(name, _)| name.as_str()).collect();
    // MariaDB up to 11.8 does not have this setting.
    let lacks = "this version has no rocksdb_compact_lzero_now";
    assert!(report.notes.iter().all(|note| note == lacks), "{}: {report:?}", server.name);
    if !report.notes.is_empty() {
        names.push("rocksdb_compact_lzero_now");
    }
    let expected = [
        "analyze pi1",
        "await compactions",
        "rocksdb_force_flush_memtable_now",
        "await compactions after flush",
        "rocksdb_compact_lzero_now",
    ];
    assert_eq!(names, expected, "{}", server.name);
}

async fn check_all(bases: Vec<PathBuf>) {
    for base in bases {
        check(&Server::start(&base).await).await;
    }
}

async fn check(server: &Server) {
    let mut session = prepared_session(server).await;
    check_description(server, &mut session).await;
    check_owned(server, &mut session).await;
    check_failure_restores(&mut session).await;
    check_foreign(server, &mut session).await;
    check_binlog(&mut session).await;
}

/// A session on a server that has a table with dirty pages, and a dirty-page limit that no other
/// code sets.
async fn prepared_session(server: &Server) -> AnySession {
    let mut session = connected(server.root()).await;
    run(&mut session, "CREATE DATABASE ib").await;
    let mut session = connected(server.root().with_database(DATABASE)).await;
    run(&mut session, "SET GLOBAL innodb_max_dirty_pages_pct = 73").await;
    // With this limit the server flushes few pages before the test reads their number.
    run(&mut session, "SET GLOBAL innodb_io_capacity = 100").await;
    run(
        &mut session,
        "CREATE TABLE pi1 (id bigint auto_increment primary key, data varchar(600)) ENGINE=InnoDB",
    )
    .await;
    run(&mut session, "INSERT INTO pi1 (data) VALUES (repeat('x', 600))").await;
    for _ in 0..14 {
        run(&mut session, "INSERT INTO pi1 (data) SELECT data FROM pi1").await;
    }
    session
}

async fn check_description(server: &Server, session: &mut AnySession) {
    let description = describe(session).await.unwrap();
    let (product, version) = server.name.split_once('-').unwrap();
    // The folder's name has the name of the Debian suite after the version.
    let version = version.split('-').next().unwrap_or(version);
    assert_eq!(description.product.to_lowercase(), product);
    let numbers = description.version.map(|number| number.to_string()).join(".");
    assert!(numbers.starts_with(version), "{}", description.version_text);
    assert!(description.version_text.starts_with(version), "{}", description.version_text);
    let engine = if version.starts_with("10.1.") { "XtraDB 5.6." } else { "InnoDB" };
    assert!(description.engine.starts_with(engine), "{}: {}", server.name, description.engine);
    assert_eq!(description.settings["innodb_buffer_pool_size"], "67108864");
    // The value is a whole number before MySQL 5.7 and a fraction from 5.7 on.
    assert_eq!(description.settings[SETTING].parse(), Ok(73.0), "{}", description.settings[SETTING]);

    let before = status(session).await.unwrap();
    run(session, "SELECT 1").await;
    let after = status(session).await.unwrap();
    assert!(after["Queries"] > before["Queries"], "{}", server.name);
    assert!(after["Innodb_buffer_pool_pages_total"] > 1000, "{}", server.name);
}

async fn check_owned(server: &Server, session: &mut AnySession) {
    let before = flush_settings(session).await;
    let mut observer = connected(server.root()).await;
    let look = async {
        tokio::time::sleep(WAIT / 2).await;
        flush_settings(&mut observer).await
    };
    let start = std::time::Instant::now();
    let owned = owned();
    let (report, during) = tokio::join!(settled(session, &owned, WAIT, true), look);
    let took = start.elapsed();
    assert!(took >= WAIT, "{}: {took:?}", server.name);
    assert_ne!(during, before, "{}", server.name);
    assert_eq!(limit(&during), 1.0, "{}: {during:?}", server.name);
    assert_eq!(flush_settings(session).await, before, "{}: settings are restored", server.name);

    let changed = report.settings.iter().find(|text| text.starts_with(&format!("{SETTING}: 73"))).unwrap();
    assert!(changed.ends_with(", for this work 1"), "{changed}");
    assert_eq!(report.settings.len(), before.len(), "{report:?}");
    let has_idle_setting = before.iter().any(|(name, _)| name == "innodb_idle_flush_pct");
    let should_have = server.name.starts_with("mysql-8.0.31") || server.name.starts_with("mysql-9");
    assert!(has_idle_setting || !should_have, "{}: {before:?}", server.name);
    assert!(report.parts.iter().any(|(name, _)| name == "analyze pi1"), "{report:?}");
    let (dirty_before, dirty_after) = (report.facts["dirty_pages_before"], report.facts["dirty_pages_after"]);
    assert!(
        dirty_after < dirty_before,
        "{}: the load left dirty pages, which were written: {report:?}",
        server.name
    );
    assert!(report.facts.contains_key("history_list_length_after"), "{}: {report:?}", server.name);
    assert!(report.notes.is_empty(), "{report:?}");
}

async fn check_failure_restores(session: &mut AnySession) {
    let before = flush_settings(session).await;
    let tables = ["pi1".to_owned(), "absent".to_owned()];
    let error = settle(session, &owned(), &tables, WAIT, true).await.unwrap_err();
    assert!(error.message.contains("table absent cannot be analysed"), "{error}");
    assert_eq!(flush_settings(session).await, before);
}

async fn check_foreign(server: &Server, session: &mut AnySession) {
    let before = flush_settings(session).await;
    let mut observer = connected(server.root()).await;
    let wait = Duration::from_millis(600);
    let look = async {
        tokio::time::sleep(wait / 2).await;
        flush_settings(&mut observer).await
    };
    let foreign = capabilities("InnoDB", false);
    let (report, during) = tokio::join!(settled(session, &foreign, wait, false), look);
    assert_eq!(during, before, "{}", server.name);
    assert!(report.settings.is_empty() && report.facts.is_empty(), "{report:?}");
    assert!(report.notes[0].contains("external server: "), "{report:?}");
    let names: Vec<&str> = report.parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["analyze pi1", "wait"]);
}

/// Checks that binary logs are deleted if there are any and dbdyno owns the server.
async fn check_binlog(session: &mut AnySession) {
    let log_bin = session.rows("SELECT @@GLOBAL.log_bin").await.unwrap();
    let keeps_log = first_i64(&log_bin) == Some(1);
    if keeps_log {
        run(session, "FLUSH BINARY LOGS").await;
        let logs = session.rows("SHOW BINARY LOGS").await.unwrap();
        assert!(logs.len() > 1, "{logs:?}");
        assert!(!drop_binlog(session, &capabilities("InnoDB", false)).await.unwrap());
        assert_eq!(session.rows("SHOW BINARY LOGS").await.unwrap().len(), logs.len());
    }
    assert_eq!(drop_binlog(session, &owned()).await.unwrap(), keeps_log);
    if keeps_log {
        let logs = session.rows("SHOW BINARY LOGS").await.unwrap();
        assert_eq!(logs.len(), 1, "{logs:?}");
    }
}

fn owned() -> Capabilities {
    capabilities("InnoDB", true)
}

async fn settled(
    session: &mut AnySession,
    capabilities: &Capabilities,
    wait: Duration,
    owned: bool,
) -> UpkeepReport {
    settle(session, capabilities, &["pi1".to_owned()], wait, owned)
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

async fn connected(options: Options) -> AnySession {
    let database_server = DatabaseServer { address: DatabaseAddress::Mysql(options), capabilities: owned() };
    database_server.connect().await.unwrap_or_else(|error| panic!("{error}"))
}

async fn run(session: &mut AnySession, sql: &str) {
    session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The settings that the upkeep changes, if the version has them.
async fn flush_settings(session: &mut AnySession) -> Vec<(String, String)> {
    let sql = "SHOW GLOBAL VARIABLES WHERE variable_name IN \
               ('innodb_max_dirty_pages_pct', 'innodb_max_dirty_pages_pct_lwm', 'innodb_idle_flush_pct')";
    let rows = session.rows(sql).await.unwrap_or_else(|error| panic!("{error}"));
    rows.into_iter().map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap())).collect()
}

fn limit(settings: &[(String, String)]) -> f64 {
    settings.iter().find(|(name, _)| name == SETTING).unwrap().1.parse().unwrap()
}
