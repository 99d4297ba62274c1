//! Starts a server with fresh data, a private socket and its own CPUs, restarts it and stops it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::server::intents::{ConfigServer, Rendered};
use crate::server::launch::Line;
use crate::server::log::LogPart;
use crate::server::process::{Probe, Process, Stopped};
use crate::server::runtime_dir::TmpDir;
use crate::server::{Base, Cgroup, Error, RuntimeDir, cgroup, datadir, launch, log};
use crate::{ConnectionSettings, DatabaseAddress, LoginOptions};

/// Which server to start, and where.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub base: Base,
    /// The rendered config. Its settings apply, but dbdyno overrides its paths and network
    /// settings. Servers share a template unless a setting that shapes the data differs.
    pub config: Rendered,
    /// CPUs for all of the server's threads and processes. `None` keeps those of the calling
    /// thread.
    pub cpus: Option<Vec<u32>>,
    /// The data folder. It is made, or wiped if it carries dbdyno's marker, and otherwise refused.
    pub data_dir: PathBuf,
    /// File for the server's log and output, which are appended. A name without extension gets
    /// `.log`.
    pub log: PathBuf,
    /// Folder that keeps an initialised data directory for each build as a source for copies. It
    /// may outlive a run, and processes may share it.
    pub template_dir: PathBuf,
    /// Time limit from spawning to the first answer.
    pub start_timeout: Duration,
    /// This is set when the user wants everything to end. All waits then end, and the server is
    /// killed soon.
    pub cancel: Arc<AtomicBool>,
}

impl ServerSpec {
    /// A `base` server in its default configuration, or as the user's option file says, with its
    /// data and its log in `folder`. Its start may take ten minutes.
    pub fn new(
        base: &Base,
        option_file: Option<&Path>,
        folder: &Path,
        template_dir: PathBuf,
    ) -> Result<Self, Error> {
        let engine = base.family.facts().default_engine.unwrap_or_default();
        let config = Rendered::of(&ConfigServer::of_base(base, engine));
        let config = match option_file {
            Some(path) => config.with_own_config(base, path)?,
            None => config,
        };
        Ok(Self {
            base: base.clone(),
            config,
            cpus: None,
            data_dir: folder.join("data"),
            log: folder.join("server.log"),
            template_dir,
            start_timeout: Duration::from_secs(600),
            cancel: Arc::default(),
        })
    }
}

/// A running server. Dropping the value stops it. The part that needs no build is in its [`Deref`]
/// target.
#[derive(Debug)]
pub struct Server {
    pub base: Base,
    pub(crate) socket: PathBuf,
    /// The port on 127.0.0.1 for TLS connections, where the product has no TLS over unix sockets.
    pub(crate) tls_port: Option<u16>,
    pub(crate) running: Running,
}

/// The address on which a server with a TLS port listens.
pub(crate) const TLS_HOST: &str = "127.0.0.1";

impl Server {
    /// Makes fresh data, starts the server and waits until it answers.
    ///
    /// Blocks for seconds. Call it from a thread that lives as long as the server should. The
    /// kernel stops the server when that *thread* ends, which is why a killed dbdyno leaves no
    /// server.
    pub fn start(spec: &ServerSpec) -> Result<Self, Error> {
        spec.base.family.start(RuntimeDir::new()?, spec, Data::Fresh)
    }

    /// The unix socket. It is the only way in, apart from the TLS port.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How to log in as the superuser, who has no password. Sessions use the socket, or TCP with
    /// TLS where sockets have no TLS and the runtime directory has certificates. The caller must
    /// then add the client's certificate ([`LoginOptions::with_tls`]).
    pub fn options(&self, database: Option<&str>) -> LoginOptions {
        let facts = self.base.family.facts();
        let options = match self.tls_port {
            Some(port) => LoginOptions::tcp(TLS_HOST, port, facts.superuser),
            None => LoginOptions::socket(&self.socket, facts.superuser),
        };
        let database = database.or(facts.first_database).map(str::to_owned);
        LoginOptions { database, ..options }
    }

    /// Returns the address with the same login and the caller's connection settings.
    pub fn address(
        &self,
        database: Option<&str>,
        connection_settings: &ConnectionSettings,
    ) -> DatabaseAddress {
        self.base.family.address(self.options(database).with_connection_settings(connection_settings.clone()))
    }

    pub fn stop(self) -> Result<Stopped, Error> {
        self.running.stop()
    }

    /// Returns the server's process and files without its build.
    pub fn into_running(self) -> Running {
        self.running
    }
}

/// How the superuser of a started server logs in over its socket. That user has no password.
pub(crate) fn superuser_at(base: &Base, socket: &Path) -> DatabaseAddress {
    let facts = base.family.facts();
    let database = facts.first_database.map(str::to_owned);
    base.family.address(LoginOptions { database, ..LoginOptions::socket(socket, facts.superuser) })
}

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

/// Time that [`Running::stop`] gives a server to end by itself.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The same limit when the value is dropped. That happens on errors, when no one should wait long.
const DROP_LIMIT: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(10);

/// The data on which a server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// A fresh data directory. An existing one is replaced if it belongs to dbdyno.
    Fresh,
    /// The existing data directory, unchanged. dbdyno must have made it.
    AsItIs,
    /// The existing data directory, but the server does not reload what its caches held when it was
    /// stopped.
    Cold,
}

/// What is needed to start a server whose data directory is ready.
pub(crate) struct Start<'a> {
    /// Product and version for people.
    pub(crate) title: String,
    pub(crate) line: Line,
    pub(crate) cpus: Option<&'a [u32]>,
    pub(crate) runtime_dir: RuntimeDir,
    pub(crate) data_dir: PathBuf,
    /// The folder for its temporary files, where they do not lie in the data directory.
    pub(crate) tmp_dir: Option<TmpDir>,
    pub(crate) log: PathBuf,
    /// The superuser's login.
    pub(crate) login: DatabaseAddress,
    /// See [`Probe::is_worth_it`].
    pub(crate) is_worth_asking: &'a (dyn Fn(u32) -> bool + Sync),
    /// Time limit from spawning to the first answer.
    pub(crate) timeout: Duration,
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) notes: Vec<String>,
}

/// A running server. Dropping the value stops it.
#[derive(Debug)]
pub struct Running {
    title: String,
    process: Process,
    /// Holds the socket. It is `None` only once the server has been stopped and its runtime
    /// directory taken.
    runtime_dir: Option<RuntimeDir>,
    /// The data directory, absolute.
    pub data_dir: PathBuf,
    /// The folder is removed once the server has ended.
    _tmp_dir: Option<TmpDir>,
    /// The log file, absolute.
    pub log: PathBuf,
    /// Program and options as they were run. They hold no secret.
    pub command_line: Vec<String>,
    /// What a reader should know about how the server was started.
    pub notes: Vec<String>,
    cancel: Arc<AtomicBool>,
    /// Bytes of the log that belong to earlier starts.
    log_start: u64,
    /// dbdyno's own logins that the server refused because it was still starting.
    refused_probes: AtomicUsize,
}

impl Running {
    /// Spawns the server and waits until it answers.
    pub(crate) fn start(start: Start<'_>) -> Result<Self, Error> {
        let Start { title, mut line, cpus, runtime_dir, data_dir, tmp_dir, log, cancel, mut notes, .. } =
            start;
        if !line.ends_with_us {
            notes.push("no setpriv on this machine: the server outlives a killed dbdyno".to_owned());
        }
        if let Some(cgroup) = runtime_dir.cgroup() {
            line.words = [cgroup.entering(), line.words].concat();
        }
        let log_start = log::length(&log);
        let mut command = launch::detached(&line.words, &log)?;
        datadir::note_start(&data_dir)?;
        let process = Process::new(launch::spawn(&mut command, cpus)?, line.stop_signal);
        let runtime_dir = Some(runtime_dir);
        let command_line = line.words;
        let server = Self {
            title,
            process,
            runtime_dir,
            data_dir,
            _tmp_dir: tmp_dir,
            log,
            command_line,
            notes,
            cancel,
            log_start,
            refused_probes: AtomicUsize::new(0),
        };
        datadir::note_server(&server.data_dir, server.pid())?;
        server.wait_for_answer(start.login, start.is_worth_asking, start.timeout)?;
        Ok(server)
    }

    /// Runs its own event loop in its own thread, because the caller may already be in one.
    fn wait_for_answer(
        &self,
        mut login: DatabaseAddress,
        is_worth_it: &(dyn Fn(u32) -> bool + Sync),
        limit: Duration,
    ) -> Result<(), Error> {
        if let Some(options) = login.login_mut() {
            options.connection_settings.limits.login = limit;
        }
        // The engine does not matter to a session that runs no statements.
        let database_server = login.database_server("", true);
        let probe = Probe { database_server, is_worth_it, refused: &self.refused_probes };
        let cannot = || Error::io("cannot watch the server on", &self.data_dir);
        let waits = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(cannot())?.block_on(self.until_answered(&probe, limit))
        };
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new().spawn_scoped(scope, waits).map_err(cannot())?;
            waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    async fn until_answered(&self, probe: &Probe<'_>, limit: Duration) -> Result<(), Error> {
        let spawned = Instant::now();
        let mut answered = pin!(probe.answered(self.pid()));
        while tokio::time::timeout(POLL, answered.as_mut()).await.is_err() {
            let (server, log) = (self.title.clone(), self.log.clone());
            if let Some(status) = self.exit_status() {
                let log_tail = self.log_end();
                return Err(Error::DiedAtStart { server, status: self.end_of(status), log, log_tail });
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled { what: format!("starting {server}") });
            }
            if spawned.elapsed() >= limit {
                let log_tail = self.log_end();
                return Err(Error::NoAnswer { server, limit, log, log_tail });
            }
        }
        Ok(())
    }

    /// The server's first process. MariaDB and MySQL have only this one, so everything that the
    /// server uses is charged to it. PostgreSQL's other processes are its children.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The control group that limits the server's memory, if it has one.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.runtime_dir.as_ref().and_then(RuntimeDir::cgroup)
    }

    /// Whether the process is running. It is not after a kill or a crash.
    pub fn is_running(&self) -> bool {
        self.exit_status().is_none()
    }

    /// How the process ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.process.exit_status()
    }

    /// An exit status in words, with the kernel's reason where it is known.
    pub fn end_of(&self, status: ExitStatus) -> String {
        match self.cgroup().filter(|group| group.kills() > 0) {
            Some(group) => format!(
                "{status}: the kernel killed it, because it needed more than its memory limit of {}",
                cgroup::size_text(group.memory_limit_bytes)
            ),
            None => status.to_string(),
        }
    }

    /// The last lines that this start has logged.
    pub fn log_tail(&self, lines: usize) -> String {
        log::tail(&self.this_starts_log(), lines)
    }

    /// The end of this start's log, with the errors further above, because servers that crash log
    /// at length how they do.
    pub fn log_end(&self) -> String {
        log::reason(&self.this_starts_log())
    }

    /// The last errors in this start's log, if there are any.
    pub fn logged_errors(&self) -> Option<String> {
        log::errors(&self.this_starts_log())
    }

    fn this_starts_log(&self) -> LogPart<'_> {
        let refused_probes = self.refused_probes.load(Ordering::Relaxed);
        LogPart { path: &self.log, start: self.log_start, refused_probes }
    }

    /// Asks the server to end, kills it after 60 s, and returns which of the two ended it.
    pub fn stop(self) -> Result<Stopped, Error> {
        self.stop_within(STOP_LIMIT)
    }

    /// Does the same as [`Running::stop`] with another limit. A large buffer pool with many dirty
    /// pages may need it.
    pub fn stop_within(self, limit: Duration) -> Result<Stopped, Error> {
        self.end(limit)
    }

    fn end(&self, limit: Duration) -> Result<Stopped, Error> {
        self.process.stop(limit, &self.cancel).map_err(Error::io("cannot stop the server on", &self.data_dir))
    }

    /// Stops the server so that another start can continue with its data, in the same runtime
    /// directory and under the same socket. Anything but a clean stop is an error.
    pub fn halt(mut self, limit: Duration) -> Result<(Stopped, RuntimeDir), Error> {
        let stopped = self.end(limit)?;
        let server = self.title.clone();
        if stopped.killed {
            return Err(Error::Killed { server, limit });
        }
        match self.runtime_dir.take() {
            Some(runtime_dir) if stopped.code == Some(0) && !stopped.had_ended => Ok((stopped, runtime_dir)),
            _ => {
                let (stopped, log, log_tail) = (stopped.to_string(), self.log.clone(), self.log_end());
                Err(Error::NotAtRest { server, stopped, log, log_tail })
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `stop` this finds that the process has ended, and does nothing. There is no one to
        // report a failure to.
        let _ = self.process.stop(DROP_LIMIT, &self.cancel);
    }
}

/// Makes a path absolute. Servers change into their data directory, where a relative path would
/// mean something else. The existing part of the path is resolved, so that the server's command
/// line and the marker name the same folder.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let made = std::path::absolute(path).map_err(Error::io("cannot make absolute", path))?;
    made.canonicalize().or_else(|_| absolute_itself(&made))
}

/// Does the same for a folder that dbdyno makes itself: the path to it is resolved, but a link in
/// its own place is not.
pub(crate) fn absolute_itself(path: &Path) -> Result<PathBuf, Error> {
    let made = std::path::absolute(path).map_err(Error::io("cannot make absolute", path))?;
    match (made.parent(), made.file_name()) {
        (Some(parent), Some(name)) => Ok(absolute(parent)?.join(name)),
        _ => Ok(made),
    }
}

/// The log's absolute path, with the extension `.log` if it has none.
pub(crate) fn absolute_log(path: &Path) -> Result<PathBuf, Error> {
    let path = absolute(path)?;
    // MySQL would add `.err` to a name without extension and log where no one looks.
    Ok(if path.extension().is_some() { path } else { path.with_extension("log") })
}
