//! The storage engines that tables really have.

use std::collections::BTreeMap;

use crate::status::name_value_pairs;
use crate::{AnySession, DbError};

/// The engine of each of these tables of the session's database, in the server's words. Empty where tables have no engines to
/// choose from; without those that the server does not report.
///
/// # Errors
/// As [`crate::Session::rows`].
pub async fn table_engines(
    session: &mut AnySession,
    tables: &[String],
) -> Result<BTreeMap<String, String>, DbError> {
    if !matches!(session, AnySession::Mysql(_)) {
        return Ok(BTreeMap::new());
    }
    let names: Vec<String> = tables.iter().map(|table| format!("'{table}'")).collect();
    let sql = format!(
        "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})",
        names.join(", ")
    );
    let mut engines = name_value_pairs(session, &sql).await?;
    engines.retain(|table, _| tables.contains(table));
    Ok(engines)
}

/// Whether `found`, as a server spells it, is the engine that was asked for as `asked`.
pub fn is_engine(asked: &str, found: &str) -> bool {
    // Words that stand for another one in CREATE TABLE.
    let word = match asked.to_ascii_lowercase().as_str() {
        "heap" => "memory",
        "innobase" => "innodb",
        "merge" => "mrg_myisam",
        "ndb" => "ndbcluster",
        _ => asked,
    };
    word.eq_ignore_ascii_case(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_the_same_under_each_of_their_names() {
        for (asked, found) in [("rocksdb", "ROCKSDB"), ("innodb", "InnoDB"), ("heap", "MEMORY")] {
            assert!(is_engine(asked, found), "{asked}");
        }
        assert!(!is_engine("rocksdb", "InnoDB"));
    }
}
