//! Sets pragmas and reads each one back, because SQLite silently ignores unknown names and values.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::Result;

use super::error::{fatal, from_sqlite};

/// Pragmas that shape the file and take effect only before its first page is written.
const BEFORE_FIRST_PAGE: &[&str] = &["auto_vacuum", "encoding", "page_size"];

/// Pragmas that SQLite knows but that have no value to read back.
const WRITE_ONLY: &[&str] = &["case_sensitive_like", "incremental_vacuum", "optimize", "shrink_memory"];

/// Pragmas that dbdyno sets itself, each with the reason and advice for the user.
const SET_BY_DBDYNO: &[(&str, &str)] = &[
    ("application_id", "it marks the files that dbdyno may remove; leave it out"),
    (
        "busy_timeout",
        "it would replace dbdyno's own lock wait; set the busy timeout of the connection instead",
    ),
];

/// Words that SQLite accepts for a number. Source: <https://sqlite.org/pragma.html>.
const WORDS: &[(&str, &[(&str, i64)])] = &[
    ("auto_vacuum", &[("none", 0), ("full", 1), ("incremental", 2)]),
    ("secure_delete", &[("fast", 2)]),
    ("synchronous", &[("off", 0), ("normal", 1), ("full", 2), ("extra", 3)]),
    ("temp_store", &[("default", 0), ("file", 1), ("memory", 2)]),
];

/// When a pragma is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PragmaTiming {
    /// Before the database's first page is written.
    BeforeFirstPage,
    Later,
}

/// Sets those `pragmas` that belong to `when`, in order, and checks that SQLite accepted them. For
/// example, SQLite accepts no WAL on a file system without shared memory, and no other page size
/// for an existing file.
pub(super) fn apply(
    connection: &Connection,
    path: &Path,
    pragmas: &[(String, String)],
    when: PragmaTiming,
) -> Result<()> {
    for (name, wanted) in pragmas {
        let name = name.to_ascii_lowercase();
        let early = BEFORE_FIRST_PAGE.contains(&name.as_str());
        if early == (when == PragmaTiming::BeforeFirstPage) {
            set(connection, path, &name, wanted)?;
        }
    }
    Ok(())
}

fn set(connection: &Connection, path: &Path, name: &str, wanted: &str) -> Result<()> {
    if let Some((_, instead)) = SET_BY_DBDYNO.iter().find(|(ours, _)| *ours == name) {
        return Err(fatal(path, format_args!("pragma {name} cannot be set: {instead}")));
    }
    if !is_known(connection, path, name)? {
        return Err(fatal(
            path,
            format_args!("SQLite {} has no pragma {name}; look for a misspelling", rusqlite::version()),
        ));
    }
    let doing = || format!("PRAGMA {name} = {wanted}");
    connection.pragma_update(None, name, wanted).map_err(|error| from_sqlite(&error, path, &doing()))?;
    match read(connection, path, name)? {
        Some(effective) if is_same(name, wanted, &effective) => Ok(()),
        Some(effective) => Err(fatal(
            path,
            format_args!("SQLite did not take pragma {name} = {wanted}: it is {effective}{}", hint(name)),
        )),
        None if WRITE_ONLY.contains(&name) => Ok(()),
        None => {
            Err(fatal(path, format_args!("pragma {name} is not a setting: it has no value to read back")))
        }
    }
}

/// Whether this SQLite knows the pragma. This check also keeps names that are not plain words out
/// of the SQL text.
fn is_known(connection: &Connection, path: &Path, name: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM pragma_pragma_list WHERE name = ?1";
    let count = connection.query_row(sql, [name], |row| row.get::<_, i64>(0));
    count.map(|count| count > 0).map_err(|error| from_sqlite(&error, path, sql))
}

/// Reads the pragma's value as text, or `None` if it has none. `name` must be a known pragma.
pub(super) fn read(connection: &Connection, path: &Path, name: &str) -> Result<Option<String>> {
    let sql = format!("PRAGMA {name}");
    let value = || -> rusqlite::Result<Option<String>> {
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let value = rows.next()?.map(|row| row.get_ref(0).map(text)).transpose()?;
        Ok(value.flatten())
    };
    value().map_err(|error| from_sqlite(&error, path, &sql))
}

/// Returns a value as text. Bytes that are not UTF-8 become replacement characters.
pub(super) fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(String::from_utf8_lossy(text).into_owned()),
    }
}

/// Whether the value read back is the requested one. The two may be equal as texts, as numbers, or
/// as SQLite's word for a number.
fn is_same(name: &str, wanted: &str, effective: &str) -> bool {
    let wanted = wanted.trim();
    if wanted.eq_ignore_ascii_case(effective) {
        return true;
    }
    let Ok(effective) = effective.parse::<i64>() else { return false };
    let lower = wanted.to_ascii_lowercase();
    let words = WORDS.iter().find(|(pragma, _)| *pragma == name).map_or(&[][..], |(_, words)| *words);
    if let Some((_, number)) = words.iter().find(|(word, _)| *word == lower) {
        return *number == effective;
    }
    match lower.as_str() {
        // SQLite reports a `cache_spill` of "on" as a number of pages.
        "on" | "true" | "yes" if name == "cache_spill" => effective != 0,
        "on" | "true" | "yes" => effective == 1,
        "off" | "false" | "no" => effective == 0,
        _ => lower.parse() == Ok(effective),
    }
}

/// Names the most common reason why SQLite did not accept a pragma.
fn hint(name: &str) -> &'static str {
    match name {
        "journal_mode" => " (WAL needs a file on a local disk, and no other connection in the way)",
        "auto_vacuum" | "encoding" | "page_size" => {
            " (it is fixed once the database exists; start from a new file)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::testing::folder;
    use super::*;

    fn set_in_memory(name: &str, wanted: &str) -> Result<()> {
        set_on(&Connection::open_in_memory().unwrap(), name, wanted)
    }

    fn set_on(connection: &Connection, name: &str, wanted: &str) -> Result<()> {
        let pragmas = [(name.to_owned(), wanted.to_owned())];
        apply(connection, Path::new("m.db"), &pragmas, PragmaTiming::BeforeFirstPage)?;
        apply(connection, Path::new("m.db"), &pragmas, PragmaTiming::Later)
    }

    #[test]
    fn words_numbers_and_texts_are_read_back_as_the_same() {
        for (name, wanted) in [
            ("synchronous", "full"),
            ("synchronous", "EXTRA"),
            ("synchronous", "2"),
            ("synchronous", "on"),
            ("temp_store", "memory"),
            ("auto_vacuum", "incremental"),
            ("locking_mode", "exclusive"),
            ("cache_size", "-2000"),
            ("page_size", "8192"),
            ("encoding", "UTF-16le"),
            ("wal_autocheckpoint", "500"),
            ("foreign_keys", "off"),
            ("secure_delete", "fast"),
            ("cache_spill", "on"),
            ("cache_spill", "false"),
            ("mmap_size", "1048576"),
            ("JOURNAL_MODE", "Wal"),
            ("case_sensitive_like", "on"),
        ] {
            let folder = folder();
            let connection = Connection::open(folder.path().join("m.db")).unwrap();
            set_on(&connection, name, wanted).unwrap_or_else(|error| panic!("{name} = {wanted}: {error}"));
        }
    }

    #[test]
    fn the_error_for_a_value_that_sqlite_ignored_names_both_values() {
        assert_snapshot!(
            set_in_memory("journal_mode", "wal").unwrap_err(),
            @"m.db: SQLite did not take pragma journal_mode = wal: it is memory (WAL needs a file on a local disk, and no other connection in the way)"
        );
        assert_snapshot!(
            set_in_memory("cache_size", "20MB").unwrap_err(),
            @"m.db: SQLite did not take pragma cache_size = 20MB: it is 20"
        );
        assert_snapshot!(
            set_in_memory("page_size", "5000").unwrap_err(),
            @"m.db: SQLite did not take pragma page_size = 5000: it is 4096 (it is fixed once the database exists; start from a new file)"
        );
        assert!(set_in_memory("synchronous", "fulll").is_err());
    }

    #[test]
    fn an_unknown_pragma_is_fatal() {
        let error = set_in_memory("sychronous", "full").unwrap_err().to_string();
        assert!(error.contains("has no pragma sychronous; look for a misspelling"), "{error}");
        assert!(set_in_memory("synchronous = 0; DROP TABLE t; --", "1").is_err());
    }

    #[test]
    fn pragmas_that_dbdyno_sets_itself_and_pragmas_that_are_no_settings_are_refused() {
        assert_snapshot!(
            set_in_memory("busy_timeout", "10").unwrap_err(),
            @"m.db: pragma busy_timeout cannot be set: it would replace dbdyno's own lock wait; set the busy timeout of the connection instead"
        );
        assert_snapshot!(
            set_in_memory("table_info", "t").unwrap_err(),
            @"m.db: pragma table_info is not a setting: it has no value to read back"
        );
        assert!(set_in_memory("application_id", "1").is_err());
    }
}
