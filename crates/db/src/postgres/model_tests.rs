//! Tests with answers from an independent encoder: intact answers with a known result, the same
//! answers damaged, and hostile lengths.

use proptest::prelude::*;

use super::super::testing::error;
use super::*;
use crate::Class;
use crate::scripted::{Scripted, block_on, cases, damaged, damages, pieces};

/// Highest number of bytes for which the client may reserve memory when data is only announced. It
/// limits the free space in the input buffer.
const ROOM: usize = 1 << 20;

type Row = Vec<Option<Vec<u8>>>;

/// The answer to one statement in a query text.
#[derive(Debug, Clone)]
enum Part {
    /// Rows in a result with that many columns, and the tag that ends them.
    Rows {
        columns: usize,
        rows: Vec<Row>,
        tag: Tag,
    },
    Command(Tag),
    Empty,
    /// A portal that stops at a row limit.
    Suspended {
        columns: usize,
        rows: Vec<Row>,
    },
    CopyOut(Vec<Vec<u8>>),
}

/// A statement's command tag, with the number of rows that it changed.
#[derive(Debug, Clone)]
struct Tag(&'static str, Option<u64>);

/// A message that a server may send at any time.
#[derive(Debug, Clone)]
enum Aside {
    Notice,
    Parameter,
    Notification,
}

/// An answer: the parts for its statements, an error that comes after some of its messages, and
/// asides that come before some.
#[derive(Debug, Clone)]
struct Model {
    parts: Vec<Part>,
    error_after: Option<prop::sample::Index>,
    asides: Vec<(prop::sample::Index, Aside)>,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

fn description(columns: usize) -> Vec<u8> {
    let field = b"name\0\0\0\x40\x01\0\x02\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    message(b'T', &[&(columns as u16).to_be_bytes()[..], &field.repeat(columns)].concat())
}

fn data(row: &Row) -> Vec<u8> {
    let mut body = (row.len() as u16).to_be_bytes().to_vec();
    for value in row {
        match value {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(bytes) => body.extend([&(bytes.len() as i32).to_be_bytes()[..], bytes].concat()),
        }
    }
    message(b'D', &body)
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

impl Tag {
    fn message(&self) -> Vec<u8> {
        let text = self.1.map_or(format!("{}\0", self.0), |rows| format!("{} {rows}\0", self.0));
        message(b'C', text.as_bytes())
    }
}

impl Aside {
    fn message(&self) -> Vec<u8> {
        match self {
            Self::Notice => message(b'N', b"SNOTICE\0C00000\0Mhear\0\0"),
            Self::Parameter => message(b'S', b"TimeZone\0UTC\0"),
            Self::Notification => message(b'A', b"\0\0\0\x07channel\0payload\0"),
        }
    }
}

impl Part {
    /// The part's messages. `described` says whether its columns are reported, as they are for a
    /// query text.
    fn messages(&self, described: bool) -> Vec<Vec<u8>> {
        match self {
            Self::Rows { columns, rows, tag } => {
                let head = described.then(|| description(*columns));
                head.into_iter().chain(rows.iter().map(data)).chain([tag.message()]).collect()
            }
            Self::Suspended { columns, rows } => {
                // Only an execution can be suspended.
                let end = if described { Tag("SELECT", None).message() } else { message(b's', b"") };
                let head = described.then(|| description(*columns));
                head.into_iter().chain(rows.iter().map(data)).chain([end]).collect()
            }
            Self::Command(tag) => vec![tag.message()],
            Self::Empty => vec![message(b'I', b"")],
            Self::CopyOut(lines) => {
                let head = [message(b'H', b"\0\0\x01\0\0")].into_iter();
                let tag = Tag("COPY", Some(lines.len() as u64)).message();
                let lines = lines.iter().map(|line| message(b'd', line));
                head.chain(lines).chain([message(b'c', b""), tag]).collect()
            }
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Rows { rows, .. } | Self::Suspended { rows, .. } => rows.len(),
            Self::CopyOut(lines) => lines.len(),
            Self::Command(_) | Self::Empty => 0,
        }
    }

    fn affected(&self) -> u64 {
        match self {
            Self::Rows { tag, .. } | Self::Command(tag) if tag.0 != "SELECT" => tag.1.unwrap_or(0),
            _ => 0,
        }
    }
}

impl Model {
    /// The answer to a query text, or to the execution of its first statement.
    fn bytes(&self, executed: bool) -> Vec<u8> {
        let parts = if executed { &self.parts[..1] } else { &self.parts[..] };
        let mut messages: Vec<Vec<u8>> = parts.iter().flat_map(|part| part.messages(!executed)).collect();
        if executed {
            messages.insert(0, message(b'2', b""));
        }
        if let Some(at) = &self.error_after {
            messages.truncate(at.index(messages.len() + 1));
            messages.push(message(b'E', b"SERROR\0VERROR\0C23505\0Mduplicate key\0\0"));
        }
        messages.push(ready());
        for (at, aside) in &self.asides {
            messages.insert(at.index(messages.len()), aside.message());
        }
        messages.concat()
    }

    fn answer(&self, executed: bool) -> Answer {
        let parts = if executed { &self.parts[..1] } else { &self.parts[..] };
        Answer {
            rows: parts.iter().map(|part| part.rows() as u64).sum(),
            affected: parts.iter().fold(0, |sum, part| sum.saturating_add(part.affected())),
            bytes: self.bytes(executed).len() as u64,
            warnings: self.asides.iter().filter(|(_, aside)| matches!(aside, Aside::Notice)).count() as u16,
            copied_out: parts.iter().any(|part| matches!(part, Part::CopyOut(_))),
        }
    }

    fn cells(&self) -> Cells {
        let text =
            |value: &Option<Vec<u8>>| value.as_deref().map(|text| String::from_utf8_lossy(text).into_owned());
        let first = self.parts.iter().find_map(|part| match part {
            Part::Rows { rows, .. } | Part::Suspended { rows, .. } => Some(rows),
            _ => None,
        });
        first.into_iter().flatten().map(|row| row.iter().map(text).collect()).collect()
    }
}

fn tags() -> impl Strategy<Value = Tag> {
    let words = prop::sample::select(vec!["INSERT 0", "UPDATE", "DELETE", "MERGE", "SELECT"]);
    let rows = prop_oneof![0..200_u64, any::<u64>(), Just(u64::MAX)];
    let plain = prop::sample::select(vec!["CREATE TABLE", "BEGIN", "SET", "VACUUM"]);
    prop_oneof![
        3 => (words, rows).prop_map(|(word, rows)| Tag(word, Some(rows))),
        1 => plain.prop_map(|word| Tag(word, None)),
    ]
}

fn parts() -> impl Strategy<Value = Part> {
    let value = prop_oneof![
        1 => Just(None),
        6 => prop::collection::vec(any::<u8>(), 0..12).prop_map(Some),
        1 => any::<u8>().prop_map(|byte| Some(vec![byte; 70_000])),
    ];
    let rows = (0..5_usize).prop_flat_map(move |columns| {
        let row = prop::collection::vec(value.clone(), columns);
        (Just(columns), prop::collection::vec(row, 0..6))
    });
    prop_oneof![
        3 => (rows.clone(), tags()).prop_map(|((columns, rows), tag)| Part::Rows { columns, rows, tag }),
        2 => tags().prop_map(Part::Command),
        1 => rows.prop_map(|(columns, rows)| Part::Suspended { columns, rows }),
        1 => Just(Part::Empty),
        1 => prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5).prop_map(Part::CopyOut),
    ]
}

fn models() -> impl Strategy<Value = Model> {
    let aside = prop::sample::select(vec![Aside::Notice, Aside::Parameter, Aside::Notification]);
    let asides = prop::collection::vec((any::<prop::sample::Index>(), aside), 0..4);
    let error = prop::option::weighted(0.2, any::<prop::sample::Index>());
    (prop::collection::vec(parts(), 1..4), error, asides).prop_map(|(parts, error_after, asides)| Model {
        parts,
        error_after,
        asides,
    })
}

pub(super) fn connection(answers: Vec<Vec<u8>>, pieces: &[usize]) -> PostgresSession<Scripted> {
    PostgresSession {
        wire: PostgresWire::new(Scripted::new(answers, pieces)),
        agreed: PostgresHandshake { version: "15.19".into(), backend: 7, key: 11 },
        statements: Vec::new(),
        next_name: 0,
        exchange: Exchange::new("/run/.s.PGSQL.5432 as bench".into()),
        options: Box::new(LoginOptions::socket("/run/.s.PGSQL.5432", "bench")),
        counted: None,
    }
}

/// The answer that prepares a statement with one parameter and one column.
pub(super) fn preparation() -> Vec<u8> {
    [message(b'1', b""), message(b't', b"\0\x01\0\0\0\x14"), description(1), ready()].concat()
}

/// Returns the results with `bytes` as the answer to each kind of statement, and the largest buffer
/// that the client offered to a read.
fn outcomes(bytes: &[u8], pieces: &[usize]) -> (Vec<String>, usize) {
    block_on(async {
        let mut widest = 0;
        let mut out = Vec::new();
        let mut session = connection(vec![bytes.to_vec()], pieces);
        out.push(format!("{:?}", session.query(b"SELECT 1").await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(vec![bytes.to_vec()], pieces);
        out.push(format!("{:?}", session.rows("SELECT 1").await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(vec![bytes.to_vec()], pieces);
        out.push(format!("{:?}", session.prepare("SELECT ?").await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(vec![preparation(), bytes.to_vec()], pieces);
        let statement = session.prepare("SELECT ?").await.expect("a statement");
        out.push(format!("{:?}", session.execute(statement, &[Param::Int(7)]).await));
        widest = widest.max(session.wire.stream().widest);
        let mut session = connection(vec![[message(b'G', b"\0\0\x01\0\0"), bytes.to_vec()].concat()], pieces);
        // When the client notices a refusal that comes too early depends on how it arrives, so the
        // result is ignored.
        let _ = session.copy_in("COPY t FROM STDIN", ["1\n", "2\n"]).await;
        (out, widest.max(session.wire.stream().widest))
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn answers_of_every_shape_are_counted_and_read_however_they_arrive(model in models(), pieces in pieces()) {
        block_on(async {
            let counted = connection(vec![model.bytes(false)], &pieces).query(b"SELECT 1").await;
            let read = connection(vec![model.bytes(false)], &pieces).rows("SELECT 1").await;
            let mut session = connection(vec![preparation(), model.bytes(true)], &pieces);
            let statement = session.prepare("SELECT ?").await.expect("a statement");
            let executed = session.execute(statement, &[Param::Text(b"x".to_vec())]).await;
            if model.error_after.is_some() {
                for error in [counted.expect_err("23505"), read.expect_err("23505"), executed.expect_err("23505")] {
                    assert_eq!((error.class, error.code.as_str()), (Class::Refused, "23505"), "{error}");
                }
            } else {
                assert_eq!(counted.expect("an answer"), model.answer(false));
                assert_eq!(read.expect("rows"), model.cells());
                assert_eq!(executed.expect("an answer"), model.answer(true));
            }
        });
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_an_error(model in models(), at: prop::sample::Index, pieces in pieces()) {
        let bytes = model.bytes(false);
        let cut = &bytes[..at.index(bytes.len())];
        block_on(async {
            let error = connection(vec![cut.to_vec()], &pieces).query(b"x").await.expect_err("cut");
            // An error that arrived whole says more than the end of the stream after it.
            assert!(error.class == Class::Lost || error.code == "23505", "{error}");
            let error = connection(vec![cut.to_vec()], &pieces).rows("x").await.expect_err("cut");
            assert!(error.class == Class::Lost || error.code == "23505", "{error}");
        });
    }

    #[test]
    fn damaged_answers_end_in_the_same_way_however_they_arrive(
        model in models(),
        executed: bool,
        damages in damages(),
        pieces in pieces(),
    ) {
        let bytes = damaged(model.bytes(executed), &damages);
        let (at_once, widest) = outcomes(&bytes, &[]);
        prop_assert!(widest <= ROOM.max(4 * bytes.len()), "room for {widest} bytes");
        let (in_pieces, widest) = outcomes(&bytes, &pieces);
        prop_assert!(widest <= ROOM.max(4 * bytes.len()), "room for {widest} bytes");
        prop_assert_eq!(at_once, in_pieces);
    }

    #[test]
    fn damaged_preparations_end_in_the_same_way_however_they_arrive(damages in damages(), pieces in pieces()) {
        let bytes = damaged(preparation(), &damages);
        prop_assert_eq!(outcomes(&bytes, &[]).0, outcomes(&bytes, &pieces).0);
    }
}

#[test]
fn rows_of_16_mib_and_more_are_read_whole() {
    for length in [(16 << 20) - 1, 16 << 20, (16 << 20) + 1, 40 << 20] {
        let rows = vec![vec![Some(vec![b'x'; length])], vec![Some(b"y".to_vec())]];
        let part = Part::Rows { columns: 1, rows, tag: Tag("SELECT", Some(2)) };
        let model = Model { parts: vec![part], error_after: None, asides: Vec::new() };
        block_on(async {
            let mut session = connection(vec![model.bytes(false)], &[65_521]);
            assert_eq!(session.query(b"x").await.expect("an answer"), model.answer(false), "{length}");
            assert!(session.wire.stream().widest <= ROOM, "{} bytes of room", session.wire.stream().widest);
            let mut session = connection(vec![model.bytes(false)], &[65_521]);
            let reported = session.rows("x").await.expect_err("more than is kept");
            assert!(reported.to_string().contains("the answer is larger than the 8 MiB"), "{reported}");
        });
    }
}

#[test]
fn rows_are_kept_up_to_8_mib_with_what_they_take_in_memory() {
    let text = |length: usize| vec![Some(vec![b'x'; length])];
    let rows =
        [vec![text(4 << 20), text(2 << 20), text(1 << 20)], vec![text(4 << 20); 2], vec![text(0); 200_000]];
    for (rows, is_kept) in rows.into_iter().zip([true, false, false]) {
        let count = rows.len() as u64;
        let part = Part::Rows { columns: 1, rows, tag: Tag("SELECT", Some(count)) };
        let model = Model { parts: vec![part], error_after: None, asides: Vec::new() };
        let mut session = connection(vec![model.bytes(false)], &[65_521]);
        let outcome = block_on(session.rows("x"));
        assert_eq!(outcome.is_ok(), is_kept, "{count}");
        assert!(outcome.is_err() || outcome.is_ok_and(|cells| cells == model.cells()));
        assert!(session.wire.stream().widest <= ROOM, "{} bytes of room", session.wire.stream().widest);
    }
}

#[test]
fn the_beginning_of_a_long_error_is_kept_and_the_session_goes_on() {
    let long = error("22P02", &"9".repeat(5 << 20));
    let answer = [long, ready()].concat();
    block_on(async {
        let mut session = connection(vec![answer.clone(), answer], &[65_521]);
        for _ in 0..2 {
            let reported = session.query(b"x").await.expect_err("refused");
            assert_eq!((reported.class, reported.code.as_str()), (Class::Refused, "22P02"), "{reported}");
            assert!(reported.to_string().len() < 700, "{reported}");
        }
        assert!(session.wire.stream().widest <= ROOM, "{} bytes of room", session.wire.stream().widest);
    });
}

#[test]
fn claimed_lengths_are_not_trusted_and_reserve_no_memory() {
    let answers: &[&[u8]] = &[
        b"D\x3f\xff\xff\xff", // a row of 1 GiB that never comes
        b"D\x40\0\0\x01",     // more than 1 GiB
        b"D\xff\xff\xff\xff", // a negative length
        b"D\x80\0\0\0",
        b"D\0\0\0\0", // less than the length itself
        b"D\0\0\0\x03",
        b"E\x10\0\0\0",                                        // an error of 256 MiB
        b"E\x03\xff\xff\xffC",                                 // one of 64 MiB that never comes
        b"T\0\0\0\x06\xff\xff",                                // 65535 columns
        b"t\0\0\0\x06\xff\xff",                                // 65535 parameters
        b"T\0\0\0\x06\0\x01D\0\0\0\x0a\0\x01\x7f\xff\xff\xff", // a value of 2 GiB
        b"T\0\0\0\x06\0\x01D\0\0\0\x0a\0\x01\xff\xff\xff\xfe", // a value of length -2
        b"S\x3f\xff\xff\xff",                                  // a parameter of 1 GiB
        b"x\0\0\0\x04",                                        // an unknown kind
        b"W\0\0\0\x07\0\0\0",                                  // a copy in both directions
    ];
    for bytes in answers {
        let (outcomes, widest) = outcomes(bytes, &[3]);
        assert!(widest <= ROOM, "{bytes:?}: room for {widest} bytes");
        assert!(outcomes.iter().all(|outcome| outcome.contains("Lost")), "{bytes:?}: {outcomes:?}");
    }
}
