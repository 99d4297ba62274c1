//! The protocol that a server speaks, with the protocol's limits. A [`Session`] is one connection's
//! state in either protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::output::Output;
use crate::statement::StatementKind;
use crate::{Script, mysql, postgres};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// MySQL and MariaDB: handshake version 10, `mysql_native_password` with any password, text and
    /// prepared statements.
    Mysql,
    /// PostgreSQL: version 3.0 without a password, simple and extended queries.
    Postgres,
}

impl Protocol {
    /// Highest number of columns in a result.
    pub(crate) fn most_columns(self) -> u16 {
        match self {
            Self::Mysql => 4096,
            Self::Postgres => 1664,
        }
    }

    /// Whether errors with this code can be sent.
    pub(crate) fn has_code(self, code: &str) -> bool {
        match self {
            Self::Mysql => code.parse::<u16>().is_ok_and(|code| code > 0),
            Self::Postgres => {
                code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            }
        }
    }
}

/// The programmed rows, in the protocol's formats.
#[derive(Debug, Clone)]
pub(crate) enum Answers {
    Mysql(Arc<mysql::MysqlAnswers>),
    Postgres(Arc<postgres::PostgresAnswers>),
}

impl Answers {
    pub(crate) fn new(protocol: Protocol, script: &Script) -> Self {
        let Script { rows, columns, bytes, .. } = *script;
        match protocol {
            Protocol::Mysql => Self::Mysql(Arc::new(mysql::MysqlAnswers::new(rows, columns, bytes))),
            Protocol::Postgres => {
                Self::Postgres(Arc::new(postgres::PostgresAnswers::new(rows, columns, bytes)))
            }
        }
    }
}

#[derive(Debug)]
pub(crate) enum Session {
    Mysql(mysql::MysqlSession, Arc<mysql::MysqlAnswers>),
    Postgres(Box<postgres::PostgresSession>, Arc<postgres::PostgresAnswers>),
    /// There are too many connections. The client has received the error.
    TurnedAway,
}

impl Session {
    /// Starts connection number `connection`. The server's first message goes to `output`.
    pub(crate) fn begin(
        answers: &Answers,
        script: &Script,
        connection: u64,
        turned_away: bool,
        output: &mut Output,
    ) -> Self {
        match answers {
            Answers::Mysql(_) if turned_away => {
                mysql::MysqlSession::turn_away(output);
                Self::TurnedAway
            }
            Answers::Mysql(answers) => {
                let session = mysql::MysqlSession::greet(connection, script.deprecate_eof, output);
                Self::Mysql(session, Arc::clone(answers))
            }
            Answers::Postgres(answers) => {
                let session = postgres::PostgresSession::new(connection, turned_away);
                Self::Postgres(Box::new(session), Arc::clone(answers))
            }
        }
    }

    /// Parses the first message in `input`. An answer that needs no time goes to `output`.
    pub(crate) fn next(&mut self, input: &[u8], output: &mut Output) -> ParsedInput {
        match self {
            Self::Mysql(session, answers) => session.next(input, answers, output),
            Self::Postgres(session, answers) => session.next(input, answers, output),
            Self::TurnedAway => ParsedInput::Close,
        }
    }

    /// Writes the messages for a successful login.
    pub(crate) fn welcome(&mut self, output: &mut Output) {
        match self {
            Self::Mysql(session, _) => session.welcome(output),
            Self::Postgres(session, _) => session.welcome(output),
            Self::TurnedAway => {}
        }
    }

    /// Answers a statement as programmed.
    pub(crate) fn answer(&mut self, work: StatementRequest, output: &mut Output) {
        match self {
            Self::Mysql(session, answers) => session.answer(work, answers, output),
            Self::Postgres(session, answers) => session.answer(work, answers, output),
            Self::TurnedAway => {}
        }
    }

    /// Answers a statement with the programmed error.
    pub(crate) fn refuse(&mut self, work: StatementRequest, code: &str, output: &mut Output) {
        match self {
            Self::Mysql(session, _) => session.refuse(code, output),
            Self::Postgres(session, _) => session.refuse(work, code, output),
            Self::TurnedAway => {}
        }
    }
}

/// The meaning of a client's next bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParsedInput {
    /// The bytes end inside a message.
    More,
    /// This many bytes are parsed, and the output has the answer if there is one.
    Done(usize, RequestKind),
    /// This many bytes are parsed, and a statement waits for its answer.
    Statement(usize, StatementRequest),
    /// This many bytes are parsed, and a login waits for its answer.
    Login(usize),
    /// The client ends the connection or sends a malformed message. The output is still sent.
    Close,
}

/// Kinds of requests, for the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Prepare,
    Close,
    Ping,
    Other,
    /// A message that belongs to a request and counts with it.
    Part,
}

/// A statement that needs an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatementRequest {
    pub(crate) kind: StatementKind,
    /// Whether it was executed from a prepared statement, and not from text.
    pub(crate) prepared: bool,
}
