//! What can go wrong on the wire, before it is reported with the place and the statement it happened to.

use std::io;

use super::classes::class_of;
use crate::tls::{TlsFault, explain};
use crate::{Class, DbError};

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// SQLSTATE: five letters and digits.
    pub(super) state: String,
    pub(super) message: String,
    /// The server ends the session with it: FATAL or PANIC.
    pub(super) ends_session: bool,
}

/// A failure inside the protocol code.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server's answer breaks the protocol: {0}")]
    Malformed(&'static str),
    #[error("{0}")]
    TooLarge(&'static str),
    /// The server said no; the session goes on, or never began.
    #[error("server said: {}", .0.message)]
    Server(Report),
    /// The server said why it ends the session.
    #[error("server said: {}", .0.message)]
    Ended(Report),
    #[error("{0}")]
    Login(String),
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Copy(&'static str),
}

impl Fault {
    /// What the server said in a session that goes on, unless it says otherwise.
    pub(super) fn in_session(report: Report) -> Self {
        if report.ends_session { Self::Ended(report) } else { Self::Server(report) }
    }

    /// The fault as TLS means it, where a connection to `host` ended for a reason that TLS gave: a server reports that it wants
    /// a client certificate only after the handshake.
    pub(super) fn explained_by_tls(self, host: &str) -> Self {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                explain(&error, host).map_or(Self::Io(error), Self::Tls)
            }
            other => other,
        }
    }

    fn code(&self) -> String {
        match self {
            Self::Io(_) | Self::Closed => "io".to_owned(),
            Self::Malformed(_) | Self::TooLarge(_) => "protocol".to_owned(),
            Self::Server(report) | Self::Ended(report) => report.state.clone(),
            Self::Login(_) => "login".to_owned(),
            Self::Tls(_) => "tls".to_owned(),
            Self::Copy(_) => "copy".to_owned(),
        }
    }
}

impl crate::exchange::Fault for Fault {
    fn class(&self) -> Class {
        match self {
            Self::Io(_) | Self::Closed | Self::Malformed(_) | Self::TooLarge(_) | Self::Ended(_) => {
                Class::Lost
            }
            Self::Server(report) => class_of(&report.state),
            Self::Login(_) | Self::Tls(_) => Class::Fatal,
            Self::Copy(_) => Class::Refused,
        }
    }

    fn into_error(self, context: &str) -> DbError {
        DbError::new(self.class(), self.code(), format!("{context}: {self}"))
    }
}

impl From<TlsFault> for Fault {
    fn from(fault: TlsFault) -> Self {
        match fault {
            TlsFault::Io(error) => Self::Io(error),
            TlsFault::Refused(why) => Self::Tls(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Fault as _;

    fn report(state: &str, ends_session: bool) -> Report {
        Report { state: state.to_owned(), message: "no more".to_owned(), ends_session }
    }

    #[test]
    fn a_fault_is_reported_with_context_and_state() {
        insta::assert_snapshot!(Fault::Server(report("23505", false)).into_error("INSERT INTO t ... on /run/a"),
            @"INSERT INTO t ... on /run/a: server said: no more (23505)");
    }

    #[test]
    fn what_ends_the_session_is_a_loss_whatever_its_state() {
        assert_eq!(Fault::in_session(report("40001", true)).class(), Class::Lost);
        assert_eq!(Fault::in_session(report("40001", false)).class(), Class::Retry);
        assert_eq!(Fault::Closed.class(), Class::Lost);
        assert_eq!(Fault::Malformed("x").class(), Class::Lost);
    }
}
