//! A scratch server: it has fresh data in a folder for temporary files, and everything is removed
//! when it stops.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dbdyno_db::server::{Base, Error, Server, ServerSpec, Stopped, remove_data};
use dbdyno_db::{ConnectionSettings, DatabaseServer};
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

/// Prefix for the folders' names, by which a forgotten one is found again.
const PREFIX: &str = "dbdyno-scratch-";

/// The file that is locked while its folder is in use.
const LOCK: &str = "lock";

/// Time limit from spawning to the first answer. MariaDB 11.4 may take 20 s to make a key.
const START_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Default)]
pub struct ScratchOptions {
    /// The server's own option file.
    pub config: Option<PathBuf>,
    /// Storage engine whose plugin is loaded at start.
    pub engine: Option<String>,
    pub cancel: Arc<AtomicBool>,
}

/// A running server with fresh data. Dropping the value stops it and removes the data.
#[derive(Debug)]
pub struct ScratchServer {
    // The fields are dropped in this order: the server, its data, the lock on them.
    pub server: Server,
    folder: TempDir,
    _lock: Flock<File>,
    /// Time for making the data and starting, up to the first answer.
    pub start_time: Duration,
}

impl ScratchServer {
    /// Initialises a data directory in the folder for temporary files (`$TMPDIR`, otherwise `/tmp`)
    /// and starts the server on it. The private unix socket is the only way in. First it removes
    /// what a killed dbdyno has left there.
    pub fn start(base: &Base, options: &ScratchOptions) -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let cannot = || Error::io("cannot make a folder for the data in", parent.clone());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(cannot())?;
        // PostgreSQL runs as another user than root and must be able to pass through this folder.
        // It cannot list the contents.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).map_err(cannot())?;
        let lock = lock(folder.path())?;
        let begun = Instant::now();
        let templates = folder.path().join("templates");
        let spec = ServerSpec::new(base, options.config.as_deref(), folder.path(), templates)?;
        let mut config = spec.config;
        options.engine.iter().for_each(|engine| config.engine.clone_from(engine));
        let cancel = Arc::clone(&options.cancel);
        let server = Server::start(&ServerSpec { start_timeout: START_LIMIT, cancel, config, ..spec })?;
        let start_time = begun.elapsed();
        Ok(Self { server, folder, _lock: lock, start_time })
    }

    /// How to log in as the superuser, who has no password.
    pub fn database_server(&self) -> DatabaseServer {
        let engine = self.server.base.family.facts().default_engine.unwrap_or_default();
        self.server.address(None, &ConnectionSettings::default()).database_server(engine, true)
    }

    pub fn socket(&self) -> &Path {
        self.server.socket()
    }

    /// The log, as far as it has been written.
    pub(super) fn log_text(&self) -> Result<String, Error> {
        let log = &self.server.log;
        let bytes = fs::read(log).map_err(Error::io("cannot read", log))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Stops the server and removes its data.
    pub fn stop(self) -> Result<Stopped, Error> {
        let Self { server, folder, .. } = self;
        let stopped = server.stop()?;
        let path = folder.path().to_path_buf();
        folder.close().map_err(Error::io("cannot remove", path))?;
        Ok(stopped)
    }
}

/// Marks `folder` as in use. The lock is taken before the file gets its name, so that no one takes
/// the folder for a forgotten one.
fn lock(folder: &Path) -> Result<Flock<File>, Error> {
    let (new, path) = (folder.join("lock.new"), folder.join(LOCK));
    let cannot = || Error::io("cannot lock", new.clone());
    let file = File::create(&new).map_err(cannot())?;
    let lock =
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| cannot()(errno.into()))?;
    fs::rename(&new, &path).map_err(cannot())?;
    Ok(lock)
}

/// Removes this user's folders whose dbdyno was killed. Those in use are locked. What cannot be
/// removed stays, because it does no harm.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let own = nix::unistd::geteuid().as_raw();
    for folder in entries.flatten().map(|entry| entry.path()) {
        let is_named = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        let is_own = || fs::symlink_metadata(&folder).is_ok_and(|data| data.is_dir() && data.uid() == own);
        if !is_named || !is_own() {
            continue;
        }
        let Ok(file) = File::open(folder.join(LOCK)) else { continue };
        let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { continue };
        // This waits until a server that outlives its dbdyno by a moment has ended.
        if remove_data(&folder.join("data")).is_ok() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_dbdyno_left_is_removed_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (left, used) = (folder("dbdyno-scratch-left"), folder("dbdyno-scratch-used"));
        let (starting, other) = (folder("dbdyno-scratch-starting"), folder("other"));
        drop(lock(&left).unwrap());
        fs::write(other.join(LOCK), "").unwrap();
        let _lock = lock(&used).unwrap();
        sweep(parent.path());
        assert!(!left.exists());
        assert!(used.exists() && starting.exists() && other.exists());
    }
}
