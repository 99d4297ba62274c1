//! What can go wrong on the wire, before it is reported with the place and the statement it
//! happened to.

use std::fmt::{Debug, Display};
use std::io;

use crate::tls::{TlsFault, explain};
use crate::{Class, DbError};

/// A failure inside the code of a protocol, of which `S` is what its servers say.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault<S> {
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

/// What a server says that goes on, or that it does what the client cannot.
pub(crate) trait ServerFault: Debug + Display {
    /// What it means for the operation that met it.
    fn class(&self) -> Class;

    fn code(&self) -> String;

    /// What to try, where the server's words lead elsewhere.
    fn advice(&self) -> &'static str {
        ""
    }
}

impl<S: ServerFault> Fault<S> {
    /// What it means for the operation that met it.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Io(_) | Self::Closed | Self::Malformed(_) | Self::TooLarge(_) => Class::Lost,
            Self::Login(_) | Self::Tls(_) => Class::Fatal,
            Self::Server(error) => error.class(),
        }
    }

    /// The failure as users see it, `context` saying what was done, on what.
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

    /// The fault as TLS means it, where a connection to `host` ended for a reason that TLS gave: a
    /// server reports that it wants a client certificate only after the handshake.
    pub(crate) fn explained_by_tls(self, host: &str) -> Self {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                explain(&error, host).map_or(Self::Io(error), Self::Tls)
            }
            other => other,
        }
    }
}

impl<S> From<io::Error> for Fault<S> {
    /// A server that ended a connection is noticed by what the client does next: reading nothing,
    /// reading after a reset, or writing into a broken pipe. All three are the same to users; libpq
    /// has one message for them too.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl<S> From<TlsFault> for Fault<S> {
    fn from(fault: TlsFault) -> Self {
        match fault {
            TlsFault::Io(error) => error.into(),
            TlsFault::Refused(why) => Self::Tls(why),
        }
    }
}
