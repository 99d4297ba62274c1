//! A MariaDB or MySQL server that dbdyno starts: fresh data, private socket, given CPUs.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_drivers::mysql::Options;

use crate::command::{Places, start_options, tls_options};
use crate::home::MYSQL_SOCKET;
use crate::my_cnf::MyCnf;
use crate::process::Stopped;
use crate::running::{Data, Running, Start, absolute_itself, absolute_log};
use crate::template::Template;
use crate::tmp_dir::{TmpDir, can_be_named};
use crate::{BaseDir, Error, Home, datadir, launch, ready};

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
    /// Folder that keeps an initialised data directory for each build, to be copied; it may be kept, and shared by processes.
    pub template_dir: PathBuf,
    /// Time from spawning to the first greeting.
    pub start_timeout: Duration,
    /// Set when the user wants all of it to end: nothing is waited for any more, and the server is killed soon.
    pub cancel: Arc<AtomicBool>,
    /// Storage engine that must be there: `innodb`, `rocksdb`, ...
    pub engine: String,
}

/// A running MariaDB or MySQL server. Dropping the value stops it. What it has in common with other servers is in
/// its [`Deref`].
#[derive(Debug)]
pub struct Server {
    base: BaseDir,
    socket: PathBuf,
    running: Running,
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
        Self::start_in(Home::new()?, spec, Data::Fresh)
    }

    /// [`Server::start`] in a home of the caller's, on fresh data or on what an earlier start has left.
    ///
    /// # Errors
    /// Those of [`Server::start`].
    pub fn start_in(home: Home, spec: &ServerSpec, data: Data) -> Result<Self, Error> {
        let my_cnf = match &spec.my_cnf {
            Some(path) => MyCnf::read(path, &spec.base)?,
            None => MyCnf::default(),
        };
        let socket = home.path().join(MYSQL_SOCKET);
        let log = absolute_log(&spec.log)?;
        let data_dir = absolute_itself(&spec.data_dir)?;
        let has_own_tmp_dir = my_cnf.sets("tmpdir");
        let lies_beside = can_be_named(&datadir::temporary_files(&data_dir));
        let tmp_dir = if lies_beside { datadir::temporary_files(&data_dir) } else { home.empty_tmp_dir()? };
        let places = Places { data_dir: &data_dir, socket: &socket, tmp_dir: &tmp_dir, log: &log };
        let as_root = nix::unistd::geteuid().is_root();
        let mut options = start_options(&spec.base, &my_cnf, &spec.engine, places, as_root)?;
        tls_options(&spec.base, &my_cnf, home.tls().map(|tls| &tls.files), &mut options);

        if !lies_beside && !has_own_tmp_dir {
            options.notes.push(format!(
                "temporary files are in {}, not next to the data: tmpdir cannot name a folder with \
                 a colon",
                tmp_dir.display()
            ));
        }

        match data {
            Data::Fresh => {
                let cancel = &*spec.cancel;
                Template::of_mysql(&spec.base, &my_cnf, &spec.template_dir, cancel)?
                    .copy_to(&data_dir, cancel)?;
            }
            Data::AsItIs => datadir::check_at_rest(&data_dir, &spec.cancel)?,
        }
        let is_needed = lies_beside && !has_own_tmp_dir;
        let tmp_dir = if is_needed { Some(TmpDir::make(&data_dir, &spec.cancel)?) } else { None };

        let start = Start {
            title: spec.base.title(),
            line: launch::command_line(spec.base.program(), &options.options),
            cpus: spec.cpus.as_deref(),
            home,
            data_dir,
            tmp_dir,
            log,
            timeout: spec.start_timeout,
            cancel: Arc::clone(&spec.cancel),
            notes: options.notes,
        };
        let running = Running::start(start, || ready::greets(&socket))?;
        Ok(Self { base: spec.base.clone(), socket, running })
    }

    /// The build that runs.
    pub fn base(&self) -> &BaseDir {
        &self.base
    }

    /// The unix socket: the only way in.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// How to log in as root, who has no password and may come over the socket only.
    pub fn options(&self, database: Option<&str>) -> Options {
        Options { database: database.map(str::to_owned), ..Options::socket(self.socket(), "root") }
    }

    /// See [`Running::stop`].
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn stop(self) -> Result<Stopped, Error> {
        self.running.stop()
    }

    /// The server without what is MySQL's own.
    pub fn into_running(self) -> Running {
        self.running
    }
}

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}
