//! One MariaDB, one MySQL and one PostgreSQL for all tests in this program. Each server is started
//! when the first test requests it, and ends with the program. Only one test at a time uses a
//! server, so it may change settings and count sessions. Databases and users stay, so each test
//! uses its own names.

use std::time::Duration;

use dbdyno_db::postgres::PostgresSession;
use dbdyno_db::{Session, first_i64};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::mysql_server::bases::required;
use crate::{mysql_server, postgres_server};

static MARIADB: OnceCell<Mutex<mysql_server::Server>> = OnceCell::const_new();
static MYSQL: OnceCell<Mutex<mysql_server::Server>> = OnceCell::const_new();
static POSTGRES: OnceCell<Mutex<postgres_server::Server>> = OnceCell::const_new();

/// A MariaDB server without TLS.
pub(crate) async fn mariadb() -> MutexGuard<'static, mysql_server::Server> {
    let start = async || Mutex::new(mysql_server::Server::start(&required("mariadb-11.8")[0]).await);
    MARIADB.get_or_init(start).await.lock().await
}

/// A MySQL server with its own certificates.
pub(crate) async fn mysql() -> MutexGuard<'static, mysql_server::Server> {
    let start = async || Mutex::new(mysql_server::Server::start_with(&required("mysql-8.0.")[0], &[]).await);
    MYSQL.get_or_init(start).await.lock().await
}

/// A PostgreSQL server without TLS. Autovacuum is off, because its workers could be running at any
/// moment. The function waits until the sessions of earlier tests have ended.
pub(crate) async fn postgres() -> MutexGuard<'static, postgres_server::Server> {
    let settings = ["autovacuum=off".to_owned()];
    let start =
        async || Mutex::new(postgres_server::Server::start_with(&required("pg-15.")[0], &settings).await);
    let server = POSTGRES.get_or_init(start).await.lock().await;
    let mut session =
        PostgresSession::connect(&server.root()).await.unwrap_or_else(|error| panic!("{error}"));
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while first_i64(&session.rows(others).await.expect(others)) != Some(0) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    session.close().await;
    server
}
