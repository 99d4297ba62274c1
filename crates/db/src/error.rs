//! Database errors, sorted into the four classes that decide what happens next.

/// What an error means for the operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The same operation may be sent again, after a deadlock, a lock wait timeout or a busy file.
    Retry,
    /// The server refused this operation, but the next one may succeed.
    Refused,
    /// The connection is gone.
    Lost,
    /// No operation of this kind can succeed, because of syntax, a missing table, missing rights or
    /// no space.
    Fatal,
}

/// An error from a connection or a statement. The message names what failed, and on what. It never
/// contains a secret.
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
