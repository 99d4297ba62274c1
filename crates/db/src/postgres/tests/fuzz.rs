//! Fuzz targets: logins, and answers to all kinds of statements.

use super::super::Secret;
use super::super::testing::{
    complete, described, error, fatal, message, notice, parameter, ready, row, short_row, two_columns,
    welcome,
};
use super::model_tests::{connection, preparation};
use super::*;
use crate::Class;
use crate::fuzz::{Conversation, Random, fuzz};
use crate::options::Channel;
use crate::postgres::login::Binding;
use crate::scripted::{Scripted, block_on};

const PASSWORD: &str = "hunter2 of the fuzz";

/// Largest buffer, in bytes, that a client may offer to one read.
const ROOM: usize = 1 << 20;

/// Placeholder for the client's nonce, with the same length.
const NONCE: &[u8] = b"NNNNNNNNNNNNNNNNNNNNNNNN";

fn place(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Puts the nonce that the client has sent into an answer.
fn fit(received: &[u8], answer: &mut [u8]) {
    let nonce = place(received, b"r=").and_then(|at| received.get(at + 2..at + 2 + NONCE.len()));
    if let (Some(nonce), Some(at)) = (nonce, place(answer, NONCE)) {
        answer[at..at + NONCE.len()].copy_from_slice(nonce);
    }
}

/// An authentication request.
fn asks(request: u8, data: &[u8]) -> Vec<u8> {
    message(b'R', &[&[0, 0, 0, request], data].concat())
}

fn logins() -> Vec<Conversation> {
    let admitted = || [asks(0, b""), welcome()].concat();
    let mechanisms = || asks(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let goes_on = || asks(11, &[b"r=", NONCE, b"more,s=c2FsdA==,i=2"].concat());
    vec![
        vec![admitted()],
        vec![[notice("hello"), asks(0, b""), message(b'v', &[0; 8]), welcome()].concat()],
        vec![asks(5, b"salt"), admitted()],
        vec![asks(3, b""), admitted()],
        vec![mechanisms(), goes_on(), [asks(12, b"v=c2FsdA=="), admitted()].concat()],
        vec![mechanisms(), goes_on(), asks(12, b"e=invalid-proof")],
        vec![mechanisms(), goes_on(), fatal("28P01", "no")],
        vec![fatal("3D000", "no such database")],
        vec![asks(0, b""), fatal("53300", "too many connections")],
    ]
}

fn log_in(conversation: &Conversation, draws: &mut Random) -> &'static str {
    let options = match draws.below(2) {
        0 => LoginOptions::socket("/run/.s.PGSQL.5432", "bench"),
        _ => LoginOptions::tcp("db.example", 5432, "bench"),
    };
    let options = options.with_password(Secret::new(PASSWORD));
    let binding = [Binding::Impossible, Binding::EndPoint(vec![7; 32])][draws.below(2)].clone();
    let attempt = |pieces: &[usize]| {
        let mut wire = PostgresWire::new(Scripted::new(conversation.clone(), pieces).fitting(fit));
        let channel = Channel::new(&options, false);
        let outcome = block_on(login(&mut wire, &options, channel, binding.clone()));
        let stream = wire.stream();
        assert!(stream.widest <= ROOM, "room for {} bytes", stream.widest);
        let is_reported = stream.received.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
        assert!(channel.is_local || !is_reported, "the password went out over TCP");
        outcome
    };
    let ending = ending(attempt(&draws.pieces()));
    // The client's nonce differs each time, and damage may put it where a length or a request
    // belongs.
    let repeats_nonce = conversation.iter().any(|part| place(part, NONCE).is_some());
    if !repeats_nonce && draws.below(8) == 0 {
        assert_eq!(ending, self::ending(attempt(&[])), "it depends on how the bytes arrive");
    }
    ending
}

fn ending(outcome: Result<PostgresHandshake, PostgresFault>) -> &'static str {
    match outcome {
        Ok(_) => "logged in",
        Err(PostgresFault::Closed) => "cut",
        Err(PostgresFault::Malformed(_)) => "malformed",
        Err(PostgresFault::TooLarge(_)) => "too large",
        Err(PostgresFault::Server(PostgresServerError::Reported(_) | PostgresServerError::Ended(_))) => {
            "refused by the server"
        }
        Err(_) => "refused by the client",
    }
}

#[test]
fn postgres_login() {
    let endings =
        ["logged in", "cut", "malformed", "too large", "refused by the server", "refused by the client"];
    fuzz("postgres::session::fuzz::postgres_login", &logins(), 0, &endings, log_in);
}

fn results() -> Vec<Conversation> {
    let bound = || message(b'2', b"");
    let rows = || [two_columns(), short_row(), row(&[Some(b"hello"), Some(b"")])].concat();
    let done = || [complete("SELECT 2"), ready()].concat();
    let copy = || message(b'G', b"\0\0\x01\0\0");
    vec![
        vec![[rows(), done()].concat()],
        vec![[rows(), complete("SELECT 2"), complete("INSERT 0 7"), notice("n"), rows(), done()].concat()],
        vec![[rows(), error("40001", "again"), ready()].concat()],
        vec![[parameter("a", "b"), message(b'I', b""), ready()].concat()],
        vec![fatal("57P01", "terminating")],
        vec![
            [
                message(b'H', b"\0\0\0"),
                message(b'd', b"1\n"),
                message(b'c', b""),
                complete("COPY 1"),
                ready(),
            ]
            .concat(),
        ],
        vec![copy(), [complete("COPY 1"), ready()].concat()],
        vec![copy(), [error("22P02", "no"), ready()].concat()],
        vec![preparation(), [bound(), complete("UPDATE 3"), ready()].concat()],
        vec![preparation(), [bound(), row(&[Some(b"7")]), done()].concat()],
        vec![described(&[20, 25]).concat(), [bound(), row(&[None]), done()].concat()],
        vec![
            [message(b'1', b""), message(b't', b"\0\0"), message(b'n', b""), ready()].concat(),
            [bound(), done()].concat(),
        ],
    ]
}

fn answer(conversation: &Conversation, draws: &mut Random) -> &'static str {
    let (kind, sent) = (draws.below(4), conversation.iter().map(Vec::len).sum::<usize>());
    let ask = |pieces: &[usize]| {
        let mut session = connection(conversation.clone(), pieces);
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
                _ => session.copy_in("COPY t FROM STDIN", ["1\n", "2\n"]).await,
            }
        });
        let widest = session.wire.stream().widest;
        assert!(widest <= ROOM, "room for {widest} bytes");
        outcome
    };
    let outcome = ask(&draws.pieces());
    // If extra bytes after the answer to a prepare have arrived, the session notices them before
    // its next command. It notices an early refusal of a COPY as soon as that arrives. Both depend
    // on when the bytes arrive, so this check skips them.
    if kind < 2 && draws.below(8) == 0 {
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
fn postgres_results() {
    let endings = ["answered", "lost", "refused"];
    fuzz("postgres::session::fuzz::postgres_results", &results(), 0, &endings, answer);
}
