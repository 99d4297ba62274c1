//! Ownership of a database on a server that others run: dbdyno creates it with its own marker
//! table, or refuses to use it.

use crate::DbError;

use crate::server::Error;

/// The marker table. A database that has it belongs to dbdyno.
pub const MARKER_TABLE: &str = "dbdyno_mark";

/// How the database came to be dbdyno's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The database did not exist. dbdyno made and marked it.
    Created,
    /// The database carried the marker.
    Ours,
    /// The database is the only one on its server. It held no table, so dbdyno marked it.
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
