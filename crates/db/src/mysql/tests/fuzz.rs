//! Fuzz targets: logins, and answers to all kinds of statements.

use super::super::login::{greeted, login};
use super::super::testing::{eof, error, greeting, ok, ok_and_more, packet, packets, result_set};
use super::super::{ConnectionSettings, Secret, ServerKey};
use super::model_tests::{connection, preparation};
use super::*;
use crate::Class;
use crate::fuzz::{Conversation, Random, fuzz};
use crate::mysql::auth::TEST_KEY;
use crate::mysql::wire::Form;
use crate::options::Channel;
use crate::scripted::{Scripted, block_on};

const PASSWORD: &str = "hunter2 of the fuzz";

/// Largest buffer, in bytes, that a client may offer to one read.
const ROOM: usize = 1 << 20;

/// Logins that succeed where the options allow it. The last four cost the client much time.
fn logins() -> Vec<Conversation> {
    let greets = |plugin: &str| packet(0, &greeting(plugin));
    let nonce = |length: usize| vec![b'n'; length];
    let switch = |plugin: &str, nonce: Vec<u8>| {
        packet(2, &[&[0xfe], plugin.as_bytes(), b"\0", &nonce[..], b"\0"].concat())
    };
    let key = |number: u8| packet(number, &[b"\x01", TEST_KEY.as_bytes()].concat());
    let fast = || [packet(2, &[1, 3]), packet(3, &ok(0))].concat();
    vec![
        vec![greets("mysql_native_password"), packet(2, &ok(0))],
        vec![greets("caching_sha2_password"), fast()],
        vec![greets("caching_sha2_password"), packet(2, &[1, 4]), packet(4, &ok(0))],
        vec![greets("dialog"), switch("mysql_native_password", nonce(20)), packet(4, &ok(0))],
        vec![greets("mysql_native_password"), switch("caching_sha2_password", nonce(20)), packet(4, &ok(0))],
        vec![greets("mysql_native_password"), switch("mysql_clear_password", nonce(20)), packet(4, &ok(0))],
        vec![greets("mysql_native_password"), packet(2, &error(1045, "Access denied"))],
        vec![packet(0, &error(1040, "Too many connections"))],
        vec![greets("mysql_native_password"), switch("client_ed25519", nonce(32)), packet(4, &ok(0))],
        vec![
            greets("mysql_native_password"),
            switch("parsec", nonce(32)),
            packet(4, b"P\x00salt of 18 bytes.."),
            packet(6, &ok(0)),
        ],
        vec![greets("caching_sha2_password"), packet(2, &[1, 4]), key(4), packet(6, &ok(0))],
        vec![greets("sha256_password"), key(2), packet(4, &ok(0))],
    ]
}

fn log_in(conversation: &Conversation, draws: &mut Random) -> &'static str {
    let password = Secret::new(PASSWORD);
    let options = match draws.below(3) {
        0 => LoginOptions::socket("/run/db.sock", "bench"),
        1 => LoginOptions::tcp("db.example", 3306, "bench"),
        _ => LoginOptions::tcp("db.example", 3306, "bench").with_connection_settings(ConnectionSettings {
            server_key: ServerKey::Retrieved,
            ..ConnectionSettings::default()
        }),
    };
    let options = options.with_password(password).with_database("ib");
    let attempt = |pieces: &[usize]| {
        let mut wire = MysqlWire::new(Scripted::new(conversation.clone(), pieces).greets());
        let channel = Channel::new(&options, false);
        let outcome = block_on(async {
            let greeting = greeted(&mut wire).await?;
            login(&mut wire, greeting, &options, channel).await
        });
        let stream = wire.stream();
        assert!(stream.widest <= ROOM, "room for {} bytes", stream.widest);
        let is_reported = stream.received.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
        assert!(channel.is_local || !is_reported, "the password went out over TCP");
        outcome
    };
    let outcome = attempt(&draws.pieces());
    if draws.below(8) == 0 {
        let reported = |outcome: &Result<MysqlHandshake, MysqlFault>| format!("{outcome:?}");
        assert_eq!(reported(&outcome), reported(&attempt(&[])), "it depends on how the bytes arrive");
    }
    match outcome {
        Ok(_) => "logged in",
        Err(MysqlFault::Closed) => "cut",
        Err(MysqlFault::Malformed(_)) => "malformed",
        Err(MysqlFault::TooLarge(_)) => "too large",
        Err(MysqlFault::Server(MysqlServerError::Reported { .. })) => "refused by the server",
        Err(_) => "refused by the client",
    }
}

#[test]
fn mysql_login() {
    let endings =
        ["logged in", "cut", "malformed", "too large", "refused by the server", "refused by the client"];
    fuzz("mysql::session::fuzz::mysql_login", &logins(), 4, &endings, log_in);
}

fn all_forms() -> [Form; 4] {
    [(false, false), (false, true), (true, false), (true, true)]
        .map(|(deprecate_eof, optional_definitions)| Form { deprecate_eof, optional_definitions })
}

fn results() -> Vec<Conversation> {
    let mut out = vec![
        vec![packets(&[ok(3)])],
        vec![packets(&[ok_and_more(), ok(0)])],
        vec![packets(&[error(1062, "Duplicate entry '1'")])],
        vec![packet(1, b"\xfb/etc/passwd"), Vec::new(), packet(4, &ok(0))],
    ];
    for new_form in [false, true] {
        let rows: [&[u8]; 3] = [b"\x03one\xfb", b"\x00\x012", b"\xfc\x05\x00hello\xfb"];
        let mut two = result_set(new_form, &rows, true);
        two.extend(result_set(new_form, &[b"\x01x\x01y"], false));
        out.push(vec![packets(&result_set(new_form, &rows, false))]);
        out.push(vec![packets(&two)]);
        let mut failed = result_set(new_form, &rows, false);
        failed.truncate(failed.len() - 1);
        failed.push(error(1317, "interrupted"));
        out.push(vec![packets(&failed)]);
    }
    for form in all_forms() {
        let definitions = [&[1][..], if form.optional_definitions { &[1] } else { &[] }].concat();
        let mut executed = vec![definitions, b"\x03def".to_vec()];
        executed.extend((!form.deprecate_eof).then(|| eof(false, 0, false)));
        executed.extend([b"\0\0\x017".to_vec(), eof(form.deprecate_eof, 0, false)]);
        out.push(vec![preparation(form), packets(&executed)]);
    }
    out
}

fn answer(conversation: &Conversation, draws: &mut Random) -> &'static str {
    let form = all_forms()[draws.below(4)];
    let (kind, sent) = (draws.below(4), conversation.iter().map(Vec::len).sum::<usize>());
    let ask = |pieces: &[usize]| {
        let mut session = connection(form, conversation.clone(), pieces);
        let outcome = block_on(async {
            match kind {
                0 => session.query(b"SELECT 1").await,
                1 => session.rows("SELECT 1").await.map(|cells| {
                    let kept: usize = cells.iter().flatten().flatten().map(String::len).sum();
                    // A byte that is no UTF-8 becomes a character with three bytes.
                    assert!(kept <= 3 * sent, "{kept} bytes of {sent}");
                    Answer::default()
                }),
                2 => match session.prepare("SELECT ?").await {
                    Ok(statement) => {
                        let params = vec![Param::Int(7); usize::from(statement.params)];
                        session.execute(statement, &params).await
                    }
                    Err(error) => Err(error),
                },
                _ => session.load_rows("LOAD DATA", b"1\t2\n").await,
            }
        });
        let widest = session.wire.stream().widest;
        assert!(widest <= ROOM, "room for {widest} bytes");
        outcome
    };
    let outcome = ask(&draws.pieces());
    // If extra bytes after the answer to a prepare have arrived, the session notices them before
    // its next command. The result then depends on when they arrive, so this check skips prepares.
    if kind != 2 && draws.below(8) == 0 {
        assert_eq!(outcome, ask(&[]), "it depends on how the bytes arrive");
    }
    match outcome {
        Ok(answer) => {
            assert!(answer.bytes <= sent as u64 && answer.rows <= answer.bytes, "{answer:?} of {sent} bytes");
            "answered"
        }
        Err(error) if error.class == Class::Lost => "lost",
        Err(_) => "refused",
    }
}

#[test]
fn mysql_results() {
    let endings = ["answered", "lost", "refused"];
    fuzz("mysql::session::fuzz::mysql_results", &results(), 0, &endings, answer);
}
