//! Incomplete folders. They are removed when their work fails, and found again after a crash.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// Suffix for the name of a base directory that is being made or removed.
const ENDING: &str = ".partial";

/// Prefix for the names of folders with downloads.
pub(super) const DOWNLOADS: &str = ".download-";

/// The folder in which a base directory is made. Dropping the value removes it.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
}

impl Partial {
    /// Makes an empty folder next to where `name` will lie.
    pub(crate) fn new(servers_dir: &Path, name: &str) -> Result<Self, Error> {
        let path = servers_dir.join(format!("{name}{ENDING}"));
        fs::create_dir(&path).map_err(Error::io("cannot make", path.clone()))?;
        Ok(Self { path })
    }

    /// Renames the base directory `name` at once. It is removed when the value is dropped, or swept
    /// up after a crash.
    pub(crate) fn of(servers_dir: &Path, name: &str) -> Result<Self, Error> {
        let (base, path) = (servers_dir.join(name), servers_dir.join(format!("{name}{ENDING}")));
        fs::rename(&base, &path).map_err(Error::io("cannot rename", base))?;
        Ok(Self { path })
    }

    /// Renames the folder to `base`, because it is complete.
    pub(crate) fn become_whole(self, base: &Path) -> Result<(), Error> {
        fs::rename(&self.path, base).map_err(Error::io("cannot rename the unpacked server to", base))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // What cannot be removed now is swept up the next time.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what a killed dbdyno has left in the servers folder. The caller has the folder's lock,
/// so no one is working on any of it.
pub(crate) fn sweep(servers_dir: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(servers_dir).map_err(Error::io("cannot read", servers_dir))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(ENDING) || name.starts_with(DOWNLOADS) {
            let path = entry.path();
            fs::remove_dir_all(&path)
                .map_err(Error::io("cannot remove what an earlier try left in", path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_goes_and_what_is_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        drop(Partial::new(folder.path(), "a").unwrap());
        assert!(!at("a.partial").exists());
        Partial::new(folder.path(), "b").unwrap().become_whole(&at("b")).unwrap();
        assert!(at("b").is_dir() && !at("b.partial").exists());
        drop(Partial::of(folder.path(), "b").unwrap());
        assert!(!at("b").exists() && !at("b.partial").exists());
    }

    #[test]
    fn what_a_killed_dbdyno_left_is_swept_up() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.partial/bin", ".download-x", "mysql-8.0.31", ".apt"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        sweep(folder.path()).unwrap();
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [".apt", "mysql-8.0.31"]);
    }
}
