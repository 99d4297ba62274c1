//! Errors from MySQL-family servers and their protocol, in words.

use super::classes::class_of;
use crate::Class;
use crate::fault::ServerFault;

pub(super) type MysqlFault = crate::fault::WireFault<MysqlServerError>;

#[derive(Debug, thiserror::Error)]
pub(super) enum MysqlServerError {
    #[error("server said: {message}")]
    Reported { code: u16, message: String },
    #[error("the server asked for a local file, which dbdyno never sends; load the rows with INSERT")]
    LocalFile,
    #[error("the server asks for no rows: this is no LOAD DATA LOCAL INFILE")]
    NoLocalFile,
}

impl ServerFault for MysqlServerError {
    fn class(&self) -> Class {
        match self {
            Self::Reported { code, .. } => class_of(*code),
            Self::LocalFile | Self::NoLocalFile => Class::Refused,
        }
    }

    fn code(&self) -> String {
        match self {
            Self::Reported { code, .. } => code.to_string(),
            Self::LocalFile | Self::NoLocalFile => "local infile".to_owned(),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            // sysbench's insert gives 0 for "the next id".
            Self::Reported { code: 1062, message } if message.starts_with("Duplicate entry '0' for key") => {
                "; if the server's sql_mode holds NO_AUTO_VALUE_ON_ZERO, it takes the id 0 as it is and gives no next one: take that \
                 out of sql_mode"
            }
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_reported_with_context_and_code() {
        let fault = MysqlFault::Server(MysqlServerError::Reported {
            code: 1062,
            message: "Duplicate entry '1' for key 'PRIMARY'".into(),
        });
        insta::assert_snapshot!(fault.into_error("INSERT INTO t ... on /run/a.sock"),
            @"INSERT INTO t ... on /run/a.sock: server said: Duplicate entry '1' for key 'PRIMARY' (1062)");
        let zero = MysqlFault::Server(MysqlServerError::Reported {
            code: 1062,
            message: "Duplicate entry '0' for key 'PRIMARY'".into(),
        });
        insta::assert_snapshot!(zero.into_error("INSERT"), @"INSERT: server said: Duplicate entry '0' for key 'PRIMARY'; if the server's sql_mode holds NO_AUTO_VALUE_ON_ZERO, it takes the id 0 as it is and gives no next one: take that out of sql_mode (1062)");
        assert_eq!(MysqlFault::Closed.class(), Class::Lost);
        assert_eq!(MysqlFault::Malformed("x").class(), Class::Lost);
    }
}
