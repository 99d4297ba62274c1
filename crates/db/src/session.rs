//! Defines a session, which is one connection, and what a workload may do with it.

use std::future::Future;

use crate::Result;

/// The result of one statement. Rows are counted, not decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answer {
    pub rows: u64,
    /// Rows changed, as the server counts them.
    pub affected: u64,
    /// Bytes received, with packet headers.
    pub bytes: u64,
    /// Warnings that the server reports for the statement.
    pub warnings: u16,
    /// Whether rows came from a COPY to the client.
    pub copied_out: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Param {
    Int(i64),
    Text(Vec<u8>),
    Null,
}

impl Param {
    /// Replaces this parameter with the text that `write` produces, and reuses the memory of its
    /// previous text.
    pub fn set_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut text = match std::mem::replace(self, Self::Int(0)) {
            Self::Text(text) => text,
            Self::Int(_) | Self::Null => Vec::new(),
        };
        text.clear();
        write(&mut text);
        *self = Self::Text(text);
    }
}

/// A prepared statement. Only the session that made it can execute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The session's own number for the statement.
    pub id: u32,
    pub params: u16,
    /// Number of columns in its result; 0 for none.
    pub columns: u16,
}

/// Rows as text, for everything outside the load path. `None` is NULL.
pub type Cells = Vec<Vec<Option<String>>>;

/// Rows as text under the names of their columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub cells: Cells,
}

/// A statement in one of the forms in which it can be sent.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    Text(&'a str),
    /// The statement is parsed, bound and executed at once. Parameters are `$1`, `$2`, ...
    Parsed(&'a str, &'a [Param]),
    Prepared(Statement, &'a [Param]),
}

/// One connection to one database. It runs one statement at a time. The load path allocates nothing
/// once it is warm.
pub trait Session {
    /// Sends `sql` and reads the whole answer, counting rows.
    fn query(&mut self, sql: &[u8]) -> impl Future<Output = Result<Answer>>;

    /// Prepares `sql`, with parameters written as `?`.
    fn prepare(&mut self, sql: &str) -> impl Future<Output = Result<Statement>>;

    /// Executes a prepared statement and reads the whole answer, counting rows.
    fn execute(&mut self, statement: Statement, params: &[Param]) -> impl Future<Output = Result<Answer>>;

    /// Lets the server free what it keeps for a prepared statement, which must not be executed
    /// again. An embedded database keeps only a text.
    fn forget(&mut self, _statement: Statement) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Sends `sql` and returns its rows as text. It is not for the load path.
    fn rows(&mut self, sql: &str) -> impl Future<Output = Result<Cells>>;

    /// Ends the session properly. The connection is closed in any case.
    fn close(self) -> impl Future<Output = ()>;
}

/// The only number in an answer with one row and one column; `None` for no row or NULL.
pub fn first_i64(cells: &Cells) -> Option<i64> {
    cells.first()?.first()?.as_deref()?.parse().ok()
}
