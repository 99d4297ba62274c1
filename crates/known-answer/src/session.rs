//! One connection in either protocol.

use std::sync::Arc;

use crate::exchange::{Step, Work};
use crate::output::Output;
use crate::{Protocol, Script, mysql, postgres};

/// The programmed rows, in the protocol's formats.
#[derive(Debug, Clone)]
pub(crate) enum Answers {
    Mysql(Arc<mysql::Answers>),
    Postgres(Arc<postgres::Answers>),
}

impl Answers {
    pub(crate) fn new(protocol: Protocol, script: &Script) -> Self {
        let Script { rows, columns, bytes, .. } = *script;
        match protocol {
            Protocol::Mysql => Self::Mysql(Arc::new(mysql::Answers::new(rows, columns, bytes))),
            Protocol::Postgres => Self::Postgres(Arc::new(postgres::Answers::new(rows, columns, bytes))),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Session {
    Mysql(mysql::Session, Arc<mysql::Answers>),
    Postgres(Box<postgres::Session>, Arc<postgres::Answers>),
    /// There are too many connections, and the client has been told.
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
                mysql::Session::turn_away(output);
                Self::TurnedAway
            }
            Answers::Mysql(answers) => {
                let session = mysql::Session::greet(connection, script.deprecate_eof, output);
                Self::Mysql(session, Arc::clone(answers))
            }
            Answers::Postgres(answers) => {
                let session = postgres::Session::new(connection, turned_away);
                Self::Postgres(Box::new(session), Arc::clone(answers))
            }
        }
    }

    /// Parses the first message in `input`. An answer that needs no time goes to `output`.
    pub(crate) fn next(&mut self, input: &[u8], output: &mut Output) -> Step {
        match self {
            Self::Mysql(session, answers) => session.next(input, answers, output),
            Self::Postgres(session, answers) => session.next(input, answers, output),
            Self::TurnedAway => Step::Close,
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
    pub(crate) fn answer(&mut self, work: Work, output: &mut Output) {
        match self {
            Self::Mysql(session, answers) => session.answer(work, answers, output),
            Self::Postgres(session, answers) => session.answer(work, answers, output),
            Self::TurnedAway => {}
        }
    }

    /// Answers a statement with the programmed error.
    pub(crate) fn refuse(&mut self, work: Work, code: &str, output: &mut Output) {
        match self {
            Self::Mysql(session, _) => session.refuse(code, output),
            Self::Postgres(session, _) => session.refuse(work, code, output),
            Self::TurnedAway => {}
        }
    }
}
