//! Tests with hostile servers that speak MySQL's protocol.

use std::time::Duration;

use dbdyno_db::mysql::{ConnectionSettings, MysqlSession, Options, Secret, ServerKey};
use dbdyno_db::{Class, DbError, Session, TimeLimits, Tls};
use dbdyno_model::{TlsMode, TlsSettings};

use super::server::{Hostile, Peer, serve};
use super::{PASSWORD, TOO_MUCH, block_on, holds_password, in_little_memory, mutated};

/// The largest payload of one packet, in bytes.
const FULL: usize = 0xff_ffff;

/// A key of 512 bits, which is too short.
const WEAK_KEY: &[u8] = b"\x01-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALHZQIg2FyJRQvZKdMJHeKDGD5g1h1K8
KsrUd1I5tiEwmtiaueTw3Gmp9JCnyas2Cd7XVqH7eurbxqjS/t55HEcCAwEAAQ==
-----END PUBLIC KEY-----
";

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_le_bytes();
    [&[size[0], size[1], size[2], number], payload].concat()
}

/// The greeting of a MySQL 8.0 server without TLS.
fn greeting(plugin: &str) -> Vec<u8> {
    let mut payload = b"\x0a8.0.31\0\x07\0\0\0abcdefgh\0\xff\xf7\xff\x02\0\xff\xdf\x15".to_vec();
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    packet(0, &payload)
}

const OK: &[u8] = b"\0\0\0\x02\0\0\0";

fn receive_packet(peer: &mut Peer) -> Option<Vec<u8>> {
    let header = peer.receive(4)?;
    peer.receive(usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16)
}

/// Lets the client in, and waits for its first statement.
fn admit(peer: &mut Peer) {
    peer.send(&greeting("mysql_native_password"));
    receive_packet(peer);
    peer.send(&packet(2, OK));
    receive_packet(peer);
}

/// The beginning of a result set with one column, before its rows.
fn head() -> Vec<u8> {
    [packet(1, &[1]), packet(2, b"\x03def a")].concat()
}

fn end(number: u8) -> Vec<u8> {
    packet(number, &[0xfe, 0, 0, 2, 0, 0, 0])
}

fn options(server: &Hostile, server_key: ServerKey) -> Options {
    let options = Options::tcp("127.0.0.1", server.port, "bench")
        .with_password(Secret::new(PASSWORD))
        .with_connection_settings(ConnectionSettings { server_key, ..ConnectionSettings::default() });
    options.with_limits(TimeLimits { login: Duration::from_secs(20), ..TimeLimits::default() })
}

fn refused(options: &Options) -> DbError {
    block_on(MysqlSession::connect(options)).expect_err("no login")
}

async fn connected(server: &Hostile) -> MysqlSession {
    MysqlSession::connect(&options(server, ServerKey::Unknown)).await.expect("a session")
}

/// Requests the password itself, and sends a key for it even if the client did not request one.
fn offers_key(peer: &mut Peer) {
    peer.send(&greeting("caching_sha2_password"));
    receive_packet(peer);
    peer.send(&packet(2, &[1, 4]));
    peer.receive_some();
    peer.send(&packet(4, WEAK_KEY));
    peer.receive_some();
}

#[test]
fn no_password_is_encrypted_with_a_key_that_the_server_sends_without_tls() {
    in_little_memory(|| {
        for mode in [TlsMode::Off, TlsMode::Prefer] {
            let server = serve(offers_key);
            let tls = Tls::load(TlsSettings { mode, ..TlsSettings::default() }).expect("settings");
            let error = refused(&options(&server, ServerKey::Unknown).with_tls(tls));
            assert_eq!(error.class, Class::Fatal);
            for way in ["tls = { mode = \"verify\" }", "server_public_key", "allow_public_key_retrieval"] {
                assert!(error.message.contains(way), "{error}");
            }
            let received = server.ended().received;
            let first = 4 + usize::from(received[0]) + (usize::from(received[1]) << 8);
            assert_eq!(received.len(), first, "nothing is said but the first answer, no request for a key");
            assert!(!holds_password(&received));
        }
    });
}

#[test]
fn no_password_is_encrypted_with_a_key_of_512_bits() {
    in_little_memory(|| {
        let server = serve(offers_key);
        let error = refused(&options(&server, ServerKey::Retrieved));
        assert_eq!(error.class, Class::Fatal);
        assert!(error.message.contains("it has 512 bits"), "{error}");
        let received = server.ended().received;
        assert_eq!(
            received[received.len() - 5..],
            packet(3, &[2]),
            "the request for the key is the last word"
        );
    });
}

#[test]
fn a_login_of_80_packets_of_16_mb_is_refused_at_the_first_header() {
    in_little_memory(|| {
        let server = serve(|peer| {
            for number in 0..80 {
                if !(peer.send(&[0xff, 0xff, 0xff, number]) && peer.send_value(FULL)) {
                    return;
                }
            }
        });
        let error = refused(&options(&server, ServerKey::Unknown));
        assert!(error.message.contains("more than 64 KiB before the login was done"), "{error}");
        assert!(server.ended().sent < 80 * FULL, "the client did not read on");
    });
}

/// Sends a row with one value, in packets numbered from 3. The result is the number of the next
/// packet, or `None` if the client takes no more.
fn send_large_row(peer: &mut Peer) -> Option<u8> {
    let mut number = 3_u8;
    let mut left = 9 + TOO_MUCH;
    while left > 0 {
        let length = left.min(FULL);
        let size = (length as u32).to_le_bytes();
        peer.send(&[size[0], size[1], size[2], number]);
        let first = left == 9 + TOO_MUCH;
        if first {
            peer.send(&[&[0xfe][..], &(TOO_MUCH as u64).to_le_bytes()].concat());
        }
        if !peer.send_value(length - if first { 9 } else { 0 }) {
            return None;
        }
        number += 1;
        left -= length;
    }
    Some(number)
}

fn large_row() -> Hostile {
    serve(|peer| {
        admit(peer);
        peer.send(&head());
        if let Some(number) = send_large_row(peer) {
            peer.send(&end(number));
        }
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

/// Sends many short rows, each with one NULL.
fn endless_rows() -> Hostile {
    serve(|peer| {
        admit(peer);
        peer.send(&head());
        let rows: Vec<u8> = (3..=255).chain(0..=2).flat_map(|number| packet(number, &[0xfb])).collect();
        let rows = rows.repeat(200);
        while peer.sent < TOO_MUCH && peer.send(&rows) {}
        peer.send(&end(3));
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
fn an_error_of_16_mb_is_refused_and_a_long_error_is_shortened_and_escaped() {
    in_little_memory(|| {
        let says = |payload: Vec<u8>| {
            serve(move |peer| {
                admit(peer);
                peer.send(&packet(1, &payload));
            })
        };
        let ask = |server: &Hostile| {
            block_on(async { connected(server).await.query(b"SELECT 1").await }).expect_err("an error")
        };
        let error = ask(&says([0xff].repeat(FULL - 1)));
        assert_eq!(error.class, Class::Lost, "{error}");
        let long = [&b"\xff\x28\x04#42000\x1b]0;owned\x07"[..], &[b'y'; 50_000]].concat();
        let error = ask(&says(long));
        assert_eq!(error.code, "1064");
        assert!(error.message.len() < 700 && !error.message.contains('\x1b'), "{error}");
    });
}

#[test]
fn damaged_handshakes_end_in_an_error_or_a_session() {
    in_little_memory(|| {
        let whole = greeting("caching_sha2_password");
        for seed in 0..500 {
            let answer = [packet(2, &[1, 3]), packet(3, OK)].concat();
            let says = [mutated(&whole, seed), mutated(&answer, seed + 1000)].concat();
            let server = serve(move |peer| peer.send_all(&says));
            let outcome = block_on(MysqlSession::connect(&options(&server, ServerKey::Unknown)));
            if let Err(error) = outcome.map(drop) {
                assert!(error.message.len() < 1000, "{seed}: {error}");
            }
            assert!(!holds_password(&server.ended().received), "{seed}");
        }
    });
}
