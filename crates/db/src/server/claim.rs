//! A database on a server that others run: made with dbdyno's mark, or refused.

use crate::DbError;

use crate::server::Error;

/// The table that marks a database as dbdyno's.
pub const MARK_TABLE: &str = "dbdyno_mark";

/// Whose the database was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It did not exist; it was made and marked.
    Created,
    /// It carried the mark.
    Ours,
    /// It is the only one of its server, held no table, and was marked.
    Only,
}

pub(crate) fn check_not_system(name: &str, system: &[&str]) -> Result<(), Error> {
    match system.iter().any(|system| name.eq_ignore_ascii_case(system)) {
        true => Err(Error::SystemDatabase { name: name.to_owned() }),
        false => Ok(()),
    }
}

pub(crate) fn refused(what: &str, database: &str, source: DbError) -> Error {
    Error::Database { what: format!("{what} {database}"), source }
}
