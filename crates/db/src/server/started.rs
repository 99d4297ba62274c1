//! Starts a server with fresh data, a private socket and its own CPUs.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{ConnectionSettings, DatabaseAddress, LoginOptions};

use crate::server::intents::{ConfigServer, Rendered};
use crate::server::process::Stopped;
use crate::server::running::{Data, Running};
use crate::server::{Base, Error, RuntimeDir};

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
