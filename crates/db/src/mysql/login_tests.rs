//! Tests of logins, against a server that follows a script.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::testing::{error, greeting, ok, packet};
use super::super::{ConnectionSettings, Secret};
use super::*;
use crate::Class;
use crate::scripted::{Scripted, block_on, cases, damaged, damages, pieces};
use crate::stream::ByteStream;

const NONCE_TEXT: &[u8; NONCE] = b"abcdefghijklmnopqrst";
const OTHER_NONCE: &[u8; NONCE] = b"ABCDEFGHIJKLMNOPQRST";

fn socket(password: &str) -> LoginOptions {
    LoginOptions::socket("/run/db.sock", "bench").with_password(Secret::new(password)).with_database("ib")
}

fn tcp(password: &str) -> LoginOptions {
    LoginOptions::tcp("db.example", 3306, "bench").with_password(Secret::new(password)).with_database("ib")
}

/// Does the same as [`tcp`], for a network on which any server is trusted.
fn trusting(password: &str) -> LoginOptions {
    let server_key = ServerKey::Retrieved;
    tcp(password).with_connection_settings(ConnectionSettings { server_key, ..ConnectionSettings::default() })
}

/// Does the same as [`tcp`], for a server whose key is known.
fn knowing(password: &str) -> LoginOptions {
    let server_key = ServerKey::Known(auth::TEST_KEY.as_bytes().into());
    tcp(password).with_connection_settings(ConnectionSettings { server_key, ..ConnectionSettings::default() })
}

/// A packet with the server's key.
fn key(pem: &str) -> Vec<u8> {
    [b"\x01", pem.as_bytes()].concat()
}

/// Performs a whole login without TLS.
async fn opened<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    options: &LoginOptions,
) -> Result<MysqlHandshake, MysqlFault> {
    let greeting = greeted(wire).await?;
    login(wire, greeting, options, Channel::new(options, false)).await
}

async fn receive(stream: &mut DuplexStream) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.expect("a header from the client");
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    stream.read_exact(&mut payload).await.expect("a payload from the client");
    payload
}

/// Acts as a server that greets with `plugin` and answers each client packet with the next one in
/// `script`. Returns the outcome and the client's packets.
async fn played(
    options: &LoginOptions,
    plugin: &str,
    script: &[Vec<u8>],
) -> (Result<MysqlHandshake, MysqlFault>, Vec<Vec<u8>>) {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let mut wire = MysqlWire::new(client);
    let serve = async move {
        let mut received = Vec::new();
        let mut sequence = 0;
        server.write_all(&packet(sequence, &greeting(plugin))).await.expect("the greeting is sent");
        let mut script = script.iter().peekable();
        while script.peek().is_some() {
            received.push(receive(&mut server).await);
            sequence += 2;
            for payload in script.by_ref() {
                server.write_all(&packet(sequence, payload)).await.expect("an answer is sent");
                // This is the fast path in caching_sha2_password: the OK follows without another
                // packet from the client.
                if payload != &[1, 3] {
                    break;
                }
                sequence += 1;
            }
        }
        received
    };
    let (outcome, received) = tokio::join!(opened(&mut wire, options), serve);
    (outcome, received)
}

fn switch_to(plugin: &str) -> Vec<u8> {
    [&[0xfe][..], plugin.as_bytes(), &[0], OTHER_NONCE, &[0]].concat()
}

fn native(nonce: &[u8], password: &str) -> Vec<u8> {
    scramble_native(nonce, password.as_bytes()).expect("a password").to_vec()
}

fn sha2(nonce: &[u8; NONCE], password: &str) -> Vec<u8> {
    scramble_sha256(nonce, password.as_bytes()).expect("a password").to_vec()
}

fn reported(outcome: Result<MysqlHandshake, MysqlFault>) -> String {
    let fault = outcome.expect_err("a refusal");
    format!("{:?}: {fault}", fault.class())
}

/// A MariaDB greeting that offers the extended capabilities `offered`.
fn mariadb_greeting(offered: u32) -> Vec<u8> {
    let mut payload = greeting("mysql_native_password");
    let flags = 1 + b"8.0.31\0".len() + 4 + 8 + 1;
    payload[flags] &= !1;
    let reserved = flags + 2 + 1 + 2 + 2 + 1 + 6;
    payload[reserved..reserved + 4].copy_from_slice(&offered.to_le_bytes());
    payload.splice(1..1, *b"5.5.5-11.4.5-MariaDB-");
    payload
}

/// The client's answer to a MariaDB greeting.
async fn answer_to_mariadb(options: &LoginOptions, offered: u32) -> (MysqlHandshake, Vec<u8>) {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let mut wire = MysqlWire::new(client);
    let payload = mariadb_greeting(offered);
    let serve = async move {
        server.write_all(&packet(0, &payload)).await.expect("the greeting is sent");
        let received = receive(&mut server).await;
        server.write_all(&packet(2, &ok(0))).await.expect("an answer is sent");
        received
    };
    let (agreed, received) = tokio::join!(opened(&mut wire, options), serve);
    (agreed.expect("a login"), received)
}

/// The extended capabilities in that answer.
async fn extended_answer(options: &LoginOptions, offered: u32) -> u32 {
    let (agreed, received) = answer_to_mariadb(options, offered).await;
    let reported = u32::from_le_bytes([received[28], received[29], received[30], received[31]]);
    assert_eq!(agreed.form.optional_definitions, reported != 0);
    assert_eq!(received[0] & 1, 0, "a client that says it is MySQL's has no extended capabilities");
    reported
}

#[tokio::test]
async fn protocol_options_are_those_of_the_products_own_client_library_unless_the_options_say_otherwise() {
    let said = |deprecate_eof, session_track| {
        tcp("secret").with_connection_settings(ConnectionSettings {
            deprecate_eof,
            session_track,
            ..ConnectionSettings::default()
        })
    };
    for (options, of_mysql, of_mariadb) in [
        (tcp("secret"), (true, true), (false, true)),
        (said(Some(false), Some(false)), (false, false), (false, false)),
        (said(Some(true), None), (true, true), (true, true)),
        (said(None, Some(false)), (true, false), (false, false)),
    ] {
        let (agreed, received) = played(&options, "mysql_native_password", &[ok(0)]).await;
        check_protocol_options(&agreed.expect("a login"), &received[0], of_mysql);
        let (agreed, received) = answer_to_mariadb(&options, 0x1d).await;
        check_protocol_options(&agreed, &received, of_mariadb);
    }
}

fn check_protocol_options(agreed: &MysqlHandshake, received: &[u8], wanted: (bool, bool)) {
    let asked = CapabilityFlags::from_bits_retain(u32::from_le_bytes([
        received[0],
        received[1],
        received[2],
        received[3],
    ]));
    let has = |flag| asked.contains(flag);
    let asked = (has(CapabilityFlags::CLIENT_DEPRECATE_EOF), has(CapabilityFlags::CLIENT_SESSION_TRACK));
    assert_eq!((agreed.form.deprecate_eof, agreed.session_track), wanted);
    assert_eq!(asked, wanted);
}

#[tokio::test]
async fn column_definitions_are_left_out_where_mariadb_offers_it_and_the_options_want_it() {
    let always = tcp("secret").with_connection_settings(ConnectionSettings {
        column_definitions: ColumnDefinitions::Always,
        ..ConnectionSettings::default()
    });
    assert_eq!(extended_answer(&tcp("secret"), 0x1d).await, 0x10);
    assert_eq!(extended_answer(&tcp("secret"), 0x0d).await, 0);
    assert_eq!(extended_answer(&always, 0x1d).await, 0);
}

#[tokio::test]
async fn the_first_answer_names_user_database_and_plugin() {
    let (agreed, received) = played(&tcp("secret"), "mysql_native_password", &[ok(0)]).await;
    let agreed = agreed.expect("a login");
    assert_eq!((agreed.version.as_str(), agreed.connection_id, agreed.is_mariadb), ("8.0.31", 7, false));
    assert_eq!(agreed.form, Form { deprecate_eof: true, optional_definitions: false });
    let tail =
        [b"bench\0\x14".as_slice(), &native(NONCE_TEXT, "secret"), b"ib\0mysql_native_password\0"].concat();
    assert!(received[0].ends_with(&tail), "{:?}", received[0]);
    assert_eq!(received[0][8], 45, "utf8mb4");
    let capabilities = u32::from_le_bytes([received[0][0], received[0][1], received[0][2], received[0][3]]);
    let local_files = CapabilityFlags::CLIENT_LOCAL_FILES.bits();
    assert_eq!(capabilities & local_files, 0);
    let asks = LoginOptions { local_infile: true, ..tcp("secret") };
    let (_, received) = played(&asks, "mysql_native_password", &[ok(0)]).await;
    assert_eq!(u32::from(received[0][0]) & local_files, local_files);
}

#[tokio::test]
async fn an_empty_password_is_sent_in_each_plugins_way() {
    let (_, received) = played(&tcp(""), "mysql_native_password", &[ok(0)]).await;
    assert!(received[0].ends_with(b"bench\0\0ib\0mysql_native_password\0"), "{:?}", received[0]);
    let (_, received) = played(&tcp(""), "caching_sha2_password", &[ok(0)]).await;
    assert!(received[0].ends_with(b"bench\0\x01\0ib\0caching_sha2_password\0"), "{:?}", received[0]);
}

#[tokio::test]
async fn a_cached_sha2_password_takes_the_fast_path() {
    let (agreed, received) = played(&tcp("secret"), "caching_sha2_password", &[vec![1, 3], ok(0)]).await;
    agreed.expect("a login");
    let hash = sha2(NONCE_TEXT, "secret");
    assert!(received[0].windows(hash.len()).any(|window| window == hash));
}

#[tokio::test]
async fn full_authentication_sends_the_password_over_a_socket_only() {
    let script = [vec![1, 4], ok(0)];
    let (agreed, received) = played(&socket("secret"), "caching_sha2_password", &script).await;
    agreed.expect("a login");
    assert_eq!(received[1], b"secret\0");
    let (outcome, received) = played(&tcp("secret"), "caching_sha2_password", &script[..1]).await;
    insta::assert_snapshot!(reported(outcome), @r#"Fatal: the server asks for the password itself, which dbdyno never sends over TCP without TLS; set tls = { mode = "verify" }, name the server's key with options.server_public_key = "FILE", or set options.allow_public_key_retrieval = true, with which a server that poses as this one gets the password"#);
    assert_eq!(received.len(), 1, "nothing is said but the scramble");
}

#[tokio::test]
async fn full_authentication_over_tcp_encrypts_with_the_key_that_is_known_or_was_asked_for() {
    let (agreed, received) = played(&knowing("secret"), "caching_sha2_password", &[vec![1, 4], ok(0)]).await;
    agreed.expect("a login");
    assert_eq!(received[1].len(), 256, "encrypted at once");
    let script = [vec![1, 4], key(auth::TEST_KEY), ok(0)];
    let (agreed, received) = played(&trusting("secret"), "caching_sha2_password", &script).await;
    agreed.expect("a login");
    assert_eq!(received[1], [2], "asks for the key");
    assert_eq!(received[2].len(), 256, "encrypted");
}

#[tokio::test]
async fn sha256_password_is_encrypted_everywhere() {
    for options in [socket("secret"), trusting("secret")] {
        let (agreed, received) = played(&options, "sha256_password", &[key(auth::TEST_KEY), ok(0)]).await;
        agreed.expect("a login");
        assert!(received[0].ends_with(b"bench\0\x01\x01ib\0sha256_password\0"));
        assert_eq!(received[1].len(), 256);
    }
    let script = [switch_to("sha256_password"), ok(0)];
    let (agreed, received) = played(&knowing("secret"), "mysql_native_password", &script).await;
    agreed.expect("a login");
    assert_eq!(received[1].len(), 256, "encrypted at once");
}

#[tokio::test]
async fn an_account_of_another_plugin_logs_in_where_the_servers_default_would_ask_for_a_key() {
    let script = [switch_to("mysql_native_password"), ok(0)];
    let (agreed, received) = played(&tcp("secret"), "sha256_password", &script).await;
    agreed.expect("a login");
    assert!(received[0].ends_with(b"mysql_native_password\0"), "{:?}", received[0]);
    let (outcome, received) =
        played(&tcp("secret"), "sha256_password", &[switch_to("sha256_password")]).await;
    assert!(reported(outcome).contains("allow_public_key_retrieval"));
    assert_eq!(received.len(), 1);
}

#[tokio::test]
async fn a_key_that_was_not_asked_for_or_is_too_short_gets_nothing() {
    for options in [tcp("secret"), knowing("secret"), trusting("secret")] {
        let (outcome, received) = played(&options, "caching_sha2_password", &[key(auth::TEST_KEY)]).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(reported(outcome), @"Lost: the server's answer breaks the protocol: an unknown request of the authentication plugin");
        }
        assert_eq!(received.len(), 1);
    }
    let script = [vec![1, 4], key(auth::WEAK_KEY)];
    let (outcome, received) = played(&trusting("secret"), "caching_sha2_password", &script).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the password cannot be encrypted with the server's RSA key: it has 512 bits, where dbdyno wants 2048 to 16384");
    assert_eq!(received[1..], [[2]], "the request for the key, and nothing more");
}

#[test]
fn a_login_keeps_64_kib_at_most() {
    let greets = || packet(0, &greeting("mysql_native_password"));
    let long_switch = switch_to(&"x".repeat(30_000));
    let large: [Vec<Vec<u8>>; 3] = [
        // The header of a continued packet is enough.
        vec![b"\xff\xff\xff\0\x0a".to_vec()],
        vec![greets(), packet(2, &[0xff].repeat(65_536))],
        vec![greets(), packet(2, &long_switch), packet(4, &long_switch), packet(6, &long_switch)],
    ];
    for (number, answers) in large.into_iter().enumerate() {
        let mut wire = MysqlWire::new(Scripted::new(answers, &[]).greets());
        let reported = reported(block_on(opened(&mut wire, &socket(""))));
        let expected = match number {
            2 => "the account uses the authentication plugin xxx",
            _ => "Lost: the server sent more than 64 KiB before the login was done",
        };
        assert!(reported.contains(expected) && reported.len() < 700, "{number}: {reported}");
        assert!(wire.stream().widest <= 1 << 18, "{number}: {}", wire.stream().widest);
    }
}

#[tokio::test]
async fn a_switch_uses_the_new_plugin_and_the_new_nonce() {
    let (agreed, received) =
        played(&tcp("secret"), "caching_sha2_password", &[switch_to("mysql_native_password"), ok(0)]).await;
    agreed.expect("a login");
    assert_eq!(received[1], native(OTHER_NONCE, "secret"));
    let script = [switch_to("caching_sha2_password"), vec![1, 3], ok(0)];
    let (agreed, received) = played(&tcp("secret"), "mysql_native_password", &script).await;
    agreed.expect("a login");
    assert_eq!(received[1], sha2(OTHER_NONCE, "secret"));
}

#[tokio::test]
async fn a_plaintext_password_is_never_sent_over_tcp() {
    let script = [switch_to("mysql_clear_password"), ok(0)];
    let (agreed, received) = played(&socket("secret"), "caching_sha2_password", &script).await;
    agreed.expect("a login");
    assert_eq!(received[1], b"secret\0");
    let (outcome, _) = played(&tcp("secret"), "caching_sha2_password", &script[..1]).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the server wants the password in plaintext, which dbdyno sends only over a unix socket or over required TLS (tls mode require or verify); use one of these, or use an account with another authentication plugin");
}

#[tokio::test]
async fn unsupported_plugins_are_refused_with_a_reason() {
    let (outcome, _) = played(&tcp("secret"), "mysql_native_password", &[vec![0xfe]]).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the account's password is stored in the format used before MySQL 4.1, which dbdyno does not support; set the password again");
    let (outcome, _) = played(&tcp("secret"), "mysql_native_password", &[switch_to("dialog")]).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the account uses the authentication plugin dialog, which dbdyno does not support; use an account with mysql_native_password, caching_sha2_password, client_ed25519 or parsec");
}

#[tokio::test]
async fn a_refusal_is_reported_at_each_point() {
    let denied = error(1045, "Access denied for user 'bench'");
    for script in [vec![denied.clone()], vec![switch_to("mysql_native_password"), denied.clone()]] {
        let (outcome, _) = played(&tcp("secret"), "caching_sha2_password", &script).await;
        assert_eq!(reported(outcome), "Fatal: server said: Access denied for user 'bench'");
    }
}

#[tokio::test]
async fn logins_that_break_the_protocol_end() {
    for script in [
        vec![vec![0x01]],
        vec![vec![0x01, 9]],
        vec![vec![0x77]],
        vec![vec![0x01, 3]; 40],
        vec![b"\xfemysql_native_password".to_vec()],
        vec![b"\xfecaching_sha2_password\0short".to_vec()],
    ] {
        let (outcome, _) = played(&tcp("secret"), "caching_sha2_password", &script).await;
        assert_eq!(outcome.expect_err("no login").class(), Class::Lost, "{script:?}");
    }
}

proptest! {
    #[test]
    fn a_login_with_arbitrary_bytes_ends(
        greets: bool,
        script in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6),
        tail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (client, mut server) = tokio::io::duplex(1 << 16);
            let mut bytes = if greets { packet(0, &greeting("caching_sha2_password")) } else { Vec::new() };
            for (at, payload) in script.iter().enumerate() {
                bytes.extend(packet(2 * at as u8 + u8::from(greets) * 2, payload));
            }
            bytes.extend(&tail);
            server.write_all(&bytes).await.expect("room in the pipe");
            server.shutdown().await.expect("an end");
            let mut wire = MysqlWire::new(client);
            // Any outcome is fine as long as there is one: no panic and no endless wait.
            let _ = opened(&mut wire, &tcp("secret")).await;
        });
    }
}

/// The server's packets in logins that succeed.
fn good_logins() -> Vec<Vec<Vec<u8>>> {
    let switch = |plugin: &str| [&[0xfe], plugin.as_bytes(), b"\0", OTHER_NONCE, b"\0"].concat();
    let greets = |plugin: &str| packet(0, &greeting(plugin));
    let says = |number: u8, payload: Vec<u8>| packet(number, &payload);
    let key = key(auth::TEST_KEY);
    vec![
        vec![greets("mysql_native_password"), says(2, ok(0))],
        vec![greets("caching_sha2_password"), [says(2, vec![1, 3]), says(3, ok(0))].concat()],
        vec![greets("caching_sha2_password"), says(2, vec![1, 4]), says(4, key.clone()), says(6, ok(0))],
        vec![greets("sha256_password"), says(2, key), says(4, ok(0))],
        vec![greets("caching_sha2_password"), says(2, switch("mysql_native_password")), says(4, ok(0))],
        vec![greets("mysql_native_password"), says(2, error(1045, "Access denied"))],
    ]
}

fn outcome(answers: &[Vec<u8>], pieces: &[usize]) -> String {
    block_on(async {
        let mut wire = MysqlWire::new(Scripted::new(answers.to_vec(), pieces).greets());
        let outcome = opened(&mut wire, &trusting("secret")).await;
        assert!(wire.stream().widest <= 1 << 20, "room for {} bytes", wire.stream().widest);
        format!("{outcome:?}")
    })
}

#[test]
fn good_logins_succeed_in_any_pieces_and_fail_when_they_are_cut() {
    for (number, login) in good_logins().iter().enumerate() {
        for piece in [1, 2, 3, 7, usize::MAX] {
            let outcome = outcome(login, &[piece]);
            assert_eq!(outcome.starts_with("Ok"), number < 5, "{number}: {outcome}");
        }
        for part in 0..login.len() {
            for end in 0..login[part].len() {
                let mut cut = login[..=part].to_vec();
                cut[part].truncate(end);
                let outcome = outcome(&cut, &[3]);
                assert!(
                    outcome.starts_with("Err(Closed") || outcome.starts_with("Err(Malformed"),
                    "{outcome}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn damaged_logins_end_in_the_same_way_however_they_arrive(
        login in prop::sample::select(good_logins()),
        part: prop::sample::Index,
        damages in damages(),
        pieces in pieces(),
    ) {
        let mut login = login;
        let part = part.index(login.len());
        login[part] = damaged(login[part].clone(), &damages);
        prop_assert_eq!(outcome(&login, &[]), outcome(&login, &pieces));
    }
}
