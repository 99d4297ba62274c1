//! Decides which database files belong to dbdyno: it marks those that it makes, and removes only
//! marked ones.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Result;

use super::error::{fatal, from_sqlite};
use super::pragma;

/// The marker: `PRAGMA application_id` in every database that dbdyno made. It is "dbyn" in ASCII.
pub const APPLICATION_ID: i32 = 0x6462_796e;

/// Length of the file header. Source: <https://sqlite.org/fileformat2.html>, section 1.3.
const HEADER_LEN: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const APPLICATION_ID_AT: usize = 68;

/// Returns the files that belong to a database at `path`: the database itself, `-wal`, `-shm` and
/// `-journal`. Any of them may be absent.
pub fn database_files(path: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    })
}

/// Whether the file at `path` is a database that dbdyno made. The result is `false` for an absent
/// file.
///
/// This reads only the header's bytes. SQLite could recover or checkpoint someone else's file when
/// it opens the database. The marker is written to the file before anything else and before a WAL
/// exists, so the header has it in every journal mode.
pub fn is_marked(path: &Path) -> Result<bool> {
    Ok(owner(path)? == Owner::Us)
}

/// Removes the database at `path` with all its files, if it is dbdyno's, empty (0 bytes) or absent.
pub fn wipe(path: &Path) -> Result<()> {
    if owner(path)? == Owner::Other {
        let why =
            "was not made by dbdyno and will not be removed; choose another path, or remove it yourself";
        return Err(fatal(path, why));
    }
    // The file with the marker is removed last, so that the rest of an interrupted removal is still
    // recognised as dbdyno's.
    for file in database_files(path).iter().rev() {
        match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(fatal(file, format_args!("cannot be removed: {error}")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Marks a database that has no page yet, because it was just made. Any other database stays
/// unchanged.
pub(super) fn mark_if_new(connection: &Connection, path: &Path) -> Result<()> {
    if pragma::read(connection, path, "page_count")?.as_deref() != Some("0") {
        return Ok(());
    }
    connection
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(|error| from_sqlite(&error, path, "PRAGMA application_id"))
}

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    Other,
    /// There is no file, or a file with 0 bytes. A process leaves such a file when it is killed
    /// between creating and marking it.
    Free,
}

fn owner(path: &Path) -> Result<Owner> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    match File::open(path).and_then(|file| file.take(HEADER_LEN as u64).read_to_end(&mut header)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Owner::Free),
        Err(error) => {
            return Err(fatal(path, format_args!("cannot read the database's header: {error}")));
        }
        Ok(_) => {}
    }
    if header.is_empty() {
        return Ok(Owner::Free);
    }
    let mark = header.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4);
    let ours = header.starts_with(MAGIC) && mark == Some(APPLICATION_ID.to_be_bytes().as_slice());
    Ok(if ours { Owner::Us } else { Owner::Other })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{folder, options};
    use super::super::{SqliteSession, create_marked};
    use super::*;
    use crate::Class;

    #[test]
    fn a_database_has_four_files() {
        let files = database_files(Path::new("/data/bench.db"));
        let names: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["/data/bench.db", "/data/bench.db-wal", "/data/bench.db-shm", "/data/bench.db-journal"]
        );
    }

    #[test]
    fn the_marker_is_there_in_every_journal_mode_and_after_vacuum() {
        for mode in ["delete", "truncate", "persist", "memory", "off", "wal"] {
            let folder = folder();
            let options = options(folder.path(), &[("journal_mode", mode), ("page_size", "8192")]);
            create_marked(&options).unwrap();
            assert!(is_marked(&options.path).unwrap(), "journal_mode = {mode}");

            let connection = Connection::open(&options.path).unwrap();
            connection.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1); VACUUM").unwrap();
            assert!(is_marked(&options.path).unwrap(), "journal_mode = {mode}, while it is open");
            let back = if mode == "wal" { "delete" } else { "wal" };
            connection.pragma_update(None, "journal_mode", back).unwrap();
            connection.execute_batch("DROP TABLE t").unwrap();
            drop(connection);
            assert!(is_marked(&options.path).unwrap(), "journal_mode = {mode}, then {back}");

            wipe(&options.path).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "journal_mode = {mode}");
        }
    }

    #[test]
    fn wipe_removes_the_log_of_a_database_that_is_still_open() {
        let folder = folder();
        let options = options(folder.path(), &[("journal_mode", "wal")]);
        let session = SqliteSession::open(&options).unwrap();
        let connection = Connection::open(&options.path).unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        let [_, wal, shm, _] = database_files(&options.path);
        assert!(wal.exists() && shm.exists());
        wipe(&options.path).unwrap();
        assert!(!wal.exists() && !shm.exists() && !options.path.exists());
        drop((connection, session));
    }

    #[test]
    fn wipe_refuses_a_file_that_is_not_ours() {
        let folder = folder();
        let foreign = folder.path().join("orders.db");
        Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE orders (id)").unwrap();
        let text = folder.path().join("notes.txt");
        fs::write(&text, "not a database").unwrap();
        for path in [&foreign, &text] {
            assert!(!is_marked(path).unwrap());
            let error = wipe(path).unwrap_err();
            assert_eq!(error.class, Class::Fatal);
            assert_eq!(
                error.to_string(),
                format!(
                    "{}: was not made by dbdyno and will not be removed; choose another path, or remove it yourself",
                    path.display()
                )
            );
            assert!(path.exists());
        }
    }

    #[test]
    fn opening_a_foreign_database_does_not_make_it_ours() {
        let folder = folder();
        let options = options(folder.path(), &[]);
        Connection::open(&options.path).unwrap().execute_batch("CREATE TABLE orders (id)").unwrap();
        drop(SqliteSession::open(&options).unwrap());
        assert!(!is_marked(&options.path).unwrap());
        let error = create_marked(&options).unwrap_err().to_string();
        assert!(error.contains("exists already"), "{error}");
    }

    #[test]
    fn wiping_an_absent_or_empty_file_succeeds() {
        let folder = folder();
        let path = folder.path().join("bench.db");
        wipe(&path).unwrap();
        fs::write(&path, "").unwrap();
        wipe(&path).unwrap();
        assert!(!path.exists());
        assert!(!is_marked(&path).unwrap());
        assert!(is_marked(folder.path()).is_err(), "a folder is no database");
    }
}
