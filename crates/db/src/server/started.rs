//! A server that dbdyno starts: fresh data, private socket, given CPUs.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{ConnectionSettings, Options, Target};

use crate::server::intents::{ConfigServer, Rendered};
use crate::server::process::Stopped;
use crate::server::running::{Data, Running};
use crate::server::{Base, Error, RuntimeDir};

/// What to start, and where.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub base: Base,
    /// Its settings hold, but its paths and network settings are overridden. Servers share a template
    /// unless a setting that shapes the data differs.
    pub config: Rendered,
    /// CPUs of all threads and processes of the server; those of the calling thread when `None`.
    pub cpus: Option<Vec<u32>>,
    /// Folder of the data: made, or wiped if it carries dbdyno's mark, else refused.
    pub data_dir: PathBuf,
    /// File for the server's log and output. It is appended to; a name without extension gets
    /// `.log`.
    pub log: PathBuf,
    /// Folder that keeps an initialised data directory for each build, to be copied; it may be
    /// kept, and shared by processes.
    pub template_dir: PathBuf,
    /// Time from spawning to the first answer.
    pub start_timeout: Duration,
    /// Set when the user wants all of it to end: nothing is waited for any more, and the server is
    /// killed soon.
    pub cancel: Arc<AtomicBool>,
}

impl ServerSpec {
    /// A server of `base` as it is by itself, or as the option file of a user says, with its data and
    /// its log in `folder`. Its start may take ten minutes.
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

/// A running server. Dropping the value stops it. What it has in common with other processes is in
/// its [`Deref`].
#[derive(Debug)]
pub struct Server {
    pub base: Base,
    pub(crate) socket: PathBuf,
    /// Of 127.0.0.1, for connections over TLS, where there is none over sockets.
    pub(crate) tls_port: Option<u16>,
    pub(crate) running: Running,
}

/// Where a server with a port for TLS listens.
pub(crate) const TLS_HOST: &str = "127.0.0.1";

impl Server {
    /// Makes fresh data, starts the server and waits until it answers.
    ///
    /// Blocks for seconds. Call it from a thread that lives as long as the server shall: the kernel
    /// stops the server when that *thread* ends, which is how a killed dbdyno leaves no server.
    pub fn start(spec: &ServerSpec) -> Result<Self, Error> {
        spec.base.family.start(RuntimeDir::new()?, spec, Data::Fresh)
    }

    /// The unix socket: the only way in, but for TLS.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How to log in as the superuser, who has no password: over the socket, or, where that has no
    /// TLS and the runtime dir has certificates, over TCP, TLS and with the client's certificate, which is
    /// to be added ([`Options::with_tls`]).
    pub fn options(&self, database: Option<&str>) -> Options {
        let facts = self.base.family.facts();
        let options = match self.tls_port {
            Some(port) => Options::tcp(TLS_HOST, port, facts.superuser),
            None => Options::socket(&self.socket, facts.superuser),
        };
        let database = database.or(facts.first_database).map(str::to_owned);
        Options { database, ..options }
    }

    /// The same, to connect to, in a connection settings of the caller's.
    pub fn target(&self, database: Option<&str>, connection_settings: &ConnectionSettings) -> Target {
        self.base.family.target(self.options(database).with_connection_settings(connection_settings.clone()))
    }

    pub fn stop(self) -> Result<Stopped, Error> {
        self.running.stop()
    }

    /// The server's process and files without its build.
    pub fn into_running(self) -> Running {
        self.running
    }
}

/// How the superuser of a started server, who has no password, logs in over its socket.
pub(crate) fn superuser_at(base: &Base, socket: &Path) -> Target {
    let facts = base.family.facts();
    let database = facts.first_database.map(str::to_owned);
    base.family.target(Options { database, ..Options::socket(socket, facts.superuser) })
}

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}
