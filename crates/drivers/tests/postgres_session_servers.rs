//! What becomes of statements on PostgreSQL that no one waits for any more, and of locks by
//! connections.

#[allow(dead_code, reason = "shared with tests that use all of it")]
#[path = "postgres_servers/server.rs"]
mod server;
mod unwaited;

use dbdyno_drivers::postgres::capabilities;
use dbdyno_drivers::{Endpoint, Target};
use server::Server;
use server::bases::required;
use unwaited::{ProductStatements, check_cancelled, check_forgotten, check_lock};

const STATEMENTS: ProductStatements = ProductStatements {
    sleeps: "SELECT pg_sleep(600)",
    at_work: "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'",
    kill: |number| format!("SELECT pg_terminate_backend({number})"),
    prepared: "SELECT COUNT(*) FROM pg_prepared_statements",
};

fn endpoint(server: &Server) -> Endpoint {
    Endpoint { target: Target::Postgres(server.root()), capabilities: capabilities() }
}

#[tokio::test]
async fn statements_are_cancelled_and_locks_are_kept() {
    for base in ["pg-9.6.", "pg-15.", "pg-18."].into_iter().flat_map(required) {
        let server = Server::start(&base).await;
        check_cancelled(&server.name, || endpoint(&server), &STATEMENTS).await;
        check_lock(&server.name, &endpoint(&server), &STATEMENTS).await;
        check_forgotten(&server.name, &endpoint(&server), &STATEMENTS).await;
    }
}
