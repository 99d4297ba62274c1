//! Tests of the scanner: answers in every shape, cut at every byte, and answers that no real server
//! sends.

use proptest::prelude::*;

use super::super::fault::MysqlServerError;
use super::super::testing::{eof, error, ok, ok_and_more, packet, packets, result_set};
use super::*;

/// Feeds `bytes` to the scanner in pieces with these lengths (the last one repeated), as reads
/// would deliver them. Returns `None` when the bytes end before the answer does.
fn fed(new_form: bool, bytes: &[u8], pieces: &[usize]) -> Option<Result<Answer, MysqlFault>> {
    let form = Form { deprecate_eof: new_form, optional_definitions: false };
    fed_in(form, bytes, pieces)
}

/// Does the same as [`fed`], in any form.
fn fed_in(form: Form, bytes: &[u8], pieces: &[usize]) -> Option<Result<Answer, MysqlFault>> {
    let mut scanner = MysqlScanner::new(form, 1);
    let mut kept = 0;
    let mut arrived = 0;
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(*pieces.last().unwrap_or(&1)));
    while arrived < bytes.len() {
        arrived = (arrived + pieces.next().unwrap_or(1).max(1)).min(bytes.len());
        match scanner.scan(&bytes[kept..arrived]) {
            Ok((done, step)) => {
                assert!(done <= arrived - kept);
                kept += done;
                match step {
                    MysqlScanStep::More => {}
                    MysqlScanStep::Done => return Some(Ok(scanner.answer())),
                    MysqlScanStep::Failed(fault) => return Some(Err(fault)),
                    MysqlScanStep::LocalFile => {
                        return Some(Err(MysqlFault::Server(MysqlServerError::LocalFile)));
                    }
                }
            }
            Err(fault) => return Some(Err(fault)),
        }
    }
    None
}

fn whole(new_form: bool, payloads: &[Vec<u8>]) -> Result<Answer, MysqlFault> {
    let bytes = packets(payloads);
    fed(new_form, &bytes, &[bytes.len()]).expect("a complete answer")
}

/// Checks that the answer is the same wherever the bytes are cut, and complete only with the last
/// byte.
fn check(new_form: bool, payloads: &[Vec<u8>], rows: u64, affected: u64, warnings: u16) {
    let bytes = packets(payloads);
    let expected = Answer { rows, affected, bytes: bytes.len() as u64, warnings, ..Answer::default() };
    for cut in 1..=bytes.len() {
        let answer = fed(new_form, &bytes, &[cut, bytes.len()]).expect("complete").expect("an answer");
        assert_eq!(answer, expected, "cut at {cut}");
        assert!(
            cut == bytes.len() || fed(new_form, &bytes[..cut], &[cut]).is_none(),
            "{cut} bytes are no answer"
        );
    }
    assert_eq!(fed(new_form, &bytes, &[1]).expect("complete").expect("an answer"), expected, "byte by byte");
}

#[test]
fn definitions_may_be_left_out_where_that_was_agreed_and_only_there() {
    let rows = [b"\x00\x00\x07".to_vec(), b"\x00\x00\x08".to_vec()];
    for new_form in [false, true] {
        let form = Form { deprecate_eof: new_form, optional_definitions: true };
        let old_eof = (!new_form).then(|| eof(false, 0, false));
        let head =
            |follow: u8| [vec![vec![1, follow]], vec![b"column".to_vec(); usize::from(follow)]].concat();
        let answer = |follow| {
            let payloads = [
                head(follow),
                old_eof.clone().into_iter().collect(),
                rows.to_vec(),
                vec![eof(new_form, 3, false)],
            ];
            packets(&payloads.concat())
        };
        for follow in [0, 1] {
            let bytes = answer(follow);
            let expected = Answer { rows: 2, bytes: bytes.len() as u64, warnings: 3, ..Answer::default() };
            for cut in 1..=bytes.len() {
                let found = fed_in(form, &bytes, &[cut, bytes.len()]).expect("complete").expect("an answer");
                assert_eq!(found, expected, "{follow} definitions, cut at {cut}");
            }
            assert!(fed(new_form, &bytes, &[bytes.len()]).expect("an end").is_err(), "not agreed on");
        }
        assert!(fed_in(form, &packets(&[vec![1, 2]]), &[6]).expect("an end").is_err(), "no such word");
        assert!(fed_in(form, &packets(&[vec![1]]), &[5]).expect("an end").is_err(), "a word is missing");
    }
}

#[test]
fn an_ok_is_an_answer() {
    check(false, &[ok(3)], 0, 4, 3);
    check(true, &[ok(0)], 0, 1, 0);
}

#[test]
fn rows_are_counted_in_both_forms() {
    for new_form in [false, true] {
        check(new_form, &result_set(new_form, &[], false), 0, 0, 5);
        check(new_form, &result_set(new_form, &[b"\x011\xfb", b"\xfb\xfb", b"\x00\x00"], false), 3, 0, 5);
    }
}

#[test]
fn results_in_a_row_are_read_to_the_last() {
    for new_form in [false, true] {
        let mut payloads = result_set(new_form, &[b"\x011\xfb", b"\xfb\xfb"], true);
        payloads.push(ok_and_more());
        payloads.extend(result_set(new_form, &[b"\x011\xfb"], true));
        payloads.push(ok(2));
        check(new_form, &payloads, 3, 4 + 3, 2);
    }
}

#[test]
fn rows_of_one_packet_exactly_and_beyond_are_one_row() {
    for new_form in [false, true] {
        for length in [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD, 2 * MAX_PAYLOAD + 9] {
            // A value with 16 MB and more starts with the byte 0xfe, as the end of rows does.
            let first = if length >= MAX_PAYLOAD { 0xfe } else { 0xfd };
            let mut row = vec![0xfe; length];
            row[0] = first;
            let payloads = result_set(new_form, &[&row, b"\x01a\x01b"], false);
            let bytes = packets(&payloads);
            for piece in [bytes.len(), 1 << 16, 4099] {
                let answer = fed(new_form, &bytes, &[piece]).expect("complete").expect("an answer");
                assert_eq!(
                    (answer.rows, answer.bytes),
                    (2, bytes.len() as u64),
                    "{length} in pieces of {piece}"
                );
            }
        }
    }
}

#[test]
fn an_error_ends_the_answer_in_every_phase() {
    for new_form in [false, true] {
        let mut phases = result_set(new_form, &[b"\x011\xfb"], true);
        phases.push(ok_and_more());
        for cut in 0..=phases.len() {
            let mut payloads = phases[..cut].to_vec();
            payloads.push(error(1317, "interrupted"));
            match whole(new_form, &payloads) {
                Err(MysqlFault::Server(MysqlServerError::Reported { code: 1317, .. })) => {}
                other => panic!("after {cut} packets: {other:?}"),
            }
        }
    }
}

#[test]
fn an_error_may_come_with_any_number() {
    let bytes = packet(77, &error(4031, "gone for too long"));
    assert!(matches!(
        fed(true, &bytes, &[3]),
        Some(Err(MysqlFault::Server(MysqlServerError::Reported { code: 4031, .. })))
    ));
}

#[test]
fn answers_that_break_the_protocol_are_distinguished() {
    let malformed = |new_form, payloads: &[Vec<u8>]| match whole(new_form, payloads) {
        Err(MysqlFault::Malformed(what)) => what,
        other => panic!("{other:?}"),
    };
    insta::assert_snapshot!(malformed(true, &[vec![]]), @"an empty packet");
    insta::assert_snapshot!(malformed(true, &[vec![0x00, 0xfc, 1]]), @"a packet ends inside a value");
    insta::assert_snapshot!(malformed(true, &[vec![0x00, 0xff, 1, 2, 3, 4, 5, 6]]), @"a length begins with 0xfb or 0xff");
    insta::assert_snapshot!(malformed(true, &[vec![0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]), @"an impossible number of columns");
    insta::assert_snapshot!(malformed(true, &[vec![0xff, 1]]), @"an error packet without a number");
    insta::assert_snapshot!(malformed(false, &[vec![1], vec![3], vec![0]]), @"no end of the column definitions");
    insta::assert_snapshot!(malformed(false, &[vec![1; 1 << 21]]), @"a control packet of more than 64 KiB");
    let mut rows = result_set(true, &[], false);
    *rows.last_mut().expect("an end") = vec![0xfe, 0, 0];
    insta::assert_snapshot!(malformed(true, &rows), @"a packet ends inside a value");
}

#[test]
fn a_wrong_packet_number_is_noticed_in_every_phase() {
    let payloads = result_set(false, &[b"\x011\xfb"], false);
    for wrong in 0..payloads.len() {
        let bytes: Vec<u8> = (0..payloads.len())
            .flat_map(|at| packet(at as u8 + if at == wrong { 2 } else { 1 }, &payloads[at]))
            .collect();
        match fed(false, &bytes, &[bytes.len()]) {
            Some(Err(MysqlFault::Malformed("packets out of order"))) => {}
            other => panic!("packet {wrong}: {other:?}"),
        }
    }
}

#[test]
fn a_request_for_a_local_file_is_handed_up() {
    assert!(matches!(
        whole(true, &[b"\xfb/etc/passwd".to_vec()]),
        Err(MysqlFault::Server(MysqlServerError::LocalFile))
    ));
}

#[test]
fn a_long_result_goes_round_the_packet_numbers() {
    let row = b"\x011\x012".as_slice();
    let bytes = packets(&result_set(true, &vec![row; 1000], false));
    assert_eq!(fed(true, &bytes, &[13]).expect("complete").expect("an answer").rows, 1000);
    assert_eq!(eof(true, 0, false).len(), 7);
}

/// Bytes that look like packets often enough to get past the first checks.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        Just(vec![1]),
        Just(ok_and_more()),
        Just(eof(false, 1, true)),
        Just(eof(true, 1, true)),
        Just(vec![0xfb, b'x']),
    ];
    let tail = prop::collection::vec(any::<u8>(), 0..12);
    (prop::collection::vec(payload, 0..12), tail)
        .prop_map(|(payloads, tail)| [packets(&payloads), tail].concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_give_the_same_outcome_however_they_are_cut(
        bytes in hostile(),
        new_form: bool,
        pieces in prop::collection::vec(1..9_usize, 1..30),
    ) {
        let at_once = fed(new_form, &bytes, &[bytes.len().max(1)]);
        let in_pieces = fed(new_form, &bytes, &pieces);
        prop_assert_eq!(format!("{:?}", at_once), format!("{:?}", in_pieces));
    }
}
