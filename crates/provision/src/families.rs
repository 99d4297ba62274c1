//! The families of products whose servers dbdyno can start or be given the address of, and the
//! product without servers.

use std::path::{Path, PathBuf};

use crate::product::{Base, Embedded, Family};
use crate::{Error, mysql, postgres, sqlite};

/// In the order in which a base directory is looked into.
pub const FAMILIES: &[&dyn Family] = &[&mysql::Mysql, &postgres::Postgres];

pub const EMBEDDED: Embedded = sqlite::SQLITE;

impl Base {
    /// Looks into `path` and asks the server program in it for its version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if let Some(family) = FAMILIES.iter().find(|family| family.program_in(path).is_some()) {
            return family.open(path);
        }
        let looked_for: Vec<String> = FAMILIES.iter().map(|family| family.looked_for()).collect();
        Err(Error::NoServer { path: path.to_path_buf(), looked_for: looked_for.join(", ") })
    }

    /// Whether `path` holds a server, without running anything.
    pub fn is_in(path: &Path) -> bool {
        Self::program_in(path).is_some()
    }

    /// The server program in `path`, without running it.
    pub fn program_in(path: &Path) -> Option<PathBuf> {
        FAMILIES.iter().find_map(|family| family.program_in(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_server_is_refused_with_what_was_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let message = Base::open(folder.path()).unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(message, @"FOLDER holds no server that dbdyno knows: looked for bin/mysqld, bin/mariadbd, sbin/mysqld, sbin/mariadbd, usr/sbin/mysqld, usr/sbin/mariadbd, libexec/mysqld, libexec/mariadbd, bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres; give the folder that the server was unpacked or installed into");
    }
}
