//! Tests of PostgreSQL sessions with real servers: logins, statements, COPY, error classes and lost
//! servers.

use std::path::PathBuf;

use dbdyno_db::postgres::{Options, PostgresSession, Secret};
use dbdyno_db::{Answer, Class, Param, Session, first_i64};

use crate::mysql_server::bases::{found, required};
use crate::postgres_server::Server;
use crate::shared;

const BIG: usize = 20_000_000;

/// Length of a value that is kept because it is just below the limit.
const KEPT: usize = 8_000_000;

#[tokio::test]
async fn postgres_is_spoken() {
    let server = shared::postgres().await;
    check(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn postgres_9_6_is_spoken() {
    check_all(required("pg-9.6.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn postgres_15_and_16_are_spoken() {
    check_all([required("pg-15."), required("pg-16.")].concat()).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn postgres_18_is_spoken() {
    check_all(required("pg-18.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn every_further_line_is_spoken() {
    for prefix in ["pg-10.", "pg-11.", "pg-12.", "pg-13.", "pg-14.", "pg-17"] {
        check_all(required(prefix)).await;
    }
    // These are versions before their release. They are tested only if someone has installed them.
    check_all([found("pg-18-"), found("pg-19")].concat()).await;
}

async fn check_all(bases: Vec<PathBuf>) {
    for base in bases {
        let mut server = Server::start(&base).await;
        let root = check(&server).await;
        check_killed_server(&mut server, root).await;
    }
}

/// Runs all checks that leave the server running. They use their own users, and tables in the
/// server's first database.
async fn check(server: &Server) -> PostgresSession {
    let mut root = connected(&server.root()).await;
    check_greeting(server, &mut root).await;
    check_text(&mut root).await;
    check_prepared(&mut root).await;
    check_types(&mut root).await;
    check_large(&mut root).await;
    check_errors(&mut root).await;
    check_copy(&mut root).await;
    check_deadlock(server, &mut root).await;
    check_logins(server, &mut root).await;
    check_refused_logins(server).await;
    check_terminated(server, &mut root).await;
    root
}

async fn connected(options: &Options) -> PostgresSession {
    PostgresSession::connect(options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn class_of(session: &mut PostgresSession, sql: &str) -> (Class, String) {
    let error = session.query(sql.as_bytes()).await.expect_err(sql);
    (error.class, error.code)
}

async fn number(session: &mut PostgresSession, sql: &str) -> i64 {
    first_i64(&session.rows(sql).await.expect(sql)).expect("one number")
}

async fn run(session: &mut PostgresSession, sql: &str) -> Answer {
    session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"))
}

fn major(server: &Server) -> u32 {
    let version = server.name.strip_prefix("pg-").expect("pg-VERSION");
    version.split(['.', '-']).next().and_then(|word| word.parse().ok()).expect("a number")
}

async fn check_greeting(server: &Server, root: &mut PostgresSession) {
    let version = server.name.strip_prefix("pg-").expect("pg-VERSION").trim_end_matches("-debian");
    let version = version.trim_end_matches("-sid");
    assert!(
        root.server_version().starts_with(version),
        "{} greets as {}",
        server.name,
        root.server_version()
    );
    assert_eq!(number(root, "SELECT pg_backend_pid()").await, i64::from(root.connection_id()));
    let settings = root.rows("SELECT current_setting('client_encoding'), current_database()").await;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(settings.expect("settings"), [[text("UTF8"), text("postgres")]]);
    let another = root.another().await.expect("the same login");
    assert_ne!(another.connection_id(), root.connection_id());
    another.close().await;
}

async fn check_text(root: &mut PostgresSession) {
    run(root, "CREATE TABLE t (id bigserial primary key, a int, b varchar(200))").await;
    let inserted = run(root, "INSERT INTO t (a, b) VALUES (1, 'one'), (2.00, NULL), (3, '')").await;
    assert_eq!((inserted.rows, inserted.affected, inserted.warnings), (0, 3, 0));
    let selected = run(root, "SELECT * FROM t").await;
    assert_eq!((selected.rows, selected.affected), (3, 0));
    assert!(selected.bytes > 100, "{selected:?}");
    assert_eq!(run(root, "SELECT * FROM t WHERE id < 0").await.rows, 0);
    assert_eq!(run(root, "UPDATE t SET a = a + 1 WHERE id < 3").await.affected, 2);
    assert_eq!(run(root, "DROP TABLE IF EXISTS nonesuch").await.warnings, 1);
    assert_eq!(run(root, "").await, Answer { bytes: 11, ..Answer::default() });
    let cells = root.rows("SELECT a, b, 'ü' FROM t ORDER BY id").await.expect("three rows");
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        cells,
        [[text("2"), text("one"), text("ü")], [text("3"), None, text("ü")], [text("3"), text(""), text("ü")]]
    );
    assert!(root.rows("SET work_mem = '4MB'").await.expect("no rows").is_empty());
    let several = run(root, "SELECT 1; SELECT 2 UNION SELECT 3; DELETE FROM t WHERE id = 3").await;
    assert_eq!((several.rows, several.affected), (3, 1));
    assert_eq!(root.rows("SELECT 1; SELECT 2 UNION SELECT 3").await.expect("the first").len(), 1);
    run(root, "ALTER SEQUENCE t_id_seq RESTART WITH 3000000000").await;
    run(root, "INSERT INTO t (a) VALUES (9)").await;
    assert_eq!(number(root, "SELECT MAX(id) FROM t").await, 3_000_000_000);
}

async fn check_prepared(root: &mut PostgresSession) {
    let point = root.prepare("SELECT a, b, NULL, '?' FROM t WHERE id = ?").await.expect("a statement");
    assert_eq!((point.params, point.columns), (1, 4));
    for (id, rows) in [(1, 1), (2, 1), (3_000_000_000, 1), (-1, 0), (i64::MIN, 0)] {
        let answer = root.execute(point, &[Param::Int(id)]).await.expect("a point select");
        assert_eq!(answer.rows, rows, "{id}");
    }
    for param in [Param::Text(b"2".to_vec()), Param::Text(b"3000000000".to_vec()), Param::Int(2)] {
        let answer = root.execute(point, std::slice::from_ref(&param)).await.expect("a row");
        assert_eq!(answer.rows, 1, "{param:?}");
    }
    run(root, "CREATE TABLE p (a bigint primary key, b varchar(300), c int)").await;
    let rows = vec!["(?, ?, ?)"; 200].join(", ");
    let insert = root.prepare(&format!("INSERT INTO p VALUES {rows}")).await.expect("600 parameters");
    assert_eq!((insert.params, insert.columns), (600, 0));
    for round in 0..3_i64 {
        let params: Vec<Param> = (0..200)
            .flat_map(|row| {
                let text = format!("{row:0>width$}", width = (row % 260 + 60) as usize);
                [Param::Int((round << 40) + row), Param::Text(text.into_bytes()), Param::Int(-row)]
            })
            .collect();
        assert_eq!(root.execute(insert, &params).await.expect("200 rows").affected, 200);
        let error = root.execute(insert, &params).await.expect_err("the same keys again");
        assert_eq!((error.class, error.code.as_str()), (Class::Refused, "23505"));
    }
    let sums = root.rows("SELECT COUNT(*), SUM(c), MAX(a), SUM(b::numeric) FROM p").await.expect("sums");
    let reported: Vec<i64> =
        sums[0].iter().map(|cell| cell.as_deref().expect("a sum").parse().expect("a number")).collect();
    assert_eq!(reported, [600, -59_700, (2_i64 << 40) + 199, 59_700]);
    let delete = root
        .prepare("DELETE FROM p WHERE a IN (SELECT a FROM p WHERE a >= ? ORDER BY a LIMIT ?)")
        .await
        .expect("a statement");
    let answer = root.execute(delete, &[Param::Int(1), Param::Int(50)]).await.expect("a delete");
    assert_eq!(answer.affected, 50);
    assert_eq!(number(root, "SELECT MIN(a) FROM p WHERE a > 0").await, 51);
    let all = root.prepare("SELECT a FROM p").await.expect("no parameters");
    assert_eq!(root.execute(all, &[]).await.expect("all rows").rows, 550);
    let named = number(root, "SELECT COUNT(*) FROM pg_prepared_statements").await;
    assert_eq!(named, 4, "each statement is parsed once");
    let wrong = root.execute(point, &[]).await.expect_err("a parameter is missing");
    assert_eq!(wrong.class, Class::Fatal);
    assert_eq!(root.prepare("SELEC ?").await.expect_err("no SQL").code, "42601");
    let most = root.prepare(&format!("SELECT {}", vec!["?::int"; 1600].join(","))).await.expect("many");
    let params = vec![Param::Int(7); 1600];
    assert_eq!(root.execute(most, &params).await.expect("a row").rows, 1);
}

/// Checks that each type accepts the workloads' values and rejects values outside its range.
async fn check_types(root: &mut PostgresSession) {
    run(
        root,
        "CREATE TABLE k (i2 smallint, i4 int, i8 bigint, n numeric, f float8, v varchar(30), ts timestamp)",
    )
    .await;
    let insert = root.prepare("INSERT INTO k VALUES (?, ?, ?, ?, ?, ?, ?)").await.expect("a statement");
    let time = Param::Text(b"2026-01-02 03:04:05".to_vec());
    let [minus, max] = [Param::Int(-1), Param::Int(i64::MAX)];
    let params =
        [minus.clone(), minus.clone(), max.clone(), max.clone(), minus.clone(), Param::Int(12), time.clone()];
    root.execute(insert, &params).await.expect("a row");
    let row = root.rows("SELECT i2, i4, i8, n, f, v, ts FROM k").await.expect("a row");
    let row: Vec<&str> = row[0].iter().map(|cell| cell.as_deref().expect("a value")).collect();
    let max_text = "9223372036854775807";
    assert_eq!(row, ["-1", "-1", max_text, max_text, "-1", "12", "2026-01-02 03:04:05"]);
    for (place, value) in [(0, 40_000), (1, 3_000_000_000)] {
        let mut params = params.clone();
        params[place] = Param::Int(value);
        let error = root.execute(insert, &params).await.expect_err("out of range");
        assert_eq!((error.class, error.code.as_str()), (Class::Refused, "22003"), "{value}");
    }
    // The server treats a parameter without a type as text, and a number is sent as its digits.
    let text = root.prepare("SELECT ? || 'x'").await.expect("a statement");
    assert_eq!(root.execute(text, &[Param::Int(5)]).await.expect("a row").rows, 1);
}

async fn check_large(root: &mut PostgresSession) {
    let big = run(root, &format!("SELECT repeat('x', {BIG}), id FROM t WHERE id < 3")).await;
    assert_eq!(big.rows, 2);
    assert!(big.bytes > 2 * BIG as u64 && big.bytes < 2 * BIG as u64 + 1000, "{big:?}");
    let cells = root.rows(&format!("SELECT repeat('x', {KEPT})")).await.expect("a large row");
    assert_eq!(cells[0][0].as_ref().map(String::len), Some(KEPT));
    let text = "z".repeat(BIG);
    assert_eq!(number(root, &format!("SELECT length('{text}')")).await, BIG as i64);
    let length = root.prepare("SELECT 1 WHERE length(?) = ?").await.expect("a statement");
    let params = [Param::Text(text.into_bytes()), Param::Int(BIG as i64)];
    assert_eq!(root.execute(length, &params).await.expect("a large parameter").rows, 1);
    assert_eq!(run(root, "SELECT 1").await.rows, 1);
}

async fn check_errors(root: &mut PostgresSession) {
    for (sql, class, code) in [
        ("SELEC 1", Class::Fatal, "42601"),
        ("SELECT * FROM nonesuch", Class::Fatal, "42P01"),
        ("SELECT nonesuch FROM t", Class::Fatal, "42703"),
        ("INSERT INTO t (id) VALUES (1)", Class::Refused, "23505"),
        ("SELECT 1 / 0", Class::Refused, "22012"),
        ("SELECT 1 / (2 - g) FROM generate_series(1, 9) g", Class::Refused, "22012"),
        ("COPY t (b) FROM STDIN", Class::Refused, "copy"),
    ] {
        assert_eq!(class_of(root, sql).await, (class, code.to_owned()), "{sql}");
        assert_eq!(number(root, "SELECT 7").await, 7, "the session goes on after {sql}");
    }
    run(root, "SET statement_timeout = 50").await;
    assert_eq!(class_of(root, "SELECT pg_sleep(20)").await, (Class::Refused, "57014".to_owned()));
    run(root, "SET statement_timeout = 0").await;
    assert_eq!(run(root, "COPY t TO STDOUT").await.rows, 3);
    let long = format!("SELECT '{}'::int", "x".repeat(1_000_000));
    let error = root.query(long.as_bytes()).await.expect_err("no number");
    assert!(error.message.len() < 1000, "{} bytes", error.message.len());
    // The server checks this constraint only at the commit, after it has sent the command tag.
    run(root, "CREATE TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)").await;
    let insert = root.prepare("INSERT INTO late VALUES (?), (?)").await.expect("a statement");
    let error = root.execute(insert, &[Param::Int(1), Param::Int(1)]).await.expect_err("twice the same");
    assert_eq!((error.class, error.code.as_str()), (Class::Refused, "23505"));
    assert_eq!(number(root, "SELECT COUNT(*) FROM late").await, 0);
    let copy = root.prepare("COPY t (b) FROM STDIN").await;
    if let Ok(copy) = copy {
        assert_eq!(root.execute(copy, &[]).await.expect_err("no rows").code, "copy");
    }
    assert_eq!(number(root, "SELECT 8").await, 8);
}

async fn check_copy(root: &mut PostgresSession) {
    run(root, "CREATE TABLE c (a int, b text)").await;
    let lines: Vec<String> = (0..30_000).map(|row| format!("{row}\trow {row}\n")).collect();
    let all = lines.concat();
    // The chunks end inside rows, and some are longer than a batch.
    let chunks: Vec<&[u8]> = all.as_bytes().chunks(9_973).chain([b"".as_slice()]).collect();
    let copied = root.copy_in("COPY c FROM STDIN", chunks).await.expect("rows");
    assert_eq!(copied.affected, 30_000);
    assert_eq!(root.copy_in("COPY c FROM STDIN", [&all]).await.expect("rows").affected, 30_000);
    assert_eq!(number(root, "SELECT SUM(a) FROM c").await, 30_000 * 29_999);
    let none: [&[u8]; 0] = [];
    assert_eq!(root.copy_in("COPY c FROM STDIN", none).await.expect("no rows").affected, 0);
    // The server refuses the first row while most of them are still to be sent.
    let wrong = vec!["no number\tx\n"; 1_000_000].concat();
    let error = root.copy_in("COPY c FROM STDIN", [wrong]).await.expect_err("no number");
    assert_eq!((error.class, error.code.as_str()), (Class::Refused, "22P02"));
    assert_eq!(root.copy_in("SELECT 1", ["x"]).await.expect_err("no COPY").class, Class::Refused);
    assert_eq!(number(root, "SELECT COUNT(*) FROM c").await, 60_000);
}

async fn check_deadlock(server: &Server, root: &mut PostgresSession) {
    let mut other = connected(&server.root()).await;
    run(root, "BEGIN").await;
    run(&mut other, "BEGIN").await;
    run(root, "UPDATE t SET a = 1 WHERE id = 1").await;
    run(&mut other, "UPDATE t SET a = 1 WHERE id = 2").await;
    let (first, second) = tokio::join!(root.query(b"UPDATE t SET a = 2 WHERE id = 2"), async {
        let outcome = other.query(b"UPDATE t SET a = 2 WHERE id = 1").await;
        other.query(b"ROLLBACK").await.expect("a rollback");
        outcome
    });
    let failed = [first, second].into_iter().find_map(Result::err).expect("one of them loses");
    assert_eq!((failed.class, failed.code.as_str()), (Class::Retry, "40P01"), "{failed}");
    run(root, "ROLLBACK").await;
    other.close().await;
}

async fn check_logins(server: &Server, root: &mut PostgresSession) {
    let has_scram = major(server) >= 10;
    for (user, encryption) in [("clear", "md5"), ("old", "md5"), ("new", "scram-sha-256")] {
        if has_scram {
            run(root, &format!("SET password_encryption = '{encryption}'")).await;
        }
        run(root, &format!("CREATE ROLE {user} LOGIN PASSWORD 'pässword of {user}'")).await;
    }
    for user in ["old", "new", "clear"] {
        let password = Secret::new(format!("pässword of {user}"));
        let socket = server.socket(user).with_password(password.clone()).with_database("postgres");
        let tcp = server.tcp(user).with_password(password).with_database("postgres");
        let clear = user == "clear";
        // The socket requires SCRAM, which does not work with a password that is stored as md5.
        let ways = if has_scram && user == "old" { vec![tcp.clone()] } else { vec![socket, tcp.clone()] };
        for options in ways.iter().filter(|options| !clear || **options != tcp) {
            let mut session = connected(options).await;
            assert_eq!(number(&mut session, "SELECT 5").await, 5);
            session.close().await;
            for password in ["wrong", ""] {
                let wrong = options.clone().with_password(Secret::new(password));
                let error = PostgresSession::connect(&wrong).await.expect_err("a wrong password");
                assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "28P01"), "{error}");
                assert!(!error.to_string().contains("wrong"), "{error}");
            }
        }
    }
    let clear = server.tcp("clear").with_password(Secret::new("pässword of clear")).with_database("postgres");
    let error = PostgresSession::connect(&clear).await.expect_err("no clear text over TCP");
    assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "login"), "{error}");
}

async fn check_refused_logins(server: &Server) {
    let nonesuch = server.root().with_database("nonesuch");
    let error = PostgresSession::connect(&nonesuch).await.expect_err("no database");
    assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "3D000"), "{error}");
    assert!(error.to_string().contains("nonesuch"), "{error}");
    let error = PostgresSession::connect(&server.tcp("postgres")).await.expect_err("no password");
    assert_eq!(error.class, Class::Fatal, "{error}");
    let absent = Options::socket("/nonesuch/.s.PGSQL.1", "postgres");
    let error = PostgresSession::connect(&absent).await.expect_err("no server");
    assert_eq!((error.class, error.code.as_str()), (Class::Lost, "io"), "{error}");
    let mut sessions = Vec::new();
    let refused = loop {
        match PostgresSession::connect(&server.root()).await {
            Ok(session) => sessions.push(session),
            Err(error) => break error,
        }
        assert!(sessions.len() < 100, "the server has a limit of 30");
    };
    assert_eq!((refused.class, refused.code.as_str()), (Class::Refused, "53300"), "{refused}");
    for session in sessions {
        session.close().await;
    }
}

async fn check_terminated(server: &Server, root: &mut PostgresSession) {
    let mut victim = connected(&server.root()).await;
    run(root, &format!("SELECT pg_terminate_backend({})", victim.connection_id())).await;
    let error = victim.query(b"SELECT 1").await.expect_err("a terminated session");
    assert_eq!((error.class, error.code.as_str()), (Class::Lost, "57P01"), "{error}");
    let error = victim.query(b"SELECT 1").await.expect_err("still terminated");
    assert_eq!(error.class, Class::Lost, "{error}");
}

async fn check_killed_server(server: &mut Server, mut root: PostgresSession) {
    let mut waiting = connected(&server.root()).await;
    let pid = waiting.connection_id();
    let sleeper = tokio::task::LocalSet::new();
    let sleeping = sleeper.spawn_local(async move { waiting.query(b"SELECT pg_sleep(60)").await });
    sleeper
        .run_until(async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            server.kill();
            // A session's process survives the first process until its statement ends.
            let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            assert!(killed.is_ok());
            let error = sleeping.await.expect("no panic").expect_err("killed in mid-statement");
            assert_eq!(error.class, Class::Lost, "{error}");
        })
        .await;
    let error = PostgresSession::connect(&server.root()).await.expect_err("a killed server");
    assert_eq!(error.class, Class::Lost, "{error}");
    let mut lost = false;
    for _ in 0..100 {
        lost = root.query(b"SELECT 1").await.is_err_and(|error| error.class == Class::Lost);
        if lost {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(lost, "the session's process ends after the server's first one");
}
