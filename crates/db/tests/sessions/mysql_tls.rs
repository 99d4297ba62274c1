//! Tests of TLS with real servers: MySQL with its own certificates, and MariaDB with the test's
//! certificates.

use std::path::Path;

use dbdyno_db::mysql::{MysqlSession, Options, Secret};
use dbdyno_db::{Session, Tls, first_i64};
use dbdyno_model::{TlsMode, TlsSettings};

use crate::certificates::{Authority, Files};
use crate::mysql_server::Server;
use crate::mysql_server::bases::required;
use crate::shared;

fn tls(mode: TlsMode) -> Option<Tls> {
    Tls::load(TlsSettings { mode, ..TlsSettings::default() }).expect("settings")
}

/// TLS that verifies the server's certificate against `authority`, and that may have a client
/// certificate.
fn verified(authority: &Authority, client: Option<&Files>) -> Option<Tls> {
    let settings = TlsSettings {
        mode: TlsMode::Verify,
        ca: Some(authority.ca()),
        cert: client.map(|files| files.cert.clone()),
        key: client.map(|files| files.key.clone()),
    };
    Tls::load(settings).expect("settings")
}

async fn connected(options: &Options) -> MysqlSession {
    MysqlSession::connect(options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn refused(options: Options) -> String {
    MysqlSession::connect(&options).await.expect_err("a refusal").to_string()
}

async fn run(session: &mut MysqlSession, sql: &str) {
    session.query(sql.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
}

/// Checks that the server reports the same encryption as dbdyno, and returns the cipher.
async fn check_agreed(session: &mut MysqlSession, version: &str) -> String {
    let agreed = session.encryption().expect("an encrypted connection");
    assert_eq!(agreed.version, version);
    let status = session
        .rows("SHOW SESSION STATUS WHERE Variable_name IN ('Ssl_version', 'Ssl_cipher')")
        .await
        .expect("status");
    let reported = |name: &str| {
        let row = status.iter().find(|row| row[0].as_deref() == Some(name)).expect("a status row");
        row[1].clone().expect("a value")
    };
    assert_eq!(reported("Ssl_version"), agreed.version);
    if version == "TLSv1.3" {
        // MariaDB with wolfSSL reports TLS13-AES128-GCM-SHA256. The other servers report the
        // registered name.
        let plain = |name: &str| name.replace("TLS13-", "TLS_").replace(['-', '_'], "");
        assert_eq!(plain(&reported("Ssl_cipher")), plain(&agreed.cipher));
    }
    agreed.cipher
}

/// Makes the user `name` at 127.0.0.1 with the authentication clause `how`.
async fn user(root: &mut MysqlSession, name: &str, how: &str) {
    run(root, &format!("CREATE USER '{name}'@'127.0.0.1' {how}")).await;
}

#[tokio::test]
async fn mysql_8_0_with_its_own_certificates() {
    let server = shared::mysql().await;
    let mut root = connected(&server.root()).await;
    assert_eq!(root.encryption(), None);
    user(&mut root, "sha", "IDENTIFIED WITH caching_sha2_password BY 'secret' REQUIRE SSL").await;
    user(&mut root, "old", "IDENTIFIED WITH sha256_password BY 'secret'").await;
    let tcp = |user: &str, mode| server.tcp(user).with_password(Secret::new("secret")).with_tls(tls(mode));
    for (user, mode) in [
        ("sha", TlsMode::Require),
        ("sha", TlsMode::Prefer),
        ("old", TlsMode::Require),
        ("old", TlsMode::Prefer),
    ] {
        let mut session = connected(&tcp(user, mode)).await;
        assert_eq!(check_agreed(&mut session, "TLSv1.3").await, "TLS_AES_256_GCM_SHA384");
        check_traffic(&mut session).await;
        session.close().await;
    }
    let reported = refused(tcp("sha", TlsMode::Off)).await;
    assert!(reported.contains("Access denied"), "{reported}");
    let reported = refused(tcp("sha", TlsMode::Verify)).await;
    assert!(reported.contains("no trusted authority has signed it"), "{reported}");
    // The server's certificate names no host.
    let data = first_text(&mut root, "SELECT @@datadir").await;
    let ca = Some(Path::new(&data).join("ca.pem"));
    let own = Tls::load(TlsSettings { ca, ..TlsSettings::default() }).expect("settings");
    let reported = refused(server.tcp("sha").with_tls(own)).await;
    assert!(reported.contains("it is not for 127.0.0.1"), "{reported}");
    // TLS also works over the unix socket if it is required.
    let mut local = connected(&server.root().with_tls(tls(TlsMode::Require))).await;
    check_agreed(&mut local, "TLSv1.3").await;
    let local = connected(&server.root().with_tls(tls(TlsMode::Prefer))).await;
    assert_eq!(local.encryption(), None);
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: TLS with other settings"]
async fn mysql_8_0_limited_to_tls_1_2() {
    let base = required("mysql-8.0.").pop().expect("one");
    let options = ["--tls-version=TLSv1.2", "--ssl-cipher=ECDHE-RSA-AES128-GCM-SHA256"].map(str::to_owned);
    let server = Server::start_with(&base, &options).await;
    let mut session = connected(&server.root().with_tls(tls(TlsMode::Require))).await;
    let cipher = check_agreed(&mut session, "TLSv1.2").await;
    assert_eq!(cipher, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    check_traffic(&mut session).await;
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_tls_is_required() {
    let server = shared::mariadb().await;
    check_without_tls(&server).await;
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn an_old_server_without_tls_is_refused_if_tls_is_required() {
    let base = required("mysql-5.6.").pop().expect("one");
    check_without_tls(&Server::start(&base).await).await;
}

async fn check_without_tls(plain: &Server) {
    let reported = refused(plain.root().with_tls(tls(TlsMode::Require))).await;
    assert!(reported.contains("the server does not offer TLS, which the plan requires"), "{reported}");
    let session = connected(&plain.root().with_tls(tls(TlsMode::Prefer))).await;
    assert_eq!(session.encryption(), None);
}

#[tokio::test]
#[ignore = "in cargo xtask test --all: every version"]
async fn mariadb_with_given_certificates() {
    for base in ["mariadb-10.11.", "mariadb-11.4.", "mariadb-11.8"].map(required).concat() {
        let authority = Authority::new("ours");
        let files = authority.signed("server", "localhost", false);
        let mut options = ssl_options(&authority.ca(), &files);
        let plugins = base.join("usr/lib/mysql/plugin");
        // Some packages do not contain these plugins.
        let signing: Vec<&str> = [("ed25519", "auth_ed25519.so"), ("parsec", "auth_parsec.so")]
            .into_iter()
            .filter(|(_, file)| plugins.join(file).exists())
            .map(|(plugin, file)| {
                options.push(format!("--plugin-load-add={file}"));
                plugin
            })
            .collect();
        let server = Server::start_with(&base, &options).await;
        let mut root = connected(&server.root()).await;
        user(&mut root, "plain", "IDENTIFIED BY 'secret' REQUIRE X509").await;
        let host = Options::tcp("localhost", server.port, "plain").with_password(Secret::new("secret"));
        let client = authority.signed("client", "client.example", false);
        let mut session = connected(&host.clone().with_tls(verified(&authority, Some(&client)))).await;
        check_agreed(&mut session, "TLSv1.3").await;
        check_traffic(&mut session).await;
        let reported = refused(host.with_tls(verified(&authority, None))).await;
        assert!(reported.contains("Access denied"), "{reported}");
        let reported = refused(server.tcp("plain").with_tls(verified(&authority, None))).await;
        assert!(reported.contains("it is not for 127.0.0.1"), "{reported}");
        // Over the unix socket the server's name is localhost.
        connected(&server.root().with_tls(verified(&authority, None))).await;
        for plugin in signing {
            check_signing(&server, &mut root, plugin, &authority).await;
        }
    }
}

/// Checks logins with an authentication plugin that signs a challenge, with and without TLS.
async fn check_signing(server: &Server, root: &mut MysqlSession, plugin: &str, authority: &Authority) {
    user(root, plugin, &format!("IDENTIFIED VIA {plugin} USING PASSWORD('sécret of the test')")).await;
    let named = Options::tcp("localhost", server.port, plugin);
    for options in [named.clone(), named.with_tls(verified(authority, None))] {
        let right = options.clone().with_password(Secret::new("sécret of the test"));
        check_traffic(&mut connected(&right).await).await;
        let reported = refused(options.with_password(Secret::new("another"))).await;
        assert!(reported.contains("Access denied"), "{reported}");
    }
}

/// Server options that name its certificates.
fn ssl_options(ca: &Path, files: &Files) -> Vec<String> {
    [("ca", ca), ("cert", &files.cert), ("key", &files.key)]
        .map(|(name, path)| format!("--ssl-{name}={}", path.display()))
        .to_vec()
}

async fn first_text(session: &mut MysqlSession, sql: &str) -> String {
    session.rows(sql).await.expect(sql)[0][0].clone().expect("a text")
}

/// Checks short and long answers and statements, both as text and prepared.
async fn check_traffic(session: &mut MysqlSession) {
    assert_eq!(first_i64(&session.rows("SELECT 7").await.expect("a row")), Some(7));
    let text = "z".repeat(1_000_000);
    let length = session.rows(&format!("SELECT LENGTH('{text}')")).await.expect("a long statement");
    assert_eq!(first_i64(&length), Some(1_000_000));
    let answer = session.query(b"SELECT REPEAT('x', 1000000)").await.expect("a long answer");
    assert!(answer.bytes > 1_000_000);
    let statement = session.prepare("SELECT ? + 1").await.expect("a statement");
    for n in 0..50 {
        let answer = session.execute(statement, &[dbdyno_db::Param::Int(n)]).await.expect("a row");
        assert_eq!(answer.rows, 1);
    }
}
