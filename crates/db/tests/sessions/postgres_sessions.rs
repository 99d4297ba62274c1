//! Tests of abandoned statements and advisory locks on PostgreSQL.

use dbdyno_db::postgres::capabilities;
use dbdyno_db::{DatabaseAddress, DatabaseServer};

use crate::mysql_server::bases::required;
use crate::postgres_server::Server;
use crate::shared;
use crate::unwaited::{
    ProductStatements, check_cancelled, check_forgotten, check_in_transaction, check_lock,
};

const STATEMENTS: ProductStatements = ProductStatements {
    sleeps: "SELECT pg_sleep(600)",
    at_work: "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'",
    kill: |number| format!("SELECT pg_terminate_backend({number})"),
    prepared: "SELECT COUNT(*) FROM pg_prepared_statements",
};

fn database_server(server: &Server) -> DatabaseServer {
    DatabaseServer { address: DatabaseAddress::Postgres(server.root()), capabilities: capabilities() }
}

#[tokio::test]
async fn statements_are_cancelled_and_locks_are_kept() {
    let server = shared::postgres().await;
    check(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn statements_are_cancelled_and_locks_are_kept_in_old_and_new_versions() {
    for base in ["pg-9.6.", "pg-15.", "pg-18."].into_iter().flat_map(required) {
        check(&Server::start(&base).await).await;
    }
}

async fn check(server: &Server) {
    check_cancelled(&server.name, || database_server(server), &STATEMENTS).await;
    check_lock(&server.name, &database_server(server), &STATEMENTS).await;
    check_forgotten(&server.name, &database_server(server), &STATEMENTS).await;
    check_in_transaction(&server.name, &database_server(server)).await;
}
