//! Scratch servers. A scratch server has fresh data in a folder for temporary files, and all its
//! files are removed when it stops. A probe starts a scratch server to read a server's version,
//! abilities and settings.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dbdyno_db::server::{
    Abilities, Base, Error, RuntimeDir, Server, ServerProbe, ServerSpec, Stopped, clean_command,
    find_in_path, remove_data, run_query_program,
};
use dbdyno_db::{ConnectionSettings, DatabaseServer, DbError, Description, Family, Session, describe};
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use crate::ProbeAnswer;
use crate::server_entry::fingerprint;

/// Prefix for the folders' names. dbdyno finds the folders of a killed dbdyno by this prefix.
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
    // The fields are dropped in this order: the server, the folder with its data, the folder's
    // lock.
    pub server: Server,
    folder: TempDir,
    _lock: Flock<File>,
    /// Time for making the data and starting, up to the first answer.
    pub start_time: Duration,
}

impl ScratchServer {
    /// Initialises a data directory in the folder for temporary files (`$TMPDIR`, otherwise `/tmp`)
    /// and starts the server on it. The server accepts connections only on its private unix socket.
    /// Before that, this removes the files that a killed dbdyno has left in the folder for
    /// temporary files.
    pub fn start(base: &Base, options: &ScratchOptions) -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let cannot = || Error::io("cannot make a folder for the data in", parent.clone());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(cannot())?;
        // PostgreSQL runs as another user than root and must be able to enter this folder. The mode
        // does not let it list the contents.
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

    /// The login as the superuser, who has no password.
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

/// Marks `folder` as in use. The file is locked before it gets its final name, so that no other
/// dbdyno treats the folder as stale.
fn lock(folder: &Path) -> Result<Flock<File>, Error> {
    let (new, path) = (folder.join("lock.new"), folder.join(LOCK));
    let cannot = || Error::io("cannot lock", new.clone());
    let file = File::create(&new).map_err(cannot())?;
    let lock =
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| cannot()(errno.into()))?;
    fs::rename(&new, &path).map_err(cannot())?;
    Ok(lock)
}

/// Removes this user's folders whose dbdyno was killed. Folders in use are locked, so they stay. A
/// folder that cannot be removed also stays, because it does no harm.
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
        // A server may outlive its dbdyno by a moment. The removal waits until it has ended.
        if remove_data(&folder.join("data")).is_ok() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

const ROCKSDB: &str = "ha_rocksdb.so";

/// Starts the server in `base` on fresh data, probes it, stops it and removes the data.
pub(crate) fn probe(base: &Base) -> Result<ProbeAnswer, Error> {
    let scratch = start(base)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("cannot make an event loop to talk to", &base.path))?;
    let answers = runtime.block_on(query_server(&scratch, base));
    let start_ms = u64::try_from(scratch.start_time.as_millis()).unwrap_or(u64::MAX);
    scratch.stop()?;
    let (description, abilities) = answers?;
    let settings = settings(&description);
    let Description { product, version_text: version, .. } = description;
    let program = fingerprint(&base.path).unwrap_or_default();
    Ok(ProbeAnswer { product, version, program, start_ms, abilities, settings })
}

/// Probes the embedded product, on a new file, for its name, its version and its settings.
pub fn probe_embedded() -> Result<(String, String, BTreeMap<String, String>), Error> {
    let failed =
        |source: DbError| Error::Database { what: format!("asking {}", Family::EMBEDDED.name()), source };
    let cannot = || Error::io("cannot make a folder in", std::env::temp_dir());
    // If this process is killed, the next dbdyno removes the folder.
    let runtime_dir = RuntimeDir::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(cannot())?;
    let database_server = Family::EMBEDDED.open_file(runtime_dir.path(), &[], true).map_err(failed)?;
    let described = runtime.block_on(async { describe(&mut database_server.connect().await?).await });
    let description = described.map_err(failed)?;
    let settings = settings(&description);
    Ok((description.product, description.version_text, settings))
}

/// The server's settings, and a session's settings where the server has none with that name.
fn settings(description: &Description) -> BTreeMap<String, String> {
    let mut settings = description.session.clone();
    settings.extend(description.settings.clone());
    settings
}

/// Starts the server with MyRocks if the build has it, because the probe also reports whether the
/// plugin loads. If the server does not start with the plugin, dbdyno starts it without the plugin.
fn start(base: &Base) -> Result<ScratchServer, Error> {
    if base.has_plugin(ROCKSDB) {
        let options = ScratchOptions { engine: Some("rocksdb".to_owned()), ..ScratchOptions::default() };
        if let Ok(scratch) = ScratchServer::start(base, &options) {
            return Ok(scratch);
        }
    }
    ScratchServer::start(base, &ScratchOptions::default())
}

async fn query_server(scratch: &ScratchServer, base: &Base) -> Result<(Description, Abilities), Error> {
    let failed = |source: DbError| Error::Database { what: format!("asking {}", base.title), source };
    let mut session = scratch.database_server().connect().await.map_err(failed)?;
    let description = describe(&mut session).await.map_err(failed)?;
    let log = scratch.log_text()?;
    let probe = ServerProbe { session: &mut session, base, description: &description, log: &log };
    let abilities = base.family.abilities(probe).await.map_err(failed)?;
    session.close().await;
    Ok((description, abilities))
}

/// Program and arguments that open a session on the private `socket` of a `base` server. The
/// program is the build's own client if that runs on this machine, otherwise the machine's client.
/// The result is `None` when there is neither.
pub fn client(base: &Base, socket: &Path) -> Option<Vec<String>> {
    let (program, version) =
        programs(base).into_iter().find_map(|program| Some((program.clone(), version(&program)?)))?;
    let mut words = vec![program.display().to_string()];
    words.extend(base.family.client_arguments(socket, &version));
    Some(words)
}

/// Candidates for the client program, the best one first.
fn programs(base: &Base) -> Vec<PathBuf> {
    let (folder, names) = base.family.clients(base);
    let own = names.iter().map(|name| folder.join(name));
    own.chain(names.iter().filter_map(|name| find_in_path(name))).collect()
}

/// The version that the program prints. The result is `None` if the program does not run, for
/// example because an old build needs libraries that are no longer available.
fn version(program: &Path) -> Option<String> {
    let output = run_query_program(clean_command(program).arg("--version")).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::write_program;

    #[test]
    fn folders_of_a_killed_dbdyno_are_removed_and_folders_in_use_stay() {
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

    #[test]
    fn the_builds_own_client_comes_before_the_machines() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, script: &str| write_program(&folder.path().join("bin").join(name), script);
        put("mysqld", "echo 'mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)'");
        put("mysql", "echo 'mysql  Ver 14.14 Distrib 5.6.24, for Linux (x86_64)'");
        let base = Base::open(folder.path()).unwrap();
        let words = client(&base, Path::new("/t/s")).unwrap();
        let own = folder.path().canonicalize().unwrap().join("bin/mysql").display().to_string();
        assert_eq!(words, [own.as_str(), "--no-defaults", "--user=root", "--socket=/t/s"]);
        put("mysql", "echo 'mysql from 11.8.6-MariaDB, client 15.2'");
        assert_eq!(client(&base, Path::new("/t/s")).unwrap().last().unwrap(), "--skip-ssl");
        put("mysql", "exit 127");
        assert_ne!(client(&base, Path::new("/t/s")).map(|words| words[0].clone()), Some(own));
    }
}
