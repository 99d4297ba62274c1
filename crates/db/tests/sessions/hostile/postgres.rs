//! Tests with hostile servers that speak PostgreSQL's protocol.

use std::time::Duration;

use dbdyno_db::postgres::{Options, PostgresSession, Secret};
use dbdyno_db::{Class, DbError, Session, TimeLimits};

use super::server::{Hostile, Peer, serve};
use super::{PASSWORD, TOO_MUCH, block_on, holds_password, in_little_memory, mutated};

/// Kind and length of a message whose body has `length` bytes.
fn header(kind: u8, length: usize) -> Vec<u8> {
    [&[kind][..], &(length as u32 + 4).to_be_bytes()].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&header(kind, body.len())[..], body].concat()
}

/// The messages that accept a login without a password.
fn welcome() -> Vec<u8> {
    let version = message(b'S', b"server_version\x0015.19\0");
    [message(b'R', &[0; 4]), version, message(b'K', &[7; 8]), message(b'Z', b"I")].concat()
}

/// Lets the client in, and waits for its first statement.
fn admit(peer: &mut Peer) {
    peer.receive_some();
    peer.send(&welcome());
    peer.receive_some();
}

/// The description of rows with one column.
fn head() -> Vec<u8> {
    message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0")
}

fn end() -> Vec<u8> {
    [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
}

fn options(server: &Hostile) -> Options {
    let options = Options::tcp("127.0.0.1", server.port, "bench").with_password(Secret::new(PASSWORD));
    options.with_limits(TimeLimits { login: Duration::from_secs(20), ..TimeLimits::default() })
}

fn refused(server: &Hostile) -> DbError {
    block_on(PostgresSession::connect(&options(server))).expect_err("no login")
}

async fn connected(server: &Hostile) -> PostgresSession {
    PostgresSession::connect(&options(server)).await.expect("a session")
}

#[test]
fn a_server_without_tls_gets_no_plaintext_password() {
    in_little_memory(|| {
        let server = serve(|peer| {
            peer.receive_some();
            peer.send(&message(b'R', &[0, 0, 0, 3]));
            peer.receive_some();
        });
        let error = refused(&server);
        assert_eq!(error.class, Class::Fatal);
        assert!(error.message.contains("tls mode require or verify"), "{error}");
        assert!(!holds_password(&server.ended().received));
    });
}

#[test]
fn a_login_of_large_messages_is_refused_at_the_first_header() {
    in_little_memory(|| {
        let server = serve(|peer| {
            peer.receive_some();
            for _ in 0..80 {
                if !(peer.send(&header(b'N', 16 << 20)) && peer.send_value(16 << 20)) {
                    return;
                }
            }
        });
        let error = refused(&server);
        assert!(error.message.contains("more than 64 KiB before the login was done"), "{error}");
        assert!(server.ended().sent < 80 << 24, "the client did not read on");
    });
}

#[test]
fn a_login_with_endless_small_messages_is_refused() {
    in_little_memory(|| {
        let server = serve(|peer| {
            peer.receive_some();
            peer.send(&message(b'R', &[0; 4]));
            let parameters = message(b'S', b"name\0value\0").repeat(1000);
            while peer.sent < TOO_MUCH && peer.send(&parameters) {}
        });
        let error = refused(&server);
        assert_eq!(error.class, Class::Lost, "{error}");
        assert!(server.ended().sent < TOO_MUCH);
    });
}

fn large_row() -> Hostile {
    serve(|peer| {
        admit(peer);
        peer.send(&head());
        peer.send(&header(b'D', 6 + TOO_MUCH));
        peer.send(&[&[0, 1][..], &(TOO_MUCH as u32).to_be_bytes()].concat());
        peer.send_value(TOO_MUCH);
        peer.send(&end());
    })
}

#[test]
fn a_value_larger_than_the_memory_is_counted_by_query_and_refused_by_rows() {
    in_little_memory(|| {
        let server = large_row();
        let answer = block_on(async { connected(&server).await.query(b"SELECT a").await }).expect("counted");
        assert_eq!(answer.rows, 1);
        assert!(answer.bytes > TOO_MUCH as u64, "{answer:?}");
        server.ended();
        let server = large_row();
        let error =
            block_on(async { connected(&server).await.rows("SELECT a").await }).expect_err("too large");
        assert!(error.message.contains("the answer is larger than the 8 MiB"), "{error}");
        assert!(server.ended().sent < TOO_MUCH);
    });
}

fn endless_rows() -> Hostile {
    serve(|peer| {
        admit(peer);
        peer.send(&head());
        let rows = message(b'D', b"\0\x01\xff\xff\xff\xff").repeat(10_000);
        while peer.sent < TOO_MUCH && peer.send(&rows) {}
        peer.send(&end());
    })
}

#[test]
fn endless_rows_are_counted_by_query_and_refused_by_rows() {
    in_little_memory(|| {
        let server = endless_rows();
        let answer = block_on(async { connected(&server).await.query(b"SELECT a").await }).expect("counted");
        assert!(answer.bytes > TOO_MUCH as u64, "{answer:?}");
        server.ended();
        let server = endless_rows();
        let error =
            block_on(async { connected(&server).await.rows("SELECT 1").await }).expect_err("too many");
        assert!(error.message.contains("the answer is larger than the 8 MiB"), "{error}");
        assert!(server.ended().sent < TOO_MUCH);
    });
}

#[test]
fn only_the_beginning_of_an_error_larger_than_the_memory_is_kept() {
    in_little_memory(|| {
        let server = serve(|peer| {
            admit(peer);
            let fields = b"SERROR\0VERROR\0C22P02\0M\x1b]0;owned\x07";
            peer.send(&header(b'E', fields.len() + TOO_MUCH + 2));
            peer.send(fields);
            peer.send_value(TOO_MUCH);
            peer.send(b"\0\0");
            peer.send(&message(b'Z', b"I"));
        });
        let error =
            block_on(async { connected(&server).await.query(b"SELECT 1").await }).expect_err("an error");
        assert_eq!((error.class, error.code.as_str()), (Class::Refused, "22P02"), "{error}");
        assert!(error.message.len() < 700 && !error.message.contains('\x1b'), "{error}");
        server.ended();
    });
}

#[test]
fn a_copy_ends_when_the_server_answers_before_the_rows() {
    in_little_memory(|| {
        let server = serve(|peer| {
            admit(peer);
            peer.send(&message(b'G', b"\0\0\x01\0\0"));
            peer.send(&message(b'E', b"SERROR\0VERROR\0C22P02\0Mno\0\0"));
            peer.send(&message(b'Z', b"I"));
            // The client continues the message that it has begun, and this server does not read it.
            while peer.sent < TOO_MUCH && peer.send_value(1 << 20) {}
        });
        let rows = vec![b'7'; 64 << 20];
        let copied = block_on(async {
            let mut session = connected(&server).await;
            session.copy_in("COPY t FROM STDIN", rows.chunks(8 << 20)).await
        });
        let error = copied.expect_err("refused");
        assert!(["22P02", "protocol"].contains(&error.code.as_str()), "{error}");
        assert!(server.ended().sent < TOO_MUCH);
    });
}

#[test]
fn damaged_handshakes_end_in_an_error_or_a_session() {
    in_little_memory(|| {
        let whole = [message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), welcome()].concat();
        for seed in 0..500 {
            let says = [mutated(&whole, seed), mutated(&welcome(), seed + 1000)].concat();
            let server = serve(move |peer| peer.send_all(&says));
            let outcome = block_on(PostgresSession::connect(&options(&server)));
            if let Err(error) = outcome.map(drop) {
                assert!(error.message.len() < 1000, "{seed}: {error}");
            }
            assert!(!holds_password(&server.ended().received), "{seed}");
        }
    });
}
