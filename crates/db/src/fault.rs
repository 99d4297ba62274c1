//! Faults in a wire protocol, before they are reported with their place and statement.

use std::fmt::{Debug, Display};
use std::io;

use crate::tls::{TlsFault, explain};
use crate::{Class, DbError};

/// A failure inside a protocol's code. `S` is what its servers report.
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

/// An error that a server reports while the session continues, or a request that the client cannot
/// fulfil.
pub(crate) trait ServerFault: Debug + Display {
    /// The class for the operation that failed.
    fn class(&self) -> Class;

    fn code(&self) -> String;

    /// What to try, where the server's own words are misleading.
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

    /// Makes the error that users see. `context` says what was done, and on what.
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

    /// Replaces the fault with TLS' own reason, where TLS ended a connection to `host`. A server
    /// reports only after the handshake that it wants a client certificate.
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
