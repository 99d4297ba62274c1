//! The lock of a servers folder: one dbdyno at a time gets, adds or removes in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::{Error, fetch};

/// A servers folder that nobody else changes while the value lives.
pub(super) struct Locked {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Locked {
    /// Makes the folder if need be, waits for its lock and removes what a killed dbdyno has left in it.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn open(servers_dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(servers_dir).map_err(Error::io("cannot make the servers folder", servers_dir))?;
        let path = servers_dir.canonicalize().map_err(Error::io("cannot find", servers_dir))?;
        let file = path.join(".lock");
        let opened = File::create(&file).map_err(Error::io("cannot make", file.clone()))?;
        let lock = Flock::lock(opened, FlockArg::LockExclusive)
            .map_err(|(_, errno)| Error::io("cannot lock", file)(errno.into()))?;
        fetch::sweep(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// The folder, absolute.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
