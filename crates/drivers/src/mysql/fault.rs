//! What can go wrong on the wire, before it is reported with the place and the statement it happened to.

use std::io;

use super::classes::class_of;
use crate::tls::{TlsFault, explain};
use crate::{Class, DbError};

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
    #[error("server said: {message}")]
    Server { code: u16, message: String },
    #[error("{0}")]
    Login(String),
    #[error("{0}")]
    Tls(String),
    #[error("the server asked for a local file, which dbdyno never sends; load the rows with INSERT")]
    LocalFile,
    #[error("the server asks for no rows: this is no LOAD DATA LOCAL INFILE")]
    NoLocalFile,
}

impl Fault {
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

    /// What to try, where the server's words lead elsewhere.
    fn advice(&self) -> &'static str {
        match self {
            // sysbench's insert gives 0 for "the next id".
            Self::Server { code: 1062, message } if message.starts_with("Duplicate entry '0' for key") => {
                "; if the server's sql_mode holds NO_AUTO_VALUE_ON_ZERO, it takes the id 0 as it is and gives no next one: take that \
                 out of sql_mode"
            }
            _ => "",
        }
    }

    fn code(&self) -> String {
        match self {
            Self::Io(_) | Self::Closed => "io".to_owned(),
            Self::Malformed(_) | Self::TooLarge(_) => "protocol".to_owned(),
            Self::Server { code, .. } => code.to_string(),
            Self::Login(_) => "login".to_owned(),
            Self::Tls(_) => "tls".to_owned(),
            Self::LocalFile | Self::NoLocalFile => "local infile".to_owned(),
        }
    }
}

impl crate::exchange::Fault for Fault {
    fn class(&self) -> Class {
        match self {
            Self::Io(_) | Self::Closed | Self::Malformed(_) | Self::TooLarge(_) => Class::Lost,
            Self::Server { code, .. } => class_of(*code),
            Self::Login(_) | Self::Tls(_) => Class::Fatal,
            Self::LocalFile | Self::NoLocalFile => Class::Refused,
        }
    }

    fn into_error(self, context: &str) -> DbError {
        let advice = self.advice();
        DbError::new(self.class(), self.code(), format!("{context}: {self}{advice}"))
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

    #[test]
    fn a_fault_is_reported_with_context_and_code() {
        let fault = Fault::Server { code: 1062, message: "Duplicate entry '1' for key 'PRIMARY'".into() };
        insta::assert_snapshot!(fault.into_error("INSERT INTO t ... on /run/a.sock"),
            @"INSERT INTO t ... on /run/a.sock: server said: Duplicate entry '1' for key 'PRIMARY' (1062)");
        let zero = Fault::Server { code: 1062, message: "Duplicate entry '0' for key 'PRIMARY'".into() };
        insta::assert_snapshot!(zero.into_error("INSERT"), @"INSERT: server said: Duplicate entry '0' for key 'PRIMARY'; if the server's sql_mode holds NO_AUTO_VALUE_ON_ZERO, it takes the id 0 as it is and gives no next one: take that out of sql_mode (1062)");
        assert_eq!(Fault::Closed.class(), Class::Lost);
        assert_eq!(Fault::Malformed("x").class(), Class::Lost);
    }
}
