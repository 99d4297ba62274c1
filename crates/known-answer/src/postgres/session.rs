//! One PostgreSQL connection: it parses a client's messages and writes the answers.

use std::collections::HashMap;

use super::answers::Answers;
use super::message::{self, HEADER, TEXT, put_bare, put_complete, put_error, put_ready, until_nul};
use super::startup::{self, First};
use crate::exchange::{Kind, Step, Work};
use crate::output::Output;
use crate::statement::{Change, StatementKind, dollar_numbers, statement_kind};

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
pub(crate) struct Session {
    connection: u64,
    /// Whether the client is refused because there are too many connections.
    turned_away: bool,
    logged_in: bool,
    transaction: u8,
    /// Whether everything is skipped, after an error, until the client asks for the end of the
    /// exchange.
    skipping: bool,
    statements: HashMap<Vec<u8>, Statement>,
    portals: HashMap<Vec<u8>, StatementKind>,
    /// The portal without a name, which nearly all clients use.
    unnamed: Option<StatementKind>,
}

struct Message<'a> {
    kind: u8,
    body: &'a [u8],
    /// Bytes including the header.
    length: usize,
}

impl Session {
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

    pub(crate) fn next(&mut self, input: &[u8], answers: &Answers, output: &mut Output) -> Step {
        if !self.logged_in {
            return self.login(input, output);
        }
        let Some((&[kind, l0, l1, l2, l3], rest)) = input.split_first_chunk::<HEADER>() else {
            return Step::More;
        };
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let Some(body_length) = length.checked_sub(4).filter(|length| *length <= LARGEST_MESSAGE) else {
            put_error(output.bytes(), "FATAL", "08P01", "invalid message length");
            return Step::Close;
        };
        let Some(body) = rest.get(..body_length) else { return Step::More };
        let message = Message { kind, body, length: length + 1 };
        match kind {
            b'X' => Step::Close,
            b'S' => self.sync(&message, output),
            b'Q' => {
                let sql = body.strip_suffix(&[0]).unwrap_or(body);
                Step::Statement(message.length, Work { kind: statement_kind(sql), prepared: false })
            }
            _ if self.skipping => Step::Done(message.length, Kind::Part),
            _ => self.extended(&message, answers, output).unwrap_or_else(|| {
                put_error(output.bytes(), "FATAL", "08P01", "invalid message format");
                Step::Close
            }),
        }
    }

    fn login(&mut self, input: &[u8], output: &mut Output) -> Step {
        match startup::first(input) {
            First::More => Step::More,
            First::Close => Step::Close,
            First::Encryption(length) => {
                output.bytes().push(b'N');
                Step::Done(length, Kind::Part)
            }
            First::Login { .. } if self.turned_away => {
                put_error(output.bytes(), "FATAL", "53300", "sorry, too many clients already");
                Step::Close
            }
            First::Login { length, newer } => {
                if newer {
                    startup::put_negotiation(output.bytes());
                }
                self.logged_in = true;
                Step::Login(length)
            }
        }
    }

    pub(crate) fn welcome(&mut self, output: &mut Output) {
        startup::put_welcome(output.bytes(), self.connection);
    }

    fn sync(&mut self, message: &Message<'_>, output: &mut Output) -> Step {
        self.skipping = false;
        put_ready(output.bytes(), self.transaction);
        Step::Done(message.length, Kind::Part)
    }

    /// Handles a message in the extended protocol. The result is `None` when it is malformed.
    fn extended(&mut self, message: &Message<'_>, answers: &Answers, output: &mut Output) -> Option<Step> {
        let (body, length) = (message.body, message.length);
        let part = Some(Step::Done(length, Kind::Part));
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
                    Some(kind) => Step::Statement(length, Work { kind, prepared: true }),
                    None => self.unknown("34000", "portal", portal, length, output),
                })
            }
            b'P' => {
                self.parse(body, output)?;
                Some(Step::Done(length, Kind::Prepare))
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
                Some(Step::Done(length, Kind::Close))
            }
            // Flush needs nothing, because output is sent anyway. The others are late parts of a
            // COPY, and passwords that no one asked for.
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
        answers: &Answers,
        output: &mut Output,
    ) -> Option<Step> {
        let (name, _) = until_nul(body.get(1..)?)?;
        let kind = if body[0] == b'S' {
            let Some(statement) = self.statements.get(name) else {
                return Some(self.unknown("26000", "prepared statement", name, length, output));
            };
            message::put(output.bytes(), b't', |out| {
                // There are at most as many as a message with 64 MiB and 16-bit numbers can name.
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
        Some(Step::Done(length, Kind::Part))
    }

    /// Reports that something named in a request does not exist.
    fn unknown(&mut self, state: &str, what: &str, name: &[u8], length: usize, output: &mut Output) -> Step {
        let text = format!("{what} \"{}\" does not exist", String::from_utf8_lossy(name));
        put_error(output.bytes(), "ERROR", state, &text);
        self.fail();
        self.skipping = true;
        Step::Done(length, Kind::Other)
    }

    pub(crate) fn answer(&mut self, work: Work, answers: &Answers, output: &mut Output) {
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

    pub(crate) fn refuse(&mut self, work: Work, code: &str, output: &mut Output) {
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

    fn put_refusal(&mut self, work: Work, code: &str, message: &str, output: &mut Output) {
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

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
