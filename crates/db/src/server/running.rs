//! Starts, restarts and stops a server with its own data directory, private socket and CPUs.

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
    /// settings. Servers with the same build share a template, unless they differ in a setting that
    /// shapes the data.
    pub config: Rendered,
    /// The CPUs for all of the server's threads and processes. `None` keeps the CPUs of the calling
    /// thread.
    pub cpus: Option<Vec<u32>>,
    /// The data directory. It is made if it does not exist, and wiped if it has dbdyno's
    /// marker. Any other existing folder is refused.
    pub data_dir: PathBuf,
    /// The file to which the server's log and output are appended. A name without an extension gets
    /// `.log`.
    pub log: PathBuf,
    /// The folder that keeps templates, which are initialised data directories, as sources for
    /// copies. The folder may outlive a run, and several processes may share it.
    pub template_dir: PathBuf,
    /// The time limit from spawning the server to its first answer.
    pub start_timeout: Duration,
    /// This flag is set when the user cancels. All waits then end, and the server is killed after
    /// at most half a second.
    pub cancel: Arc<AtomicBool>,
}

impl ServerSpec {
    /// Describes a `base` server in its default configuration or with the user's option file. Its
    /// data and its log are in `folder`. Its start may take ten minutes.
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

/// A running server and its build. Dropping the value stops the server. This type dereferences to
/// [`Running`], which has everything that does not depend on the build.
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
    /// The call blocks for seconds. Make the call from a thread that lives as long as the server
    /// should. The kernel stops the server when that *thread* ends, which is why a killed dbdyno
    /// leaves no server behind.
    pub fn start(spec: &ServerSpec) -> Result<Self, Error> {
        spec.base.family.start(RuntimeDir::new()?, spec, Data::Fresh)
    }

    /// The unix socket. The server accepts connections only on this socket and on the TLS port, if
    /// there is one.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the login as the superuser, who has no password. Sessions use the socket, or TCP if
    /// the server has a TLS port. For TCP the caller must add the client's certificate
    /// ([`LoginOptions::with_tls`]).
    pub fn options(&self, database: Option<&str>) -> LoginOptions {
        let facts = self.base.family.facts();
        let options = match self.tls_port {
            Some(port) => LoginOptions::tcp(TLS_HOST, port, facts.superuser),
            None => LoginOptions::socket(&self.socket, facts.superuser),
        };
        let database = database.or(facts.first_database).map(str::to_owned);
        LoginOptions { database, ..options }
    }

    /// Returns the address with the login from [`Server::options`] and the caller's connection
    /// settings.
    pub fn address(
        &self,
        database: Option<&str>,
        connection_settings: &ConnectionSettings,
    ) -> DatabaseAddress {
        self.base.family.address(self.options(database).with_connection_settings(connection_settings.clone()))
    }

    /// Stops the server as [`Running::stop`] does.
    pub fn stop(self) -> Result<Stopped, Error> {
        self.running.stop()
    }

    /// Returns the running server without its build.
    pub fn into_running(self) -> Running {
        self.running
    }
}

/// Returns the superuser's login over a started server's socket. The superuser has no password.
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

/// The time that [`Running::stop`] gives a server to end by itself before it kills the server.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The same limit when the value is dropped. The value is dropped after errors, when the user
/// should not have to wait long.
const DROP_LIMIT: Duration = Duration::from_secs(10);

/// The time between two checks of whether a starting server has ended.
const POLL: Duration = Duration::from_millis(10);

/// The data on which a server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// A fresh data directory. An existing one is replaced if it belongs to dbdyno.
    Fresh,
    /// The existing data directory, unchanged. dbdyno must have made it.
    AsItIs,
    /// The existing data directory, but the server does not reload the cache contents that it saved
    /// when it stopped.
    Cold,
}

/// Everything that the start of a server needs besides a prepared data directory.
pub(crate) struct Start<'a> {
    /// Product and version, as messages name them.
    pub(crate) title: String,
    pub(crate) line: Line,
    pub(crate) cpus: Option<&'a [u32]>,
    pub(crate) runtime_dir: RuntimeDir,
    pub(crate) data_dir: PathBuf,
    /// The folder for the server's temporary files, if they are not in the data directory.
    pub(crate) tmp_dir: Option<TmpDir>,
    pub(crate) log: PathBuf,
    /// The superuser's login.
    pub(crate) login: DatabaseAddress,
    /// Returns whether a login is worth trying, given the server's process id. A starting server
    /// would refuse the login and log the refusal.
    pub(crate) may_log_in: &'a (dyn Fn(u32) -> bool + Sync),
    /// The time limit from spawning the server to its first answer.
    pub(crate) timeout: Duration,
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) notes: Vec<String>,
}

/// A running server without its build. Dropping the value stops the server.
#[derive(Debug)]
pub struct Running {
    title: String,
    process: Process,
    /// The runtime directory, which has the socket in it. It is `None` only after
    /// [`Running::stop_for_restart`] has stopped the server and taken the directory.
    runtime_dir: Option<RuntimeDir>,
    /// The data directory, absolute.
    pub data_dir: PathBuf,
    /// The folder for temporary files, which is removed once the server has ended.
    _tmp_dir: Option<TmpDir>,
    /// The log file, absolute.
    pub log: PathBuf,
    /// The program and its options as they were run. They contain no secret.
    pub command_line: Vec<String>,
    /// Notes for the user about the server's start.
    pub notes: Vec<String>,
    cancel: Arc<AtomicBool>,
    /// The number of bytes at the beginning of the log that belong to earlier starts.
    log_start: u64,
    /// The number of dbdyno's own logins that the server refused because it was still starting.
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
            line.words = [cgroup.joining_command(), line.words].concat();
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
        server.wait_for_answer(start.login, start.may_log_in, start.timeout)?;
        Ok(server)
    }

    /// Waits until the server answers. The wait has an event loop in its own thread, because the
    /// caller's thread may already run an event loop.
    fn wait_for_answer(
        &self,
        mut login: DatabaseAddress,
        may_log_in: &(dyn Fn(u32) -> bool + Sync),
        limit: Duration,
    ) -> Result<(), Error> {
        if let Some(options) = login.login_mut() {
            options.connection_settings.limits.login = limit;
        }
        // The engine does not matter to a session that runs no statements.
        let database_server = login.database_server("", true);
        let probe = Probe { database_server, may_log_in, refused: &self.refused_probes };
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

    /// Waits for the probe's answer. The wait also ends if the server ends, the user cancels or
    /// `limit` has passed.
    async fn until_answered(&self, probe: &Probe<'_>, limit: Duration) -> Result<(), Error> {
        let spawned = Instant::now();
        let mut answered = pin!(probe.answered(self.pid()));
        while tokio::time::timeout(POLL, answered.as_mut()).await.is_err() {
            let (server, log) = (self.title.clone(), self.log.clone());
            if let Some(status) = self.exit_status() {
                let log_tail = self.log_end();
                return Err(Error::DiedAtStart { server, status: self.describe_exit(status), log, log_tail });
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

    /// Returns the id of the server's first process. MariaDB and MySQL have only this process, so
    /// everything that the server uses is charged to it. PostgreSQL's other processes are its
    /// children.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the control group that limits the server's memory, if there is one.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.runtime_dir.as_ref().and_then(RuntimeDir::cgroup)
    }

    /// Returns whether the process is running. It no longer runs after a kill or a crash.
    pub fn is_running(&self) -> bool {
        self.exit_status().is_none()
    }

    /// Returns how the process ended, or `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.process.exit_status()
    }

    /// Describes an exit status in words. If the kernel killed the server because of its memory
    /// limit, the text says so.
    pub fn describe_exit(&self, status: ExitStatus) -> String {
        match self.cgroup().filter(|group| group.kills() > 0) {
            Some(group) => format!(
                "{status}: the kernel killed it, because it needed more than its memory limit of {}",
                cgroup::size_text(group.memory_limit_bytes)
            ),
            None => status.to_string(),
        }
    }

    /// Returns the last lines that the server has logged since this start.
    pub fn log_tail(&self, lines: usize) -> String {
        log::tail(&self.log_since_start(), lines)
    }

    /// Returns the end of the log since this start, with the last error lines above it, because a
    /// crashing server logs a long report after the error.
    pub fn log_end(&self) -> String {
        log::reason(&self.log_since_start())
    }

    /// Returns the last errors in the log since this start, if there are any.
    pub fn logged_errors(&self) -> Option<String> {
        log::errors(&self.log_since_start())
    }

    fn log_since_start(&self) -> LogPart<'_> {
        let refused_probes = self.refused_probes.load(Ordering::Relaxed);
        LogPart { path: &self.log, start: self.log_start, refused_probes }
    }

    /// Sends the server the signal for a clean end, and kills it if it has not ended within 60 s.
    /// The result says whether the server was killed.
    pub fn stop(self) -> Result<Stopped, Error> {
        self.stop_within(STOP_LIMIT)
    }

    /// Does the same as [`Running::stop`] with another limit. A server with many dirty pages in a
    /// large buffer pool may need more time.
    pub fn stop_within(self, limit: Duration) -> Result<Stopped, Error> {
        self.end(limit)
    }

    fn end(&self, limit: Duration) -> Result<Stopped, Error> {
        self.process.stop(limit, &self.cancel).map_err(Error::io("cannot stop the server on", &self.data_dir))
    }

    /// Stops the server so that another start can continue with its data, in the same runtime
    /// directory and under the same socket. Any end other than a clean stop is an error.
    pub fn stop_for_restart(mut self, limit: Duration) -> Result<(Stopped, RuntimeDir), Error> {
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
        // After a stop the process has ended, so this does nothing. A failure cannot be reported
        // from a drop.
        let _ = self.process.stop(DROP_LIMIT, &self.cancel);
    }
}

/// Makes a path absolute. Servers change into their data directory, where a relative path would
/// name another file. Links in the existing part of the path are resolved, so that the server's
/// command line and the marker name the same folder.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let absolute_path = std::path::absolute(path).map_err(Error::io("cannot make absolute", path))?;
    absolute_path.canonicalize().or_else(|_| absolute_itself(&absolute_path))
}

/// Does the same as [`absolute`] for a folder that dbdyno makes itself. Links in the path to the
/// folder are resolved. A link at the end of the path is not resolved.
pub(crate) fn absolute_itself(path: &Path) -> Result<PathBuf, Error> {
    let absolute_path = std::path::absolute(path).map_err(Error::io("cannot make absolute", path))?;
    match (absolute_path.parent(), absolute_path.file_name()) {
        (Some(parent), Some(name)) => Ok(absolute(parent)?.join(name)),
        _ => Ok(absolute_path),
    }
}

/// Returns the log's absolute path, with the extension `.log` if it has none.
pub(crate) fn absolute_log(path: &Path) -> Result<PathBuf, Error> {
    let path = absolute(path)?;
    // MySQL would add `.err` to a name without an extension, and dbdyno would not find the log.
    Ok(if path.extension().is_some() { path } else { path.with_extension("log") })
}
