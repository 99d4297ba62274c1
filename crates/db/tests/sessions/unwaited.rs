//! Checks for every product: abandoned statements, forgotten prepared statements, transaction
//! states and advisory locks. Each product provides its own statements.

use std::time::Duration;

use dbdyno_db::{AdvisoryLock, AnySession, DatabaseServer, LockAttempt, Session, first_i64};

/// A product's statements for these checks.
pub(crate) struct ProductStatements {
    /// A statement that runs longer than any test.
    pub(crate) sleeps: &'static str,
    /// Counts the running statements of other sessions.
    pub(crate) at_work: &'static str,
    /// Makes the statement that ends the connection with this number.
    pub(crate) kill: fn(&str) -> String,
    /// Returns the number of prepared statements in its last column.
    pub(crate) prepared: &'static str,
}

async fn connected(database_server: &DatabaseServer) -> AnySession {
    database_server.connect().await.unwrap_or_else(|error| panic!("{error}"))
}

async fn number(session: &mut AnySession, sql: &str) -> Option<i64> {
    first_i64(&session.rows(sql).await.unwrap_or_else(|error| panic!("{error}")))
}

/// Checks that `cancel_abandoned` ends only a statement that was dropped before its answer, and
/// that `cancel_all` ends all statements. `database_server` makes a [`DatabaseServer`] without
/// connections for the server `name`.
pub(crate) async fn check_cancelled(
    name: &str,
    database_server: impl Fn() -> DatabaseServer,
    statements: &ProductStatements,
) {
    let mut root = connected(&database_server()).await;
    let database_server = database_server();
    let soon = Duration::from_millis(200);
    let sleeps = statements.sleeps.as_bytes();
    let mut kept = connected(&database_server).await;
    let mut dropped = connected(&database_server).await;
    assert!(tokio::time::timeout(soon, kept.query(sleeps)).await.is_err(), "{name}");
    assert!(tokio::time::timeout(soon, dropped.query(sleeps)).await.is_err(), "{name}");
    drop(dropped);
    assert_eq!(number(&mut root, statements.at_work).await, Some(2), "{name}");
    database_server.cancel_abandoned(Duration::from_secs(20)).await.expect("cancelled");
    assert_eq!(number(&mut root, statements.at_work).await, Some(1), "{name}");
    database_server.cancel_all(Duration::from_secs(20)).await.expect("cancelled");
    assert_eq!(number(&mut root, statements.at_work).await, Some(0), "{name}");
}

/// Checks that one connection has the lock until it releases the lock or ends.
pub(crate) async fn check_lock(name: &str, database_server: &DatabaseServer, statements: &ProductStatements) {
    let taken = |held| -> Box<AdvisoryLock> {
        match held {
            LockAttempt::Taken(hold) => hold,
            held => panic!("{name}: {held:?}"),
        }
    };
    let mut first = taken(database_server.take_advisory_lock(Duration::ZERO).await.expect("a login"));
    let LockAttempt::OwnedBy(owner) =
        database_server.take_advisory_lock(Duration::ZERO).await.expect("a login")
    else {
        panic!("{name}: twice")
    };
    assert!(owner.is_same_connection(first.owner()) && owner.to_string().ends_with("@localhost"), "{owner}");
    assert!(first.is_kept().await, "{name}");
    assert_eq!(first.other_running_statements().await, Vec::<String>::new(), "{name}");
    first.release().await;
    let mut second = taken(database_server.take_advisory_lock(Duration::ZERO).await.expect("a login"));
    let number = second.owner().to_string().replace("connection ", "");
    let mut root = connected(database_server).await;
    root.query((statements.kill)(&number).as_bytes()).await.expect("ended");
    assert!(!second.is_kept().await, "{name}");
    drop(taken(database_server.take_advisory_lock(Duration::from_secs(2)).await.expect("a login")));
}

/// Checks that a session knows from every kind of answer whether a transaction is open.
pub(crate) async fn check_in_transaction(name: &str, database_server: &DatabaseServer) {
    let mut session = connected(database_server).await;
    let one = session.prepare("SELECT 1").await.expect("a statement");
    assert!(!session.in_transaction(), "{name}");
    for end in ["COMMIT", "ROLLBACK"] {
        session.query(b"BEGIN").await.expect("begun");
        assert!(session.in_transaction(), "{name}");
        session.rows("SELECT 1").await.expect("rows");
        assert!(session.in_transaction(), "{name}: rows");
        session.execute(one, &[]).await.expect("an answer");
        assert!(session.in_transaction(), "{name}: an execution");
        session.query(b"SELECT nothing FROM nowhere").await.expect_err("no such table");
        assert!(session.in_transaction(), "{name}: an error");
        session.query(end.as_bytes()).await.expect("ended");
        assert!(!session.in_transaction(), "{name}: {end}");
    }
    session.execute(one, &[]).await.expect("an answer");
    assert!(!session.in_transaction() && number(&mut session, "SELECT 1").await == Some(1), "{name}");
    assert!(!session.in_transaction(), "{name}");
}

/// Checks that the server frees a forgotten prepared statement and keeps the others.
pub(crate) async fn check_forgotten(
    name: &str,
    database_server: &DatabaseServer,
    statements: &ProductStatements,
) {
    async fn prepared(session: &mut AnySession, statements: &ProductStatements) -> i64 {
        let rows = session.rows(statements.prepared).await.unwrap_or_else(|error| panic!("{error}"));
        rows[0].last().and_then(Option::as_deref).expect("a number").parse().expect("a number")
    }
    let mut session = connected(database_server).await;
    let before = prepared(&mut session, statements).await;
    let first = session.prepare("SELECT 1").await.expect("a statement");
    let second = session.prepare("SELECT 2 UNION SELECT 3").await.expect("a statement");
    assert_eq!(prepared(&mut session, statements).await, before + 2, "{name}");
    session.forget(first).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(prepared(&mut session, statements).await, before + 1, "{name}");
    assert!(session.execute(second, &[]).await.expect("rows").rows == 2, "{name}");
    session.execute(first, &[]).await.expect_err("it is forgotten");
    assert!(session.execute(second, &[]).await.expect("rows").rows == 2, "{name}: the session goes on");
}
