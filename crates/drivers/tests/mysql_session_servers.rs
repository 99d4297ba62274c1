//! What each session of MariaDB and MySQL sets for itself, whatever the server is set to, and what becomes of its statements and
//! locks.

#[allow(dead_code, reason = "shared with tests that use all of it")]
#[path = "mysql_servers/server.rs"]
mod server;

use std::time::Duration;

use dbdyno_drivers::mysql::{MysqlSession, Options, capabilities};
use dbdyno_drivers::{Endpoint, Held, Session, Target, first_i64};
use server::{Server, found, required};

/// One of each line, from the oldest on; those in `found` are no requirement.
fn bases() -> Vec<std::path::PathBuf> {
    let needed = ["mariadb-10.1.", "mariadb-10.11.", "mysql-5.6.", "mysql-8.0."];
    let further = ["mariadb-11.8", "mysql-5.5.", "mysql-5.7.", "mysql-9"];
    needed.into_iter().flat_map(required).chain(further.into_iter().flat_map(found)).collect()
}

async fn connected(options: &Options) -> MysqlSession {
    MysqlSession::connect(options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn run(session: &mut MysqlSession, sql: &str) {
    session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
}

async fn number(session: &mut MysqlSession, sql: &str) -> Option<i64> {
    first_i64(&session.rows(sql).await.unwrap_or_else(|error| panic!("{error}")))
}

fn options(endpoint: &Endpoint) -> &Options {
    let Target::Mysql(options) = &endpoint.target else { panic!("{endpoint:?} is no MySQL") };
    options
}

/// Statements of the session, with this one where the version counts it already.
async fn questions(session: &mut MysqlSession) -> i64 {
    let rows = session.rows("SHOW SESSION STATUS LIKE 'Questions'").await.expect("a counter");
    rows[0][1].as_deref().expect("a value").parse().expect("a number")
}

/// A session of `server` as it was found, or as the endpoint has learnt to set it.
async fn check_autocommit(server: &Server) {
    let target = Target::Mysql(server.root());
    let mut endpoint = Endpoint { target, capabilities: capabilities("innodb", false) };
    let mut root = connected(&server.root()).await;
    let usual = questions(&mut root).await;
    endpoint.commit_each_statement().await.expect("a server that answers");
    let mut session = connected(options(&endpoint)).await;
    assert_eq!(questions(&mut session).await, usual, "{}: nothing is sent in the usual case", server.name);

    run(&mut root, "SET GLOBAL autocommit = 0").await;
    endpoint.commit_each_statement().await.expect("a server that answers");
    let mut session = connected(options(&endpoint)).await;
    assert_eq!(number(&mut session, "SELECT @@autocommit").await, Some(1), "{}", server.name);
    run(&mut root, "SET GLOBAL autocommit = 1").await;
}

/// Statements of others that are at work.
const AT_WORK: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'";

/// What was dropped before its answer came is ended; what goes on is left alone until all is to end.
async fn check_cancelled(server: &Server) {
    let target = Target::Mysql(server.root());
    let endpoint = Endpoint { target, capabilities: capabilities("innodb", false) };
    let mut root = connected(&server.root()).await;
    let soon = Duration::from_millis(200);
    let sleeps = b"SELECT SLEEP(600)";
    let mut kept = connected(options(&endpoint)).await;
    let mut dropped = connected(options(&endpoint)).await;
    assert!(tokio::time::timeout(soon, kept.query(sleeps)).await.is_err(), "{}", server.name);
    assert!(tokio::time::timeout(soon, dropped.query(sleeps)).await.is_err(), "{}", server.name);
    drop(dropped);
    assert_eq!(number(&mut root, AT_WORK).await, Some(2), "{}", server.name);
    endpoint.cancel_abandoned(Duration::from_secs(20)).await.expect("cancelled");
    assert_eq!(number(&mut root, AT_WORK).await, Some(1), "{}", server.name);
    endpoint.cancel_all(Duration::from_secs(20)).await.expect("cancelled");
    assert_eq!(number(&mut root, AT_WORK).await, Some(0), "{}", server.name);
}

/// A lock is one connection's until that gives it back or ends.
async fn check_lock(server: &Server) {
    let target = Target::Mysql(server.root());
    let endpoint = Endpoint { target, capabilities: capabilities("innodb", false) };
    let taken = |held| match held {
        Held::Taken(hold) => hold,
        held => panic!("{}: {held:?}", server.name),
    };
    let mut first = taken(endpoint.hold(Duration::ZERO).await.expect("a login"));
    let Held::By(holder) = endpoint.hold(Duration::ZERO).await.expect("a login") else {
        panic!("{}: twice", server.name)
    };
    assert!(holder.is(first.holder()) && holder.to_string().ends_with("@localhost"), "{holder}");
    assert!(first.is_kept().await, "{}", server.name);
    assert_eq!(first.others_at_work().await, Vec::<String>::new(), "{}", server.name);
    first.release().await;
    let mut second = taken(endpoint.hold(Duration::ZERO).await.expect("a login"));
    let number = second.holder().to_string().replace("connection ", "");
    run(&mut connected(&server.root()).await, &format!("KILL {number}")).await;
    assert!(!second.is_kept().await, "{}", server.name);
    drop(taken(endpoint.hold(Duration::from_secs(2)).await.expect("a login")));
}

#[tokio::test]
async fn sessions_set_what_they_need_themselves() {
    for base in bases() {
        let server = Server::start(&base).await;
        check_autocommit(&server).await;
        check_cancelled(&server).await;
        check_lock(&server).await;
    }
}
