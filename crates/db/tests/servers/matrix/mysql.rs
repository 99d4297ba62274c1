//! Checks of every MySQL and MariaDB version: all authentication methods, the text and the prepared
//! protocol, error classes, values above 16 MiB, and no prepared statements left behind.

use std::time::Duration;

use dbdyno_db::mysql::{Options, Secret};
use dbdyno_db::server::{Base, Server};
use dbdyno_db::{AnySession, Class, Param, Session};
use dbdyno_products::mysql::MARIADB;

use super::client::{BIG, KEPT, TestClient, TestServer};
use crate::support::{block_on, new_folder, with_options};

const MY_CNF: &str = "[mysqld]\ninnodb_buffer_pool_size = 64M\nmax_allowed_packet = 64M\n\
                      innodb_flush_log_at_trx_commit = 0\ninnodb_use_native_aio = 0\n";

/// Counts the prepared statements of all open sessions.
const PREPARED: &str = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";

pub(crate) fn check(name: &str, base: &Base) {
    let folder = new_folder();
    let server = Server::start(&with_options(base, folder.path(), MY_CNF))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    block_on(async {
        let root = TestServer::mysql(name, server.options(None));
        root.connect().await.run("CREATE DATABASE bench").await;
        let root = TestServer::mysql(name, server.options(Some("bench")));
        let mut client = root.connect().await;
        greeting(&mut client, base).await;
        text(&mut client).await;
        parameters(&mut client).await;
        several_results(&mut client).await;
        large(&mut client, &root).await;
        errors(&mut client, &root).await;
        statements_end_with_their_session(&mut client, &root).await;
        logins(&mut client, &server, base).await;
    });
    server.stop().unwrap_or_else(|error| panic!("{name}: {error}"));
}

async fn greeting(client: &mut TestClient, base: &Base) {
    let AnySession::Mysql(session) = &client.session else { panic!("another driver") };
    let (version, id) = (session.server_version().to_owned(), session.connection_id());
    assert!(version.starts_with(&base.release.to_string()), "{}: {version}", client.name);
    assert_eq!(session.is_mariadb(), (base.product == MARIADB), "{}", client.name);
    assert_eq!(client.number("SELECT CONNECTION_ID()").await, i64::from(id));
    let row = client.row("SELECT @@autocommit, @@character_set_client, @@character_set_results").await;
    assert_eq!(row, ["1", "utf8mb4", "utf8mb4"], "{}", client.name);
}

async fn text(client: &mut TestClient) {
    client
        .run("CREATE TABLE t (id bigint auto_increment primary key, a int, b varchar(200)) ENGINE=InnoDB")
        .await;
    let inserted = client.run("INSERT INTO t (a, b) VALUES (1, 'one'), (2, NULL), (3, '')").await;
    assert_eq!((inserted.rows, inserted.affected, inserted.warnings), (0, 3, 0), "{}", client.name);
    assert_eq!(client.run("SELECT * FROM t").await.rows, 3);
    assert_eq!(client.run("SELECT * FROM t WHERE id < 0").await.rows, 0);
    assert_eq!(client.run("UPDATE t SET a = a + 1 WHERE id < 3").await.affected, 2);
    assert_eq!(client.run("DROP TABLE IF EXISTS nonesuch").await.warnings, 1);
    assert_eq!(client.row("SELECT a, b, 'ü', '' FROM t WHERE id = 2").await, ["3", "NULL", "ü", ""]);
}

/// Writes numbers and texts into columns of each type, at the limits of the types' ranges and of
/// the protocol's length formats.
async fn parameters(client: &mut TestClient) {
    client.run(
        "CREATE TABLE k (i int, b bigint, d decimal(20, 2), f double, v varchar(300), x mediumtext, ts datetime) \
         ENGINE=InnoDB CHARACTER SET latin1",
    )
    .await;
    let insert = client.session.prepare("INSERT INTO k VALUES (?, ?, ?, ?, ?, ?, ?)").await.unwrap();
    assert_eq!((insert.params, insert.columns), (7, 0), "{}", client.name);
    let lengths = [0, 1, 250, 251, 252, 300];
    for (round, &length) in lengths.iter().enumerate() {
        let number = if round % 2 == 0 { i64::MIN } else { i64::MAX };
        let params = [
            Param::Int(-1),
            Param::Int(number),
            Param::Text(b"12345.67".to_vec()),
            Param::Int(3),
            Param::Text(vec![b'v'; length]),
            Param::Text(vec![b'x'; length << 10]),
            Param::Text(b"2026-01-02 03:04:05".to_vec()),
        ];
        assert_eq!(client.session.execute(insert, &params).await.unwrap().affected, 1, "{}", client.name);
    }
    let row = client
        .row("SELECT COUNT(*), MIN(i), MIN(b), MAX(b), MAX(d), MAX(f), SUM(LENGTH(v)), SUM(LENGTH(x)), MAX(ts) FROM k")
        .await;
    let sum: usize = lengths.iter().sum();
    let (sum, longer) = (sum.to_string(), (sum << 10).to_string());
    let (min, max) = (i64::MIN.to_string(), i64::MAX.to_string());
    let time = "2026-01-02 03:04:05";
    assert_eq!(row, ["6", "-1", &min, &max, "12345.67", "3", &sum, &longer, time], "{}", client.name);
    let select = client.session.prepare("SELECT v, x, NULL FROM k WHERE b = ?").await.unwrap();
    assert_eq!((select.params, select.columns), (1, 3), "{}", client.name);
    for param in [Param::Int(i64::MAX), Param::Text(max.clone().into_bytes()), Param::Int(i64::MIN)] {
        let answer = client.session.execute(select, std::slice::from_ref(&param)).await.unwrap();
        assert_eq!(answer.rows, 3, "{}: {param:?}", client.name);
    }
}

async fn several_results(client: &mut TestClient) {
    let body = "BEGIN SELECT 1 UNION SELECT 2; SELECT 3; UPDATE t SET a = 77 WHERE id = 1; END";
    client.run(&format!("CREATE PROCEDURE pr() {body}")).await;
    assert_eq!(client.run("CALL pr()").await.rows, 3, "{}", client.name);
    assert_eq!(client.cells("CALL pr()").await.len(), 2, "{}", client.name);
    let call = client.session.prepare("CALL pr()").await.unwrap();
    assert_eq!(client.session.execute(call, &[]).await.unwrap().rows, 3, "{}", client.name);
}

async fn large(client: &mut TestClient, root: &TestServer) {
    let answer = client.run(&format!("SELECT REPEAT('x', {BIG}), 1")).await;
    assert!(answer.rows == 1 && answer.bytes > BIG as u64, "{}: {answer:?}", client.name);
    let kept = client.row(&format!("SELECT REPEAT('x', {KEPT})")).await;
    assert_eq!(kept[0].len(), KEPT, "{}", client.name);
    // A session that has refused an answer is unusable, so this needs its own session.
    root.connect().await.refuses_large_answer(&format!("SELECT REPEAT('x', {BIG})")).await;
    let up = format!("SELECT LENGTH('{}')", "z".repeat(BIG));
    assert_eq!(client.number(&up).await, BIG as i64, "{}", client.name);
    let length = client.session.prepare("SELECT 1 FROM t WHERE id = 1 AND LENGTH(?) = ?").await.unwrap();
    let params = [Param::Text(vec![b'q'; BIG]), Param::Int(BIG as i64)];
    assert_eq!(client.session.execute(length, &params).await.unwrap().rows, 1, "{}", client.name);
}

async fn errors(client: &mut TestClient, root: &TestServer) {
    client.fails("SELEC 1", Class::Fatal, "1064").await;
    client.fails("SELECT * FROM nonesuch", Class::Fatal, "1146").await;
    client.fails("INSERT INTO t (id) VALUES (1)", Class::Refused, "1062").await;
    let mut other = root.connect().await;
    other.run("SET SESSION innodb_lock_wait_timeout = 1").await;
    client.run("BEGIN").await;
    client.run("UPDATE t SET a = 5 WHERE id = 1").await;
    other.fails("UPDATE t SET a = 6 WHERE id = 1", Class::Retry, "1205").await;
    other.run("SET SESSION innodb_lock_wait_timeout = 20").await;
    other.run("BEGIN").await;
    other.run("UPDATE t SET a = 6 WHERE id = 2").await;
    let (first, second) = tokio::join!(client.session.query(b"UPDATE t SET a = 7 WHERE id = 2"), async {
        let outcome = other.session.query(b"UPDATE t SET a = 8 WHERE id = 1").await;
        other.run("ROLLBACK").await;
        outcome
    });
    let lost = [first, second].into_iter().find_map(Result::err).expect("one of them loses");
    assert_eq!((lost.class, lost.code.as_str()), (Class::Retry, "1213"), "{}: {lost}", client.name);
    client.run("ROLLBACK").await;
    let AnySession::Mysql(session) = &other.session else { panic!("another driver") };
    client.run(&format!("KILL {}", session.connection_id())).await;
    let error = other.session.query(b"SELECT 1").await.expect_err("killed");
    assert_eq!(error.class, Class::Lost, "{}: {error}", client.name);
    assert_eq!(client.number("SELECT 7").await, 7, "{}", client.name);
}

/// The server's counters show that each statement is prepared once, however often it runs, and that
/// no statement outlives its session.
async fn statements_end_with_their_session(client: &mut TestClient, root: &TestServer) {
    let count = async |client: &mut TestClient, sql: &str| client.row(sql).await[1].parse::<i64>().unwrap();
    let prepares = "SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'";
    let (before, own) = (count(client, prepares).await, count(client, PREPARED).await);
    for closes in [true, false] {
        let mut other = root.connect().await;
        for sql in ["SELECT a FROM t WHERE id = ?", "UPDATE t SET a = ? WHERE id = 3"] {
            let statement = other.session.prepare(sql).await.unwrap();
            for value in 0..20 {
                other.session.execute(statement, &[Param::Int(value)]).await.unwrap();
            }
        }
        assert_eq!(count(client, PREPARED).await, own + 2, "{}", client.name);
        if closes {
            other.session.close().await;
        } else {
            drop(other);
        }
        let begun = std::time::Instant::now();
        while count(client, PREPARED).await != own {
            assert!(begun.elapsed() < Duration::from_secs(600), "{}: statements are left", client.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(count(client, prepares).await, before + 4, "{}: each is prepared once", client.name);
}

async fn logins(client: &mut TestClient, server: &Server, base: &Base) {
    let mysql = |major, minor| base.product != MARIADB && base.release.at_least(major, minor);
    let native = match (mysql(9, 0), mysql(8, 0)) {
        (true, _) => None, // MySQL 9 has no mysql_native_password
        (false, true) => Some("IDENTIFIED WITH mysql_native_password BY"),
        (false, false) => Some("IDENTIFIED BY"),
    };
    let sha2 =
        ["caching_sha2_password", "sha256_password"].map(|plugin| format!("IDENTIFIED WITH {plugin} BY"));
    let sha2 = sha2.iter().map(String::as_str).filter(|_| mysql(8, 0));
    for (number, how) in native.into_iter().chain(sha2).enumerate() {
        let user = format!("user{number}");
        client.run(&format!("CREATE USER '{user}'@'localhost' {how} 'pässword'")).await;
        let options = Options::socket(server.socket(), &user);
        let login = |word: &str| {
            TestServer::mysql(
                &format!("{} {how}", client.name),
                options.clone().with_password(Secret::new(word)),
            )
        };
        // The logins use a cold cache, a warm cache, and a cold cache again, because
        // caching_sha2_password uses a different exchange for a cold and a warm cache.
        for flush in [false, false, true] {
            if flush {
                client.session.query(b"FLUSH PRIVILEGES").await.unwrap();
            }
            let mut session = login("pässword").connect().await;
            assert_eq!(session.row("SELECT USER()").await, [format!("{user}@localhost")]);
            session.session.close().await;
        }
        for wrong in ["wrong", ""] {
            assert_eq!(login(wrong).refusal().await, (Class::Fatal, "1045".to_owned()), "{how}");
        }
    }
    // This password format is older than MySQL 4.1. Only MySQL 5.5 still accepts it by default.
    if base.product != MARIADB && !base.release.at_least(5, 6) {
        client.run("CREATE USER 'old'@'localhost'").await;
        client.run("SET PASSWORD FOR 'old'@'localhost' = OLD_PASSWORD('old')").await;
        let options = Options::socket(server.socket(), "old").with_password(Secret::new("old"));
        let refusal = TestServer::mysql(&client.name, options).refusal().await;
        assert_eq!(refusal, (Class::Fatal, "login".to_owned()), "{}", client.name);
    }
}
