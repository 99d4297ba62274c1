//! Tests of logins, against a server that follows a script.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::Secret;
use super::super::testing::{fatal, message, notice, startup, welcome};
use super::*;
use crate::Class;
use crate::scripted::{Scripted, block_on, cases, damaged, damages, pieces};

fn socket(password: &str) -> LoginOptions {
    LoginOptions::socket("/run/.s.PGSQL.5432", "bench")
        .with_password(Secret::new(password))
        .with_database("ib")
}

fn tcp(password: &str) -> LoginOptions {
    LoginOptions::tcp("db.example", 5432, "bench").with_password(Secret::new(password))
}

/// An authentication request.
fn asks(request: u32, data: &[u8]) -> Vec<u8> {
    message(b'R', &[&request.to_be_bytes(), data].concat())
}

async fn exactly(stream: &mut DuplexStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).await.expect("words of the client");
    bytes
}

/// Receives the client's start-up message.
async fn received_startup(stream: &mut DuplexStream) -> Vec<u8> {
    let length = exactly(stream, 4).await;
    let count = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize - 4;
    [length, exactly(stream, count).await].concat()
}

/// Receives the body of the client's next message, which proves the password.
async fn received_proof(stream: &mut DuplexStream) -> Vec<u8> {
    let head = exactly(stream, 5).await;
    assert_eq!(head[0], b'p');
    exactly(stream, u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4).await
}

/// Acts as a server that sends each part of `script` once the client has sent something. Returns
/// the outcome and the client's messages.
async fn played(
    options: &LoginOptions,
    script: &[Vec<u8>],
) -> (Result<PostgresHandshake, PostgresFault>, Vec<Vec<u8>>) {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let mut wire = PostgresWire::new(client);
    let serve = async move {
        let mut received = vec![received_startup(&mut server).await];
        for (index, part) in script.iter().enumerate() {
            server.write_all(part).await.expect("an answer is sent");
            if index + 1 < script.len() {
                received.push(received_proof(&mut server).await);
            }
        }
        received
    };
    let (outcome, received) =
        tokio::join!(login(&mut wire, options, Channel::new(options, false), Binding::Impossible), serve);
    (outcome, received)
}

fn admitted() -> Vec<u8> {
    [asks(OK, b""), welcome()].concat()
}

fn reported(outcome: Result<PostgresHandshake, PostgresFault>) -> String {
    let fault = outcome.expect_err("a refusal");
    format!("{:?}: {fault}", fault.class())
}

#[tokio::test]
async fn the_start_names_user_database_and_encoding() {
    let (agreed, received) = played(&socket(""), &[[notice("hello"), admitted()].concat()]).await;
    let agreed = agreed.expect("a login");
    assert_eq!((agreed.version.as_str(), agreed.backend), ("15.19", 0x1234));
    let with_database = startup(&[
        ("user", "bench"),
        ("database", "ib"),
        ("application_name", "dbdyno"),
        ("client_encoding", "UTF8"),
    ]);
    assert_eq!(received[0], with_database);
    let (_, received) = played(&tcp(""), &[admitted()]).await;
    assert!(!received[0].windows(8).any(|window| window == b"database"));
}

#[tokio::test]
async fn a_plaintext_password_is_never_sent_over_tcp() {
    let script = [asks(CLEARTEXT, b""), admitted()];
    let (agreed, received) = played(&socket("secret"), &script).await;
    agreed.expect("a login");
    assert_eq!(received[1], b"secret\0");
    let (outcome, _) = played(&tcp("secret"), &script[..1]).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the server wants the password in plaintext, which dbdyno sends only over a unix socket or over required TLS (tls mode require or verify); use one of these, or set the method scram-sha-256 in pg_hba.conf");
}

#[tokio::test]
async fn an_md5_password_is_hashed_with_user_and_salt() {
    let (agreed, received) = played(&tcp("secret"), &[asks(MD5, b"salt"), admitted()]).await;
    agreed.expect("a login");
    // The expected value is "md5" + hex(md5(hex(md5("secret" + "bench")) + "salt")), computed with
    // another tool.
    assert_eq!(String::from_utf8_lossy(&received[1]), "md576820aef5b65ee17efcd84bebe25b079\0");
}

#[tokio::test]
async fn scram_goes_on_only_with_a_server_that_proves_itself() {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let mut wire = PostgresWire::new(client);
    let serve = async move {
        received_startup(&mut server).await;
        server.write_all(&asks(SASL, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")).await.expect("sent");
        let first = received_proof(&mut server).await;
        assert!(first.starts_with(b"SCRAM-SHA-256\0\0\0\0"), "{first:?}");
        let first = String::from_utf8(first[18..].to_vec()).expect("text");
        assert!(first.starts_with("n,,n="), "{first}");
        let nonce = first.split("r=").nth(1).expect("a nonce");
        let challenge = format!("r={nonce}more,s=c2FsdA==,i=4096");
        server.write_all(&asks(SASL_CONTINUE, challenge.as_bytes())).await.expect("sent");
        let last = String::from_utf8(received_proof(&mut server).await).expect("text");
        assert!(last.starts_with(&format!("c=biws,r={nonce}more,p=")), "{last}");
        let forged = b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        server.write_all(&asks(SASL_FINAL, forged)).await.expect("sent");
    };
    let options = tcp("secret");
    let (outcome, ()) =
        tokio::join!(login(&mut wire, &options, Channel::new(&options, false), Binding::Impossible), serve);
    insta::assert_snapshot!(reported(outcome), @"Fatal: the server cannot prove that it knows the password: another server may be answering in its place");
}

#[tokio::test]
async fn a_server_that_admits_in_the_middle_of_scram_is_not_believed() {
    let script = [asks(SASL, b"SCRAM-SHA-256\0\0"), admitted()];
    let (outcome, _) = played(&tcp("secret"), &script).await;
    assert!(reported(outcome).contains("without the server's part of the proof"));
}

#[tokio::test]
async fn unsupported_methods_are_refused_with_a_reason() {
    let (outcome, _) = played(&tcp("secret"), &[asks(7, b"")]).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the server wants authentication by GSSAPI, which dbdyno does not support; set the method scram-sha-256 for this user in pg_hba.conf");
    let (outcome, _) = played(&tcp("secret"), &[asks(SASL, b"OAUTHBEARER\0\0")]).await;
    insta::assert_snapshot!(reported(outcome), @"Fatal: the server offers the authentication mechanisms OAUTHBEARER only, none of which dbdyno supports; use an account with scram-sha-256 or md5");
}

#[tokio::test]
async fn a_refusal_is_reported_with_the_class_of_its_state() {
    for (state, class) in
        [("28P01", Class::Fatal), ("3D000", Class::Fatal), ("53300", Class::Refused), ("57P03", Class::Lost)]
    {
        let (outcome, _) = played(&tcp("secret"), &[fatal(state, "no")]).await;
        assert_eq!(reported(outcome), format!("{class:?}: server said: no"));
    }
    let (outcome, _) = played(&tcp("secret"), &[[asks(OK, b""), fatal("3D000", "no")].concat()]).await;
    assert_eq!(reported(outcome), "Fatal: server said: no");
}

#[tokio::test]
async fn logins_that_break_the_protocol_end() {
    for script in [
        vec![asks(MD5, b"sal")],
        vec![message(b'R', b"\0\0")],
        vec![asks(SASL_CONTINUE, b"r=x")],
        vec![asks(SASL, b"SCRAM-SHA-256\0\0"), asks(SASL_CONTINUE, b"nonsense")],
        vec![asks(MD5, b"salt"), asks(MD5, b"salt")],
        vec![welcome()],
        vec![[admitted(), welcome()].concat()[..40].to_vec(), vec![]],
        vec![notice("again").repeat(2 * LONGEST_LOGIN)],
        vec![b"\x4a\0\0\0\x0a8.0.31\0".to_vec(), vec![]],
    ] {
        let options = tcp("secret");
        let (client, mut server) = tokio::io::duplex(1 << 20);
        let mut wire = PostgresWire::new(client);
        server.write_all(&script.concat()).await.expect("room in the pipe");
        server.shutdown().await.expect("an end");
        assert_eq!(
            login(&mut wire, &options, Channel::new(&options, false), Binding::Impossible)
                .await
                .expect_err("no login")
                .class(),
            Class::Lost,
            "{script:?}"
        );
    }
}

proptest! {
    #[test]
    fn a_login_with_arbitrary_bytes_ends(
        script in prop::collection::vec(
            prop_oneof![
                (0..16_u32, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(request, data)| asks(request, &data)),
                prop::collection::vec(any::<u8>(), 0..60),
                Just(asks(SASL, b"SCRAM-SHA-256\0\0")),
                Just(welcome()),
            ],
            0..6,
        ),
        password in ".{0,10}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (client, mut server) = tokio::io::duplex(1 << 16);
            server.write_all(&script.concat()).await.expect("room in the pipe");
            server.shutdown().await.expect("an end");
            let mut wire = PostgresWire::new(client);
            // Any outcome is fine as long as there is one: no panic and no endless wait.
            let options = socket(&password);
            let _ = login(&mut wire, &options, Channel::new(&options, false), Binding::Impossible).await;
        });
    }
}

/// Logins that succeed, as far as they can be scripted. SCRAM is missing, because the server must
/// repeat the client's random number.
fn good_logins() -> Vec<Vec<Vec<u8>>> {
    let parameters = || [welcome(), message(b'v', b"\0\0\0\0\0\0\0\0")].concat();
    vec![
        vec![[asks(OK, b""), parameters()].concat()],
        vec![asks(MD5, b"salt"), admitted()],
        vec![asks(CLEARTEXT, b""), admitted()],
        vec![
            asks(SASL, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
            asks(SASL_CONTINUE, b"r=x,s=c2FsdA==,i=4096"),
        ],
        vec![message(b'E', b"SFATAL\0VFATAL\0C28P01\0Mno\0\0")],
    ]
}

fn outcome(answers: &[Vec<u8>], pieces: &[usize]) -> String {
    block_on(async {
        let mut wire = PostgresWire::new(Scripted::new(answers.to_vec(), pieces));
        let options = socket("secret");
        let outcome = login(&mut wire, &options, Channel::new(&options, false), Binding::Impossible).await;
        assert!(wire.stream().widest <= 1 << 20, "room for {} bytes", wire.stream().widest);
        format!("{outcome:?}")
    })
}

#[test]
fn good_logins_succeed_in_any_pieces_and_fail_when_they_are_cut() {
    for (number, login) in good_logins().iter().enumerate() {
        for piece in [1, 2, 3, 7, usize::MAX] {
            let outcome = outcome(login, &[piece]);
            assert_eq!(outcome.starts_with("Ok"), number < 3, "{number}: {outcome}");
        }
        for part in 0..login.len() {
            // Bytes after the end of a login belong to the session.
            let needed = login[part].len() - if number == 0 { 13 } else { 0 };
            for end in 0..needed {
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
