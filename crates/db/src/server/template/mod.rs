//! Templates: dbdyno initialises a data directory once for each build and its initial settings,
//! then copies it.
//!
//! A template folder may outlive its run and serve several runs at a time. A template is made under
//! another name, synced and renamed, and it lists the files that it must have. One that is
//! incomplete or has lost a file is never used, but made again.

mod key;
mod lock;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::server::snapshot::{self, SnapshotFile, compare, listed};
use crate::server::{Error, datadir};
pub(crate) use key::Key;
use lock::TemplateLock;

const DATA: &str = "data";

/// The file that describes the data. It is written last, so a template that has it is complete.
const ABOUT: &str = "template.json";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct About {
    files: Vec<SnapshotFile>,
}

/// A data directory that serves as a source for copies. A complete one is never removed.
#[derive(Debug)]
pub(crate) struct Template {
    folder: PathBuf,
}

impl Template {
    /// Returns the template for `key` in `template_dir`. If it is missing, `make` makes the data
    /// directory `data` in an empty folder. If another process is already making it, the caller
    /// waits.
    pub(crate) fn ready(
        key: &Key,
        template_dir: &Path,
        cancel: &AtomicBool,
        make: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        fs::create_dir_all(template_dir)
            .map_err(Error::io("cannot make the template folder", template_dir))?;
        let template_dir = template_dir
            .canonicalize()
            .map_err(Error::io("cannot find the template folder", template_dir))?;
        let folder = template_dir.join(key.name());
        if let Some(found) = Self::open(&folder) {
            lock::sweep(&template_dir);
            return Ok(found);
        }
        let lock = TemplateLock::take(&template_dir, &key.hash, cancel)?;
        if let Some(found) = Self::open(&folder) {
            return Ok(found);
        }
        remove(&folder, &lock)?;
        // The folder is removed if anything fails.
        let work = lock.workplace()?;
        make(work.path())?;
        datadir::mark(&work.path().join(DATA))?;
        write_about(work.path())?;
        match fs::rename(work.path(), &folder) {
            // The folder has another name now.
            Ok(()) => drop(work.keep()),
            // Where folders cannot be locked, another process may have made the same one meanwhile.
            Err(_) if Self::open(&folder).is_some() => {}
            Err(error) => return Err(Error::io("cannot rename the template to", folder)(error)),
        }
        let gone = || Error::io("cannot find the template just made in", folder.clone());
        Self::open(&folder).ok_or_else(|| gone()(std::io::ErrorKind::NotFound.into()))
    }

    /// Opens the template in `folder`, if there is one and it is complete.
    fn open(folder: &Path) -> Option<Self> {
        let about: About = serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()?;
        let template = Self { folder: folder.to_path_buf() };
        let data = template.data();
        let is_whole = data.join(datadir::MARKER).is_file() && compare(&data, &about.files).is_ok();
        is_whole.then_some(template)
    }

    /// Makes the fresh data directory `data_dir` a copy, with the template's owner. An existing one
    /// must belong to dbdyno.
    pub(crate) fn copy_to(&self, data_dir: &Path, cancel: &AtomicBool) -> Result<(), Error> {
        datadir::prepare(data_dir, cancel)?;
        datadir::fill(&self.data(), data_dir, cancel).map(drop)
    }

    fn data(&self) -> PathBuf {
        self.folder.join(DATA)
    }
}

/// Flushes the data to the disk first and then writes their description, so that a power failure
/// leaves no template without its bytes.
fn write_about(work: &Path) -> Result<(), Error> {
    let about = About { files: listed(&work.join(DATA))? };
    crate::server::copy::sync(work)?;
    snapshot::write_about(&work.join(ABOUT), &about)
}

/// Removes whatever lies in a template's place, complete or not. It is renamed first to a name that
/// no one looks for.
fn remove(folder: &Path, lock: &TemplateLock) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    let bin = lock.workplace()?;
    let cannot = || Error::io("cannot remove the template", folder);
    fs::rename(folder, bin.path().join("old")).map_err(cannot())?;
    bin.close().map_err(cannot())
}

#[cfg(test)]
mod tests;
