//! Tests of MySQL exchanges, byte by byte and in pieces.

use super::*;

const SELECT: &[u8] = b"\x09\0\0\0\x03SELECT 1";
/// An OK packet without affected rows, with autocommit.
const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";

/// A session that is logged in. Its answers have one row with one column of two bytes.
fn logged_in(deprecate_eof: bool) -> (MysqlSession, MysqlAnswers, Output) {
    let (answers, mut output) = (MysqlAnswers::new(1, 1, 2), Output::default());
    let mut session = MysqlSession::greet(0, true, &mut output);
    let flags = if deprecate_eof { DEPRECATE_EOF } else { 0 };
    let payload = [&(0x8200 | flags).to_le_bytes(), [0; 28].as_slice(), b"me\0\0"].concat();
    let packet = [&[payload.len() as u8, 0, 0, 1], payload.as_slice()].concat();
    for end in 0..packet.len() {
        assert_eq!(session.next(&packet[..end], &answers, &mut output), ParsedInput::More);
    }
    assert_eq!(session.next(&packet, &answers, &mut output), ParsedInput::Login(packet.len()));
    output.bytes().clear();
    session.welcome(&mut output);
    assert_eq!(output.bytes(), b"\x07\0\0\x02\0\0\0\x02\0\0\0");
    output.bytes().clear();
    (session, answers, output)
}

/// The answer to `packet`. Before that, the session gets each incomplete beginning of the packet
/// and must wait for more.
fn answer_to(session: &mut MysqlSession, packet: &[u8]) -> Vec<u8> {
    let (answers, mut output) = (MysqlAnswers::new(1, 1, 2), Output::default());
    for end in 0..packet.len() {
        assert_eq!(session.next(&packet[..end], &answers, &mut output), ParsedInput::More, "{end}");
    }
    match session.next(packet, &answers, &mut output) {
        ParsedInput::Statement(length, work) => {
            assert_eq!(length, packet.len());
            session.answer(work, &answers, &mut output);
        }
        ParsedInput::Done(length, _) => assert_eq!(length, packet.len()),
        step => panic!("{step:?}"),
    }
    output.bytes().clone()
}

fn command(command: u8, body: &[u8]) -> Vec<u8> {
    [&[body.len() as u8 + 1, 0, 0, 0, command], body].concat()
}

#[test]
fn commands_have_the_answers_in_the_documentation() {
    let (mut session, ..) = logged_in(true);
    assert_eq!(answer_to(&mut session, &command(PING, b"")), OK);
    assert_eq!(answer_to(&mut session, &command(INIT_DB, b"test")), OK);
    assert_eq!(answer_to(&mut session, &command(QUERY, b"DROP TABLE t")), OK);
    assert_eq!(answer_to(&mut session, &command(SET_OPTION, b"\0\0")), b"\x07\0\0\x01\xfe\0\0\x02\0\0\0");
    assert_eq!(answer_to(&mut session, &command(QUERY, b"UPDATE t"))[4..6], [0, 1], "one row is affected");
    assert_eq!(answer_to(&mut session, &command(QUERY, b"BEGIN"))[7], 3, "in a transaction");
    assert_eq!(answer_to(&mut session, &command(QUERY, b"COMMIT"))[7], 2);
    assert_eq!(answer_to(&mut session, &command(0x77, b""))[4..7], [0xff, 0x17, 0x04], "unknown command");
    assert_eq!(answer_to(&mut session, &command(QUERY, b" "))[4..7], [0xff, 0x29, 0x04], "empty query");
}

#[test]
fn the_end_of_rows_has_the_form_that_the_client_asked_for() {
    for (deprecate_eof, end) in [(true, b"\xfe\0\0\x02\0\0\0".as_slice()), (false, b"\xfe\0\0\x02\0")] {
        let (mut session, ..) = logged_in(deprecate_eof);
        let rows = answer_to(&mut session, SELECT);
        assert!(rows.ends_with(end), "{rows:?}");
        let ends = rows.windows(3).filter(|window| *window == [0xfe, 0, 0]).count();
        assert_eq!(ends, if deprecate_eof { 1 } else { 2 });
    }
}

#[test]
fn a_prepared_statement_lives_until_it_is_closed() {
    let (mut session, ..) = logged_in(true);
    let prepared = answer_to(&mut session, &command(PREPARE, b"SELECT c FROM t WHERE id=?"));
    assert_eq!(prepared[..16], *b"\x0c\0\0\x01\0\x01\0\0\0\x01\0\x01\0\0\0\0");
    let execute = command(EXECUTE, b"\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\x07\0\0\0\0\0\0\0");
    assert!(answer_to(&mut session, &execute).windows(5).any(|window| window == b"\0\0\x0212"));
    assert_eq!(answer_to(&mut session, &command(CLOSE, b"\x01\0\0\0")), b"");
    assert_eq!(answer_to(&mut session, &execute)[4..7], [0xff, 0xdb, 0x04], "unknown statement");
    assert_eq!(answer_to(&mut session, &command(EXECUTE, b"\0\0\0\0"))[4], 0xff);
    assert_eq!(answer_to(&mut session, &command(EXECUTE, b""))[4], 0xff);
}

#[test]
fn a_client_with_another_authentication_method_is_switched() {
    let (answers, mut output) = (MysqlAnswers::new(1, 1, 2), Output::default());
    let mut session = MysqlSession::greet(0, true, &mut output);
    output.bytes().clear();
    let payload =
        [&0x8_8200_u32.to_le_bytes(), [0; 28].as_slice(), b"me\0\0caching_sha2_password\0"].concat();
    let packet = [&[payload.len() as u8, 0, 0, 1], payload.as_slice()].concat();
    assert_eq!(
        session.next(&packet, &answers, &mut output),
        ParsedInput::Done(packet.len(), RequestKind::Part)
    );
    assert_eq!(output.bytes()[3..5], [2, 0xfe]);
    assert_eq!(session.next(b"\0\0\0\x03", &answers, &mut output), ParsedInput::Login(4));
    output.bytes().clear();
    session.welcome(&mut output);
    assert_eq!(output.bytes()[3..5], [4, 0]);
}

#[test]
fn a_message_of_more_than_16_mib_is_one_message() {
    let (mut session, answers, mut output) = logged_in(true);
    let mut bytes = b"\xff\xff\xff\0\x03SELECT ".to_vec();
    bytes.resize(HEADER + MAX_PAYLOAD, b'x');
    assert_eq!(session.next(&bytes, &answers, &mut output), ParsedInput::More);
    bytes.extend_from_slice(b"\x02\0\0\x01yy");
    let work = StatementRequest { kind: StatementKind::Rows, prepared: false };
    assert_eq!(session.next(&bytes, &answers, &mut output), ParsedInput::Statement(bytes.len(), work));
    session.answer(work, &answers, &mut output);
    assert_eq!(output.bytes()[3], 2, "numbered on from the request's last packet");
}

#[test]
fn a_message_that_is_too_large_ends_the_connection() {
    let (mut session, answers, mut output) = logged_in(true);
    let mut bytes = Vec::new();
    for number in 0..5 {
        bytes.extend_from_slice(&[0xff, 0xff, 0xff, number]);
        bytes.resize(bytes.len() + MAX_PAYLOAD, b'x');
    }
    assert_eq!(session.next(&bytes, &answers, &mut output), ParsedInput::Close);
    assert_eq!(output.bytes()[4..7], [0xff, 0x81, 0x04]);
}

#[test]
fn a_programmed_deadlock_ends_the_transaction() {
    let (mut session, answers, mut output) = logged_in(true);
    session.answer(StatementRequest { kind: StatementKind::Begin, prepared: false }, &answers, &mut output);
    session.refuse("1205", &mut output);
    assert!(session.in_transaction);
    output.bytes().clear();
    session.refuse("1213", &mut output);
    assert!(!session.in_transaction);
    assert_eq!(output.bytes()[4..13], *b"\xff\xbd\x04#40001");
}

#[test]
fn rows_have_the_bytes_in_the_documentation() {
    let answers = MysqlAnswers::new(1, 1, 2);
    let new = Form { binary: true, deprecate_eof: true, in_transaction: false };
    let old = Form { binary: false, deprecate_eof: false, in_transaction: true };
    let column = b"\x18\0\0\x02\x03def\0\0\0\x02c1\0\x0c\x2d\0\x08\0\0\0\xfd\0\0\0\0\0";
    let binary: &[&[u8]] =
        &[b"\x01\0\0\x01\x01", column, b"\x05\0\0\x03\0\0\x0212", b"\x07\0\0\x04\xfe\0\0\x02\0\0\0"];
    let text: &[&[u8]] = &[
        b"\x01\0\0\x01\x01",
        column,
        b"\x05\0\0\x03\xfe\0\0\x03\0",
        b"\x03\0\0\x04\x0212",
        b"\x05\0\0\x05\xfe\0\0\x03\0",
    ];
    assert_eq!(&answers.rows(new, 1)[..], binary.concat());
    assert_eq!(&answers.rows(old, 1)[..], text.concat());
    assert_eq!(answers.rows(old, 3)[3], 3, "a request of three packets is answered from number 3 on");
}

fn response(capabilities: u32, tail: &[u8]) -> Vec<u8> {
    [&capabilities.to_le_bytes(), [0; 28].as_slice(), tail].concat()
}

#[test]
fn a_greeting_has_the_bytes_in_the_documentation() {
    let mut out = Vec::new();
    put_greeting(&mut out, 6, true);
    assert_eq!(out[..5], [out.len() as u8 - 4, 0, 0, 0, 10]);
    let after_version = &out[5 + VERSION.len() + 1..];
    assert_eq!(&after_version[..4], &7_u32.to_le_bytes());
    assert_eq!(&after_version[4..12], b"dbdynokn");
    assert!(out.ends_with(b"\0ownanswer123\0mysql_native_password\0"));
}

#[test]
fn the_clients_method_is_found_after_password_and_database() {
    let all = OFFERED | DEPRECATE_EOF;
    let check = |capabilities, tail: &[u8], other_plugin| {
        let parsed = HandshakeResponse::parse(&response(capabilities, tail));
        assert_eq!(parsed, Some(HandshakeResponse { capabilities, other_plugin }), "{tail:?}");
    };
    check(all, b"me\0\x03abcdb\0mysql_native_password\0attributes", false);
    check(all, b"me\0\x03abcdb\0caching_sha2_password\0", true);
    check(all, b"me\0\0db\0caching_sha2_password", true);
    check(all & !CONNECT_WITH_DB, b"me\0\0mysql_native_password\0", false);
    check(all & !PLUGIN_AUTH, b"me\0\0db\0", false);
}

#[test]
fn a_truncated_response_is_rejected() {
    let whole = response(OFFERED, b"me\0\x03abcdb\0x");
    for end in 0..whole.len() - 1 {
        assert_eq!(HandshakeResponse::parse(&whole[..end]), None, "{end}");
    }
}

#[test]
fn a_packet_has_its_length_and_its_number_in_front() {
    let mut out = Vec::new();
    let mut packets = Packets::new(&mut out, 255);
    packets.ok(1, AUTOCOMMIT);
    packets.eof(AUTOCOMMIT | IN_TRANSACTION);
    assert_eq!(out, b"\x07\0\0\xff\0\x01\0\x02\0\0\0\x05\0\0\0\xfe\0\0\x03\0");
}

#[test]
fn a_payload_of_16_mib_and_more_is_continued() {
    let lengths = |payload: usize| {
        let mut out = Vec::new();
        Packets::new(&mut out, 7).put(|out| out.resize(out.len() + payload, b'x'));
        let mut found = Vec::new();
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let length = usize::from(rest[0]) | usize::from(rest[1]) << 8 | usize::from(rest[2]) << 16;
            found.push((length, rest[3]));
            rest = &rest[HEADER + length..];
        }
        found
    };
    assert_eq!(lengths(MAX_PAYLOAD - 1), [(MAX_PAYLOAD - 1, 7)]);
    assert_eq!(lengths(MAX_PAYLOAD), [(MAX_PAYLOAD, 7), (0, 8)]);
    assert_eq!(lengths(2 * MAX_PAYLOAD + 5), [(MAX_PAYLOAD, 7), (MAX_PAYLOAD, 8), (5, 9)]);
}

#[test]
fn numbers_take_as_few_bytes_as_they_need() {
    let put = |number| {
        let mut out = Vec::new();
        put_number(&mut out, number);
        out
    };
    assert_eq!(put(250), [250]);
    assert_eq!(put(251), [0xfc, 251, 0]);
    assert_eq!(put(0x1_0000), [0xfd, 0, 0, 1]);
    assert_eq!(put(0x100_0000), [0xfe, 0, 0, 0, 1, 0, 0, 0, 0]);
}
