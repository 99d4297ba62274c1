//! Tests of MySQL sessions with real servers: logins, text and prepared statements, error classes
//! and lost servers.

mod sha2;

use dbdyno_db::mysql::{ConnectionSettings, MysqlSession, Options, Secret, capabilities};
use dbdyno_db::{Class, DatabaseAddress, DatabaseServer, Param, Session, first_i64};
use dbdyno_model::ColumnDefinitions;

use crate::mysql_server::Server;
use crate::mysql_server::bases::required;
use crate::shared;

const BIG: usize = 20_000_000;

/// Length of a value that is kept because it is just below the limit.
const KEPT: usize = 8_000_000;

#[tokio::test]
async fn mariadb_is_spoken() {
    let server = shared::mariadb().await;
    check(&server).await;
}

#[tokio::test]
async fn mysql_is_spoken() {
    let server = shared::mysql().await;
    check(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_10_1_is_spoken() {
    check_all(required("mariadb-10.1.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_10_11_is_spoken() {
    check_all(required("mariadb-10.11.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mysql_5_6_is_spoken() {
    check_all(required("mysql-5.6.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mysql_8_0_is_spoken() {
    check_all(required("mysql-8.0.")).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn every_further_line_is_spoken() {
    let mysql = ["mysql-5.5.", "mysql-5.7.", "mysql-9"];
    let mariadb = ["mariadb-10.2.", "mariadb-10.5.", "mariadb-11.4.", "mariadb-11.8"];
    for prefix in mysql.into_iter().chain(mariadb) {
        check_all(required(prefix)).await;
    }
}

async fn check_all(bases: Vec<std::path::PathBuf>) {
    for base in bases {
        let mut server = Server::start(&base).await;
        let root = check(&server).await;
        check_killed_server(&mut server, root).await;
    }
}

/// Runs all checks that leave the server running. They use their own databases and users.
async fn check(server: &Server) -> MysqlSession {
    let mut root = connected(&server.root()).await;
    check_greeting(server, &mut root).await;
    check_text(&mut root).await;
    check_prepared(&mut root).await;
    check_column_definitions(server, &mut root).await;
    check_protocol_options(server, &root).await;
    check_large(&mut root).await;
    check_errors(&mut root).await;
    check_too_large(server).await;
    check_results_in_a_row(&mut root).await;
    check_client_charset(server).await;
    check_charset_of_loads(server, &mut root).await;
    check_native_login(server, &mut root).await;
    sha2::check_logins(server, &mut root).await;
    check_refused_logins(server).await;
    check_killed_connection(server, &mut root).await;
    root
}

async fn connected(options: &Options) -> MysqlSession {
    MysqlSession::connect(options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn class_of(session: &mut MysqlSession, sql: &str) -> (Class, String) {
    let error = session.query(sql.as_bytes()).await.expect_err(sql);
    (error.class, error.code)
}

async fn number(session: &mut MysqlSession, sql: &str) -> i64 {
    first_i64(&session.rows(sql).await.expect(sql)).expect("one number")
}

async fn run(session: &mut MysqlSession, sql: &str) -> dbdyno_db::Answer {
    session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn check_greeting(server: &Server, root: &mut MysqlSession) {
    let (product, version) = server.name.split_once('-').expect("product-version");
    // The folder's name has the name of the Debian suite after the version.
    let version = version.split('-').next().unwrap_or(version);
    assert!(
        root.server_version().starts_with(version),
        "{} greets as {}",
        server.name,
        root.server_version()
    );
    assert_eq!(root.is_mariadb(), product == "mariadb");
    assert_eq!(number(root, "SELECT CONNECTION_ID()").await, i64::from(root.connection_id()));
    assert_eq!(number(root, "SELECT @@autocommit").await, 1);
    let charset = root.rows("SELECT @@character_set_client, @@character_set_results").await.expect("charset");
    assert_eq!(charset, [[Some("utf8mb4".to_owned()), Some("utf8mb4".to_owned())]]);
}

async fn check_text(root: &mut MysqlSession) {
    run(root, "CREATE DATABASE bench").await;
    run(root, "USE bench").await;
    run(
        root,
        "CREATE TABLE t (id bigint not null auto_increment primary key, a int, b varchar(200)) ENGINE=InnoDB",
    )
    .await;
    let inserted = run(root, "INSERT INTO t (a, b) VALUES (1, 'one'), (2, NULL), (3, '')").await;
    assert_eq!((inserted.rows, inserted.affected, inserted.warnings), (0, 3, 0));
    let selected = run(root, "SELECT * FROM t").await;
    assert_eq!((selected.rows, selected.affected), (3, 0));
    assert!(selected.bytes > 100, "{selected:?}");
    assert_eq!(run(root, "SELECT * FROM t WHERE id < 0").await.rows, 0);
    assert_eq!(run(root, "UPDATE t SET a = a + 1 WHERE id < 3").await.affected, 2);
    assert_eq!(run(root, "DROP TABLE IF EXISTS nonesuch").await.warnings, 1);
    let cells = root.rows("SELECT a, b, 'ü' FROM t ORDER BY id").await.expect("three rows");
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        cells,
        [[text("2"), text("one"), text("ü")], [text("3"), None, text("ü")], [text("3"), text(""), text("ü")]]
    );
    assert!(root.rows("DO 1").await.expect("no rows").is_empty());
    run(root, "ALTER TABLE t AUTO_INCREMENT = 3000000000").await;
    run(root, "INSERT INTO t (a) VALUES (9)").await;
    assert_eq!(number(root, "SELECT MAX(id) FROM t").await, 3_000_000_000);
}

async fn check_prepared(root: &mut MysqlSession) {
    let point = root.prepare("SELECT a, b, NULL FROM t WHERE id = ?").await.expect("a statement");
    assert_eq!((point.params, point.columns), (1, 3));
    for (id, rows) in [(1, 1), (2, 1), (3_000_000_000, 1), (-1, 0), (i64::MIN, 0)] {
        let answer = root.execute(point, &[Param::Int(id)]).await.expect("a point select");
        assert_eq!(answer.rows, rows, "{id}");
    }
    // The parameter's type changes and changes back. The client must send the type each time.
    for param in [Param::Text(b"2".to_vec()), Param::Text(b"3000000000".to_vec()), Param::Int(2)] {
        assert_eq!(
            root.execute(point, std::slice::from_ref(&param)).await.expect("a row").rows,
            1,
            "{param:?}"
        );
    }
    run(root, "CREATE TABLE p (a bigint primary key, b varchar(300), c bigint) ENGINE=InnoDB").await;
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
        assert_eq!((error.class, error.code.as_str()), (Class::Refused, "1062"));
    }
    let sums = root.rows("SELECT COUNT(*), SUM(c), MAX(a), SUM(b + 0) FROM p").await.expect("sums");
    let reported: Vec<f64> =
        sums[0].iter().map(|cell| cell.as_deref().expect("a sum").parse().expect("a number")).collect();
    assert_eq!(reported, [600.0, -59_700.0, ((2_i64 << 40) + 199) as f64, 59_700.0]);
    let all = root.prepare("SELECT * FROM p").await.expect("no parameters");
    assert_eq!(root.execute(all, &[]).await.expect("all rows").rows, 600);
    run(root, "ALTER TABLE p ADD COLUMN d int").await;
    assert_eq!(root.execute(all, &[]).await.expect("all rows after a change of the table").rows, 600);
    let wrong = root.execute(point, &[]).await.expect_err("a parameter is missing");
    assert_eq!(wrong.class, Class::Fatal);
    assert_eq!(root.prepare("SELEC ?").await.expect_err("no SQL").code, "1064");
}

/// Checks rows and statements that need more than one packet of 16 MiB.
async fn check_large(root: &mut MysqlSession) {
    let big = run(root, &format!("SELECT REPEAT('x', {BIG}), id FROM t WHERE id < 3")).await;
    assert_eq!(big.rows, 2);
    assert!(big.bytes > 2 * BIG as u64 && big.bytes < 2 * BIG as u64 + 1000, "{big:?}");
    let cells = root.rows(&format!("SELECT REPEAT('x', {KEPT})")).await.expect("a large row");
    assert_eq!(cells[0][0].as_ref().map(String::len), Some(KEPT));
    let repeat = root.prepare("SELECT REPEAT('x', ?), 1").await.expect("a statement");
    let answer = root.execute(repeat, &[Param::Int(BIG as i64)]).await.expect("a large binary row");
    assert!(answer.rows == 1 && answer.bytes > BIG as u64, "{answer:?}");
    // The command byte and the text fill one packet exactly, or have one byte less or more.
    for length in [0xff_ffff - 1, 0xff_ffff, 0xff_ffff + 1, BIG] {
        let text = "z".repeat(length - 1 - "SELECT LENGTH('')".len());
        assert_eq!(number(root, &format!("SELECT LENGTH('{text}')")).await, text.len() as i64);
    }
    let length = root.prepare("SELECT LENGTH(?) = ?").await.expect("a statement");
    let params = [Param::Text(vec![b'q'; BIG]), Param::Int(BIG as i64)];
    assert_eq!(root.execute(length, &params).await.expect("a large parameter").rows, 1);
    assert_eq!(run(root, "SELECT 1").await.rows, 1);
}

async fn check_errors(root: &mut MysqlSession) {
    for (sql, class, code) in [
        ("SELEC 1", Class::Fatal, "1064"),
        ("SELECT * FROM nonesuch", Class::Fatal, "1146"),
        ("SELECT nonesuch FROM t", Class::Fatal, "1054"),
        ("USE nonesuch", Class::Fatal, "1049"),
        ("INSERT INTO t (id) VALUES (1)", Class::Refused, "1062"),
        ("", Class::Fatal, "1065"),
    ] {
        assert_eq!(class_of(root, sql).await, (class, code.to_owned()), "{sql}");
        assert_eq!(number(root, "SELECT 7").await, 7, "the session goes on after {sql}");
    }
    // The server refuses the statement, because the client does not offer local files.
    let (class, _) = class_of(root, "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t (b)").await;
    assert_eq!(class, Class::Refused);
    // This error comes after the first rows were sent.
    let late = "SELECT (SELECT id FROM t WHERE t.id <= s.id + 0 * SLEEP(0)) FROM t s ORDER BY NULL";
    assert_eq!(class_of(root, late).await, (Class::Refused, "1242".to_owned()));
    assert_eq!(number(root, "SELECT 8").await, 8);
}

/// Checks a statement that is larger than `max_allowed_packet`. The server reports an error and
/// closes the connection, perhaps while the client is still sending.
async fn check_too_large(server: &Server) {
    let mut session = connected(&server.root()).await;
    let sql = format!("SELECT LENGTH('{}')", "z".repeat(70 << 20));
    assert_eq!(class_of(&mut session, &sql).await, (Class::Fatal, "1153".to_owned()));
    assert_eq!(class_of(&mut session, "SELECT 1").await.0, Class::Lost);
}

/// Checks several results from one statement.
async fn check_results_in_a_row(root: &mut MysqlSession) {
    run(root, "CREATE PROCEDURE pr() BEGIN SELECT 1 UNION SELECT 2; SELECT 3; UPDATE t SET a = 77 WHERE id = 1; END").await;
    assert_eq!(run(root, "CALL pr()").await.rows, 3);
    assert_eq!(root.rows("CALL pr()").await.expect("the first result").len(), 2);
    let call = root.prepare("CALL pr()").await.expect("a statement");
    for _ in 0..2 {
        assert_eq!(root.execute(call, &[]).await.expect("a call").rows, 3);
    }
    assert_eq!(number(root, "SELECT 9").await, 9);
}

/// Checks column definitions. MariaDB from 10.6 leaves unchanged definitions out if the client
/// permits that.
async fn check_column_definitions(server: &Server, root: &mut MysqlSession) {
    let always = server.root().with_connection_settings(ConnectionSettings {
        column_definitions: ColumnDefinitions::Always,
        ..ConnectionSettings::default()
    });
    let mut reported_always = connected(&always).await;
    let version: Vec<u32> =
        root.server_version().split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let leaves_out = root.is_mariadb() && version >= vec![10, 6];
    assert_eq!(root.defines_columns_once(), leaves_out);
    assert!(!reported_always.defines_columns_once());
    run(root, "CREATE DATABASE described").await;
    run(root, "CREATE TABLE described.t (a INT, b INT)").await;
    run(root, "INSERT INTO described.t VALUES (1, 2), (3, 4)").await;
    let mut bytes = Vec::new();
    for session in [&mut *root, &mut reported_always] {
        let statement = session.prepare("SELECT * FROM described.t WHERE a > ?").await.expect("prepared");
        let mut answers = Vec::new();
        for _ in 0..2 {
            answers.push(session.execute(statement, &[Param::Int(0)]).await.expect("two rows"));
        }
        assert_eq!([answers[0].rows, answers[1].rows], [2, 2]);
        bytes.push(answers[1].bytes);
        // The same statement now has another column.
        run(session, "ALTER TABLE described.t ADD COLUMN c INT DEFAULT 7").await;
        for _ in 0..2 {
            assert_eq!(session.execute(statement, &[Param::Int(0)]).await.expect("two rows").rows, 2);
        }
        assert_eq!(
            session.rows("SELECT c FROM described.t LIMIT 1").await.expect("text")[0],
            [Some("7".to_owned())]
        );
        run(session, "ALTER TABLE described.t DROP COLUMN c").await;
    }
    // There are two definitions of nearly 40 bytes each.
    assert_eq!(bytes[0] + 70 < bytes[1], leaves_out, "{bytes:?}");
    reported_always.close().await;
}

/// Checks that a server accepts the protocol options that it supports, and that answers have the
/// same counts with all options, including answers that report changes of the session's state.
async fn check_protocol_options(server: &Server, root: &MysqlSession) {
    let version: Vec<u32> =
        root.server_version().split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let can = version >= if root.is_mariadb() { vec![10, 2] } else { vec![5, 7, 5] };
    let expected = match (can, root.is_mariadb()) {
        (true, true) => "SESSION_TRACK",
        (true, false) => "DEPRECATE_EOF, SESSION_TRACK",
        (false, _) => "none",
    };
    assert_eq!(root.protocol_options(), expected, "{}", root.server_version());
    for (deprecate_eof, session_track, name) in [
        (true, true, "DEPRECATE_EOF, SESSION_TRACK"),
        (true, false, "DEPRECATE_EOF"),
        (false, true, "SESSION_TRACK"),
        (false, false, "none"),
    ] {
        let (deprecate_eof, session_track) = (Some(deprecate_eof), Some(session_track));
        let connection_settings =
            ConnectionSettings { deprecate_eof, session_track, ..ConnectionSettings::default() };
        let mut session = connected(&server.root().with_connection_settings(connection_settings)).await;
        assert_eq!(session.protocol_options(), if can { name } else { "none" }, "{}", root.server_version());
        run(&mut session, "USE described").await;
        run(&mut session, "SET autocommit = 0, NAMES latin1").await;
        let statement = session.prepare("SELECT * FROM t WHERE a > ?").await.expect("prepared");
        for _ in 0..2 {
            assert_eq!(session.execute(statement, &[Param::Int(0)]).await.expect("two rows").rows, 2);
        }
        assert_eq!(run(&mut session, "SELECT a FROM t WHERE a > 1").await.rows, 1);
        assert_eq!(run(&mut session, "UPDATE t SET b = b + 1").await.affected, 2);
        run(&mut session, "ROLLBACK").await;
        session.close().await;
    }
}

async fn check_client_charset(server: &Server) {
    let with = |charset: &str| {
        server.root().with_connection_settings(ConnectionSettings {
            client_charset: Some(charset.to_owned()),
            ..ConnectionSettings::default()
        })
    };
    let mut latin1 = connected(&with("latin1")).await;
    let asked = "SELECT @@character_set_client, @@character_set_connection, @@character_set_results";
    let reported = latin1.rows(asked).await.expect("three names");
    assert_eq!(reported[0], vec![Some("latin1".to_owned()); 3]);
    assert_eq!(latin1.rows("SELECT REPEAT('ab', 2)").await.expect("text")[0], [Some("abab".to_owned())]);
    latin1.close().await;
    let error = MysqlSession::connect(&with("latin0")).await.expect_err("an unknown character set");
    assert_eq!(error.code, "1115", "{error}");
    assert!(error.message.contains("SHOW CHARACTER SET"), "{error}");
}

/// Checks loads with several character sets, because a table's character set may differ from the
/// database's.
async fn check_charset_of_loads(server: &Server, root: &mut MysqlSession) {
    for charset in ["latin1", "utf8mb4"] {
        run(root, "DROP TABLE IF EXISTS loaded").await;
        run(root, &format!("CREATE TABLE loaded (id INT, c CHAR(9)) DEFAULT CHARSET = {charset}")).await;
        let address = DatabaseAddress::Mysql(server.root().with_database("bench"));
        let database_server = DatabaseServer { address, capabilities: capabilities("innodb", true) };
        let mut loader = database_server.connect_to_load("insert", "loaded").await.expect("connected");
        let asked = "SELECT @@character_set_client, @@character_set_connection";
        let reported = loader.rows(asked).await.expect("two names");
        assert_eq!(reported[0], vec![Some(charset.to_owned()); 2]);
        loader.close().await;
    }
    run(root, "DROP TABLE loaded").await;
}

async fn check_native_login(server: &Server, root: &mut MysqlSession) {
    let version = root.server_version().to_owned();
    if !root.is_mariadb() && version.starts_with("9.") {
        return; // removed there
    }
    let how =
        if version.starts_with("8.") { "IDENTIFIED WITH mysql_native_password BY" } else { "IDENTIFIED BY" };
    for host in ["localhost", "127.0.0.1"] {
        run(root, &format!("CREATE USER 'native'@'{host}' {how} 'n-ative'")).await;
        run(root, &format!("GRANT ALL ON bench.* TO 'native'@'{host}'")).await;
    }
    let password = Secret::new("n-ative");
    let socket =
        Options::socket(&server.socket, "native").with_password(password.clone()).with_database("bench");
    let tcp = server.tcp("native").with_password(password).with_database("bench");
    for options in [socket, tcp] {
        let mut session = connected(&options).await;
        assert_eq!(number(&mut session, "SELECT COUNT(*) FROM t").await, 4);
        session.close().await;
        let wrong = options.clone().with_password(Secret::new("wrong"));
        let error = MysqlSession::connect(&wrong).await.expect_err("a wrong password");
        assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "1045"), "{error}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
}

async fn check_refused_logins(server: &Server) {
    let error =
        MysqlSession::connect(&server.root().with_database("nonesuch")).await.expect_err("no database");
    assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "1049"), "{error}");
    assert!(error.to_string().contains("nonesuch"), "{error}");
    let absent = Options::socket(server.socket.with_extension("none"), "root");
    let error = MysqlSession::connect(&absent).await.expect_err("no server");
    assert_eq!((error.class, error.code.as_str()), (Class::Lost, "io"), "{error}");
}

async fn check_killed_connection(server: &Server, root: &mut MysqlSession) {
    let mut victim = connected(&server.root()).await;
    run(root, &format!("KILL {}", victim.connection_id())).await;
    let error = victim.query(b"SELECT 1").await.expect_err("a killed connection");
    assert_eq!(error.class, Class::Lost, "{error}");
    let error = victim.query(b"SELECT 1").await.expect_err("still killed");
    assert_eq!(error.class, Class::Lost, "{error}");
}

async fn check_killed_server(server: &mut Server, mut root: MysqlSession) {
    let mut waiting = connected(&server.root()).await;
    let sleeper = tokio::task::LocalSet::new();
    let sleeping = sleeper.spawn_local(async move { waiting.query(b"SELECT SLEEP(60)").await });
    sleeper
        .run_until(async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            server.kill();
            let error = sleeping.await.expect("no panic").expect_err("killed in mid-statement");
            assert_eq!(error.class, Class::Lost, "{error}");
        })
        .await;
    let error = root.query(b"SELECT 1").await.expect_err("a killed server");
    assert_eq!(error.class, Class::Lost, "{error}");
    let error = MysqlSession::connect(&server.root()).await.expect_err("a killed server");
    assert_eq!(error.class, Class::Lost, "{error}");
}
