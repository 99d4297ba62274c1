//! Tests of MariaDB and MySQL sessions: the settings that each session sets itself, whatever the
//! server's settings are, and the end of its statements and locks.

use dbdyno_db::mysql::{MysqlSession, Options, capabilities};
use dbdyno_db::{DatabaseAddress, DatabaseServer, Session, first_i64};

use crate::mysql_server::Server;
use crate::mysql_server::bases::required;
use crate::shared;
use crate::unwaited::{
    ProductStatements, check_cancelled, check_forgotten, check_in_transaction, check_lock,
};

/// The servers of each version line, the oldest first.
fn bases() -> Vec<std::path::PathBuf> {
    let mariadb = ["mariadb-10.1.", "mariadb-10.11.", "mariadb-11.8"];
    let mysql = ["mysql-5.5.", "mysql-5.6.", "mysql-5.7.", "mysql-8.0.", "mysql-9"];
    mariadb.into_iter().chain(mysql).flat_map(required).collect()
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

fn database_server(server: &Server) -> DatabaseServer {
    DatabaseServer {
        address: DatabaseAddress::Mysql(server.root()),
        capabilities: capabilities("innodb", false),
    }
}

fn options(database_server: &DatabaseServer) -> &Options {
    let DatabaseAddress::Mysql(options) = &database_server.address else {
        panic!("{database_server:?} is no MySQL")
    };
    options
}

/// Number of the session's statements. Some versions already count this statement.
async fn questions(session: &mut MysqlSession) -> i64 {
    let rows = session.rows("SHOW SESSION STATUS LIKE 'Questions'").await.expect("a counter");
    rows[0][1].as_deref().expect("a value").parse().expect("a number")
}

/// Checks a session before and after the [`DatabaseServer`] has read the server's settings.
async fn check_autocommit(server: &Server) {
    let mut database_server = database_server(server);
    let mut root = connected(&server.root()).await;
    let usual = questions(&mut root).await;
    database_server.commit_each_statement().await.expect("a server that answers");
    let mut session = connected(options(&database_server)).await;
    assert_eq!(questions(&mut session).await, usual, "{}: nothing is sent in the usual case", server.name);

    run(&mut root, "SET GLOBAL autocommit = 0").await;
    database_server.commit_each_statement().await.expect("a server that answers");
    let mut session = connected(options(&database_server)).await;
    assert_eq!(number(&mut session, "SELECT @@autocommit").await, Some(1), "{}", server.name);
    run(&mut root, "SET GLOBAL autocommit = 1").await;
}

const STATEMENTS: ProductStatements = ProductStatements {
    sleeps: "SELECT SLEEP(600)",
    at_work: "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'",
    kill: |number| format!("KILL {number}"),
    prepared: "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'",
};

#[tokio::test]
async fn sessions_of_mariadb_set_what_they_need_themselves() {
    let server = shared::mariadb().await;
    check(&server).await;
}

#[tokio::test]
async fn sessions_of_mysql_set_what_they_need_themselves() {
    let server = shared::mysql().await;
    check(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn sessions_of_every_line_set_what_they_need_themselves() {
    for base in bases() {
        check(&Server::start(&base).await).await;
    }
}

async fn check(server: &Server) {
    check_autocommit(server).await;
    check_cancelled(&server.name, || database_server(server), &STATEMENTS).await;
    check_lock(&server.name, &database_server(server), &STATEMENTS).await;
    check_forgotten(&server.name, &database_server(server), &STATEMENTS).await;
    check_in_transaction(&server.name, &database_server(server)).await;
}
