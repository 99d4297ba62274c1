//! Locks that decide who makes a template. They lie on folders, and the kernel releases them when
//! their process ends.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use crate::server::Error;

/// Prefix for the names of folders in which templates are made. The template's hash follows.
pub(super) const PREFIX: &str = ".dbdyno-";

/// Interval between two attempts to lock a folder in which others work.
const POLL: Duration = Duration::from_millis(50);

/// A lock on a folder. It is empty where the filesystem has no locks for folders, as with some
/// network filesystems.
#[derive(Debug)]
struct FolderLock {
    _flock: Option<Flock<File>>,
}

/// A lock for making one template. Only one process on this machine can hold it.
#[derive(Debug)]
pub(super) struct TemplateLock {
    folder: PathBuf,
    _lock: FolderLock,
}

/// Locks `folder`. The result is `None` when the folder is missing, when it was renamed or removed
/// meanwhile, or when another process holds its lock.
fn lock_of(folder: &Path) -> Option<FolderLock> {
    let file = File::open(folder).ok()?;
    let opened = file.metadata().ok()?.ino();
    let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Some(lock),
        Err((_, Errno::EWOULDBLOCK)) => return None,
        Err(_) => None,
    };
    let named = fs::metadata(folder).ok()?.ino();
    (named == opened).then_some(FolderLock { _flock: lock })
}

/// Makes a lock's folder, unless it is there. Another process may remove it at any moment.
pub(super) fn make(folder: &Path) -> Result<(), Error> {
    match fs::create_dir_all(folder) {
        // It was there, and its maker has removed it before this could be seen.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_folder_or_gone(folder) => Ok(()),
        made => made.map_err(Error::io("cannot make", folder)),
    }
}

/// A file in its place would never go away.
fn is_folder_or_gone(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

impl TemplateLock {
    /// Waits until no other process makes the template with this hash in `template_dir`, and
    /// removes what killed processes have left there.
    pub(super) fn take(template_dir: &Path, hash: &str, cancel: &AtomicBool) -> Result<Self, Error> {
        let folder = template_dir.join(format!("{PREFIX}{hash}"));
        loop {
            make(&folder)?;
            if let Some(lock) = lock_of(&folder) {
                let template_lock = Self { folder, _lock: lock };
                for left in entries(&template_lock.folder) {
                    let _ = fs::remove_dir_all(left);
                }
                sweep(template_dir);
                return Ok(template_lock);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled { what: format!("waiting for {}", folder.display()) });
            }
            sleep(POLL);
        }
    }

    /// An empty folder that is removed with the value. Its name is short, because old bootstrap
    /// scripts put a socket into it and socket paths are limited. Its name is also new, because a
    /// server that a killed process has left may still write into the old folder.
    pub(super) fn workplace(&self) -> Result<TempDir, Error> {
        tempfile::Builder::new()
            .prefix("")
            .tempdir_in(&self.folder)
            .map_err(Error::io("cannot make a folder in", self.folder.clone()))
    }
}

/// Removes what killed processes have left in `template_dir`. Only their folders can be locked,
/// because a live process still holds its lock. A folder that cannot be removed is tried again by
/// the next process that wants a template.
pub(super) fn sweep(template_dir: &Path) {
    let is_makers = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    for folder in entries(template_dir).filter(is_makers) {
        if let Some(FolderLock { _flock: Some(_) }) = lock_of(&folder).as_ref() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

impl Drop for TemplateLock {
    fn drop(&mut self) {
        // Processes that wait for the lock see that the folder is gone, and look for the template
        // again.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
