//! The server side of MySQL's protocol: the greeting and the login, packets, statements and the
//! programmed rows. This file is written from the documentation and shares no code with the
//! drivers.
//!
//! Sources: the pages "MySQL packets", "Generic response packets" and "Text resultset" in MySQL's
//! documentation of its client/server protocol.

use std::sync::{Arc, OnceLock};

use crate::output::Output;
use crate::protocol::{ParsedInput, RequestKind, StatementRequest};
use crate::statement::{StatementKind, question_marks, statement_kind};

/// Size limit for a client's message in bytes, headers included.
const LARGEST_MESSAGE: usize = 64 << 20;

/// First byte of each command.
const QUIT: u8 = 0x01;
const INIT_DB: u8 = 0x02;
const QUERY: u8 = 0x03;
const FIELD_LIST: u8 = 0x04;
const STATISTICS: u8 = 0x09;
const PING: u8 = 0x0e;
const CHANGE_USER: u8 = 0x11;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;
const RESET: u8 = 0x1a;
const SET_OPTION: u8 = 0x1b;
const RESET_CONNECTION: u8 = 0x1f;

/// The stage that a connection has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client must respond to the greeting.
    Greeted,
    /// The server has requested another authentication method.
    Switched,
    Ready,
}

/// One connection. The packet numbers in an answer continue those of the request.
#[derive(Debug)]
pub(crate) struct MysqlSession {
    phase: Phase,
    deprecate_eof: bool,
    in_transaction: bool,
    /// Number for the answer's next packet.
    number: u8,
    /// The kind of each prepared statement. Closed ones are `None`.
    statements: Vec<Option<StatementKind>>,
}

struct Message<'a> {
    payload: &'a [u8],
    /// Number of the message's last packet.
    number: u8,
    /// Bytes including headers.
    length: usize,
}

impl MysqlSession {
    /// Starts a connection with a greeting in `output`.
    pub(crate) fn greet(connection: u64, deprecate_eof: bool, output: &mut Output) -> Self {
        put_greeting(output.bytes(), connection, deprecate_eof);
        let (phase, statements) = (Phase::Greeted, Vec::new());
        Self { phase, deprecate_eof, in_transaction: false, number: 0, statements }
    }

    /// Writes the error that replaces a greeting when there are too many connections.
    pub(crate) fn turn_away(output: &mut Output) {
        // The error has no SQLSTATE, because the client has not yet reported that it supports one.
        Packets::new(output.bytes(), 0).put(|out| out.extend_from_slice(b"\xff\x10\x04Too many connections"));
    }

    pub(crate) fn next(&mut self, input: &[u8], answers: &MysqlAnswers, output: &mut Output) -> ParsedInput {
        if self.phase == Phase::Ready {
            // This is the load path. It reads a message in a single packet without copying it.
            if let [l0, l1, l2, number, rest @ ..] = input {
                let length = usize::from(*l0) | usize::from(*l1) << 8 | usize::from(*l2) << 16;
                if length < MAX_PAYLOAD {
                    let Some(payload) = rest.get(..length) else { return ParsedInput::More };
                    let message = Message { payload, number: *number, length: HEADER + length };
                    return self.command(&message, answers, output);
                }
            }
        }
        let mut joined = Vec::new();
        match join_packets(input, &mut joined) {
            Err(TooLarge) => {
                Packets::new(output.bytes(), 0).error(1153, "08S01", "Got a packet bigger than 64 MiB");
                ParsedInput::Close
            }
            Ok(None) => ParsedInput::More,
            Ok(Some((number, length))) => {
                let message = Message { payload: &joined, number, length };
                match self.phase {
                    Phase::Ready => self.command(&message, answers, output),
                    Phase::Greeted | Phase::Switched => self.login(&message, output),
                }
            }
        }
    }

    fn login(&mut self, message: &Message<'_>, output: &mut Output) -> ParsedInput {
        self.number = message.number.wrapping_add(1);
        if self.phase == Phase::Greeted {
            let Some(response) = HandshakeResponse::parse(message.payload) else { return ParsedInput::Close };
            self.deprecate_eof &= response.capabilities & DEPRECATE_EOF != 0;
            if response.other_plugin {
                put_switch(output.bytes(), self.number);
                self.phase = Phase::Switched;
                return ParsedInput::Done(message.length, RequestKind::Part);
            }
        }
        self.phase = Phase::Ready;
        ParsedInput::Login(message.length)
    }

    pub(crate) fn welcome(&mut self, output: &mut Output) {
        Packets::new(output.bytes(), self.number).ok(0, status_bits(false));
    }

    fn command(&mut self, message: &Message<'_>, answers: &MysqlAnswers, output: &mut Output) -> ParsedInput {
        let Some((&command, body)) = message.payload.split_first() else { return ParsedInput::Close };
        self.number = message.number.wrapping_add(1);
        let status = status_bits(self.in_transaction);
        let mut packets = Packets::new(output.bytes(), self.number);
        match command {
            QUERY => {
                let work = StatementRequest { kind: statement_kind(body), prepared: false };
                return ParsedInput::Statement(message.length, work);
            }
            EXECUTE => match self.prepared(body) {
                Some(kind) => {
                    return ParsedInput::Statement(message.length, StatementRequest { kind, prepared: true });
                }
                None => packets.error(1243, "HY000", "Unknown prepared statement handler given to EXECUTE"),
            },
            PREPARE => self.prepare(body, answers, output),
            QUIT => return ParsedInput::Close,
            // These commands have no answer.
            CLOSE => self.forget(body),
            LONG_DATA => {}
            PING | INIT_DB | RESET => packets.ok(0, status),
            CHANGE_USER | RESET_CONNECTION => {
                self.in_transaction = false;
                self.statements.clear();
                packets.ok(0, status_bits(false));
            }
            // The server has no columns to list and no option to change.
            FIELD_LIST | SET_OPTION => packets.rows_end(status, self.deprecate_eof),
            STATISTICS => packets.put(|out| out.extend_from_slice(b"known answers")),
            _ => packets.error(1047, "08S01", &format!("Unknown command {command}")),
        }
        let kind = match command {
            PREPARE => RequestKind::Prepare,
            CLOSE => RequestKind::Close,
            LONG_DATA => RequestKind::Part,
            PING => RequestKind::Ping,
            _ => RequestKind::Other,
        };
        ParsedInput::Done(message.length, kind)
    }

    fn prepare(&mut self, sql: &[u8], answers: &MysqlAnswers, output: &mut Output) {
        let (kind, parameters) = (statement_kind(sql), question_marks(sql));
        let mut packets = Packets::new(output.bytes(), self.number);
        if kind == StatementKind::Empty {
            return packets.error(1065, "42000", "Query was empty");
        }
        self.statements.push(Some(kind));
        let columns = if kind == StatementKind::Rows { answers.columns } else { 0 };
        // Statements are numbered from 1.
        let id = self.statements.len() as u32;
        packets.put(|out| {
            out.push(0);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&columns.to_le_bytes());
            out.extend_from_slice(&parameters.to_le_bytes());
            out.extend_from_slice(&[0, 0, 0]); // filler, warnings
        });
        let status = status_bits(self.in_transaction);
        for _ in 0..parameters {
            packets.parameter();
        }
        if parameters > 0 && !self.deprecate_eof {
            packets.eof(status);
        }
        if columns > 0 {
            answers.put_columns(&mut packets);
            if !self.deprecate_eof {
                packets.eof(status);
            }
        }
    }

    fn prepared(&self, body: &[u8]) -> Option<StatementKind> {
        *self.statements.get(index(body)?)?
    }

    fn forget(&mut self, body: &[u8]) {
        if let Some(statement) = index(body).and_then(|index| self.statements.get_mut(index)) {
            *statement = None;
        }
    }

    pub(crate) fn answer(&mut self, work: StatementRequest, answers: &MysqlAnswers, output: &mut Output) {
        match work.kind {
            StatementKind::Begin => self.in_transaction = true,
            StatementKind::Commit | StatementKind::Rollback => self.in_transaction = false,
            _ => {}
        }
        let in_transaction = self.in_transaction;
        if work.kind == StatementKind::Rows {
            let form = Form { binary: work.prepared, deprecate_eof: self.deprecate_eof, in_transaction };
            let rows = answers.rows(form, self.number);
            return output.put_shared(&rows, 0..rows.len());
        }
        let mut packets = Packets::new(output.bytes(), self.number);
        match work.kind {
            StatementKind::Empty => packets.error(1065, "42000", "Query was empty"),
            StatementKind::Change(_) => packets.ok(1, status_bits(in_transaction)),
            _ => packets.ok(0, status_bits(in_transaction)),
        }
    }

    /// Answers a statement with a programmed error. A deadlock ends the transaction, as in InnoDB.
    pub(crate) fn refuse(&mut self, code: &str, output: &mut Output) {
        // The code was checked when the server started.
        let code = code.parse().unwrap_or(1105);
        let (state, message) = match code {
            1040 => ("08004", "Too many connections"),
            1062 => ("23000", "Duplicate entry '1' for key 'PRIMARY'"),
            1064 => ("42000", "You have an error in your SQL syntax"),
            1146 => ("42S02", "Table 'known.answer' doesn't exist"),
            1205 => ("HY000", "Lock wait timeout exceeded; try restarting transaction"),
            1213 => ("40001", "Deadlock found when trying to get lock; try restarting transaction"),
            _ => ("HY000", "Programmed error of the known-answer server"),
        };
        self.in_transaction &= code != 1213;
        Packets::new(output.bytes(), self.number).error(code, state, message);
    }
}

/// Index of the prepared statement in a command's body.
fn index(body: &[u8]) -> Option<usize> {
    let (id, _) = body.split_first_chunk::<4>()?;
    (u32::from_le_bytes(*id) as usize).checked_sub(1)
}

/// The error for a message that is larger than this server accepts.
#[derive(Debug)]
struct TooLarge;

/// Joins the packets of the first message in `input`, if the message is complete. The result is the
/// last packet's number, and the message's length including headers.
fn join_packets(input: &[u8], joined: &mut Vec<u8>) -> Result<Option<(u8, usize)>, TooLarge> {
    let mut at = 0;
    let number = loop {
        let Some(&[l0, l1, l2, number]) = input.get(at..at + HEADER) else { return Ok(None) };
        let length = usize::from(l0) | usize::from(l1) << 8 | usize::from(l2) << 16;
        at += HEADER + length;
        if at > LARGEST_MESSAGE {
            return Err(TooLarge);
        }
        if at > input.len() {
            return Ok(None);
        }
        if length < MAX_PAYLOAD {
            break number;
        }
    };
    for packet in input[..at].chunks(HEADER + MAX_PAYLOAD) {
        joined.extend_from_slice(&packet[HEADER..]);
    }
    Ok(Some((number, at)))
}

/// The format of an answer with rows, which depends on the request and the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// Whether the rows are binary, as a prepared statement's execution returns them.
    binary: bool,
    deprecate_eof: bool,
    in_transaction: bool,
}

/// All formats of one answer.
#[derive(Debug)]
pub(crate) struct MysqlAnswers {
    rows: u32,
    columns: u16,
    bytes: u32,
    forms: [OnceLock<Arc<[u8]>>; 8],
}

impl MysqlAnswers {
    pub(crate) fn new(rows: u32, columns: u16, bytes: u32) -> Self {
        Self { rows, columns, bytes, forms: Default::default() }
    }

    /// The answer's bytes. The first packet gets the number `number`, which is 1 unless the request
    /// had several packets.
    fn rows(&self, form: Form, number: u8) -> Arc<[u8]> {
        let index = usize::from(form.binary)
            | usize::from(form.deprecate_eof) << 1
            | usize::from(form.in_transaction) << 2;
        if number != 1 {
            return self.build(form, number).into();
        }
        Arc::clone(self.forms[index].get_or_init(|| self.build(form, 1).into()))
    }

    /// Appends the definitions of all columns.
    fn put_columns(&self, packets: &mut Packets<'_>) {
        for number in 1..=self.columns {
            packets.text_column(&format!("c{number}"), self.bytes);
        }
    }

    fn build(&self, form: Form, number: u8) -> Vec<u8> {
        let status = status_bits(form.in_transaction);
        let mut out = Vec::new();
        let mut packets = Packets::new(&mut out, number);
        packets.put(|out| put_number(out, u64::from(self.columns)));
        self.put_columns(&mut packets);
        if !form.deprecate_eof {
            packets.eof(status);
        }
        let value = crate::value(self.bytes);
        for _ in 0..self.rows {
            packets.put(|out| {
                if form.binary {
                    out.push(0);
                    // One bit per column says whether it is NULL. The first two bits are not used.
                    out.resize(out.len() + (usize::from(self.columns) + 9) / 8, 0);
                }
                for _ in 0..self.columns {
                    put_text(out, &value);
                }
            });
        }
        packets.rows_end(status, form.deprecate_eof);
        out
    }
}

/// Status bits in an answer.
fn status_bits(in_transaction: bool) -> u16 {
    if in_transaction { AUTOCOMMIT | IN_TRANSACTION } else { AUTOCOMMIT }
}

/// The version reported to clients. It is high enough that clients use the current protocol
/// features.
const VERSION: &str = "8.0.0-dbdyno-known-answer";

/// The only authentication method. It accepts any password.
const PLUGIN: &[u8] = b"mysql_native_password";

/// Both parts of the nonce. The nonce protects nothing, so it need not be random.
const NONCE: [&[u8]; 2] = [b"dbdynokn", b"ownanswer123"];

/// Capability bits.
const CONNECT_WITH_DB: u32 = 0x8;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x8_0000;
const PLUGIN_AUTH_LENENC: u32 = 0x20_0000;
const DEPRECATE_EOF: u32 = 0x100_0000;

/// The offered capabilities: long passwords, found rows, long flags, CONNECT_WITH_DB, protocol 4.1,
/// interactive, transactions, SECURE_CONNECTION, several results, PLUGIN_AUTH, connection
/// attributes, PLUGIN_AUTH_LENENC.
const OFFERED: u32 = 0x1
    | 0x2
    | 0x4
    | CONNECT_WITH_DB
    | 0x200
    | 0x400
    | 0x2000
    | SECURE_CONNECTION
    | 0x2_0000
    | 0x4_0000
    | PLUGIN_AUTH
    | 0x10_0000
    | PLUGIN_AUTH_LENENC;

/// Appends a connection's first packet.
fn put_greeting(out: &mut Vec<u8>, connection: u64, deprecate_eof: bool) {
    let offered = OFFERED | if deprecate_eof { DEPRECATE_EOF } else { 0 };
    let [c0, c1, c2, c3] = offered.to_le_bytes();
    Packets::new(out, 0).put(|out| {
        out.push(10);
        out.extend_from_slice(VERSION.as_bytes());
        out.push(0);
        out.extend_from_slice(&(connection as u32).wrapping_add(1).to_le_bytes());
        out.extend_from_slice(NONCE[0]);
        out.extend_from_slice(&[0, c0, c1, 45, 2, 0, c2, c3, 21]); // utf8mb4, autocommit, 21 bytes of nonce
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(NONCE[1]);
        out.push(0);
        out.extend_from_slice(PLUGIN);
        out.push(0);
    });
}

/// Asks for another authentication method, with the same nonce.
fn put_switch(out: &mut Vec<u8>, number: u8) {
    Packets::new(out, number).put(|out| {
        out.push(0xfe);
        out.extend_from_slice(PLUGIN);
        out.push(0);
        out.extend_from_slice(NONCE[0]);
        out.extend_from_slice(NONCE[1]);
        out.push(0);
    });
}

/// A client's response to the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HandshakeResponse {
    capabilities: u32,
    /// Whether the password was prepared for another method than [`PLUGIN`].
    other_plugin: bool,
}

impl HandshakeResponse {
    /// Reads the payload. The result is `None` if the payload is too short.
    fn parse(payload: &[u8]) -> Option<Self> {
        let (capabilities, _) = payload.split_first_chunk::<4>()?;
        let capabilities = u32::from_le_bytes(*capabilities);
        let common = capabilities & OFFERED;
        // The fixed part has capabilities, largest packet, character set and filler.
        let mut rest = until_nul(payload.get(32..)?)?.1;
        let length = usize::from(*rest.first()?);
        rest = if common & (PLUGIN_AUTH_LENENC | SECURE_CONNECTION) != 0 {
            rest.get(1 + length..)?
        } else {
            until_nul(rest)?.1
        };
        if common & CONNECT_WITH_DB != 0 {
            rest = until_nul(rest)?.1;
        }
        let named = common & PLUGIN_AUTH != 0;
        let plugin = until_nul(rest).map_or(rest, |(name, _)| name);
        Some(Self { capabilities, other_plugin: named && !plugin.is_empty() && plugin != PLUGIN })
    }
}

fn until_nul(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == 0)?;
    Some((&text[..end], &text[end + 1..]))
}

/// Bytes before each packet's payload: length and number.
const HEADER: usize = 4;

/// A payload with this length is continued in the next packet.
const MAX_PAYLOAD: usize = 0xff_ffff;

/// Status bits.
const IN_TRANSACTION: u16 = 0x0001;
const AUTOCOMMIT: u16 = 0x0002;

/// The type `VAR_STRING`, with the collation utf8mb4_general_ci.
const TEXT_TYPE: u8 = 0xfd;
const TEXT_COLLATION: u16 = 45;
/// The type `LONGLONG`, with the collation for values that are no text.
const INTEGER_TYPE: u8 = 0x08;
const BINARY_COLLATION: u16 = 63;

/// Packets with consecutive numbers, which are appended to a buffer.
struct Packets<'a> {
    out: &'a mut Vec<u8>,
    number: u8,
}

impl<'a> Packets<'a> {
    /// Appends to `out`. The first packet has the number `number`.
    fn new(out: &'a mut Vec<u8>, number: u8) -> Self {
        Self { out, number }
    }

    /// Appends one packet, with continuations if `fill` writes 16 MiB or more.
    fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER]);
        fill(self.out);
        let length = self.out.len() - start - HEADER;
        if length < MAX_PAYLOAD {
            self.header(start, length);
            return;
        }
        let payload = self.out.split_off(start + HEADER);
        self.out.truncate(start);
        let mut rest = payload.as_slice();
        loop {
            let (chunk, after) = rest.split_at(rest.len().min(MAX_PAYLOAD));
            let start = self.out.len();
            self.out.extend_from_slice(&[0; HEADER]);
            self.out.extend_from_slice(chunk);
            self.header(start, chunk.len());
            rest = after;
            // Another packet follows one with the full length, even if it is empty.
            if chunk.len() < MAX_PAYLOAD {
                return;
            }
        }
    }

    fn header(&mut self, at: usize, length: usize) {
        let bytes = (length as u32).to_le_bytes();
        self.out[at..at + HEADER].copy_from_slice(&[bytes[0], bytes[1], bytes[2], self.number]);
        self.number = self.number.wrapping_add(1);
    }

    fn ok(&mut self, affected: u8, status: u16) {
        let [low, high] = status.to_le_bytes();
        self.put(|out| out.extend_from_slice(&[0x00, affected, 0, low, high, 0, 0]));
    }

    /// Appends the end of columns or rows in the old form.
    fn eof(&mut self, status: u16) {
        let [low, high] = status.to_le_bytes();
        self.put(|out| out.extend_from_slice(&[0xfe, 0, 0, low, high]));
    }

    /// Appends the end of rows, in the form that the client has requested.
    fn rows_end(&mut self, status: u16, deprecate_eof: bool) {
        if deprecate_eof {
            let [low, high] = status.to_le_bytes();
            self.put(|out| out.extend_from_slice(&[0xfe, 0, 0, low, high, 0, 0]));
        } else {
            self.eof(status);
        }
    }

    fn error(&mut self, code: u16, state: &str, message: &str) {
        self.put(|out| {
            out.push(0xff);
            out.extend_from_slice(&code.to_le_bytes());
            out.push(b'#');
            out.extend_from_slice(state.as_bytes());
            out.extend_from_slice(message.as_bytes());
        });
    }

    /// Appends the definition of a text column that is `bytes` long.
    fn text_column(&mut self, name: &str, bytes: u32) {
        self.column(name, TEXT_TYPE, TEXT_COLLATION, bytes.saturating_mul(4));
    }

    /// Appends the definition of a parameter, whose type the client chooses.
    fn parameter(&mut self) {
        self.column("?", INTEGER_TYPE, BINARY_COLLATION, 21);
    }

    fn column(&mut self, name: &str, kind: u8, collation: u16, length: u32) {
        self.put(|out| {
            for text in ["def", "", "", "", name, ""] {
                put_text(out, text.as_bytes());
            }
            out.push(12); // bytes of the fixed part
            out.extend_from_slice(&collation.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
            out.push(kind);
            out.extend_from_slice(&[0, 0, 0, 0, 0]); // flags, decimals, filler
        });
    }
}

/// Appends a number in as few bytes as it needs.
fn put_number(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match number {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => put_prefixed(out, 0xfc, &bytes[..2]),
        0x1_0000..=0xff_ffff => put_prefixed(out, 0xfd, &bytes[..3]),
        _ => put_prefixed(out, 0xfe, &bytes),
    }
}

fn put_prefixed(out: &mut Vec<u8>, prefix: u8, bytes: &[u8]) {
    out.push(prefix);
    out.extend_from_slice(bytes);
}

/// Appends a text after its length.
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

#[cfg(test)]
#[path = "mysql_tests.rs"]
mod tests;
