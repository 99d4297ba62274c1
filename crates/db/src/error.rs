//! Database errors, sorted into the four classes that decide what happens next. A [`WireFault`] is
//! a failure inside a protocol's code, before it is reported with its statement and address.
//! Messages quote only the start of a statement and of a server's text.

use std::fmt::{Debug, Display};
use std::io;

use crate::tls::{TlsFault, explain};

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

/// A failure inside a protocol's code. `S` is the type for the errors that its servers report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireFault<S> {
    #[error("{0}")]
    Io(io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server's answer breaks the protocol: {0}")]
    Malformed(&'static str),
    #[error("{0}")]
    TooLarge(&'static str),
    #[error("{0}")]
    Login(String),
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Server(S),
}

/// An error that a server reports while the session continues, or an error for a request that the
/// client cannot fulfil.
pub(crate) trait ServerFault: Debug + Display {
    /// The class for the operation that failed.
    fn class(&self) -> Class;

    fn code(&self) -> String;

    /// What the user should try, where the server's own words are misleading.
    fn advice(&self) -> &'static str {
        ""
    }
}

impl<S: ServerFault> WireFault<S> {
    /// The class for the operation that failed.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Io(_) | Self::Closed | Self::Malformed(_) | Self::TooLarge(_) => Class::Lost,
            Self::Login(_) | Self::Tls(_) => Class::Fatal,
            Self::Server(error) => error.class(),
        }
    }

    /// Makes the error that users see. `context` names the action and its object.
    pub(crate) fn into_error(self, context: &str) -> DbError {
        let (code, advice) = match &self {
            Self::Io(_) | Self::Closed => ("io".to_owned(), ""),
            Self::Malformed(_) | Self::TooLarge(_) => ("protocol".to_owned(), ""),
            Self::Login(_) => ("login".to_owned(), ""),
            Self::Tls(_) => ("tls".to_owned(), ""),
            Self::Server(error) => (error.code(), error.advice()),
        };
        DbError::new(self.class(), code, format!("{context}: {self}{advice}"))
    }

    /// Replaces the fault with the reason that TLS gives, where TLS ended the connection to `host`.
    /// A server reports only after the handshake that it wants a client certificate.
    pub(crate) fn explained_by_tls(self, host: &str) -> Self {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                explain(&error, host).map_or(Self::Io(error), Self::Tls)
            }
            other => other,
        }
    }
}

impl<S> From<io::Error> for WireFault<S> {
    /// A client notices that a server ended the connection in one of three ways: it reads nothing,
    /// it reads after a reset, or it writes into a broken pipe. All three mean the same to users,
    /// and libpq has one message for them too.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl<S> From<TlsFault> for WireFault<S> {
    fn from(fault: TlsFault) -> Self {
        match fault {
            TlsFault::Io(error) => error.into(),
            TlsFault::Refused(why) => Self::Tls(why),
        }
    }
}

/// Number of bytes at the start of a text that are read for an excerpt, because 60 characters never
/// need more.
const LOOKED_AT_BYTES: usize = 240;

/// Returns at most 60 characters and stops before the first quote, because `CREATE USER ...
/// IDENTIFIED BY '...'` holds a password. A dollar sign counts as a quote too, because PostgreSQL
/// quotes texts with it.
pub(crate) fn excerpt(sql: &[u8]) -> String {
    let end = sql.iter().position(|byte| matches!(byte, b'\'' | b'"' | b'$')).unwrap_or(sql.len());
    let text = String::from_utf8_lossy(&sql[..end.min(LOOKED_AT_BYTES)]).into_owned();
    let mut short: String = text.chars().take(60).collect();
    if short.len() < sql.len() {
        short.push_str("...");
    }
    short
}

/// Longest text from a server that is kept, in characters. A server repeats a value that it cannot
/// read in full.
const LONGEST_SERVER_TEXT: usize = 500;

/// The start of a server's text, in one line. Control characters are escaped, because a terminal
/// would act on them.
pub(crate) fn server_text(text: &[u8]) -> String {
    // No character takes more than four bytes.
    let looked_at = &text[..text.len().min(4 * LONGEST_SERVER_TEXT)];
    let mut short = String::new();
    let text = String::from_utf8_lossy(looked_at);
    let mut characters = text.chars();
    for character in characters.by_ref().take(LONGEST_SERVER_TEXT) {
        match character {
            // Characters that change the writing direction would make the terminal show the text in
            // another order.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                short.extend(character.escape_default());
            }
            _ if character.is_control() => short.extend(character.escape_default()),
            _ => short.push(character),
        }
    }
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_is_short_and_one_line() {
        assert_eq!(server_text(b"You have an error near 'x\ny'"), r"You have an error near 'x\ny'");
        assert_eq!(
            server_text(b"\x1b]0;title\x07\xff\xc2\x9b31m"),
            r"\u{1b}]0;title\u{7}".to_owned() + "\u{fffd}\\u{9b}31m"
        );
        assert_eq!(server_text("\u{202e}gpj".as_bytes()), r"\u{202e}gpj");
        assert_eq!(server_text("ü".repeat(5_000).as_bytes()), format!("{}...", "ü".repeat(500)));
        assert_eq!(server_text("ü".repeat(500).as_bytes()), "ü".repeat(500));
    }

    #[test]
    fn an_excerpt_stops_before_the_first_quote() {
        assert_eq!(excerpt(b"CREATE USER a IDENTIFIED BY 'hunter2'"), "CREATE USER a IDENTIFIED BY ...");
        assert_eq!(excerpt(b"CREATE ROLE a PASSWORD $$hunter2$$"), "CREATE ROLE a PASSWORD ...");
        assert_eq!(excerpt(b"SELECT 1"), "SELECT 1");
        assert_eq!(excerpt("ü".repeat(100).as_bytes()), format!("{}...", "ü".repeat(60)));
    }
}
