//! Tests of TLS connections to a server inside the test.

use dbdyno_model::TlsMode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::super::testing::{message, welcome};
use super::super::{LoginOptions, PostgresSession, Secret};
use super::*;
use crate::DbError;
use crate::stream::ByteStream;
use crate::tls::testing::{Flaw, OUTCOMES, TlsTestServer};

fn options(desk: &TlsTestServer, mode: TlsMode) -> LoginOptions {
    LoginOptions::tcp("localhost", desk.port, "bench")
        .with_password(Secret::new("secret"))
        .with_tls(desk.tls(mode))
}

/// An authentication request.
fn asks(request: u32, data: &[u8]) -> Vec<u8> {
    message(b'R', &[&request.to_be_bytes(), data].concat())
}

fn admitted() -> Vec<u8> {
    [asks(0, b""), welcome()].concat()
}

async fn exactly<S: AsyncRead + Unpin>(stream: &mut S, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).await.ok().map(|_| bytes)
}

async fn length<S: AsyncRead + Unpin>(stream: &mut S) -> Option<usize> {
    let bytes = exactly(stream, 4).await?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize - 4)
}

/// Sends each part of `script` once the client has sent something. Returns the client's messages
/// after its start-up message.
async fn converse<S: ByteStream>(mut stream: S, script: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let startup = length(&mut stream).await?;
    exactly(&mut stream, startup).await?;
    let mut heard = Vec::new();
    for (index, part) in script.iter().enumerate() {
        stream.write_all(part).await.ok()?;
        stream.flush().await.ok()?;
        if index + 1 < script.len() {
            assert_eq!(exactly(&mut stream, 1).await?, b"p");
            let count = length(&mut stream).await?;
            heard.push(exactly(&mut stream, count).await?);
        }
    }
    Some(heard)
}

/// Serves one connection that answers the request for TLS with `answer` and then follows `script`.
async fn served(
    desk: &TlsTestServer,
    options: &LoginOptions,
    answer: &[u8],
    script: &[Vec<u8>],
) -> (Result<PostgresSession, DbError>, Option<Vec<Vec<u8>>>) {
    let serve = async {
        let (mut stream, _) = desk.listener.accept().await.ok()?;
        let mut first = [0; 8];
        stream.peek(&mut first).await.ok()?;
        if first != REQUEST {
            return converse(stream, script).await;
        }
        exactly(&mut stream, 8).await?;
        stream.write_all(answer).await.ok()?;
        match answer {
            b"S" => converse(desk.acceptor.accept(stream).await.ok()?, script).await,
            _ => converse(stream, script).await,
        }
    };
    tokio::join!(PostgresSession::connect(options), serve)
}

#[tokio::test]
async fn each_mode_takes_and_refuses_what_it_must() {
    for (flaw, outcomes) in OUTCOMES {
        let desk = TlsTestServer::new(*flaw, false).await;
        for (mode, expected) in TlsMode::ALL.into_iter().zip(outcomes) {
            let name = mode.name();
            let answer: &[u8] = if *flaw == Flaw::NoTls { b"N" } else { b"S" };
            let (outcome, _) = served(&desk, &options(&desk, mode), answer, &[admitted()]).await;
            match (outcome, expected) {
                (Ok(session), Ok(encrypted)) => {
                    assert_eq!(session.encryption().is_some(), *encrypted, "{name} {flaw:?}");
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
async fn bytes_ahead_of_tls_and_other_answers_are_refused() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let injected = [b"S".to_vec(), admitted()].concat();
    for (answer, words) in [
        (&injected[..], "bytes before the beginning of TLS"),
        (b"E\0\0\0\x10SFATAL\0no\0\0", "with an error; see its log"),
        (b"\x4a\0\0\0\x0a8.0.31", "not the answer of a PostgreSQL server"),
        (b"X", "not the answer of a PostgreSQL server"),
    ] {
        let (outcome, _) = served(&desk, &options(&desk, TlsMode::Prefer), answer, &[]).await;
        let reported = outcome.expect_err("refused").to_string();
        assert!(reported.contains(words), "{reported}");
    }
}

#[tokio::test]
async fn a_unix_socket_with_tls_is_refused_and_with_preferred_tls_is_in_plaintext() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let socket = LoginOptions::socket("/nonesuch/.s.PGSQL.5432", "bench");
    let reported = async |mode| {
        let options = socket.clone().with_tls(desk.tls(mode));
        PostgresSession::connect(&options).await.expect_err("no server").to_string()
    };
    insta::assert_snapshot!(reported(TlsMode::Verify).await, @"connecting to /nonesuch/.s.PGSQL.5432 as bench: PostgreSQL has no TLS over unix sockets; connect over TCP, or leave tls out (tls)");
    assert!(reported(TlsMode::Prefer).await.contains("No such file"));
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_wants_one() {
    let desk = TlsTestServer::new(Flaw::None, true).await;
    let files = desk.authority.signed("client", "client.example", false);
    let with = options(&desk, TlsMode::Require).with_tls(desk.tls_with(TlsMode::Require, &files));
    served(&desk, &with, b"S", &[admitted()]).await.0.expect("a login");
    let (outcome, _) = served(&desk, &options(&desk, TlsMode::Require), b"S", &[admitted()]).await;
    let reported = outcome.expect_err("refused").to_string();
    assert!(reported.contains("wants a client certificate: name its files cert and key"), "{reported}");
}

#[tokio::test]
async fn a_plaintext_password_is_sent_only_over_required_tls() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let script = [asks(3, b""), admitted()];
    let (_, heard) = served(&desk, &options(&desk, TlsMode::Require), b"S", &script).await;
    assert_eq!(heard.expect("a login")[0], b"secret\0");
    let (outcome, _) = served(&desk, &options(&desk, TlsMode::Prefer), b"S", &script).await;
    let reported = outcome.expect_err("refused").to_string();
    assert!(reported.contains("over required TLS (tls mode require or verify)"), "{reported}");
}

/// The client's first SCRAM message under TLS, to a server that offers these mechanisms.
async fn first_word(desk: &TlsTestServer, mechanisms: &[u8]) -> Vec<u8> {
    let script = [asks(10, mechanisms), Vec::new()];
    let (_, heard) = served(desk, &options(desk, TlsMode::Verify), b"S", &script).await;
    heard.expect("a first word").remove(0)
}

#[tokio::test]
async fn scram_is_bound_to_the_certificate_where_the_server_can() {
    let desk = TlsTestServer::new(Flaw::None, false).await;
    let bound = first_word(&desk, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0").await;
    assert!(bound.starts_with(b"SCRAM-SHA-256-PLUS\0"), "{bound:?}");
    assert!(bound.windows(24).any(|part| part == b"p=tls-server-end-point,,"), "{bound:?}");
    // The server does not offer channel binding, and the client says that it would have used it:
    // "y", not "n".
    let unbound = first_word(&desk, b"SCRAM-SHA-256\0\0").await;
    assert!(unbound.starts_with(b"SCRAM-SHA-256\0"), "{unbound:?}");
    assert!(unbound.windows(5).any(|part| part == b"y,,n="), "{unbound:?}");
}
