//! Reads a PostgreSQL server's errors from its messages, puts them into words, and sorts them into
//! classes by SQLSTATE. The class decides whether a session retries.

use super::wire::PostgresReader;
use crate::Class;
use crate::Class::{Fatal, Lost, Refused, Retry};
use crate::error::{ServerFault, server_text};

pub(super) type PostgresFault = crate::error::WireFault<PostgresServerError>;

/// SQLSTATEs for a statement that is prepared already, and for one that is not. Statement names
/// belong to the session, so these errors show that a pooler has changed the session meanwhile.
const LOST_STATEMENTS: [&str; 2] = ["42P05", "26000"];

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// The SQLSTATE, which has five characters: digits and capital letters.
    pub(super) state: String,
    pub(super) message: String,
    /// Whether the error ends the session, as FATAL and PANIC do.
    ends_session: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum PostgresServerError {
    /// The server refused something. The session continues, or never began.
    #[error("server said: {}", .0.message)]
    Reported(Report),
    /// The server gave the reason for ending the session.
    #[error("server said: {}", .0.message)]
    Ended(Report),
    /// A COPY was used in a way that the session cannot serve. The text says how.
    #[error("{0}")]
    Copy(&'static str),
}

impl PostgresFault {
    /// Makes the fault for an error report during a session. The session continues unless the
    /// report says otherwise.
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

/// Reads an error report from its message's body.
pub(super) fn error(body: &[u8]) -> Result<Report, PostgresFault> {
    let mut reader = PostgresReader(body);
    let mut report = Report { state: String::new(), message: String::new(), ends_session: false };
    loop {
        let field = reader.u8()?;
        if field == 0 {
            break;
        }
        let text = reader.text()?;
        match field {
            b'C' => report.state = server_text(text),
            b'M' => report.message = server_text(text),
            // This is the severity in English, whatever the server's language. Field `S` is the
            // translated one.
            b'V' => report.ends_session = matches!(text, b"FATAL" | b"PANIC"),
            _ => {}
        }
    }
    if report.state.is_empty() {
        return Err(PostgresFault::Malformed("an error without SQLSTATE"));
    }
    Ok(report)
}

/// Reads an error as [`error`] does, from a body that is cut off after its beginning.
pub(super) fn beginning_of_error(body: &[u8]) -> Result<Report, PostgresFault> {
    error(&[body, b"\0\0"].concat())
}

/// Reads the number of affected rows from the tag that ends a statement: `INSERT 0 100`,
/// `DELETE 50`, `COPY 7`. A `SELECT` affects none.
pub(super) fn affected(tag: &[u8]) -> u64 {
    let mut words = tag.split(|&byte| byte == b' ');
    match words.next() {
        Some(b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" | b"COPY") => {}
        _ => return 0,
    }
    let count = words.next_back().and_then(|word| std::str::from_utf8(word).ok());
    count.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// SQLSTATEs whose class differs from their group's, sorted. The names are from the appendix
/// "PostgreSQL Error Codes" in its documentation.
const STATES: &[(&str, Class)] = &[
    ("25P03", Lost),    // idle_in_transaction_session_timeout
    ("25P04", Lost),    // transaction_timeout
    ("40001", Retry),   // serialization_failure
    ("40003", Lost),    // statement_completion_unknown
    ("40P01", Retry),   // deadlock_detected
    ("53300", Refused), // too_many_connections
    ("55P03", Retry),   // lock_not_available
    ("57014", Refused), // query_canceled, also by statement_timeout
    ("57P01", Lost),    // admin_shutdown
    ("57P02", Lost),    // crash_shutdown
    ("57P03", Lost),    // cannot_connect_now: the server starts, stops or recovers
    ("57P04", Lost),    // database_dropped
    ("57P05", Lost),    // idle_session_timeout
];

/// Groups of SQLSTATEs by their first two characters, sorted. A group that is missing here is
/// [`Class::Refused`].
const GROUPS: &[(&str, Class)] = &[
    ("08", Lost),  // connection exception
    ("0A", Fatal), // feature not supported
    ("26", Fatal), // invalid SQL statement name
    ("28", Fatal), // invalid authorization: user, password, pg_hba.conf
    ("34", Fatal), // invalid cursor name
    ("3D", Fatal), // invalid database
    ("3F", Fatal), // invalid schema
    ("42", Fatal), // syntax error or access rule violation: no such table, no rights
    ("53", Fatal), // insufficient resources: disk full, out of memory
    ("54", Fatal), // program limit exceeded
    ("58", Fatal), // system error: I/O
    ("F0", Fatal), // configuration file error
    ("XX", Fatal), // internal error, data corrupted
];

/// Returns the class of a SQLSTATE: its own, otherwise its group's.
pub(super) fn class_of(state: &str) -> Class {
    let find = |table: &[(&str, Class)], key: &str| {
        table.binary_search_by_key(&key, |entry| entry.0).map(|at| table[at].1)
    };
    find(STATES, state).or_else(|_| find(GROUPS, state.get(..2).unwrap_or(""))).unwrap_or(Refused)
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
    fn the_advice_for_a_lost_statement_names_the_ways_around_a_pooler() {
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
    fn an_error_that_ends_the_session_is_lost_whatever_its_state() {
        assert_eq!(PostgresFault::in_session(report("40001", true)).class(), Class::Lost);
        assert_eq!(PostgresFault::in_session(report("40001", false)).class(), Class::Retry);
        assert_eq!(PostgresFault::Closed.class(), Class::Lost);
        assert_eq!(PostgresFault::Malformed("x").class(), Class::Lost);
    }

    #[test]
    fn an_error_is_read_from_its_fields() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mduplicate key\0DKey (a)=(1)\0Fnbtinsert.c\0\0";
        let report = error(body).expect("an error");
        assert_eq!(
            (report.state.as_str(), report.message.as_str(), report.ends_session),
            ("23505", "duplicate key", false)
        );
        assert!(error(b"VFATAL\0C57P01\0Mterminating\0\0").expect("an error").ends_session);
    }

    #[test]
    fn an_error_is_read_from_its_beginning_where_the_end_is_cut_off() {
        let whole = b"SERROR\0VERROR\0C22P02\0Minvalid input: 777\0\0";
        let read =
            |end: usize| beginning_of_error(&whole[..end]).map(|report| (report.state, report.message));
        assert_eq!(read(14).ok(), None);
        let state = || "22P02".to_owned();
        let state_ends = 21;
        for (end, message) in
            [(state_ends, ""), (22, ""), (29, "invalid"), (whole.len(), "invalid input: 777")]
        {
            assert_eq!(read(end).ok(), Some((state(), message.to_owned())), "{end}");
        }
    }

    #[test]
    fn an_incomplete_error_is_malformed() {
        for body in [&b""[..], b"\0", b"Mno state\0\0", b"C23505\0", b"C23505"] {
            assert!(matches!(error(body), Err(PostgresFault::Malformed(_))), "{body:?}");
        }
    }

    #[test]
    fn affected_rows_are_the_last_word_of_a_tag() {
        for (tag, rows) in [
            ("INSERT 0 100", 100),
            ("DELETE 50", 50),
            ("UPDATE 0", 0),
            ("MERGE 3", 3),
            ("COPY 7", 7),
            ("SELECT 10", 0),
            ("CREATE TABLE", 0),
            ("INSERT", 0),
            ("DELETE 99999999999999999999999", 0),
            ("", 0),
        ] {
            assert_eq!(affected(tag.as_bytes()), rows, "{tag}");
        }
    }

    #[test]
    fn the_tables_are_sorted_without_duplicates() {
        for table in [STATES, GROUPS] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn states_find_their_class() {
        let check = |class, states: &[&str]| {
            states.iter().for_each(|state| assert_eq!(class_of(state), class, "{state}"));
        };
        check(Retry, &["40001", "40P01", "55P03"]);
        check(Lost, &["57P01", "57P02", "57P03", "57P04", "57P05", "08006", "08P01", "25P03"]);
        check(
            Refused,
            &["23505", "23503", "22003", "22P02", "57014", "53300", "25006", "P0001", "55006", "", "ü"],
        );
        check(
            Fatal,
            &["42601", "42P01", "42501", "28P01", "28000", "3D000", "53100", "53200", "XX000", "58030"],
        );
    }
}
