//! Turns SQLite's result codes into classes, names and messages.

use std::path::Path;

use rusqlite::ffi;

use crate::{Class, DbError};

/// Longest part of a statement that a message quotes, in characters.
const QUOTED_MAX: usize = 80;

/// Builds [`CODES`] from the codes' names, which are listed by class.
macro_rules! codes {
    ($($class:ident: $($name:ident)*;)*) => {
        &[$($((ffi::$name, stringify!($name), Class::$class)),*),*]
    };
}

/// Result codes that dbdyno treats specially, both primary and extended ones. Source:
/// <https://sqlite.org/rescode.html>.
const CODES: &[(i32, &str, Class)] = codes! {
    Retry: SQLITE_BUSY_RECOVERY SQLITE_BUSY_SNAPSHOT SQLITE_BUSY_TIMEOUT SQLITE_BUSY SQLITE_LOCKED
        SQLITE_PROTOCOL SQLITE_SCHEMA;
    Refused: SQLITE_CONSTRAINT_CHECK SQLITE_CONSTRAINT_FOREIGNKEY SQLITE_CONSTRAINT_NOTNULL
        SQLITE_CONSTRAINT_PRIMARYKEY SQLITE_CONSTRAINT_UNIQUE SQLITE_ABORT SQLITE_INTERRUPT
        SQLITE_TOOBIG SQLITE_CONSTRAINT SQLITE_MISMATCH;
    Fatal: SQLITE_IOERR_FSYNC SQLITE_IOERR_READ SQLITE_IOERR_SHORT_READ SQLITE_IOERR_WRITE
        SQLITE_ERROR SQLITE_INTERNAL SQLITE_PERM SQLITE_NOMEM SQLITE_READONLY SQLITE_IOERR
        SQLITE_CORRUPT SQLITE_FULL SQLITE_CANTOPEN SQLITE_MISUSE SQLITE_NOLFS SQLITE_AUTH
        SQLITE_RANGE SQLITE_NOTADB;
};

/// Returns a result code's name and class. An unlisted extended code gets the name and class of its
/// primary code. If that is unlisted too, the error is fatal and the number is the name.
fn describe(code: i32) -> (String, Class) {
    let line = |wanted: i32| CODES.iter().find(|&&(known, ..)| known == wanted);
    match line(code).or_else(|| line(code & 0xff)) {
        Some(&(_, name, class)) => (name.to_owned(), class),
        None => (format!("SQLITE_{code}"), Class::Fatal),
    }
}

/// Turns `error` into dbdyno's error. The message names the database at `path` and the operation
/// `doing`, which is a statement or words such as "opening the database".
pub(super) fn from_sqlite(error: &rusqlite::Error, path: &Path, doing: &str) -> DbError {
    let (code, said) = match error {
        rusqlite::Error::SqliteFailure(failure, said) => {
            (Some(failure.extended_code), said.clone().unwrap_or_else(|| failure.to_string()))
        }
        rusqlite::Error::SqlInputError { error: failure, msg, .. } => {
            (Some(failure.extended_code), msg.clone())
        }
        other => (None, other.to_string()),
    };
    let (name, class) = code.map_or((String::new(), Class::Fatal), describe);
    DbError::new(
        class,
        name,
        format!("{}: {said}{}, in `{}`", path.display(), advice(code, path), quoted(doing)),
    )
}

/// Advises what to check or to do, for codes whose own text does not say it.
fn advice(code: Option<i32>, path: &Path) -> String {
    match code.map(|code| code & 0xff) {
        Some(ffi::SQLITE_FULL) => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            format!(
                " (no space left on the disk of {}, or the limit of PRAGMA max_page_count is reached; free some \
                 space or choose another folder)",
                folder.display()
            )
        }
        Some(ffi::SQLITE_CANTOPEN) => " (does the folder exist, and may this user write to it?)".to_owned(),
        Some(ffi::SQLITE_NOTADB) => " (another program's file, or an encrypted database)".to_owned(),
        _ => String::new(),
    }
}

/// Makes an error of dbdyno's own, which has no SQLite code.
pub(super) fn fatal(path: &Path, message: impl std::fmt::Display) -> DbError {
    DbError::new(Class::Fatal, "", format!("{}: {message}", path.display()))
}

/// Returns the beginning of a statement, which is enough to recognise it. An INSERT may have
/// hundreds of rows.
pub(super) fn quoted(sql: &str) -> String {
    match sql.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}...", &sql[..end]),
        None => sql.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn failure(code: i32, said: &str) -> DbError {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(said.to_owned()));
        from_sqlite(&error, Path::new("/data/ib/bench.db"), "INSERT INTO pi1 VALUES (?, ?)")
    }

    #[test]
    fn each_code_has_its_class() {
        let class = |code| failure(code, "").class;
        assert_eq!(class(ffi::SQLITE_BUSY), Class::Retry);
        assert_eq!(class(ffi::SQLITE_BUSY_SNAPSHOT), Class::Retry);
        assert_eq!(class(ffi::SQLITE_LOCKED_SHAREDCACHE), Class::Retry);
        assert_eq!(class(ffi::SQLITE_CONSTRAINT_ROWID), Class::Refused);
        assert_eq!(class(ffi::SQLITE_TOOBIG), Class::Refused);
        assert_eq!(class(ffi::SQLITE_MISMATCH), Class::Refused);
        assert_eq!(class(ffi::SQLITE_INTERRUPT), Class::Refused);
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_READONLY, ffi::SQLITE_CANTOPEN] {
            assert_eq!(class(code), Class::Fatal);
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_AUTH, ffi::SQLITE_ERROR, 77] {
            assert_eq!(class(code), Class::Fatal);
        }
    }

    #[test]
    fn an_unlisted_extended_code_goes_by_its_primary_code() {
        assert_eq!(failure(ffi::SQLITE_CONSTRAINT_ROWID, "").code, "SQLITE_CONSTRAINT");
        assert_eq!(failure(ffi::SQLITE_CONSTRAINT_UNIQUE, "").code, "SQLITE_CONSTRAINT_UNIQUE");
        assert_eq!(failure(77, "").code, "SQLITE_77");
    }

    #[test]
    fn a_full_disk_is_named_with_its_folder() {
        assert_snapshot!(
            failure(ffi::SQLITE_FULL, "database or disk is full"),
            @"/data/ib/bench.db: database or disk is full (no space left on the disk of /data/ib, or the limit of PRAGMA max_page_count is reached; free some space or choose another folder), in `INSERT INTO pi1 VALUES (?, ?)` (SQLITE_FULL)"
        );
    }

    #[test]
    fn a_long_statement_is_quoted_by_its_beginning() {
        let sql = "é".repeat(QUOTED_MAX + 1);
        assert_eq!(quoted(&sql), format!("{}...", "é".repeat(QUOTED_MAX)));
        assert_eq!(quoted(&sql[2..]), "é".repeat(QUOTED_MAX));
    }
}
