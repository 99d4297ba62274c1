//! The steps in which a connection's bytes are parsed, the same for both protocols.

use crate::statement::StatementKind;

/// What a client's next bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The bytes end inside a message.
    More,
    /// This many bytes are finished, and the output has the answer if there is one.
    Done(usize, Kind),
    /// This many bytes are finished, and a statement waits for its answer.
    Statement(usize, Work),
    /// This many bytes are finished, and a login waits for its answer.
    Login(usize),
    /// The client leaves, or cannot be understood. What is in the output is still sent.
    Close,
}

/// Kinds of requests, for the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prepare,
    Close,
    Ping,
    Other,
    /// A message that belongs to a request and counts with it.
    Part,
}

/// A statement that needs an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) kind: StatementKind,
    /// Whether it was executed from a prepared statement, and not from text.
    pub(crate) prepared: bool,
}
