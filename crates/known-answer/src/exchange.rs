//! What both protocols have in common: the steps in which a connection's bytes are taken apart.

use crate::statement::StatementKind;

/// What the next bytes of a client were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// They end inside a message.
    More,
    /// This many bytes are done with; what had to be said is in the output.
    Done(usize, Kind),
    /// This many bytes are done with; a statement waits for its answer.
    Statement(usize, Work),
    /// This many bytes are done with; a login waits for its answer.
    Login(usize),
    /// The client leaves, or cannot be understood. What is in the output still goes out.
    Close,
}

/// Kinds of requests, for the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prepare,
    Close,
    Ping,
    Other,
    /// A message that is part of a request and counts with it.
    Part,
}

/// A statement to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) kind: StatementKind,
    /// Executed from a prepared statement, not from text.
    pub(crate) prepared: bool,
}
