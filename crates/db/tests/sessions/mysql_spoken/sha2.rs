//! Checks of logins with the authentication plugins that send the password itself to the server.

use std::path::Path;

use dbdyno_db::mysql::{ConnectionSettings, MysqlSession, Options, Secret, ServerKey};
use dbdyno_db::{Class, Session};

use super::{connected, number, run};
use crate::mysql_server::Server;

pub(crate) async fn check_logins(server: &Server, root: &mut MysqlSession) {
    let version = root.server_version().to_owned();
    if root.is_mariadb() || version.starts_with("5.") {
        return;
    }
    for plugin in ["caching_sha2_password", "sha256_password"] {
        let user = plugin.trim_end_matches("_password");
        for host in ["localhost", "127.0.0.1"] {
            run(
                root,
                &format!("CREATE USER '{user}'@'{host}' IDENTIFIED WITH {plugin} BY 'pässword of {host}'"),
            )
            .await;
        }
        let socket =
            Options::socket(&server.socket, user).with_password(Secret::new("pässword of localhost"));
        let tcp = server.tcp(user).with_password(Secret::new("pässword of 127.0.0.1"));
        let with_key = |server_key| {
            tcp.clone()
                .with_connection_settings(ConnectionSettings { server_key, ..ConnectionSettings::default() })
        };
        let data = root.rows("SELECT @@datadir").await.expect("a folder")[0][0].clone().expect("a folder");
        let known = ServerKey::load(&Path::new(&data).join("public_key.pem")).expect("the server's key");
        for options in [&socket, &with_key(ServerKey::Retrieved), &with_key(known)] {
            // The logins use a cold cache, a warm cache, and a cold cache again.
            for flush in [false, false, true] {
                if flush {
                    run(root, "FLUSH PRIVILEGES").await;
                }
                let mut session = connected(options).await;
                assert_eq!(number(&mut session, "SELECT 5").await, 5);
                session.close().await;
            }
            for password in ["wrong", ""] {
                let wrong = options.clone().with_password(Secret::new(password));
                let error = MysqlSession::connect(&wrong).await.expect_err("a wrong password");
                assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "1045"), "{error}");
            }
        }
        check_no_key(root, &tcp, plugin).await;
    }
}

/// Checks that a password is sent over TCP only if it is encrypted with a key. A login that the
/// server's cache can verify needs no key.
async fn check_no_key(root: &mut MysqlSession, tcp: &Options, plugin: &str) {
    let trusting = ConnectionSettings { server_key: ServerKey::Retrieved, ..ConnectionSettings::default() };
    connected(&tcp.clone().with_connection_settings(trusting)).await.close().await;
    if plugin == "caching_sha2_password" {
        connected(tcp).await.close().await;
    }
    run(root, "FLUSH PRIVILEGES").await;
    let error = MysqlSession::connect(tcp).await.expect_err("no key");
    assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "login"), "{error}");
    assert!(error.message.contains("allow_public_key_retrieval"), "{error}");
}
