//! The storage engines that tables really have.

use std::collections::BTreeMap;

use super::Mysql;
use crate::DbError;
use crate::product::{Asked, name_value_pairs};

/// The engine of each of these tables of the session's database, in the server's words.
pub(super) async fn of_tables(
    session: &mut Asked<'_, Mysql>,
    tables: &[String],
) -> Result<BTreeMap<String, String>, DbError> {
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
