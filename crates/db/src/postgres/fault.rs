//! Errors from a PostgreSQL server and its protocol, in words.

use super::classes::class_of;
use crate::Class;
use crate::fault::ServerFault;

pub(super) type PostgresFault = crate::fault::WireFault<PostgresServerError>;

/// SQLSTATEs for a statement that is prepared already, and for one that is not. Statement names
/// belong to the session, so a server that keeps its sessions sends neither.
const LOST_STATEMENTS: [&str; 2] = ["42P05", "26000"];

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// The SQLSTATE, which has five letters and digits.
    pub(super) state: String,
    pub(super) message: String,
    /// Whether the error ends the session, as FATAL and PANIC do.
    pub(super) ends_session: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum PostgresServerError {
    /// The server refused something. The session continues, or never began.
    #[error("server said: {}", .0.message)]
    Reported(Report),
    /// The server gave the reason for ending the session.
    #[error("server said: {}", .0.message)]
    Ended(Report),
    #[error("{0}")]
    Copy(&'static str),
}

impl PostgresFault {
    /// An error report during a session, which continues unless the report says otherwise.
    pub(super) fn in_session(report: Report) -> Self {
        Self::Server(if report.ends_session {
            PostgresServerError::Ended(report)
        } else {
            PostgresServerError::Reported(report)
        })
    }
}

impl ServerFault for PostgresServerError {
    fn class(&self) -> Class {
        match self {
            Self::Ended(_) => Class::Lost,
            Self::Reported(report) => class_of(&report.state),
            Self::Copy(_) => Class::Refused,
        }
    }

    fn code(&self) -> String {
        match self {
            Self::Reported(report) | Self::Ended(report) => report.state.clone(),
            Self::Copy(_) => "copy".to_owned(),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Reported(report) | Self::Ended(report)
                if LOST_STATEMENTS.contains(&report.state.as_str()) =>
            {
                "; a pooler that gives each transaction another session loses prepared statements: use its session \
                 mode, connect to the server itself, or send text: protocol = \"text\""
            }
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: &str, ends_session: bool) -> Report {
        Report { state: state.to_owned(), message: "no more".to_owned(), ends_session }
    }

    #[test]
    fn a_fault_is_reported_with_context_and_state() {
        insta::assert_snapshot!(PostgresFault::Server(PostgresServerError::Reported(report("23505", false))).into_error("INSERT INTO t ... on /run/a"),
            @"INSERT INTO t ... on /run/a: server said: no more (23505)");
    }

    #[test]
    fn a_statement_that_another_session_has_is_explained_by_the_pooler_between() {
        for state in ["42P05", "26000"] {
            let fault = PostgresFault::Server(PostgresServerError::Reported(report(state, false)))
                .into_error("EXECUTE on /run/a");
            assert!(
                fault.message.contains("protocol = \"text\"") && fault.message.contains("session mode"),
                "{fault}"
            );
        }
    }

    #[test]
    fn what_ends_the_session_is_a_loss_whatever_its_state() {
        assert_eq!(PostgresFault::in_session(report("40001", true)).class(), Class::Lost);
        assert_eq!(PostgresFault::in_session(report("40001", false)).class(), Class::Retry);
        assert_eq!(PostgresFault::Closed.class(), Class::Lost);
        assert_eq!(PostgresFault::Malformed("x").class(), Class::Lost);
    }
}
