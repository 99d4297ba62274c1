//! SQLite's counters and settings.

use std::collections::BTreeMap;

use super::Sqlite;
use crate::product::{Asked, Description, cell, version_numbers};
use crate::{DbError, Session};

/// SQLite's counters that cost no scan: pages in the file and unused ones, page size in bytes, and
/// a number that moves when another connection commits.
const COUNTERS: &[&str] = &["page_count", "freelist_count", "page_size", "data_version"];

/// SQLite's settings that change what a benchmark measures.
const SETTINGS: &[&str] = &[
    "auto_vacuum",
    "cache_size",
    "cache_spill",
    "encoding",
    "foreign_keys",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "mmap_size",
    "page_size",
    "secure_delete",
    "synchronous",
    "temp_store",
    "wal_autocheckpoint",
];

/// The counters of the file.
pub(super) async fn counters(session: &mut Asked<'_, Sqlite>) -> Result<BTreeMap<String, String>, DbError> {
    pragmas(session, COUNTERS).await
}

/// Version and pragmas.
pub(super) async fn describe(session: &mut Asked<'_, Sqlite>) -> Result<Description, DbError> {
    let version_text = cell(session, "SELECT sqlite_version()").await?.unwrap_or_default();
    let mut settings = pragmas(session, SETTINGS).await?;
    let options = session.rows("PRAGMA compile_options").await?;
    let options: Vec<String> = options.into_iter().flatten().flatten().collect();
    settings.insert("compile_options".to_owned(), options.join(" "));
    Ok(Description {
        product: "SQLite".to_owned(),
        version: version_numbers(&version_text),
        version_text,
        engine: "SQLite".to_owned(),
        settings,
        session: BTreeMap::new(),
        sources: BTreeMap::new(),
    })
}

async fn pragmas(
    session: &mut Asked<'_, Sqlite>,
    names: &[&str],
) -> Result<BTreeMap<String, String>, DbError> {
    let mut values = BTreeMap::new();
    for &name in names {
        if let Some(value) = cell(session, &format!("PRAGMA {name}")).await? {
            values.insert(name.to_owned(), value);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{self, testing};
    use crate::{Endpoint, Target, describe, status};

    #[tokio::test]
    async fn sqlite_tells_its_pages_and_settings() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "wal"), ("page_size", "8192")]);
        let endpoint = Endpoint { target: Target::Sqlite(options), capabilities: sqlite::capabilities() };
        let mut session = endpoint.connect().await.unwrap();
        session.query(b"CREATE TABLE t (a)").await.unwrap();
        let counters = status(&mut session).await.unwrap();
        assert_eq!((counters["page_count"], counters["page_size"]), (2, 8192));
        assert_eq!(counters["freelist_count"], 0);
        assert!(counters.contains_key("data_version"));

        let description = describe(&mut session).await.unwrap();
        assert_eq!((description.product.as_str(), description.version[0]), ("SQLite", 3));
        assert_eq!(description.settings["journal_mode"], "wal");
        assert_eq!(description.settings["page_size"], "8192");
        assert!(description.settings["compile_options"].contains("THREADSAFE"), "{description:?}");
        for setting in SETTINGS {
            assert!(description.settings.contains_key(*setting), "{setting}");
        }
    }
}
