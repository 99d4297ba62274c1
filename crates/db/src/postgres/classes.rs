//! The error class for each PostgreSQL SQLSTATE, which decides whether a session retries.

use crate::Class;
use crate::Class::{Fatal, Lost, Refused, Retry};

/// States whose class differs from their group's, sorted. The names are from the appendix
/// "PostgreSQL Error Codes" in its documentation.
const STATES: &[(&str, Class)] = &[
    ("25P03", Lost),    // idle_in_transaction_session_timeout
    ("25P04", Lost),    // transaction_timeout
    ("40001", Retry),   // serialization_failure
    ("40003", Lost),    // statement_completion_unknown
    ("40P01", Retry),   // deadlock_detected
    ("53300", Refused), // too_many_connections
    ("55P03", Retry),   // lock_not_available
    ("57014", Refused), // query_canceled: statement_timeout among them
    ("57P01", Lost),    // admin_shutdown
    ("57P02", Lost),    // crash_shutdown
    ("57P03", Lost),    // cannot_connect_now: starts, stops, recovers
    ("57P04", Lost),    // database_dropped
    ("57P05", Lost),    // idle_session_timeout
];

/// Groups by their first two letters, sorted. A missing group is [`Class::Refused`].
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

pub(super) fn class_of(state: &str) -> Class {
    let find = |table: &[(&str, Class)], key: &str| {
        table.binary_search_by_key(&key, |entry| entry.0).map(|at| table[at].1)
    };
    find(STATES, state).or_else(|_| find(GROUPS, state.get(..2).unwrap_or(""))).unwrap_or(Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_have_no_state_twice() {
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
