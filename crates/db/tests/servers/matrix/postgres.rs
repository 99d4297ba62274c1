//! Checks of every PostgreSQL version: all authentication methods, the simple and the extended
//! protocol, COPY, error classes, values above 16 MiB, and no prepared statements left behind.

use std::time::Duration;

use dbdyno_db::postgres::{Options, Secret};
use dbdyno_db::server::{Base, Server};
use dbdyno_db::{AnySession, Class, Param, Session};

use super::client::{BIG, KEPT, TestClient, TestServer};
use crate::support::{block_on, new_folder, with_options};

const CONF: &str = "shared_buffers = 32MB\nfsync = off\nmax_connections = 20\ndeadlock_timeout = '50ms'\n";

/// Counts dbdyno's sessions on this server, without the session that runs the query.
const OTHERS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dbdyno' AND pid <> pg_backend_pid()";

pub(crate) fn check(name: &str, base: &Base) {
    let folder = new_folder();
    let server = Server::start(&with_options(base, folder.path(), CONF))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    block_on(async {
        let root = TestServer::postgres(name, server.options(Some("postgres")));
        let mut client = root.connect().await;
        greeting(&mut client, base).await;
        text(&mut client).await;
        parameters(&mut client).await;
        large(&mut client, &root).await;
        copy(&mut client).await;
        errors(&mut client, &root).await;
        statements_end_with_their_session(&mut client, &root).await;
        logins(&mut client, &server).await;
    });
    server.stop().unwrap_or_else(|error| panic!("{name}: {error}"));
}

async fn greeting(client: &mut TestClient, base: &Base) {
    let AnySession::Postgres(session) = &client.session else { panic!("another driver") };
    let (version, process) = (session.server_version().to_owned(), session.connection_id());
    assert!(version.starts_with(&base.version), "{}: {version}", client.name);
    assert_eq!(client.number("SELECT pg_backend_pid()").await, i64::from(process), "{}", client.name);
    assert_eq!(client.row("SHOW client_encoding").await, ["UTF8"], "{}", client.name);
}

async fn text(client: &mut TestClient) {
    client.run("CREATE TABLE t (id bigserial primary key, a int, b varchar(200))").await;
    let inserted = client.run("INSERT INTO t (a, b) VALUES (1, 'one'), (2, NULL), (3, '')").await;
    assert_eq!((inserted.rows, inserted.affected, inserted.warnings), (0, 3, 0), "{}", client.name);
    assert_eq!(client.run("SELECT * FROM t").await.rows, 3);
    assert_eq!(client.run("UPDATE t SET a = a + 1 WHERE id < 3").await.affected, 2);
    assert_eq!(client.run("DROP TABLE IF EXISTS nonesuch").await.warnings, 1);
    assert_eq!(client.run("").await.rows, 0);
    assert_eq!(client.row("SELECT a, b, 'ü', '' FROM t WHERE id = 2").await, ["3", "NULL", "ü", ""]);
    let several = client.run("SELECT 1; SELECT 2 UNION SELECT 3; DELETE FROM t WHERE id = 3").await;
    assert_eq!((several.rows, several.affected), (3, 1), "{}", client.name);
    assert_eq!(client.cells("SELECT 1; SELECT 2 UNION SELECT 3").await.len(), 1, "{}", client.name);
}

/// Writes numbers and texts into columns of each type, at the limits of the types' ranges.
async fn parameters(client: &mut TestClient) {
    client.run("CREATE TABLE k (s smallint, i int, b bigint, d numeric, f float8, v varchar(300), x text, ts timestamp)")
        .await;
    let insert = client.session.prepare("INSERT INTO k VALUES (?, ?, ?, ?, ?, ?, ?, ?)").await.unwrap();
    assert_eq!((insert.params, insert.columns), (8, 0), "{}", client.name);
    let lengths = [0, 1, 250, 251, 252, 300];
    for (round, &length) in lengths.iter().enumerate() {
        let number = if round % 2 == 0 { i64::MIN } else { i64::MAX };
        let params = [
            Param::Int(-1),
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
        .row("SELECT COUNT(*), MIN(s), MIN(i), MIN(b), MAX(b), MAX(d), MAX(f), SUM(LENGTH(v)), SUM(LENGTH(x)), MAX(ts) FROM k")
        .await;
    let sum: usize = lengths.iter().sum();
    let (sum, longer) = (sum.to_string(), (sum << 10).to_string());
    let (min, max) = (i64::MIN.to_string(), i64::MAX.to_string());
    let time = "2026-01-02 03:04:05";
    assert_eq!(row, ["6", "-1", "-1", &min, &max, "12345.67", "3", &sum, &longer, time], "{}", client.name);
    let select = client.session.prepare("SELECT v, x, NULL FROM k WHERE b = ?").await.unwrap();
    assert_eq!((select.params, select.columns), (1, 3), "{}", client.name);
    for param in [Param::Int(i64::MAX), Param::Text(max.clone().into_bytes()), Param::Int(i64::MIN)] {
        let answer = client.session.execute(select, std::slice::from_ref(&param)).await.unwrap();
        assert_eq!(answer.rows, 3, "{}: {param:?}", client.name);
    }
}

async fn large(client: &mut TestClient, root: &TestServer) {
    let answer = client.run(&format!("SELECT repeat('x', {BIG}), 1")).await;
    assert!(answer.rows == 1 && answer.bytes > BIG as u64, "{}: {answer:?}", client.name);
    let kept = client.row(&format!("SELECT repeat('x', {KEPT})")).await;
    assert_eq!(kept[0].len(), KEPT, "{}", client.name);
    // A session that has refused an answer is unusable, so this needs its own session.
    root.connect().await.refuses_large_answer(&format!("SELECT repeat('x', {BIG})")).await;
    let up = format!("SELECT length('{}')", "z".repeat(BIG));
    assert_eq!(client.number(&up).await, BIG as i64, "{}", client.name);
    let length = client.session.prepare("SELECT 1 WHERE length(?) = ?").await.unwrap();
    let params = [Param::Text(vec![b'q'; BIG]), Param::Int(BIG as i64)];
    assert_eq!(client.session.execute(length, &params).await.unwrap().rows, 1, "{}", client.name);
}

async fn copy(client: &mut TestClient) {
    client.run("CREATE TABLE c (a int, b text)").await;
    let rows: String = (0..5_000).map(|row| format!("{row}\trow {row}\n")).collect();
    let AnySession::Postgres(session) = &mut client.session else { panic!("another driver") };
    let chunks = rows.as_bytes().chunks(997);
    assert_eq!(session.copy_in("COPY c FROM STDIN", chunks).await.unwrap().affected, 5_000);
    let error = session.copy_in("COPY c FROM STDIN", ["no number\tx\n"]).await.expect_err("no number");
    assert_eq!((error.class, error.code.as_str()), (Class::Refused, "22P02"), "{}", client.name);
    assert_eq!(client.number("SELECT SUM(a) FROM c").await, 2_500 * 4_999, "{}", client.name);
    assert_eq!(client.run("COPY c TO STDOUT").await.rows, 5_000, "{}", client.name);
    // The server returns more messages than the sockets' buffers can store, while the client is
    // still sending rows.
    client
        .run(
            "CREATE FUNCTION noisy() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN RAISE NOTICE ''%'', repeat(''n'', 2000); RETURN NEW; END'; \
         CREATE TRIGGER noisy BEFORE INSERT ON c FOR EACH ROW EXECUTE PROCEDURE noisy()",
        )
        .await;
    let AnySession::Postgres(session) = &mut client.session else { panic!("another driver") };
    let long: String = (0..5_000).map(|row| format!("{row}\t{}\n", "x".repeat(500))).collect();
    let copying = session.copy_in("COPY c FROM STDIN", [long]);
    let copied = tokio::time::timeout(Duration::from_secs(60), copying).await.expect("no zero_rate").unwrap();
    assert_eq!((copied.affected, copied.warnings), (5_000, 5_000), "{}", client.name);
}

async fn errors(client: &mut TestClient, root: &TestServer) {
    client.fails("SELEC 1", Class::Fatal, "42601").await;
    client.fails("SELECT * FROM nonesuch", Class::Fatal, "42P01").await;
    client.fails("INSERT INTO t (id) VALUES (1)", Class::Refused, "23505").await;
    client.fails("SELECT 1 / (2 - g) FROM generate_series(1, 9) g", Class::Refused, "22012").await;
    client.fails("COPY t (b) FROM STDIN", Class::Refused, "copy").await;
    let mut other = root.connect().await;
    other.run("SET lock_timeout = '20ms'").await;
    client.run("BEGIN").await;
    client.run("UPDATE t SET a = 5 WHERE id = 1").await;
    other.fails("UPDATE t SET a = 6 WHERE id = 1", Class::Retry, "55P03").await;
    other.run("SET lock_timeout = 0").await;
    other.run("BEGIN").await;
    other.run("UPDATE t SET a = 6 WHERE id = 2").await;
    let (first, second) = tokio::join!(client.session.query(b"UPDATE t SET a = 7 WHERE id = 2"), async {
        let outcome = other.session.query(b"UPDATE t SET a = 8 WHERE id = 1").await;
        other.run("ROLLBACK").await;
        outcome
    });
    let lost = [first, second].into_iter().find_map(Result::err).expect("one of them loses");
    assert_eq!((lost.class, lost.code.as_str()), (Class::Retry, "40P01"), "{}: {lost}", client.name);
    client.run("ROLLBACK").await;
    let AnySession::Postgres(session) = &other.session else { panic!("another driver") };
    client.run(&format!("SELECT pg_terminate_backend({})", session.connection_id())).await;
    other.fails("SELECT 1", Class::Lost, "57P01").await;
    assert_eq!(client.number("SELECT 7").await, 7, "{}", client.name);
}

/// Each statement is prepared once, however often it runs, and ends with its session.
async fn statements_end_with_their_session(client: &mut TestClient, root: &TestServer) {
    client.wait_for_number(OTHERS, 0).await;
    for closes in [true, false] {
        let mut other = root.connect().await;
        for sql in ["SELECT a FROM t WHERE id = ?", "UPDATE t SET a = ? WHERE id = 2"] {
            let statement = other.session.prepare(sql).await.unwrap();
            for value in 0..20 {
                other.session.execute(statement, &[Param::Int(value)]).await.unwrap();
            }
        }
        let known =
            "SELECT count(*), count(DISTINCT statement), bool_or(from_sql) FROM pg_prepared_statements";
        assert_eq!(other.row(known).await, ["2", "2", "f"], "{}", other.name);
        if closes {
            other.session.close().await;
        } else {
            drop(other);
        }
        client.wait_for_number(OTHERS, 0).await;
    }
}

async fn logins(client: &mut TestClient, server: &Server) {
    let has_scram = client.number("SELECT current_setting('server_version_num')").await >= 100_000;
    let methods: &[(&str, &str)] = if has_scram {
        &[("md5", "md5"), ("scram-sha-256", "scram-sha-256"), ("md5", "scram-sha-256")]
    } else {
        &[("md5", "md5")]
    };
    let mut rules = "local all postgres trust\n".to_owned();
    for (number, (method, encryption)) in methods.iter().enumerate() {
        rules.push_str(&format!("local all user{number} {method}\n"));
        if has_scram {
            client.run(&format!("SET password_encryption = '{encryption}'")).await;
        }
        client.run(&format!("CREATE ROLE user{number} LOGIN PASSWORD 'pässword'")).await;
        let stored = if *encryption == "md5" { "md5%" } else { "SCRAM-SHA-256$%" };
        let sql = format!(
            "SELECT count(*) FROM pg_authid WHERE rolname = 'user{number}' AND rolpassword LIKE '{stored}'"
        );
        assert_eq!(client.number(&sql).await, 1, "{}: {encryption}", client.name);
    }
    std::fs::write(server.data_dir.join("pg_hba.conf"), rules).unwrap();
    client.run("SELECT pg_reload_conf()").await;
    let folder = server.options(Some("postgres")).address;
    for (number, (method, encryption)) in methods.iter().enumerate() {
        let options = Options::new(folder.clone(), format!("user{number}")).with_database("postgres");
        let login = |word: &str| {
            let name = format!("{} {method} of {encryption}", client.name);
            TestServer::postgres(&name, options.clone().with_password(Secret::new(word)))
        };
        // The server applies the new rules only some time after its answer.
        tokio::time::sleep(Duration::from_millis(if number == 0 { 200 } else { 0 })).await;
        let mut session = login("pässword").connect().await;
        assert_eq!(session.row("SELECT current_user").await, [format!("user{number}")]);
        session.session.close().await;
        for wrong in ["wrong", ""] {
            assert_eq!(
                login(wrong).refusal().await,
                (Class::Fatal, "28P01".to_owned()),
                "{method} {encryption}"
            );
        }
    }
}
