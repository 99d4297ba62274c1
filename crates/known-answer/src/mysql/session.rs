//! One MySQL connection: it parses a client's packets and writes the answers.

use super::answers::{Answers, Form, status};
use super::greeting::{self, Response};
use super::packet::{HEADER, MAX_PAYLOAD, Packets};
use crate::exchange::{Kind, Step, Work};
use crate::output::Output;
use crate::statement::{StatementKind, question_marks, statement_kind};

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
    /// The client was asked for another authentication method.
    Switched,
    Ready,
}

/// One connection. It numbers its answers' packets on from the request's.
#[derive(Debug)]
pub(crate) struct Session {
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

impl Session {
    /// Starts a connection with a greeting in `output`.
    pub(crate) fn greet(connection: u64, deprecate_eof: bool, output: &mut Output) -> Self {
        greeting::put_greeting(output.bytes(), connection, deprecate_eof);
        let (phase, statements) = (Phase::Greeted, Vec::new());
        Self { phase, deprecate_eof, in_transaction: false, number: 0, statements }
    }

    /// Writes the error that replaces a greeting when there are too many connections.
    pub(crate) fn turn_away(output: &mut Output) {
        // The error has no SQLSTATE, because the client has not said yet that it understands one.
        Packets::new(output.bytes(), 0).put(|out| out.extend_from_slice(b"\xff\x10\x04Too many connections"));
    }

    pub(crate) fn next(&mut self, input: &[u8], answers: &Answers, output: &mut Output) -> Step {
        if self.phase == Phase::Ready {
            // This is the load path: a message in one packet is read from the input without a copy.
            if let [l0, l1, l2, number, rest @ ..] = input {
                let length = usize::from(*l0) | usize::from(*l1) << 8 | usize::from(*l2) << 16;
                if length < MAX_PAYLOAD {
                    let Some(payload) = rest.get(..length) else { return Step::More };
                    let message = Message { payload, number: *number, length: HEADER + length };
                    return self.command(&message, answers, output);
                }
            }
        }
        let mut joined = Vec::new();
        match whole(input, &mut joined) {
            Err(TooLarge) => {
                Packets::new(output.bytes(), 0).error(1153, "08S01", "Got a packet bigger than 64 MiB");
                Step::Close
            }
            Ok(None) => Step::More,
            Ok(Some((number, length))) => {
                let message = Message { payload: &joined, number, length };
                match self.phase {
                    Phase::Ready => self.command(&message, answers, output),
                    Phase::Greeted | Phase::Switched => self.login(&message, output),
                }
            }
        }
    }

    fn login(&mut self, message: &Message<'_>, output: &mut Output) -> Step {
        self.number = message.number.wrapping_add(1);
        if self.phase == Phase::Greeted {
            let Some(response) = Response::parse(message.payload) else { return Step::Close };
            self.deprecate_eof &= response.capabilities & greeting::DEPRECATE_EOF != 0;
            if response.other_plugin {
                greeting::put_switch(output.bytes(), self.number);
                self.phase = Phase::Switched;
                return Step::Done(message.length, Kind::Part);
            }
        }
        self.phase = Phase::Ready;
        Step::Login(message.length)
    }

    pub(crate) fn welcome(&mut self, output: &mut Output) {
        Packets::new(output.bytes(), self.number).ok(0, status(false));
    }

    fn command(&mut self, message: &Message<'_>, answers: &Answers, output: &mut Output) -> Step {
        let Some((&command, body)) = message.payload.split_first() else { return Step::Close };
        self.number = message.number.wrapping_add(1);
        let status = status(self.in_transaction);
        let mut packets = Packets::new(output.bytes(), self.number);
        match command {
            QUERY => {
                let work = Work { kind: statement_kind(body), prepared: false };
                return Step::Statement(message.length, work);
            }
            EXECUTE => match self.prepared(body) {
                Some(kind) => return Step::Statement(message.length, Work { kind, prepared: true }),
                None => packets.error(1243, "HY000", "Unknown prepared statement handler given to EXECUTE"),
            },
            PREPARE => self.prepare(body, answers, output),
            QUIT => return Step::Close,
            // These commands have no answer.
            CLOSE => self.forget(body),
            LONG_DATA => {}
            PING | INIT_DB | RESET => packets.ok(0, status),
            CHANGE_USER | RESET_CONNECTION => {
                self.in_transaction = false;
                self.statements.clear();
                packets.ok(0, super::answers::status(false));
            }
            // There are no columns, and nothing to switch off.
            FIELD_LIST | SET_OPTION => packets.rows_end(status, self.deprecate_eof),
            STATISTICS => packets.put(|out| out.extend_from_slice(b"known answers")),
            _ => packets.error(1047, "08S01", &format!("Unknown command {command}")),
        }
        let kind = match command {
            PREPARE => Kind::Prepare,
            CLOSE => Kind::Close,
            LONG_DATA => Kind::Part,
            PING => Kind::Ping,
            _ => Kind::Other,
        };
        Step::Done(message.length, kind)
    }

    fn prepare(&mut self, sql: &[u8], answers: &Answers, output: &mut Output) {
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
        let status = status(self.in_transaction);
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

    pub(crate) fn answer(&mut self, work: Work, answers: &Answers, output: &mut Output) {
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
            StatementKind::Change(_) => packets.ok(1, status(in_transaction)),
            _ => packets.ok(0, status(in_transaction)),
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

/// Index of the statement that a command names.
fn index(body: &[u8]) -> Option<usize> {
    let (id, _) = body.split_first_chunk::<4>()?;
    (u32::from_le_bytes(*id) as usize).checked_sub(1)
}

/// A message is larger than this server accepts.
#[derive(Debug)]
struct TooLarge;

/// Joins the packets in the first message in `input`, if it is complete. Returns its last packet's
/// number, and its bytes including headers.
fn whole(input: &[u8], joined: &mut Vec<u8>) -> Result<Option<(u8, usize)>, TooLarge> {
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

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
