//! A running server that dbdyno started: fresh data, private socket, given CPUs; it ends with its value.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_drivers::mysql::Options;
use tempfile::TempDir;

use crate::command::{Places, start_options};
use crate::my_cnf::MyCnf;
use crate::process::{Process, Stopped};
use crate::{BaseDir, Error, datadir, launch, log, ready, template};

/// Longest path of a unix socket: 108 bytes in the kernel's structure, the last one 0.
const MAX_SOCKET_BYTES: usize = 107;

/// Time that [`Server::stop`] gives a server to end by itself.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The same when the value is dropped, which happens on errors: nobody waits long then.
const DROP_LIMIT: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(10);

/// What to start, and where.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub base: BaseDir,
    /// The server's own option file; its settings hold, but its paths and network settings are overridden.
    pub my_cnf: Option<PathBuf>,
    /// CPUs of all threads of the server; those of the calling thread when `None`.
    pub cpus: Option<Vec<u32>>,
    /// Folder of the data: made, or wiped if it carries dbdyno's mark, else refused.
    pub data_dir: PathBuf,
    /// File for the server's log and output. It is appended to; a name without extension gets `.log`.
    pub log: PathBuf,
    /// Folder that keeps an initialised data directory for each build, to be copied.
    pub template_dir: PathBuf,
    /// Time from spawning to the first greeting.
    pub start_timeout: Duration,
    /// Storage engine that must be there: `innodb`, `rocksdb`, ...
    pub engine: String,
}

/// A running server. Dropping the value stops it.
#[derive(Debug)]
pub struct Server {
    base: BaseDir,
    process: Process,
    /// Holds the socket and temporary files; a folder that only this user may enter.
    run_dir: TempDir,
    data_dir: PathBuf,
    log: PathBuf,
    command_line: Vec<String>,
    notes: Vec<String>,
}

impl Server {
    /// Makes fresh data, starts the server and waits until it greets.
    ///
    /// Blocks for seconds. Call it from a thread that lives as long as the server shall: the kernel stops the
    /// server when that *thread* ends, which is how a killed dbdyno leaves no server behind.
    ///
    /// # Errors
    /// [`Error::DiedAtStart`] and [`Error::NoAnswer`] with the end of the log; [`Error::NotOurs`],
    /// [`Error::StillRunning`] for the data directory; those of the option file, initialising and pinning.
    pub fn start(spec: &ServerSpec) -> Result<Self, Error> {
        let my_cnf = match &spec.my_cnf {
            Some(path) => MyCnf::read(path, &spec.base)?,
            None => MyCnf::default(),
        };
        let run_dir = private_folder()?;
        let socket = run_dir.path().join("s");
        let log = absolute_log(&spec.log)?;
        let data_dir = absolute(&spec.data_dir)?;
        let tmp_dir = run_dir.path().join("tmp");
        fs::create_dir(&tmp_dir).map_err(Error::io("cannot make", tmp_dir.clone()))?;
        let places = Places { data_dir: &data_dir, socket: &socket, tmp_dir: &tmp_dir, log: &log };
        let as_root = nix::unistd::geteuid().is_root();
        let mut start = start_options(&spec.base, &my_cnf, &spec.engine, places, as_root)?;

        let template = template::ready(&spec.base, &my_cnf, &spec.template_dir)?;
        datadir::prepare(&data_dir)?;
        datadir::fill(&template, &data_dir)?;

        let (command_line, ends_with_us) = launch::command_line(spec.base.program(), &start.options);
        if !ends_with_us {
            start.notes.push("no setpriv on this machine: the server outlives a killed dbdyno".to_owned());
        }
        let log_start = log::length(&log);
        let mut command = launch::detached(&command_line, &log)?;
        let process = Process::new(launch::spawn(&mut command, spec.cpus.as_deref())?);
        let notes = start.notes;
        let server = Self { base: spec.base.clone(), process, run_dir, data_dir, log, command_line, notes };
        datadir::note_server(&server.data_dir, server.pid())?;
        server.wait_for_greeting(spec.start_timeout, log_start)?;
        Ok(server)
    }

    fn wait_for_greeting(&self, limit: Duration, log_start: u64) -> Result<(), Error> {
        let spawned = Instant::now();
        while !ready::greets(self.socket().as_path()) {
            let (server, log) = (self.base.title(), self.log.clone());
            if let Some(status) = self.exit_status() {
                let log_tail = log::reason(&self.log, log_start);
                return Err(Error::DiedAtStart { server, status: status.to_string(), log, log_tail });
            }
            if spawned.elapsed() >= limit {
                let log_tail = log::reason(&self.log, log_start);
                return Err(Error::NoAnswer { server, seconds: limit.as_secs(), log, log_tail });
            }
            sleep(POLL);
        }
        Ok(())
    }

    /// The build that runs.
    pub fn base(&self) -> &BaseDir {
        &self.base
    }

    /// Process of the server itself; all that it uses is charged there.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The unix socket: the only way in.
    pub fn socket(&self) -> PathBuf {
        self.run_dir.path().join("s")
    }

    /// The data directory, absolute.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The log file, absolute.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How to log in as root, who has no password and may come over the socket only.
    pub fn options(&self, database: Option<&str>) -> Options {
        Options { database: database.map(str::to_owned), ..Options::socket(self.socket(), "root") }
    }

    /// Whether the process is there; a server that was killed or crashed is not.
    pub fn is_running(&self) -> bool {
        self.exit_status().is_none()
    }

    /// How the process ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.process.exit_status()
    }

    /// The last `lines` lines of the log.
    pub fn log_tail(&self, lines: usize) -> String {
        log::tail(&self.log, lines)
    }

    /// Program and options as they were run, for the record; it holds no secret.
    pub fn command_line(&self) -> Vec<String> {
        self.command_line.clone()
    }

    /// What a reader of the run should know about how the server was started.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Asks the server to end, kills it after 60 s, and says which.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn stop(self) -> Result<Stopped, Error> {
        self.stop_within(STOP_LIMIT)
    }

    /// [`Server::stop`] with another limit; a large buffer pool of dirty pages may need it.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn stop_within(self, limit: Duration) -> Result<Stopped, Error> {
        self.process.stop(limit).map_err(Error::io("cannot stop the server on", &self.data_dir))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` this finds the process ended and does nothing. There is nobody to tell of a failure.
        let _ = self.process.stop(DROP_LIMIT);
    }
}

fn private_folder() -> Result<TempDir, Error> {
    let parent = std::env::temp_dir();
    let cannot = || Error::io("cannot make a folder for the socket in", parent.clone());
    let folder = tempfile::Builder::new().prefix("dbdyno-").tempdir_in(&parent).map_err(cannot())?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).map_err(cannot())?;
    let socket = folder.path().join("s");
    match socket.as_os_str().len() <= MAX_SOCKET_BYTES {
        true => Ok(folder),
        false => Err(Error::SocketTooLong { path: socket }),
    }
}

/// Servers change into their data directory, so relative paths would mean others to them. Whatever exists of the
/// path is resolved, so that the server's command line and the mark name the same folder.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let made = std::path::absolute(path).map_err(Error::io("cannot make absolute", path))?;
    match (made.canonicalize(), made.parent(), made.file_name()) {
        (Ok(resolved), _, _) => Ok(resolved),
        (Err(_), Some(parent), Some(name)) => Ok(absolute(parent)?.join(name)),
        (Err(_), _, _) => Ok(made),
    }
}

fn absolute_log(path: &Path) -> Result<PathBuf, Error> {
    let path = absolute(path)?;
    // The servers would add `.err` to a name without extension and log where nobody looks.
    Ok(if path.extension().is_some() { path } else { path.with_extension("log") })
}
