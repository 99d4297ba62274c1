//! Gets a server from the catalogue: fetches its files and starts it once.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use dbdyno_db::server::Base;

use crate::files::{self, Entry, Partial, Source};
use crate::lock::Locked;
use crate::probe::probe;
use crate::{Answer, Error, Origin, ServerEntry};

/// Puts the server for `entry` into `servers_dir/NAME`, starts it once and keeps its answers in its
/// server entry. An existing server is not fetched again. It is asked if no one has asked it in its
/// current state. `log` gets a sentence for each thing that takes a while. After an error the
/// fetched files are removed, but a server that existed before stays.
pub fn get(
    entry: &Entry,
    servers_dir: &Path,
    cancel: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<ServerEntry, Error> {
    let locked = Locked::open(servers_dir, cancel, log)?;
    let folder = &locked.path;
    let place = folder.join(&entry.name);
    let server_entry = ServerEntry::read(folder, &entry.name)?;
    let is_there = Base::is_in(&place);
    if !is_there && fs::symlink_metadata(&place).is_ok() {
        let why = format!("{} exists but holds no server: remove it", place.display());
        return Err(Error::Unfetchable { name: entry.name.clone(), why });
    }
    let server_entry = match (is_there, server_entry) {
        (true, Some(server_entry)) if server_entry.current_answer(&place).is_some() => {
            return Ok(server_entry);
        }
        (true, Some(server_entry)) => server_entry,
        (true, None) => {
            let source = "found in the servers folder".to_owned();
            ServerEntry { origin: Origin::Found, source, answer: None }
        }
        (false, _) => bring(entry, folder, cancel, log)?,
    };
    log(&format!("{}: starting it once, to ask what it can do", entry.name));
    let asked = if cancel.load(Ordering::Relaxed) {
        Err(Error::Cancelled { what: format!("getting {}", entry.name) })
    } else {
        first_answer(entry, &place)
    };
    keep(folder, &entry.name, server_entry, asked, !is_there)
}

/// Keeps the answers from the server `name` in its server entry. A new server that did not answer
/// is removed.
pub(super) fn keep(
    folder: &Path,
    name: &str,
    mut server_entry: ServerEntry,
    asked: Result<Answer, Error>,
    is_new: bool,
) -> Result<ServerEntry, Error> {
    match asked {
        Ok(answer) => {
            server_entry.answer = Some(answer);
            server_entry.write(folder, name)?;
            Ok(server_entry)
        }
        Err(error) => {
            if is_new {
                take_away(folder, name)?;
            }
            Err(error)
        }
    }
}

/// Puts what the entry names into the folder. The server entry is written first, so that a dbdyno
/// that is killed in between leaves nothing of unknown origin.
fn bring(
    entry: &Entry,
    folder: &Path,
    cancel: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<ServerEntry, Error> {
    let (name, source) = (&entry.name, entry.source.to_string());
    if let Source::Basedir { path } = &entry.source {
        let server_entry = ServerEntry { origin: Origin::Added, source, answer: None };
        server_entry.write(folder, name)?;
        link(path, &folder.join(name)).inspect_err(|_| drop(ServerEntry::remove(folder, name)))?;
        return Ok(server_entry);
    }
    let server_entry = ServerEntry { origin: Origin::Got, source, answer: None };
    server_entry.write(folder, name)?;
    files::fetch(entry, folder, cancel, log).inspect_err(|_| drop(ServerEntry::remove(folder, name)))?;
    Ok(server_entry)
}

fn first_answer(entry: &Entry, place: &Path) -> Result<Answer, Error> {
    let base = Base::open(place).map_err(|source| does_not_run(&entry.name, source))?;
    check_version(entry, &base)?;
    probe(&base).map_err(|source| does_not_run(&entry.name, source))
}

pub(super) fn does_not_run(name: &str, source: dbdyno_db::server::Error) -> Error {
    Error::DoesNotRun { name: name.to_owned(), source: Box::new(source) }
}

/// Compares the program's version with the one that the entry promises.
pub(super) fn check_version(entry: &Entry, base: &Base) -> Result<(), Error> {
    if base.product.to_string() == entry.product && entry.means(&base.version) {
        return Ok(());
    }
    Err(Error::OtherVersion {
        name: entry.name.clone(),
        wanted: format!("{} {}", entry.product, entry.version),
        answered: base.title.clone(),
    })
}

pub(super) fn link(target: &Path, place: &Path) -> Result<(), Error> {
    // This comes before the link, so that errors name the folder itself.
    let base = Base::open(target)?;
    std::os::unix::fs::symlink(&base.path, place).map_err(Error::io("cannot link", place))
}

/// Removes `NAME` from the folder: the base directory, or the link to it, and its server entry. A
/// base directory is renamed first, so that no half-removed one can be taken for a server.
pub(super) fn take_away(folder: &Path, name: &str) -> Result<(), Error> {
    let place = folder.join(name);
    let is_link = fs::symlink_metadata(&place).is_ok_and(|data| data.is_symlink());
    let partial = match is_link {
        true => {
            fs::remove_file(&place).map_err(Error::io("cannot remove", place))?;
            None
        }
        false if place.exists() => Some(Partial::of(folder, name)?),
        false => None,
    };
    ServerEntry::remove(folder, name)?;
    drop(partial);
    Ok(())
}
