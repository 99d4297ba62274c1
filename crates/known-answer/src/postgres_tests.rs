//! Tests of PostgreSQL exchanges, message by message and in pieces.

use super::*;

/// A session that is logged in.
fn logged_in() -> PostgresSession {
    let (answers, mut output) = (PostgresAnswers::new(1, 1, 2), Output::default());
    let mut session = PostgresSession::new(0, false);
    let tls = b"\0\0\0\x08\x04\xd2\x16\x2f";
    assert_eq!(session.next(tls, &answers, &mut output), ParsedInput::Done(8, RequestKind::Part));
    assert_eq!(output.bytes(), b"N");
    let startup = b"\0\0\0\x11\0\x03\0\0user\0me\0\0";
    assert_eq!(session.next(startup, &answers, &mut output), ParsedInput::Login(17));
    session.welcome(&mut output);
    assert!(output.bytes().ends_with(b"Z\0\0\0\x05I"));
    session
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, kind, |out| out.extend_from_slice(body));
    out
}

/// Kinds of the messages in the answer to `input`, with the state after each `Z`. Before each
/// message, the session gets each incomplete beginning of it and must wait for more.
fn answer_to(session: &mut PostgresSession, input: &[u8]) -> String {
    let (answers, mut output) = (PostgresAnswers::new(1, 1, 2), Output::default());
    let mut rest = input;
    while !rest.is_empty() {
        let length = 1 + u32::from_be_bytes(rest[1..5].try_into().expect("four bytes")) as usize;
        for end in 0..length {
            assert_eq!(session.next(&rest[..end], &answers, &mut output), ParsedInput::More, "{end}");
        }
        match session.next(rest, &answers, &mut output) {
            ParsedInput::Statement(used, work) => {
                assert_eq!(used, length);
                session.answer(work, &answers, &mut output);
            }
            ParsedInput::Done(used, _) => assert_eq!(used, length),
            step => panic!("{step:?}"),
        }
        rest = &rest[length..];
    }
    kinds(output.bytes())
}

fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while !bytes.is_empty() {
        kinds.push(char::from(bytes[0]));
        let length = 1 + u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes")) as usize;
        if bytes[0] == b'Z' {
            kinds.push(char::from(bytes[5]));
        }
        bytes = &bytes[length..];
    }
    kinds
}

fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Binds the unnamed portal to a statement, executes it and ends the exchange.
fn execute(name: &str) -> Vec<u8> {
    let bind = message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
    [bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
}

#[test]
fn query_texts_are_answered_and_the_transaction_state_is_reported() {
    let mut session = logged_in();
    assert_eq!(answer_to(&mut session, &query("SELECT 1")), "TDCZI");
    assert_eq!(answer_to(&mut session, &query("BEGIN")), "CZT");
    assert_eq!(answer_to(&mut session, &query("SELECT 1")), "TDCZT");
    assert_eq!(answer_to(&mut session, &query("UPDATE t SET a = 1")), "CZT");
    assert_eq!(answer_to(&mut session, &query("COMMIT")), "CZI");
    assert_eq!(answer_to(&mut session, &query("")), "IZI");
}

#[test]
fn a_prepared_statement_is_described_executed_and_closed() {
    let mut session = logged_in();
    let describe = [parse("s", "SELECT c FROM t WHERE id = $1"), message(b'D', b"Ss\0"), message(b'S', b"")];
    assert_eq!(answer_to(&mut session, &describe.concat()), "1tTZI");
    assert_eq!(answer_to(&mut session, &execute("s")), "2DCZI");
    assert_eq!(answer_to(&mut session, &[execute("s"), execute("s")].concat()), "2DCZI2DCZI", "pipelined");
    let close = [message(b'C', b"Ss\0"), message(b'S', b"")].concat();
    assert_eq!(answer_to(&mut session, &close), "3ZI");
    assert_eq!(answer_to(&mut session, &execute("s")), "EZI", "closed statements cannot be bound");
    let change = [parse("", "DELETE FROM t"), message(b'D', b"S\0"), execute("")].concat();
    assert_eq!(answer_to(&mut session, &change), "1tn2CZI");
}

#[test]
fn parameters_have_the_types_that_the_client_gives_or_are_text() {
    let mut session = logged_in();
    let (answers, mut output) = (PostgresAnswers::new(1, 1, 2), Output::default());
    let parse = message(b'P', b"\0SELECT $1, $2\0\0\x01\0\0\0\x17");
    session.next(&parse, &answers, &mut output);
    output.bytes().clear();
    session.next(&message(b'D', b"S\0"), &answers, &mut output);
    assert_eq!(output.bytes()[..15], *b"t\0\0\0\x0e\0\x02\0\0\0\x17\0\0\0\x19");
}

#[test]
fn after_an_error_messages_are_skipped_until_the_end_of_the_exchange() {
    let mut session = logged_in();
    answer_to(&mut session, &parse("s", "SELECT 1"));
    assert_eq!(answer_to(&mut session, &query("BEGIN")), "CZT");
    let (answers, mut output) = (PostgresAnswers::new(1, 1, 2), Output::default());
    let work = StatementRequest { kind: StatementKind::Rows, prepared: true };
    session.refuse(work, "40P01", &mut output);
    session.next(&message(b'B', b"\0s\0"), &answers, &mut output);
    session.next(&message(b'S', b""), &answers, &mut output);
    assert_eq!(kinds(output.bytes()), "EZE");
    assert_eq!(answer_to(&mut session, &execute("s")), "2EZE", "the transaction is aborted");
    assert_eq!(answer_to(&mut session, &query("SELECT 1")), "EZE");
    assert_eq!(answer_to(&mut session, &query("ROLLBACK")), "CZI");
}

#[test]
fn a_malformed_message_ends_the_connection() {
    let (answers, mut output) = (PostgresAnswers::new(1, 1, 2), Output::default());
    for bytes in [b"Q\0\0\0\x03".as_slice(), b"Q\x7f\xff\xff\xff", b"B\0\0\0\x05x", b"@\0\0\0\x04"] {
        let mut session = logged_in();
        assert_eq!(session.next(bytes, &answers, &mut output), ParsedInput::Close, "{bytes:?}");
    }
}

#[test]
fn connections_above_the_limit_are_refused_when_they_log_in() {
    let (answers, mut output) = (PostgresAnswers::new(1, 1, 2), Output::default());
    let mut session = PostgresSession::new(0, true);
    let startup = b"\0\0\0\x11\0\x03\0\0user\0me\0\0";
    assert_eq!(session.next(startup, &answers, &mut output), ParsedInput::Close);
    assert_eq!(kinds(output.bytes()), "E");
}

#[test]
fn rows_have_the_bytes_in_the_documentation() {
    let answers = PostgresAnswers::new(1, 1, 2);
    let description = b"T\0\0\0\x1b\0\x01c1\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0".as_slice();
    let rows = b"D\0\0\0\x0c\0\x01\0\0\0\x0212C\0\0\0\x0dSELECT 1\0".as_slice();
    assert_eq!(answers.description, description);
    assert_eq!(&answers.executed()[..], rows);
    assert_eq!(&answers.simple(true)[..], [description, rows, b"Z\0\0\0\x05T"].concat());
}

#[test]
fn first_messages_are_distinguished_however_they_are_cut() {
    let message = |code: u32, tail: &[u8]| {
        let length = 8 + tail.len() as u32;
        [&length.to_be_bytes(), code.to_be_bytes().as_slice(), tail].concat()
    };
    let login = message(3 << 16, b"user\0me\0\0");
    for end in 0..login.len() {
        assert_eq!(first(&login[..end]), First::More, "{end}");
    }
    assert_eq!(first(&login), First::Login { length: 17, newer: false });
    assert_eq!(first(&message((3 << 16) + 2, b"\0")), First::Login { length: 9, newer: true });
    assert_eq!(first(&message(TLS, b"")), First::Encryption(8));
    assert_eq!(first(&message(GSS, b"")), First::Encryption(8));
    assert_eq!(first(&message(CANCEL, &[0; 8])), First::Close);
    assert_eq!(first(&message(2 << 16, b"")), First::Close);
    assert_eq!(first(&[0; 8]), First::Close);
    assert_eq!(first(b"GET / HTTP/1.1"), First::Close);
}

#[test]
fn messages_have_the_bytes_in_the_documentation() {
    let mut out = Vec::new();
    put_complete(&mut out, b"SELECT 1");
    put_ready(&mut out, b'T');
    put_bare(&mut out, b'1');
    put_error(&mut out, "ERROR", "40P01", "no");
    assert_eq!(
        out,
        b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05T1\0\0\0\x04E\0\0\0\x1eSERROR\0VERROR\0C40P01\0Mno\0\0"
    );
}
