//! Tests of the scanner: answers in every shape, cut at every byte, and answers that no real server
//! sends.

use proptest::prelude::*;

use super::super::testing::{
    complete, error, fatal, message, notice, parameter, ready, row, short_row, two_columns,
};
use super::*;

/// The result of feeding bytes to a scanner.
#[derive(Debug)]
enum Outcome {
    Answer(Answer),
    CopyIn,
    PostgresFault(PostgresFault),
    /// The bytes ended before the answer did.
    Unfinished,
}

/// Feeds `bytes` to the scanner in pieces with these lengths (the last one repeated), as reads
/// would deliver them.
fn fed(form: RequestForm, bytes: &[u8], pieces: &[usize]) -> Outcome {
    let mut scanner = PostgresScanner::new(form);
    let (mut kept, mut arrived) = (0, 0);
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(*pieces.last().unwrap_or(&1)));
    while arrived < bytes.len() {
        arrived = (arrived + pieces.next().unwrap_or(1).max(1)).min(bytes.len());
        match scanner.scan(&bytes[kept..arrived]) {
            Ok((done, step)) => {
                assert!(done <= arrived - kept);
                kept += done;
                match step {
                    PostgresScanStep::More => {}
                    PostgresScanStep::Done => {
                        return scanner.finish().map_or_else(Outcome::PostgresFault, Outcome::Answer);
                    }
                    PostgresScanStep::CopyIn => return Outcome::CopyIn,
                }
            }
            Err(fault) => return Outcome::PostgresFault(fault),
        }
    }
    Outcome::Unfinished
}

fn whole(form: RequestForm, messages: &[Vec<u8>]) -> Outcome {
    let bytes = messages.concat();
    fed(form, &bytes, &[bytes.len()])
}

/// Checks that the answer is the same wherever the bytes are cut, and complete only with the last
/// byte.
fn check(form: RequestForm, messages: &[Vec<u8>], rows: u64, affected: u64, warnings: u16) {
    let bytes = messages.concat();
    let copied_out = messages.iter().any(|message| message[0] == b'H');
    let expected = Answer { rows, affected, bytes: bytes.len() as u64, warnings, copied_out };
    let answer = |pieces: &[usize]| match fed(form, &bytes, pieces) {
        Outcome::Answer(answer) => answer,
        other => panic!("{pieces:?}: {other:?}"),
    };
    for cut in 1..bytes.len() {
        assert_eq!(answer(&[cut, bytes.len()]), expected, "cut at {cut}");
        assert!(matches!(fed(form, &bytes[..cut], &[cut]), Outcome::Unfinished), "{cut} bytes are no answer");
    }
    assert_eq!(answer(&[bytes.len()]), expected);
    assert_eq!(answer(&[1]), expected, "byte by byte");
}

fn bound() -> Vec<u8> {
    message(b'2', b"")
}

#[test]
fn rows_changed_are_those_of_the_tag() {
    check(RequestForm::Query, &[complete("INSERT 0 100"), ready()], 0, 100, 0);
    check(RequestForm::Query, &[complete("CREATE TABLE"), ready()], 0, 0, 0);
    check(RequestForm::Execute, &[bound(), complete("DELETE 50"), ready()], 0, 50, 0);
}

#[test]
fn rows_are_counted() {
    let rows = [two_columns(), short_row(), row(&[None, None]), complete("SELECT 2"), ready()];
    check(RequestForm::Query, &rows, 2, 0, 0);
    check(RequestForm::Query, &[two_columns(), complete("SELECT 0"), ready()], 0, 0, 0);
    check(RequestForm::Execute, &[bound(), short_row(), short_row(), complete("SELECT 2"), ready()], 2, 0, 0);
    check(RequestForm::Query, &[two_columns(), short_row(), complete("INSERT 0 1"), ready()], 1, 1, 0);
}

#[test]
fn an_empty_statement_is_answered() {
    check(RequestForm::Query, &[message(b'I', b""), ready()], 0, 0, 0);
    check(RequestForm::Execute, &[bound(), message(b'I', b""), ready()], 0, 0, 0);
}

#[test]
fn several_statements_in_one_text_are_read_to_the_last() {
    let messages = [
        complete("INSERT 0 3"),
        two_columns(),
        short_row(),
        complete("SELECT 1"),
        complete("UPDATE 4"),
        ready(),
    ];
    check(RequestForm::Query, &messages, 1, 7, 0);
}

#[test]
fn notices_are_counted_and_what_comes_at_any_time_is_passed_over() {
    for form in [RequestForm::Query, RequestForm::Execute] {
        let mut messages = vec![short_row(), short_row(), complete("SELECT 2"), ready()];
        if form == RequestForm::Execute {
            messages.insert(0, bound());
        }
        for at in 0..messages.len() {
            let mut with = messages.clone();
            with.insert(at, notice("relation does not exist, skipping"));
            with.insert(at, parameter("TimeZone", "UTC"));
            with.insert(at, message(b'A', b"\0\0\0\x07channel\0payload\0"));
            check(form, &with, 2, 0, 1);
        }
    }
}

#[test]
fn rows_copied_out_are_counted_once() {
    let copy = [
        message(b'H', b"\0\0\x01\0\0"),
        message(b'd', b"1\n"),
        message(b'd', b"2\n"),
        message(b'c', b""),
        complete("COPY 2"),
        complete("DELETE 5"),
        ready(),
    ];
    check(RequestForm::Query, &copy, 2, 5, 0);
}

#[test]
fn a_copy_from_the_client_is_handed_up() {
    let wants_rows = message(b'G', b"\0\0\x01\0\0");
    assert!(matches!(whole(RequestForm::Query, std::slice::from_ref(&wants_rows)), Outcome::CopyIn));
    assert!(matches!(whole(RequestForm::Execute, &[bound(), wants_rows]), Outcome::CopyIn));
}

#[test]
fn long_rows_are_passed_over_in_any_pieces() {
    let long = vec![b'x'; 20_000_000];
    let bytes = [two_columns(), row(&[Some(&long)]), short_row(), complete("SELECT 2"), ready()].concat();
    for piece in [bytes.len(), 1 << 16, 4099] {
        match fed(RequestForm::Query, &bytes, &[piece]) {
            Outcome::Answer(answer) => assert_eq!((answer.rows, answer.bytes), (2, bytes.len() as u64)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_error_is_reported_in_every_phase_but_only_when_the_server_is_ready_again() {
    let query = vec![two_columns(), short_row(), complete("SELECT 1")];
    let execute = vec![bound(), short_row(), complete("INSERT 0 1")];
    for (form, phases) in [(RequestForm::Query, query), (RequestForm::Execute, execute)] {
        for cut in 0..=phases.len() {
            let mut messages = phases[..cut].to_vec();
            messages.push(error("23505", "duplicate key"));
            assert!(matches!(whole(form, &messages), Outcome::Unfinished), "after {cut}");
            messages.push(ready());
            match whole(form, &messages) {
                Outcome::PostgresFault(PostgresFault::Server(PostgresServerError::Reported(report))) => {
                    assert_eq!(report.state, "23505")
                }
                other => panic!("after {cut} messages: {other:?}"),
            }
        }
    }
}

#[test]
fn an_error_that_ends_the_session_is_reported_at_once() {
    let bytes = fatal("57P01", "terminating connection due to administrator command");
    for form in [RequestForm::Query, RequestForm::Execute] {
        match fed(form, &bytes, &[3]) {
            Outcome::PostgresFault(PostgresFault::Server(PostgresServerError::Ended(report))) => {
                assert_eq!(report.state, "57P01")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn answers_that_break_the_protocol_are_distinguished() {
    let malformed = |form, messages: &[Vec<u8>]| match whole(form, messages) {
        Outcome::PostgresFault(PostgresFault::Malformed(what)) => what,
        other => panic!("{other:?}"),
    };
    insta::assert_snapshot!(malformed(RequestForm::Query, &[ready()]), @"an end without an answer");
    insta::assert_snapshot!(malformed(RequestForm::Execute, &[bound(), ready()]), @"an end without an answer");
    insta::assert_snapshot!(malformed(RequestForm::Query, &[bound()]), @"a message that belongs to another answer");
    insta::assert_snapshot!(malformed(RequestForm::Query, &[b"D\0\0\0\x01".to_vec()]), @"a message of an impossible length");
    insta::assert_snapshot!(malformed(RequestForm::Query, &[b"C\x10\0\0\0".to_vec()]), @"a control message of more than 64 KiB");
    insta::assert_snapshot!(malformed(RequestForm::Query, &[message(b'E', b"M\0\0")]), @"an error without SQLSTATE");
    for (form, messages) in [
        (RequestForm::Execute, vec![short_row()]),
        (RequestForm::Execute, vec![complete("SELECT 1")]),
        (RequestForm::Execute, vec![bound(), bound()]),
        (RequestForm::Execute, vec![bound(), complete("SELECT 0"), short_row()]),
        (RequestForm::Execute, vec![bound(), complete("SELECT 0"), complete("SELECT 0")]),
        (RequestForm::Query, vec![error("42601", "x"), short_row()]),
        (RequestForm::Query, vec![message(b'R', b"\0\0\0\0")]),
        (RequestForm::Query, vec![message(b'W', b"\0\0\0")]),
    ] {
        assert_eq!(malformed(form, &messages), "a message that belongs to another answer", "{messages:?}");
    }
}

/// Bytes that look like messages often enough to get past the first checks.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..12))
            .prop_map(|(kind, body)| message(kind, &body)),
        Just(bound()),
        Just(short_row()),
        Just(two_columns()),
        Just(complete("INSERT 0 5")),
        Just(error("40001", "again")),
        Just(notice("n")),
        Just(ready()),
    ];
    let tail = prop::collection::vec(any::<u8>(), 0..12);
    (prop::collection::vec(piece, 0..12), tail).prop_map(|(pieces, tail)| [pieces.concat(), tail].concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_give_the_same_outcome_however_they_are_cut(
        bytes in hostile(),
        executes: bool,
        pieces in prop::collection::vec(1..9_usize, 1..30),
    ) {
        let form = if executes { RequestForm::Execute } else { RequestForm::Query };
        let at_once = fed(form, &bytes, &[bytes.len().max(1)]);
        let in_pieces = fed(form, &bytes, &pieces);
        prop_assert_eq!(format!("{at_once:?}"), format!("{in_pieces:?}"));
    }
}
