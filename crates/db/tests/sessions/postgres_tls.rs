//! Tests of TLS with real PostgreSQL servers.

use dbdyno_db::postgres::{Options, PostgresSession, Secret};
use dbdyno_db::{Param, Session, Tls, first_i64};
use dbdyno_model::{TlsMode, TlsSettings};

use crate::certificates::{Authority, Files};
use crate::mysql_server::bases::required;
use crate::postgres_server::Server;
use crate::shared;

async fn connected(options: &Options) -> PostgresSession {
    PostgresSession::connect(options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn refused(options: Options) -> String {
    PostgresSession::connect(&options).await.expect_err("a refusal").to_string()
}

fn tls(mode: TlsMode, authority: &Authority) -> Option<Tls> {
    let ca = (mode == TlsMode::Verify).then(|| authority.ca());
    Tls::load(TlsSettings { mode, ca, ..TlsSettings::default() }).expect("settings")
}

async fn text(session: &mut PostgresSession, sql: &str) -> Vec<Option<String>> {
    session.rows(sql).await.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn postgres_9_6_to_18_over_tls() {
    for prefix in ["pg-9.6.", "pg-15.", "pg-18."] {
        let base = required(prefix).pop().expect("one");
        let authority = Authority::new("ours");
        let Files { cert, key } = authority.signed("server", "localhost", false);
        let settings = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", cert.display()),
            format!("ssl_key_file={}", key.display()),
            format!("ssl_ca_file={}", authority.ca().display()),
        ];
        restrict(&key);
        let server = Server::start_with(&base, &settings).await;
        let mut root = connected(&server.root()).await;
        for sql in ["CREATE ROLE bench LOGIN PASSWORD 'secret'", "CREATE ROLE clear LOGIN PASSWORD 'secret'"]
        {
            root.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
        }
        check(&server, &authority).await;
        let reported = refused(server.root().with_tls(tls(TlsMode::Verify, &authority))).await;
        assert!(reported.contains("PostgreSQL has no TLS over unix sockets"), "{reported}");
    }
}

async fn check(server: &Server, authority: &Authority) {
    let options = |host: &str, user: &str, mode| {
        Options::tcp(host, server.port, user)
            .with_password(Secret::new("secret"))
            .with_database("postgres")
            .with_tls(tls(mode, authority))
    };
    for mode in [TlsMode::Prefer, TlsMode::Require, TlsMode::Verify] {
        // The name localhost may have several addresses, but the server listens only on 127.0.0.1.
        let mut session = connected(&options("localhost", "bench", mode)).await;
        let agreed = session.encryption().expect("an encrypted connection");
        let sql = "SELECT version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let reported = text(&mut session, sql).await;
        assert_eq!(reported[0], Some(agreed.version), "{} {mode:?}", server.name);
        if reported[0].as_deref() == Some("TLSv1.3") {
            assert_eq!(reported[1], Some(agreed.cipher), "{} {mode:?}", server.name);
        }
        check_traffic(&mut session).await;
    }
    assert_eq!(connected(&options("localhost", "bench", TlsMode::Off)).await.encryption(), None);
    let reported = refused(options("127.0.0.1", "bench", TlsMode::Verify)).await;
    assert!(reported.contains("it is not for 127.0.0.1"), "{reported}");
    connected(&options("localhost", "clear", TlsMode::Require)).await;
    let reported = refused(options("localhost", "clear", TlsMode::Prefer)).await;
    assert!(reported.contains("over required TLS"), "{reported}");
    let wrong = options("localhost", "bench", TlsMode::Verify).with_password(Secret::new("another"));
    let reported = refused(wrong).await;
    assert!(reported.contains("password authentication failed"), "{reported}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_tls_is_required() {
    let server = shared::postgres().await;
    let authority = Authority::new("another");
    let reported = refused(server.tcp("postgres").with_tls(tls(TlsMode::Require, &authority))).await;
    assert!(
        reported.contains("the server does not offer TLS, which the plan requires; set ssl = on"),
        "{reported}"
    );
}

/// Checks short and long answers and statements: simple, prepared and COPY.
async fn check_traffic(session: &mut PostgresSession) {
    let text = "z".repeat(1_000_000);
    let length = session.rows(&format!("SELECT length('{text}')")).await.expect("a long statement");
    assert_eq!(first_i64(&length), Some(1_000_000));
    let answer = session.query(b"SELECT repeat('x', 1000000)").await.expect("a long answer");
    assert!(answer.bytes > 1_000_000);
    let statement = session.prepare("SELECT ?::bigint + 1").await.expect("a statement");
    for n in 0..50 {
        assert_eq!(session.execute(statement, &[Param::Int(n)]).await.expect("a row").rows, 1);
    }
    session.query(b"CREATE TEMP TABLE c (a bigint)").await.expect("a table");
    let rows = (0..200_000).map(|n| format!("{n}\n"));
    let copied = session.copy_in("COPY c FROM STDIN", rows).await.expect("rows");
    assert_eq!(copied.affected, 200_000);
}

/// Restricts the key to its owner, because PostgreSQL rejects a key that other users may read.
fn restrict(key: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(key, PermissionsExt::from_mode(0o600)).expect("a key file");
}
