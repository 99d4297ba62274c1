//! What becomes of statements on PostgreSQL that nobody waits for any more, and of locks by connections.

#[allow(dead_code, reason = "shared with tests that use all of it")]
#[path = "postgres_servers/server.rs"]
mod server;

use std::time::Duration;

use dbdyno_drivers::postgres::{PostgresSession, capabilities};
use dbdyno_drivers::{Endpoint, Held, Session, Target, first_i64};
use server::{Server, required};

/// Statements of others that are at work.
const AT_WORK: &str =
    "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'";

async fn number(session: &mut PostgresSession, sql: &str) -> Option<i64> {
    first_i64(&session.rows(sql).await.unwrap_or_else(|error| panic!("{error}")))
}

/// What was dropped before its answer came is ended; what goes on is left alone until all is to end.
async fn check_cancelled(server: &Server) {
    let options = server.root();
    let endpoint = Endpoint { target: Target::Postgres(options.clone()), capabilities: capabilities() };
    let mut root = PostgresSession::connect(&server.root()).await.expect("a login");
    let soon = Duration::from_millis(200);
    let sleeps = b"SELECT pg_sleep(600)";
    let mut kept = PostgresSession::connect(&options).await.expect("a login");
    let mut dropped = PostgresSession::connect(&options).await.expect("a login");
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
    let endpoint = Endpoint { target: Target::Postgres(server.root()), capabilities: capabilities() };
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
    let mut root = PostgresSession::connect(&server.root()).await.expect("a login");
    root.query(format!("SELECT pg_terminate_backend({number})").as_bytes()).await.expect("ended");
    assert!(!second.is_kept().await, "{}", server.name);
    drop(taken(endpoint.hold(Duration::from_secs(2)).await.expect("a login")));
}

#[tokio::test]
async fn statements_are_cancelled_and_locks_are_kept() {
    for base in ["pg-9.6.", "pg-15.", "pg-18."].into_iter().flat_map(required) {
        let server = Server::start(&base).await;
        check_cancelled(&server).await;
        check_lock(&server).await;
    }
}
