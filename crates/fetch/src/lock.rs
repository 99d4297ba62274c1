//! A servers folder's lock: only one dbdyno at a time gets, adds or removes servers in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::{Error, files};

/// Interval between two attempts to lock a folder in which others work.
const POLL: Duration = Duration::from_millis(100);

/// A servers folder that no other process changes while the value lives.
pub(super) struct Locked {
    /// The folder's absolute path.
    pub(super) path: PathBuf,
    _lock: Flock<File>,
}

impl Locked {
    /// Makes the folder if it is missing, waits for its lock, and removes what a killed dbdyno has
    /// left in it. `log` gets a sentence when it has to wait for others.
    pub(super) fn open(
        servers_dir: &Path,
        cancel: &AtomicBool,
        log: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        fs::create_dir_all(servers_dir).map_err(Error::io("cannot make the servers folder", servers_dir))?;
        let path = servers_dir.canonicalize().map_err(Error::io("cannot find", servers_dir))?;
        let file = path.join(".lock");
        let mut opened = File::create(&file).map_err(Error::io("cannot make", file.clone()))?;
        let mut is_reported = false;
        let lock = loop {
            match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => break lock,
                Err((unlocked, Errno::EWOULDBLOCK)) => opened = unlocked,
                Err((_, errno)) => return Err(Error::io("cannot lock", file)(errno.into())),
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled { what: format!("waiting for {}", path.display()) });
            }
            if !is_reported {
                log(&format!("waiting until another dbdyno is done in {}", path.display()));
                is_reported = true;
            }
            sleep(POLL);
        };
        files::sweep(&path)?;
        Ok(Self { path, _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_to_come_reports_that_it_waits_and_can_be_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let first = Locked::open(folder.path(), &cancel, &mut |_| {}).unwrap();
        let mut said = Vec::new();
        let second = Locked::open(folder.path(), &cancel, &mut |line| {
            said.push(line.to_owned());
            cancel.store(true, Ordering::Relaxed);
        });
        assert!(matches!(second, Err(Error::Cancelled { .. })));
        assert_eq!(said.len(), 1, "{said:?}");
        drop(first);
        assert!(Locked::open(folder.path(), &cancel, &mut |_| {}).is_ok());
    }
}
