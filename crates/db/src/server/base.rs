//! Server builds: unpacked or installed programs of a product and version.

use std::path::{Path, PathBuf};

use crate::Family;
use crate::server::Error;
use dbdyno_products::{Product, Release};

/// An unpacked or installed server build.
#[derive(Debug, Clone)]
pub struct Base {
    pub family: Family,
    /// The folder that was opened, absolute.
    pub path: PathBuf,
    /// The folder or its `usr`, which holds the programs and libraries.
    pub prefix: PathBuf,
    pub program: PathBuf,
    pub product: &'static Product,
    /// The version as the program prints it. It may end in words from its builder:
    /// `10.11.19-MariaDB-0+deb12u1`, `19rc1`.
    pub version: String,
    pub release: Release,
    /// Product and version for people: `MariaDB 10.11.19`, `PostgreSQL 15.19`.
    pub title: String,
    /// Folder with loadable plugins. Builds that have only built-in plugins have none.
    pub plugin_dir: Option<PathBuf>,
    /// The program that makes a data directory. Some servers need none, and some packages leave it
    /// out.
    pub(crate) installer: Option<PathBuf>,
    /// Folder with error messages, character sets and SQL scripts, for servers that get it as an
    /// option.
    pub(crate) share_dir: Option<PathBuf>,
}

impl Base {
    /// Looks into `path` and asks the server program there for its version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if let Ok(absolute) = path.canonicalize() {
            for family in Family::with_servers() {
                if let Some(base) = family.open(&absolute)? {
                    return Ok(base);
                }
            }
        }
        let looked_for: Vec<String> = Family::with_servers().map(Family::looked_for).collect();
        Err(Error::NoServer { path: path.to_path_buf(), looked_for: looked_for.join(", ") })
    }

    /// Whether `path` holds a server. Nothing is run.
    pub fn is_in(path: &Path) -> bool {
        Self::program_in(path).is_some()
    }

    /// Whether `plugin` (a file name) is among the plugins that can be loaded.
    pub fn has_plugin(&self, plugin: &str) -> bool {
        self.plugin_dir.as_ref().is_some_and(|folder| folder.join(plugin).is_file())
    }

    /// Finds the server program in `path` without running it.
    pub fn program_in(path: &Path) -> Option<PathBuf> {
        Family::with_servers().find_map(|family| family.program_in(path))
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
