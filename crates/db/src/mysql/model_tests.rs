//! Tests with answers from an independent encoder: intact answers with a known result, the same
//! answers damaged, and hostile lengths.

use proptest::prelude::*;

use super::*;
use crate::Class;
use crate::mysql::wire::Form;
use crate::scripted::{Scripted, block_on, cases, damaged, damages, pieces};

/// The largest payload of one packet.
const FULL: usize = 0xff_ffff;

/// Highest number of bytes for which the client may reserve memory when data is only announced. It
/// limits the free space in the input buffer.
const ROOM: usize = 1 << 20;

type Row = Vec<Option<Vec<u8>>>;

/// One result in an answer.
#[derive(Debug, Clone)]
enum Part {
    Ok {
        affected: u64,
        warnings: u16,
        width: u8,
        tail: Vec<u8>,
    },
    /// `described` says whether definitions are sent. It matters only where they are optional, for
    /// a prepared statement.
    Rows {
        columns: usize,
        described: bool,
        rows: Vec<Row>,
        warnings: u16,
        tail: Vec<u8>,
    },
}

/// An answer: its results, and an error that comes after the packets of some of them.
#[derive(Debug, Clone)]
struct Model {
    form: Form,
    parts: Vec<Part>,
    error_after: Option<prop::sample::Index>,
}

/// Writes a length-encoded number in at least `width` bytes.
fn lenenc(out: &mut Vec<u8>, number: u64, width: u8) {
    let bytes = number.to_le_bytes();
    match (number, width) {
        (0..=250, 0) => out.push(bytes[0]),
        (0..=0xffff, 0..=2) => out.extend([&[0xfc], &bytes[..2]].concat()),
        (0..=0xff_ffff, 0..=3) => out.extend([&[0xfd], &bytes[..3]].concat()),
        _ => out.extend([&[0xfe], &bytes[..]].concat()),
    }
}

fn lenenc_text(out: &mut Vec<u8>, text: &[u8]) {
    lenenc(out, text.len() as u64, 0);
    out.extend_from_slice(text);
}

/// Frames payloads as packets numbered from `first`. Long ones are split.
fn framed(payloads: &[Vec<u8>], first: u8) -> Vec<u8> {
    let (mut out, mut number) = (Vec::new(), first);
    for payload in payloads {
        for start in (0..=payload.len()).step_by(FULL) {
            let piece = &payload[start..payload.len().min(start + FULL)];
            out.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
            out.push(number);
            out.extend_from_slice(piece);
            number = number.wrapping_add(1);
        }
    }
    out
}

fn ending(first: u8, affected: u64, width: u8, more: bool, warnings: u16, tail: &[u8]) -> Vec<u8> {
    let mut payload = vec![first];
    lenenc(&mut payload, affected, width);
    lenenc(&mut payload, 77, width);
    let status = 0x4002 | if more { 8 } else { 0 };
    payload.extend_from_slice(&u16::to_le_bytes(status));
    payload.extend_from_slice(&warnings.to_le_bytes());
    payload.extend_from_slice(tail);
    payload
}

fn old_eof(more: bool, warnings: u16) -> Vec<u8> {
    [&[0xfe][..], &warnings.to_le_bytes(), &[2 | if more { 8 } else { 0 }, 0]].concat()
}

fn row_payload(row: &Row, binary: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    if binary {
        let mut nulls = vec![0_u8; (row.len() + 9) / 8];
        for at in (0..row.len()).filter(|&at| row[at].is_none()) {
            nulls[(at + 2) / 8] |= 1 << ((at + 2) % 8);
        }
        payload.push(0);
        payload.extend(nulls);
    }
    for value in row {
        match value {
            Some(text) => lenenc_text(&mut payload, text),
            None if binary => {}
            None => payload.push(0xfb),
        }
    }
    payload
}

impl Model {
    fn payloads(&self, binary: bool) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let more = at + 1 < self.parts.len();
            match part {
                Part::Ok { affected, warnings, width, tail } => {
                    out.push(ending(0, *affected, *width, more, *warnings, tail));
                }
                Part::Rows { columns, described, rows, warnings, tail } => {
                    let mut count = Vec::new();
                    lenenc(&mut count, *columns as u64, 0);
                    let optional = self.form.optional_definitions;
                    let defined = !(optional && binary) || *described;
                    count.extend(optional.then_some(u8::from(defined)));
                    out.push(count);
                    let definitions = if defined { *columns } else { 0 };
                    out.extend((0..definitions).map(|at| format!("\x03def..column {at}").into_bytes()));
                    if !self.form.deprecate_eof {
                        out.push(old_eof(false, 9));
                    }
                    out.extend(rows.iter().map(|row| row_payload(row, binary)));
                    out.push(match self.form.deprecate_eof {
                        true => ending(0xfe, 0, 0, more, *warnings, tail),
                        false => old_eof(more, *warnings),
                    });
                }
            }
        }
        if let Some(at) = &self.error_after {
            out.truncate(at.index(out.len()));
            out.push(b"\xff\x26\x04#23000Duplicate entry".to_vec());
        }
        out
    }

    fn bytes(&self, binary: bool) -> Vec<u8> {
        framed(&self.payloads(binary), 1)
    }

    fn answer(&self, binary: bool) -> Answer {
        let mut answer = Answer { bytes: self.bytes(binary).len() as u64, ..Answer::default() };
        for part in &self.parts {
            match part {
                Part::Ok { affected, warnings, .. } => {
                    answer.affected = answer.affected.saturating_add(*affected);
                    answer.warnings = *warnings;
                }
                Part::Rows { rows, warnings, .. } => {
                    answer.rows += rows.len() as u64;
                    answer.warnings = *warnings;
                }
            }
        }
        answer
    }

    fn cells(&self) -> Cells {
        let text =
            |value: &Option<Vec<u8>>| value.as_deref().map(|text| String::from_utf8_lossy(text).into_owned());
        let first = self.parts.iter().find_map(|part| match part {
            Part::Rows { rows, .. } => Some(rows),
            Part::Ok { .. } => None,
        });
        first.into_iter().flatten().map(|row| row.iter().map(text).collect()).collect()
    }
}

fn values() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        1 => Just(None),
        6 => prop::collection::vec(any::<u8>(), 0..12).prop_map(Some),
        1 => (prop::sample::select(vec![250_usize, 251, 252, 0xffff, 0x1_0000]), any::<u8>())
            .prop_map(|(length, byte)| Some(vec![byte; length])),
    ]
}

fn parts() -> impl Strategy<Value = Part> {
    let tail = || prop_oneof![Just(Vec::new()), Just(b"\x04info\x05\x00\x03\x02\x01k".to_vec())];
    let affected = prop_oneof![0..300_u64, any::<u64>(), Just(u64::MAX)];
    let oks = (affected, any::<u16>(), 0..9_u8, tail())
        .prop_map(|(affected, warnings, width, tail)| Part::Ok { affected, warnings, width, tail });
    let set = (1..5_usize, any::<bool>(), any::<u16>(), tail());
    let sets = set.prop_flat_map(move |(columns, described, warnings, tail)| {
        prop::collection::vec(prop::collection::vec(values(), columns), 0..6)
            .prop_map(move |rows| Part::Rows { columns, described, rows, warnings, tail: tail.clone() })
    });
    prop_oneof![oks, sets]
}

fn models() -> impl Strategy<Value = Model> {
    let error = prop::option::weighted(0.2, any::<prop::sample::Index>());
    (forms(), prop::collection::vec(parts(), 1..4), error).prop_map(|(form, parts, error_after)| Model {
        form,
        parts,
        error_after,
    })
}

fn forms() -> impl Strategy<Value = Form> {
    prop::sample::select(all_forms())
}

fn all_forms() -> Vec<Form> {
    let form = |number| Form { deprecate_eof: number & 1 != 0, optional_definitions: number & 2 != 0 };
    (0..4).map(form).collect()
}

pub(super) fn connection(form: Form, answers: Vec<Vec<u8>>, pieces: &[usize]) -> MysqlSession<Scripted> {
    let agreed = MysqlHandshake {
        version: "8.0.31".into(),
        is_mariadb: false,
        connection_id: 7,
        form,
        session_track: true,
    };
    MysqlSession {
        wire: MysqlWire::new(Scripted::new(answers, pieces)),
        agreed,
        statements: Vec::new(),
        exchange: Exchange::new("/run/db.sock as bench".into()),
    }
}

/// The answer that prepares a statement with one parameter.
pub(super) fn preparation(form: Form) -> Vec<u8> {
    let mut payloads = vec![b"\0\x05\0\0\0\0\0\x01\0\0\0\0".to_vec(), b"\x03def param".to_vec()];
    if !form.deprecate_eof {
        payloads.push(old_eof(false, 0));
    }
    framed(&payloads, 1)
}

/// Returns the results with `bytes` as the answer to each kind of statement, and the largest buffer
/// that the client offered to a read.
fn outcomes(form: Form, bytes: &[u8], pieces: &[usize]) -> (Vec<String>, usize) {
    block_on(async {
        let mut widest = 0;
        let mut out = Vec::new();
        let mut session = connection(form, vec![bytes.to_vec()], pieces);
        out.push(format!("{:?}", session.query(b"SELECT 1").await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(form, vec![bytes.to_vec()], pieces);
        out.push(format!("{:?}", session.rows("SELECT 1").await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(form, vec![bytes.to_vec()], pieces);
        out.push(format!("{:?}", session.prepare("SELECT ?").await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(form, vec![preparation(form), bytes.to_vec()], pieces);
        let statement = session.prepare("SELECT ?").await.expect("a statement");
        out.push(format!("{:?}", session.execute(statement, &[Param::Int(7)]).await));
        (out, widest.max(session.wire.stream().widest))
    })
}

async fn queried(form: Form, bytes: &[u8], pieces: &[usize]) -> Result<Answer> {
    connection(form, vec![bytes.to_vec()], pieces).query(b"SELECT 1").await
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn answers_of_every_shape_are_counted_and_read_however_they_arrive(model in models(), pieces in pieces()) {
        block_on(async {
            let text = model.bytes(false);
            let counted = queried(model.form, &text, &pieces).await;
            let read = connection(model.form, vec![text], &pieces).rows("SELECT 1").await;
            let answers = vec![preparation(model.form), model.bytes(true)];
            let mut session = connection(model.form, answers, &pieces);
            let statement = session.prepare("SELECT ?").await.expect("a statement");
            let executed = session.execute(statement, &[Param::Text(b"x".to_vec())]).await;
            if model.error_after.is_some() {
                for error in [counted.expect_err("1062"), read.expect_err("1062"), executed.expect_err("1062")] {
                    assert_eq!((error.class, error.code.as_str()), (Class::Refused, "1062"), "{error}");
                }
            } else {
                assert_eq!(counted.expect("an answer"), model.answer(false));
                assert_eq!(read.expect("rows"), model.cells());
                assert_eq!(executed.expect("an answer"), model.answer(true));
            }
        });
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_a_lost_connection(model in models(), at: prop::sample::Index, pieces in pieces()) {
        let bytes = model.bytes(false);
        let cut = &bytes[..at.index(bytes.len())];
        block_on(async {
            let error = queried(model.form, cut, &pieces).await.expect_err("cut");
            assert_eq!(error.class, Class::Lost, "{error}");
            let error = connection(model.form, vec![cut.to_vec()], &pieces).rows("x").await.expect_err("cut");
            assert_eq!(error.class, Class::Lost, "{error}");
        });
    }

    #[test]
    fn damaged_answers_end_in_the_same_way_however_they_arrive(
        model in models(),
        binary: bool,
        damages in damages(),
        pieces in pieces(),
    ) {
        let bytes = damaged(model.bytes(binary), &damages);
        let (at_once, widest) = outcomes(model.form, &bytes, &[]);
        prop_assert!(widest <= ROOM.max(4 * bytes.len()), "room for {widest} bytes");
        let (in_pieces, widest) = outcomes(model.form, &bytes, &pieces);
        prop_assert!(widest <= ROOM.max(4 * bytes.len()), "room for {widest} bytes");
        prop_assert_eq!(at_once, in_pieces);
    }

    #[test]
    fn damaged_preparations_end_in_the_same_way_however_they_arrive(
        form in forms(),
        damages in damages(),
        pieces in pieces(),
    ) {
        let bytes = damaged(preparation(form), &damages);
        prop_assert_eq!(outcomes(form, &bytes, &[]).0, outcomes(form, &bytes, &pieces).0);
    }
}

#[test]
fn rows_at_the_borders_of_packets_are_read_whole() {
    // The length takes 4 bytes itself up to 16 MiB, and 9 from there on.
    let borders = [
        (FULL - 1, 4),
        (FULL, 4),
        (FULL + 1, 4),
        (FULL + 4, 4),
        (FULL + 10, 9),
        (2 * FULL, 9),
        (2 * FULL + 1, 9),
    ];
    for (payload, head) in borders {
        for form in all_forms() {
            let rows = vec![vec![Some(vec![b'x'; payload - head])], vec![Some(b"y".to_vec())]];
            let part = Part::Rows { columns: 1, described: true, rows, warnings: 3, tail: Vec::new() };
            let model = Model { form, parts: vec![part], error_after: None };
            assert_eq!(model.payloads(false)[if form.deprecate_eof { 2 } else { 3 }].len(), payload);
            block_on(async {
                let bytes = model.bytes(false);
                let answer = queried(form, &bytes, &[65_521]).await.expect("an answer");
                assert_eq!(answer, model.answer(false), "{payload}");
                let mut session = connection(form, vec![bytes], &[65_521]);
                let reported = session.rows("x").await.expect_err("more than is kept");
                assert!(reported.to_string().contains("the answer is larger than the 8 MiB"), "{reported}");
            });
        }
    }
}

#[test]
fn rows_are_kept_up_to_8_mib_with_what_they_take_in_memory() {
    let text = |length: usize| vec![Some(vec![b'x'; length])];
    let rows =
        [vec![text(4 << 20), text(2 << 20), text(1 << 20)], vec![text(4 << 20); 2], vec![text(0); 200_000]];
    for (rows, is_kept) in rows.into_iter().zip([true, false, false]) {
        for form in all_forms() {
            let part =
                Part::Rows { columns: 1, described: true, rows: rows.clone(), warnings: 3, tail: Vec::new() };
            let model = Model { form, parts: vec![part], error_after: None };
            let mut session = connection(form, vec![model.bytes(false)], &[65_521]);
            let outcome = block_on(session.rows("x"));
            assert_eq!(outcome.is_ok(), is_kept);
            assert!(outcome.is_err() || outcome.is_ok_and(|cells| cells == model.cells()));
            assert!(session.wire.stream().widest <= ROOM, "{} bytes of room", session.wire.stream().widest);
        }
    }
}

#[test]
fn claimed_lengths_are_not_trusted_and_reserve_no_memory() {
    let answers: &[&[u8]] = &[
        b"\xff\xff\xff\x01",                                         // a full packet that never comes
        b"\xff\xff\xff\x01\x01",                                     // a control packet of 16 MiB
        b"\x00\x00\x00\x01",                                         // an empty packet
        b"\x01\x00\x00\x01\xfb",                                     // a local file, and silence
        b"\x03\x00\x00\x01\xfc\xff\xff",                             // 65535 columns
        b"\x04\x00\x00\x01\xfd\xff\xff\xff",                         // 16777215 columns
        b"\x09\x00\x00\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff",     // 2^64 - 1 columns
        b"\x01\x00\x00\x01\x01\xff\xff\xff\x02\x03",                 // a column definition of 16 MiB
        b"\x01\x00\x00\x01\x01\x01\x00\x00\x02\x03\x05\x00\x00\x03\xfe\x00\x00\x02\x00\x09\x00\x00\x04\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
    ];
    for bytes in answers {
        for form in all_forms() {
            let (outcomes, widest) = outcomes(form, bytes, &[3]);
            assert!(widest <= ROOM, "{bytes:?}: room for {widest} bytes");
            assert!(outcomes.iter().all(|outcome| outcome.contains("Lost")), "{bytes:?}: {outcomes:?}");
        }
    }
    // This is a statement with 65535 parameters and columns, of which none is described.
    let bytes = framed(&[b"\0\x05\0\0\0\xff\xff\xff\xff\0\0\0".to_vec()], 1);
    let (outcomes, widest) = outcomes(all_forms()[1], &bytes, &[3]);
    assert!(widest <= ROOM && outcomes[2].contains("Lost"), "{widest}: {outcomes:?}");
}
