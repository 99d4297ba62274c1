//! How a connection locks a database on a MySQL-family server: with a named lock (`GET_LOCK`).

use sha2::{Digest, Sha256};

use crate::product::Locks;

/// The highest value that every server in the family accepts for `wait_timeout`: one year, in
/// seconds.
pub(super) const STAY_WHILE_IDLE: &str = "SET SESSION wait_timeout = 31536000";

/// Longest name for a lock in MySQL from 5.7 on, in characters.
const LONGEST_NAME: usize = 64;

pub(super) fn of(database: &str) -> Locks {
    let name = name(database);
    Locks {
        server: "SELECT CONCAT_WS('|', @@hostname, @@port, @@datadir, @@socket)",
        take: format!("SELECT GET_LOCK({name}, 0)"),
        is_kept: format!("SELECT IS_USED_LOCK({name}) = CONNECTION_ID()"),
        owner: format!(
            "SELECT IS_USED_LOCK({name}), (SELECT CONCAT(USER, '@', HOST) FROM information_schema.PROCESSLIST \
             WHERE ID = IS_USED_LOCK({name}))"
        ),
        release: format!("SELECT RELEASE_LOCK({name})"),
        others: "SELECT CONCAT('connection ', ID, ' of ', USER, ': ', LEFT(INFO, 80)) FROM information_schema.PROCESSLIST \
                 WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND IN ('Query', 'Execute') AND TIME >= 1",
    }
}

/// `dbdyno:` and the database's name, as a literal that means the same in every SQL mode. A long
/// name is replaced by part of its hash.
fn name(database: &str) -> String {
    let mut name = format!("dbdyno:{database}");
    if name.chars().count() > LONGEST_NAME {
        name = format!("dbdyno:{}", &hex(&Sha256::digest(database))[..32]);
    }
    format!("CONVERT(X'{}' USING utf8)", hex(name.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_locks_fit_and_tell_databases_apart() {
        insta::assert_snapshot!(name("ib"), @"CONVERT(X'646264796e6f3a6962' USING utf8)");
        let [one, other] = ["a", "b"].map(|end| name(&("x".repeat(63) + end)));
        assert_ne!(one, other);
        assert!(one.len() < "CONVERT(X'' USING utf8)".len() + 2 * LONGEST_NAME, "{one}");
    }
}
