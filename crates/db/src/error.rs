//! What a database said no with, sorted into the four classes that decide what happens next.

/// What an error means for the operation that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The same operation may be sent again: deadlock, lock wait timeout, busy file.
    Retry,
    /// The server answered no to this operation; the next one may go well.
    Refused,
    /// The connection is gone.
    Lost,
    /// No operation of this kind can succeed: syntax, missing table, no rights, no space.
    Fatal,
}

/// An error of a connection or a statement. The message names what failed, on what; it never holds
/// a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", code_suffix(code))]
pub struct DbError {
    pub class: Class,
    /// The product's own code (`1213`, `SQLITE_BUSY`), or `io` for a connection.
    pub code: String,
    pub message: String,
}

impl DbError {
    pub fn new(class: Class, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, code: code.into(), message: message.into() }
    }
}

fn code_suffix(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!(" ({code})") }
}
