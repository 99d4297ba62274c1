//! A base directory of any product that dbdyno can start.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::basedir::{self, BaseDir};
use crate::postgres_base::{PgBase, find_programs, looked_for};

/// An unpacked or installed server build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// MariaDB, MySQL, Percona Server.
    Mysql(BaseDir),
    Postgres(PgBase),
}

impl Base {
    /// Looks into `path` and asks the server program in it for its version.
    ///
    /// # Errors
    /// [`Error::NoServer`] when there is none, [`Error::Version`] when it does not run (a library may be missing).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if basedir::find_program(path).is_some() {
            return BaseDir::open(path).map(Self::Mysql);
        }
        if find_programs(path).is_some() {
            return PgBase::open(path).map(Self::Postgres);
        }
        let looked_for = format!("{}, {}", basedir::looked_for(), looked_for());
        Err(Error::NoServer { path: path.to_path_buf(), looked_for })
    }

    /// Whether `path` holds a server, without running anything.
    pub fn is_in(path: &Path) -> bool {
        Self::program_in(path).is_some()
    }

    /// The server program in `path`, without running it.
    pub fn program_in(path: &Path) -> Option<PathBuf> {
        let of_mysql = basedir::find_program(path).map(|(_, program)| program);
        of_mysql.or_else(|| find_programs(path).map(|folder| folder.join("postgres")))
    }

    /// The folder that was opened, absolute.
    pub fn path(&self) -> &Path {
        match self {
            Self::Mysql(base) => base.path(),
            Self::Postgres(base) => base.path(),
        }
    }

    /// `MariaDB`, `MySQL`, `Percona Server` or `PostgreSQL`.
    pub fn product(&self) -> String {
        match self {
            Self::Mysql(base) => base.product().to_string(),
            Self::Postgres(_) => "PostgreSQL".to_owned(),
        }
    }

    /// The version as the program prints it, which may end in words of its builder.
    pub fn version(&self) -> &str {
        match self {
            Self::Mysql(base) => &base.version().text,
            Self::Postgres(base) => base.version(),
        }
    }

    /// Product and version for people: `MariaDB 10.11.19`, `PostgreSQL 15.19`.
    pub fn title(&self) -> String {
        match self {
            Self::Mysql(base) => base.title(),
            Self::Postgres(base) => base.title(),
        }
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
        insta::assert_snapshot!(message, @"FOLDER holds no MariaDB, MySQL or PostgreSQL server: looked for bin/mysqld, bin/mariadbd, sbin/mysqld, sbin/mariadbd, usr/sbin/mysqld, usr/sbin/mariadbd, libexec/mysqld, libexec/mariadbd, bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres; give the folder that the server was unpacked or installed into");
    }
}
