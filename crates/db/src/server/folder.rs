//! The servers folder: where it is and which base directories lie in it.

use std::env;
use std::path::{Path, PathBuf};

use crate::server::{Base, Error};

/// The folder with base directories: `$DBDYNO_SERVERS`, otherwise `$XDG_CACHE_HOME/dbdyno/servers`,
/// otherwise `~/.cache/dbdyno/servers`.
pub fn servers_dir() -> PathBuf {
    servers_dir_of(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn servers_dir_of(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    if let Some(folder) = variable("DBDYNO_SERVERS") {
        return folder;
    }
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| {
        let home = variable("HOME").unwrap_or_else(|| PathBuf::from("/root"));
        home.join(".cache")
    });
    cache.join("dbdyno/servers")
}

/// Names of the folders in `servers_dir` that hold a server program, sorted. Nothing is run.
pub fn list(servers_dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(servers_dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with(['.', '_']) && !name.contains(".partial"))
        .filter(|name| Base::is_in(&servers_dir.join(name)))
        .collect();
    names.sort();
    names
}

/// Opens the base directory `name` in [`servers_dir`].
pub fn find_named(name: &str) -> Result<Base, Error> {
    find_in(&servers_dir(), name)
}

fn find_in(folder: &Path, name: &str) -> Result<Base, Error> {
    let path = folder.join(name);
    let plain = !name.is_empty() && !name.contains('/') && name != ".." && name != ".";
    if plain && path.is_dir() {
        return Base::open(path);
    }
    let names = list(folder);
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Error::NotInFolder { name: name.to_owned(), folder: folder.to_path_buf(), there })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_variable_goes_before_the_cache_folder_and_that_before_home() {
        let all = |name: &str| Some(PathBuf::from(format!("/{name}")));
        assert_eq!(servers_dir_of(all), Path::new("/DBDYNO_SERVERS"));
        let no_own = |name: &str| all(name).filter(|_| name != "DBDYNO_SERVERS");
        assert_eq!(servers_dir_of(no_own), Path::new("/XDG_CACHE_HOME/dbdyno/servers"));
        let home_only = |name: &str| all(name).filter(|_| name == "HOME");
        assert_eq!(servers_dir_of(home_only), Path::new("/HOME/.cache/dbdyno/servers"));
    }

    #[test]
    fn a_name_that_is_not_there_lists_what_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mysql-8.0.31", "mariadb-10.1.23", "half.partial", "_dl"] {
            std::fs::create_dir_all(folder.path().join(name).join("bin")).unwrap();
            std::fs::write(folder.path().join(name).join("bin/mysqld"), "").unwrap();
        }
        let message = find_in(folder.path(), "mysql-8.0.99").unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(message, @"no server mysql-8.0.99 in FOLDER (there: mariadb-10.1.23, mysql-8.0.31)");
    }

    #[test]
    fn a_name_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../bin", "..", "", "/usr"] {
            assert!(matches!(find_in(folder.path(), name), Err(Error::NotInFolder { .. })), "{name}");
        }
    }
}
