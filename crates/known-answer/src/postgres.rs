//! The server side of PostgreSQL's protocol: the start of a connection, messages, statements and
//! the programmed rows. This file is written from the documentation and shares no code with the
//! drivers.
//!
//! Source: section "Message Formats" in the chapter "Frontend/Backend Protocol" of PostgreSQL's
//! documentation.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::output::Output;
use crate::protocol::{ParsedInput, RequestKind, StatementRequest};
use crate::statement::{Change, StatementKind, dollar_numbers, statement_kind};

/// Size limit for a client's message in bytes, without the header.
const LARGEST_MESSAGE: usize = 64 << 20;

/// Transaction states, as they are reported to the client.
const IDLE: u8 = b'I';
const OPEN: u8 = b'T';
const FAILED: u8 = b'E';

#[derive(Debug, Clone)]
struct Statement {
    kind: StatementKind,
    /// Types of the statement's parameters.
    types: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct PostgresSession {
    connection: u64,
    /// Whether the client is refused because there are too many connections.
    turned_away: bool,
    logged_in: bool,
    transaction: u8,
    /// Whether messages are skipped. The server skips messages after an error, until the client
    /// ends the exchange with Sync.
    skipping: bool,
    statements: HashMap<Vec<u8>, Statement>,
    portals: HashMap<Vec<u8>, StatementKind>,
    /// The portal without a name, which nearly all clients use.
    unnamed: Option<StatementKind>,
}

struct PostgresMessage<'a> {
    kind: u8,
    body: &'a [u8],
    /// Bytes including the header.
    length: usize,
}

impl PostgresSession {
    pub(crate) fn new(connection: u64, turned_away: bool) -> Self {
        Self {
            connection,
            turned_away,
            logged_in: false,
            transaction: IDLE,
            skipping: false,
            statements: HashMap::new(),
            portals: HashMap::new(),
            unnamed: None,
        }
    }

    pub(crate) fn next(
        &mut self,
        input: &[u8],
        answers: &PostgresAnswers,
        output: &mut Output,
    ) -> ParsedInput {
        if !self.logged_in {
            return self.login(input, output);
        }
        let Some((&[kind, l0, l1, l2, l3], rest)) = input.split_first_chunk::<HEADER>() else {
            return ParsedInput::More;
        };
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let Some(body_length) = length.checked_sub(4).filter(|length| *length <= LARGEST_MESSAGE) else {
            put_error(output.bytes(), "FATAL", "08P01", "invalid message length");
            return ParsedInput::Close;
        };
        let Some(body) = rest.get(..body_length) else { return ParsedInput::More };
        let message = PostgresMessage { kind, body, length: length + 1 };
        match kind {
            b'X' => ParsedInput::Close,
            b'S' => self.sync(&message, output),
            b'Q' => {
                let sql = body.strip_suffix(&[0]).unwrap_or(body);
                ParsedInput::Statement(
                    message.length,
                    StatementRequest { kind: statement_kind(sql), prepared: false },
                )
            }
            _ if self.skipping => ParsedInput::Done(message.length, RequestKind::Part),
            _ => self.extended(&message, answers, output).unwrap_or_else(|| {
                put_error(output.bytes(), "FATAL", "08P01", "invalid message format");
                ParsedInput::Close
            }),
        }
    }

    fn login(&mut self, input: &[u8], output: &mut Output) -> ParsedInput {
        match first(input) {
            First::More => ParsedInput::More,
            First::Close => ParsedInput::Close,
            First::Encryption(length) => {
                output.bytes().push(b'N');
                ParsedInput::Done(length, RequestKind::Part)
            }
            First::Login { .. } if self.turned_away => {
                put_error(output.bytes(), "FATAL", "53300", "sorry, too many clients already");
                ParsedInput::Close
            }
            First::Login { length, newer } => {
                if newer {
                    put_negotiation(output.bytes());
                }
                self.logged_in = true;
                ParsedInput::Login(length)
            }
        }
    }

    pub(crate) fn welcome(&mut self, output: &mut Output) {
        put_welcome(output.bytes(), self.connection);
    }

    fn sync(&mut self, message: &PostgresMessage<'_>, output: &mut Output) -> ParsedInput {
        self.skipping = false;
        put_ready(output.bytes(), self.transaction);
        ParsedInput::Done(message.length, RequestKind::Part)
    }

    /// Handles a message in the extended protocol. The result is `None` when it is malformed.
    fn extended(
        &mut self,
        message: &PostgresMessage<'_>,
        answers: &PostgresAnswers,
        output: &mut Output,
    ) -> Option<ParsedInput> {
        let (body, length) = (message.body, message.length);
        let part = Some(ParsedInput::Done(length, RequestKind::Part));
        match message.kind {
            b'B' => {
                let (portal, rest) = until_nul(body)?;
                let (name, _) = until_nul(rest)?;
                let Some(statement) = self.statements.get(name) else {
                    return Some(self.unknown("26000", "prepared statement", name, length, output));
                };
                match portal {
                    b"" => self.unnamed = Some(statement.kind),
                    _ => _ = self.portals.insert(portal.to_vec(), statement.kind),
                }
                put_bare(output.bytes(), b'2');
                part
            }
            b'E' => {
                let (portal, _) = until_nul(body)?;
                Some(match self.portal(portal) {
                    Some(kind) => ParsedInput::Statement(length, StatementRequest { kind, prepared: true }),
                    None => self.unknown("34000", "portal", portal, length, output),
                })
            }
            b'P' => {
                self.parse(body, output)?;
                Some(ParsedInput::Done(length, RequestKind::Prepare))
            }
            b'D' => Some(self.describe(body, length, answers, output)?),
            b'C' => {
                let (name, _) = until_nul(body.get(1..)?)?;
                match (body[0], name) {
                    (b'S', _) => _ = self.statements.remove(name),
                    (_, b"") => self.unnamed = None,
                    _ => _ = self.portals.remove(name),
                }
                put_bare(output.bytes(), b'3');
                Some(ParsedInput::Done(length, RequestKind::Close))
            }
            // Flush needs no work, because output is sent anyway. The other messages are late parts
            // of a COPY, and passwords that the server did not request.
            b'H' | b'd' | b'c' | b'f' | b'p' => part,
            _ => None,
        }
    }

    fn portal(&self, name: &[u8]) -> Option<StatementKind> {
        if name.is_empty() { self.unnamed } else { self.portals.get(name).copied() }
    }

    fn parse(&mut self, body: &[u8], output: &mut Output) -> Option<()> {
        let (name, rest) = until_nul(body)?;
        let (sql, rest) = until_nul(rest)?;
        let (given, rest) = rest.split_first_chunk::<2>()?;
        let given = rest.get(..usize::from(u16::from_be_bytes(*given)) * 4)?;
        let given = given.as_chunks::<4>().0.iter().map(|oid| u32::from_be_bytes(*oid));
        let mut types: Vec<u32> = given.map(|oid| if oid == 0 { TEXT } else { oid }).collect();
        types.resize(types.len().max(usize::from(dollar_numbers(sql))), TEXT);
        self.statements.insert(name.to_vec(), Statement { kind: statement_kind(sql), types });
        put_bare(output.bytes(), b'1');
        Some(())
    }

    fn describe(
        &mut self,
        body: &[u8],
        length: usize,
        answers: &PostgresAnswers,
        output: &mut Output,
    ) -> Option<ParsedInput> {
        let (name, _) = until_nul(body.get(1..)?)?;
        let kind = if body[0] == b'S' {
            let Some(statement) = self.statements.get(name) else {
                return Some(self.unknown("26000", "prepared statement", name, length, output));
            };
            put(output.bytes(), b't', |out| {
                // The number of types fits into 16 bits, because the client's own count and
                // parameter numbers have 16 bits.
                out.extend_from_slice(&(statement.types.len() as u16).to_be_bytes());
                statement.types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
            });
            statement.kind
        } else {
            let Some(kind) = self.portal(name) else {
                return Some(self.unknown("34000", "portal", name, length, output));
            };
            kind
        };
        match kind {
            StatementKind::Rows => output.bytes().extend_from_slice(&answers.description),
            _ => put_bare(output.bytes(), b'n'),
        }
        Some(ParsedInput::Done(length, RequestKind::Part))
    }

    /// Reports that a statement or portal in a request does not exist.
    fn unknown(
        &mut self,
        state: &str,
        what: &str,
        name: &[u8],
        length: usize,
        output: &mut Output,
    ) -> ParsedInput {
        let text = format!("{what} \"{}\" does not exist", String::from_utf8_lossy(name));
        put_error(output.bytes(), "ERROR", state, &text);
        self.fail();
        self.skipping = true;
        ParsedInput::Done(length, RequestKind::Other)
    }

    pub(crate) fn answer(&mut self, work: StatementRequest, answers: &PostgresAnswers, output: &mut Output) {
        let was_failed = self.transaction == FAILED;
        match work.kind {
            StatementKind::Begin if !was_failed => self.transaction = OPEN,
            StatementKind::Commit | StatementKind::Rollback => self.transaction = IDLE,
            StatementKind::Empty => {}
            _ if was_failed => {
                let text = "current transaction is aborted, commands ignored until end of transaction block";
                return self.put_refusal(work, "25P02", text, output);
            }
            _ => {}
        }
        match work.kind {
            StatementKind::Rows => {
                let is_open = self.transaction == OPEN;
                let rows = if work.prepared { answers.executed() } else { answers.simple(is_open) };
                return output.put_shared(rows, 0..rows.len());
            }
            StatementKind::Empty => put_bare(output.bytes(), b'I'),
            StatementKind::Change(change) => put_complete(output.bytes(), tag_of(change)),
            StatementKind::Begin => put_complete(output.bytes(), b"BEGIN"),
            StatementKind::Commit if !was_failed => put_complete(output.bytes(), b"COMMIT"),
            StatementKind::Commit | StatementKind::Rollback => put_complete(output.bytes(), b"ROLLBACK"),
            StatementKind::Other(tag) => put_complete(output.bytes(), tag.bytes()),
        }
        if !work.prepared {
            put_ready(output.bytes(), self.transaction);
        }
    }

    pub(crate) fn refuse(&mut self, work: StatementRequest, code: &str, output: &mut Output) {
        let message = match code {
            "23505" => "duplicate key value violates unique constraint \"known_answer\"",
            "40001" => "could not serialize access due to concurrent update",
            "40P01" => "deadlock detected",
            "42601" => "syntax error",
            "42P01" => "relation \"known_answer\" does not exist",
            "53300" => "sorry, too many clients already",
            _ => "programmed error of the known-answer server",
        };
        self.put_refusal(work, code, message, output);
    }

    fn put_refusal(&mut self, work: StatementRequest, code: &str, message: &str, output: &mut Output) {
        put_error(output.bytes(), "ERROR", code, message);
        self.fail();
        if work.prepared {
            self.skipping = true;
        } else {
            put_ready(output.bytes(), self.transaction);
        }
    }

    /// Marks an open transaction as failed, because an error makes it unusable.
    fn fail(&mut self) {
        if self.transaction == OPEN {
            self.transaction = FAILED;
        }
    }
}

fn tag_of(change: Change) -> &'static [u8] {
    match change {
        Change::Insert => b"INSERT 0 1",
        Change::Update => b"UPDATE 1",
        Change::Delete => b"DELETE 1",
        Change::Merge => b"MERGE 1",
    }
}

/// All formats of one answer.
#[derive(Debug)]
pub(crate) struct PostgresAnswers {
    rows: u32,
    columns: u16,
    bytes: u32,
    /// The description of the columns.
    description: Vec<u8>,
    /// Rows and their end, as an execution returns them.
    executed: OnceLock<Arc<[u8]>>,
    /// The whole answer to a query text, outside and inside a transaction.
    simple: [OnceLock<Arc<[u8]>>; 2],
}

impl PostgresAnswers {
    pub(crate) fn new(rows: u32, columns: u16, bytes: u32) -> Self {
        let mut description = Vec::new();
        put(&mut description, b'T', |body| {
            body.extend_from_slice(&columns.to_be_bytes());
            for number in 1..=columns {
                put_text(body, format!("c{number}").as_bytes());
                body.extend_from_slice(&[0; 6]); // no table, no number in it
                body.extend_from_slice(&TEXT.to_be_bytes());
                body.extend_from_slice(&(-1_i16).to_be_bytes()); // variable length
                body.extend_from_slice(&(-1_i32).to_be_bytes()); // no modifier
                body.extend_from_slice(&[0, 0]); // as text, which for this type is its binary form too
            }
        });
        Self { rows, columns, bytes, description, executed: OnceLock::new(), simple: Default::default() }
    }

    fn executed(&self) -> &Arc<[u8]> {
        self.executed.get_or_init(|| {
            let mut out = Vec::new();
            self.put_rows(&mut out);
            out.into()
        })
    }

    fn simple(&self, in_transaction: bool) -> &Arc<[u8]> {
        self.simple[usize::from(in_transaction)].get_or_init(|| {
            let mut out = self.description.clone();
            self.put_rows(&mut out);
            put_ready(&mut out, if in_transaction { b'T' } else { b'I' });
            out.into()
        })
    }

    fn put_rows(&self, out: &mut Vec<u8>) {
        let value = crate::value(self.bytes);
        for _ in 0..self.rows {
            put(out, b'D', |body| {
                body.extend_from_slice(&self.columns.to_be_bytes());
                for _ in 0..self.columns {
                    body.extend_from_slice(&self.bytes.to_be_bytes());
                    body.extend_from_slice(&value);
                }
            });
        }
        put_complete(out, format!("SELECT {}", self.rows).as_bytes());
    }
}

/// Codes that a first message may have in place of a protocol version.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The major number of protocol version 3.0.
const MAJOR: u32 = 3;

/// Longest first message in bytes that PostgreSQL accepts (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST_FIRST_MESSAGE: usize = 10_000;

/// The parameters that are reported to clients, because clients depend on them or print them.
const PARAMETERS: &[(&str, &str)] = &[
    ("server_version", "15.0 (dbdyno known-answer)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "off"),
];

/// The kinds of first message that a client may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    More,
    /// It requests encryption. The answer is `N`, because this server does not support encryption.
    Encryption(usize),
    Login {
        length: usize,
        /// Whether the client requests a later minor version than 3.0, so that the server must
        /// report its own.
        newer: bool,
    },
    /// It requests a cancellation, or cannot be understood.
    Close,
}

fn first(input: &[u8]) -> First {
    let Some(&[l0, l1, l2, l3, c0, c1, c2, c3]) = input.first_chunk::<8>() else { return First::More };
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    let code = u32::from_be_bytes([c0, c1, c2, c3]);
    if !(8..=LONGEST_FIRST_MESSAGE).contains(&length) {
        return First::Close;
    }
    if input.len() < length {
        return First::More;
    }
    match code {
        TLS | GSS => First::Encryption(length),
        CANCEL => First::Close,
        _ if code >> 16 == MAJOR => First::Login { length, newer: code & 0xffff > 0 },
        _ => First::Close,
    }
}

/// Appends the message that reports the minor version 0 and no unknown options.
fn put_negotiation(out: &mut Vec<u8>) {
    put(out, b'v', |body| body.extend_from_slice(&[0, 3, 0, 0, 0, 0, 0, 0]));
}

/// Appends the messages for a successful login. No password was needed.
fn put_welcome(out: &mut Vec<u8>, connection: u64) {
    put(out, b'R', |body| body.extend_from_slice(&[0; 4]));
    for (name, value) in PARAMETERS {
        put(out, b'S', |body| {
            put_text(body, name.as_bytes());
            put_text(body, value.as_bytes());
        });
    }
    put(out, b'K', |body| {
        body.extend_from_slice(&(connection as u32).wrapping_add(1).to_be_bytes());
        body.extend_from_slice(&[0; 4]); // nothing can be cancelled
    });
    put_ready(out, b'I');
}

/// Bytes before each message's body: kind and length.
const HEADER: usize = 5;

/// Type for all columns and parameters, a text of any length: `text` in `pg_type.dat`.
const TEXT: u32 = 25;

fn put(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    fill(out);
    // The length counts itself but not the kind. Answers are limited to far less than 4 GiB.
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends `ReadyForQuery` with the transaction's state.
fn put_ready(out: &mut Vec<u8>, state: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, state]);
}

/// Appends a message without a body: `ParseComplete`, `BindComplete`, `CloseComplete`, `NoData`,
/// `EmptyQueryResponse`.
fn put_bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

fn put_complete(out: &mut Vec<u8>, tag: &[u8]) {
    put(out, b'C', |body| put_text(body, tag));
}

fn put_error(out: &mut Vec<u8>, severity: &str, state: &str, message: &str) {
    put(out, b'E', |body| {
        for (field, text) in [(b'S', severity), (b'V', severity), (b'C', state), (b'M', message)] {
            body.push(field);
            put_text(body, text.as_bytes());
        }
        body.push(0);
    });
}

/// The text up to the next NUL, and the bytes after the NUL.
fn until_nul(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == 0)?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
