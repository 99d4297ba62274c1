//! Adds a base directory that someone has built or installed to the servers folder.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::Base;

use crate::files::{Catalogue, check_name};
use crate::get::{check_version, does_not_run, keep, link};
use crate::lock::Locked;
use crate::probe::probe;
use crate::{Error, Origin, ServerEntry};

/// Gives the server in `base_dir` the name `name`: starts it once, asks it about itself, and makes
/// a link to it in `servers_dir`. The base directory itself does not change. `log` gets a sentence
/// before the start. A server that was added before under that name is asked again.
pub fn add(
    name: &str,
    base_dir: &Path,
    servers_dir: &Path,
    catalogue: &Catalogue,
    log: &mut dyn FnMut(&str),
) -> Result<ServerEntry, Error> {
    let taken = |why: String| Error::NameTaken { name: name.to_owned(), why };
    check_name(name).map_err(taken)?;
    let base = Base::open(base_dir)?;
    if let Some(entry) = catalogue.entries.iter().find(|entry| entry.name == name) {
        check_version(entry, &base)
            .map_err(|error| taken(format!("{error}; choose a name that is not in the catalogue")))?;
    }
    let locked = Locked::open(servers_dir, &AtomicBool::new(false), log)?;
    let (folder, place) = (&locked.path, locked.path.join(name));
    let is_new = fs::symlink_metadata(&place).is_err();
    if !is_new && place.canonicalize().ok().as_deref() != Some(&base.path) {
        return Err(taken(format!(
            "{} is another server; choose another name, or `dbdyno servers remove {name}` first",
            place.display()
        )));
    }
    let source = format!("the base directory {}", base.path.display());
    let origin = if is_new { Origin::Added } else { Origin::Found };
    let known = ServerEntry::read(folder, name)?.filter(|_| !is_new);
    let server_entry = known.unwrap_or(ServerEntry { origin, source, answer: None });
    if is_new {
        server_entry.write(folder, name)?;
        link(&base.path, &place)?;
    }
    log(&format!("{name}: starting it once, to ask what it can do"));
    let asked = probe(&base).map_err(|source| does_not_run(name, source));
    keep(folder, name, server_entry, asked, is_new)
}
