//! Tests of TLS connections to a server inside the test.

use dbdyno_model::TlsMode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::super::testing::{error, greeting, ok, packet};
use super::super::{LoginOptions, MysqlSession, Secret};
use crate::stream::ByteStream;
use crate::tls::testing::{Flaw, OUTCOMES, TlsTestServer};
use crate::{DbError, Session};

/// The `CLIENT_SSL` bit in the capabilities' second byte.
const CLIENT_SSL: u8 = 0x08;

fn options(desk: &TlsTestServer, mode: TlsMode) -> LoginOptions {
    LoginOptions::tcp("localhost", desk.port, "bench")
        .with_password(Secret::new("secret"))
        .with_database("ib")
        .with_tls(desk.tls(mode))
}

/// A greeting that offers TLS or does not.
fn greets(offers_tls: bool, plugin: &str) -> Vec<u8> {
    let mut greeting = greeting(plugin);
    if !offers_tls {
        let low = b"\x0a8.0.31\0\x07\0\0\0abcdefgh\0".len();
        greeting[low + 1] &= !CLIENT_SSL;
    }
    packet(0, &greeting)
}

async fn receive<S: AsyncRead + Unpin>(stream: &mut S) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.ok()?;
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    stream.read_exact(&mut payload).await.ok()?;
    Some((header[3], payload))
}

/// Answers the client's packets with those in `script`, one after the other. Returns the client's
/// packets.
async fn converse<S: ByteStream>(mut stream: S, script: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let mut received = Vec::new();
    for payload in script {
        let (sequence, packet_of_client) = receive(&mut stream).await?;
        received.push(packet_of_client);
        stream.write_all(&packet(sequence + 1, payload)).await.ok()?;
        stream.flush().await.ok()?;
    }
    Some(received)
}

/// Serves one connection that proposes `plugin` and follows `script`. Returns the outcome and what
/// the server received.
async fn served(
    desk: &TlsTestServer,
    options: &LoginOptions,
    offers_tls: bool,
    plugin: &str,
    script: &[Vec<u8>],
) -> (Result<MysqlSession, DbError>, Option<Vec<Vec<u8>>>) {
    let serve = async {
        let (mut stream, _) = desk.listener.accept().await.ok()?;
        stream.write_all(&greets(offers_tls, plugin)).await.ok()?;
        let mut first = [0; 8];
        stream.peek(&mut first).await.ok()?;
        if !(offers_tls && first[5] & CLIENT_SSL != 0) {
            return converse(stream, script).await;
        }
        let (sequence, request) = receive(&mut stream).await?;
        assert_eq!((sequence, request.len()), (1, 32), "the request for TLS");
        let received = converse(desk.acceptor.accept(stream).await.ok()?, script).await?;
        assert_eq!(received[0][..32], request[..], "the answer repeats the request");
        Some(received)
    };
    tokio::join!(MysqlSession::connect(options), serve)
}

#[tokio::test]
async fn each_mode_takes_and_refuses_what_it_must() {
    for (flaw, outcomes) in OUTCOMES {
        let desk = TlsTestServer::new(*flaw, false).await;
        for (mode, expected) in TlsMode::ALL.into_iter().zip(outcomes) {
            let name = mode.name();
            let offers = *flaw != Flaw::NoTls;
            let (outcome, _) =
                served(&desk, &options(&desk, mode), offers, "mysql_native_password", &[ok(0)]).await;
            match (outcome, expected) {
                (Ok(session), Ok(encrypted)) => {
                    let found = session.encryption();
                    assert_eq!(found.is_some(), *encrypted, "{name} {flaw:?}");
                    assert!(found.is_none_or(|found| found.version == "TLSv1.3"), "{name} {flaw:?}");
                }
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{name} {flaw:?}: {error}");
                    assert_eq!((error.class, error.code.as_str()), (crate::Class::Fatal, "tls"));
                }
                (outcome, _) => panic!("{name} {flaw:?}: {outcome:?}"),
            }
        }
    }
}

#[tokio::test]
async fn bytes_ahead_of_tls_are_refused() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let serve = async {
        let (mut stream, _) = desk.listener.accept().await.expect("a client");
        let injected = [greets(true, "mysql_native_password"), packet(1, &ok(0))].concat();
        stream.write_all(&injected).await.expect("sent");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    };
    let options = options(&desk, TlsMode::Require);
    let (outcome, ()) = tokio::join!(MysqlSession::connect(&options), serve);
    let reported = outcome.expect_err("refused").to_string();
    assert!(reported.contains("bytes before the beginning of TLS"), "{reported}");
}

#[tokio::test]
async fn a_server_that_speaks_older_versions_only_is_reported_so() {
    // The first answer is the alert protocol_version, as a server older than TLS 1.2 sends. The
    // second is just the end.
    for (answer, words) in [
        (&[0x15, 0x03, 0x01, 0, 2, 2, 70][..], "the server speaks neither TLS 1.2 nor 1.3"),
        (&[], "it may speak nothing newer than TLS 1.1"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "what the server sent is no TLS"),
    ] {
        let desk = TlsTestServer::new(Flaw::None, false).await;
        let serve = async {
            let (mut stream, _) = desk.listener.accept().await.expect("a client");
            stream.write_all(&greets(true, "mysql_native_password")).await.expect("sent");
            receive(&mut stream).await.expect("the request");
            let mut hello = [0; 5];
            stream.read_exact(&mut hello).await.expect("the first record of TLS");
            let mut rest = vec![0; usize::from(hello[3]) << 8 | usize::from(hello[4])];
            stream.read_exact(&mut rest).await.expect("all of it");
            stream.write_all(answer).await.expect("sent");
        };
        let options = options(&desk, TlsMode::Require);
        let (outcome, ()) = tokio::join!(MysqlSession::connect(&options), serve);
        let reported = outcome.expect_err("refused").to_string();
        assert!(reported.contains(words), "{reported}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_wants_one() {
    let desk = TlsTestServer::new(Flaw::None, true).await;
    let files = desk.authority.signed("client", "client.example", false);
    let with = options(&desk, TlsMode::Verify).with_tls(desk.tls_with(TlsMode::Verify, &files));
    let (outcome, _) = served(&desk, &with, true, "mysql_native_password", &[ok(0)]).await;
    outcome.expect("a login");
    let without = options(&desk, TlsMode::Verify);
    let (outcome, _) = served(&desk, &without, true, "mysql_native_password", &[ok(0)]).await;
    let reported = outcome.expect_err("refused").to_string();
    assert!(reported.contains("wants a client certificate: name its files cert and key"), "{reported}");
}

#[tokio::test]
async fn passwords_go_inside_tls_as_the_plugins_say() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let received = async |mode, plugin: &str, script: &[Vec<u8>]| {
        let (outcome, received) = served(&desk, &options(&desk, mode), true, plugin, script).await;
        outcome.map(|_| received.expect("a whole conversation")).map_err(|error| error.to_string())
    };
    let full = [vec![1, 4], ok(0)];
    for mode in [TlsMode::Prefer, TlsMode::Require, TlsMode::Verify] {
        assert_eq!(received(mode, "caching_sha2_password", &full).await.expect("a login")[1], b"secret\0");
        let received = received(mode, "sha256_password", &[ok(0)]).await.expect("a login");
        assert!(received[0].ends_with(b"bench\0\x07secret\0ib\0sha256_password\0"), "{:?}", received[0]);
    }
    let clear = [b"\xfemysql_clear_password\0".to_vec(), ok(0)];
    assert_eq!(
        received(TlsMode::Require, "mysql_native_password", &clear).await.expect("a login")[1],
        b"secret\0"
    );
    let refused =
        received(TlsMode::Prefer, "mysql_native_password", &clear).await.expect_err("TLS was not demanded");
    assert!(refused.contains("over required TLS (tls mode require or verify)"), "{refused}");
}

#[tokio::test]
async fn long_messages_and_errors_pass_through_tls() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let big = vec![b'x'; 3_000_000];
    let answer = error(1064, "no such thing");
    let serve = async {
        let (mut stream, _) = desk.listener.accept().await.expect("a client");
        stream.write_all(&greets(true, "mysql_native_password")).await.expect("sent");
        receive(&mut stream).await.expect("the request");
        let mut stream = desk.acceptor.accept(stream).await.expect("TLS");
        receive(&mut stream).await.expect("the answer");
        stream.write_all(&packet(3, &ok(0))).await.expect("sent");
        let mut header = [0; 5];
        stream.read_exact(&mut header).await.expect("a command");
        let mut body = vec![0; 3_000_000];
        stream.read_exact(&mut body).await.expect("its body");
        stream.write_all(&packet(1, &answer)).await.expect("sent");
        stream.flush().await.expect("sent");
        body
    };
    let options = options(&desk, TlsMode::Verify);
    let ask = async {
        let mut session = MysqlSession::connect(&options).await.expect("a login");
        session.query(&big).await.expect_err("an error")
    };
    let (refused, body) = tokio::join!(ask, serve);
    assert!(body == big);
    assert_eq!(refused.code, "1064");
}
