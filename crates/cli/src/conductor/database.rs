//! The database of one cell: started on fresh data or on what lies there, stopped, ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dbdyno_db::server::{Base, Cgroup, Data, Home, Running, Server, ServerSpec, prepare_data, remove_data};
use dbdyno_db::{AnySession, DbError, DeviceGauge, Endpoint, Family, Manner, Session, Target, null};
use dbdyno_sample::device_of;

use crate::configs::VariantConfig;
use crate::exit::Fault;
use crate::option_files;
use crate::variants::{Prepared, Source};

/// Name of the database on servers that dbdyno starts; the original's.
const DATABASE: &str = "ib";
/// Class of the session during the load, under which its encryption is recorded.
const CONDUCTOR: &str = "conductor";

#[derive(Debug, Clone)]
pub(crate) struct CellPaths {
    pub(crate) data_dir: PathBuf,
    pub(crate) template_dir: PathBuf,
    /// The server's log, kept in the run.
    pub(crate) log: PathBuf,
    /// Folder of the servers' option files, kept in the run.
    pub(crate) config_dir: PathBuf,
    pub(crate) server_cpus: Option<Vec<u32>>,
    pub(crate) start_timeout: Duration,
    pub(crate) cancel: Arc<AtomicBool>,
}

pub(crate) struct Database {
    pub(crate) endpoint: Endpoint,
    /// dbdyno may change global settings and drop binary logs.
    pub(crate) owned: bool,
    server: Option<Running>,
    /// The process of a server that others run on this machine.
    found_pid: Option<u32>,
    /// Its size and device are sampled.
    pub(crate) data_dir: Option<PathBuf>,
    /// Folder of the benchmark's own tables; of MyRocks, the engine's.
    pub(crate) database_dir: Option<PathBuf>,
    /// What became of intents that are no option.
    config_notes: Vec<String>,
}

impl Database {
    /// Starts what has to be started, in `home` or in a new one, on fresh data or on those that lie
    /// at the place. Blocks for seconds.
    pub(crate) async fn provide(
        variant: &Prepared,
        place: &CellPaths,
        home: Option<Home>,
        data: Data,
    ) -> Result<Self, Fault> {
        let mut database = match &variant.source {
            Source::Null => {
                let target = Target::Null(null::Options::default());
                Self::new(Endpoint { target, capabilities: null::capabilities() }, true)
            }
            Source::Embedded { settings, notes } => {
                Self { config_notes: notes.clone(), ..Self::embedded(settings, place, data)? }
            }
            Source::External(endpoint) => {
                let found_pid = process_of(endpoint).await?;
                Self { found_pid, ..Self::new((**endpoint).clone(), false) }
            }
            Source::Owned { base, is_configured, config, engine } => {
                let config = config.as_deref();
                let spec = ServerSpec {
                    base: (**base).clone(),
                    option_file: option_file(base, *is_configured, variant, place)?,
                    initial_options: config
                        .map(|config| config.rendered.initdb_options())
                        .unwrap_or_default(),
                    cpus: place.server_cpus.clone(),
                    data_dir: place.data_dir.clone(),
                    log: place.log.clone(),
                    template_dir: place.template_dir.clone(),
                    start_timeout: place.start_timeout,
                    cancel: Arc::clone(&place.cancel),
                    engine: engine.clone(),
                };
                let server = homed(home, variant);
                let server = server.and_then(|home| Server::start_in(home, &spec, data));
                let server = server.map_err(|error| blamed(config, &error))?;
                let config_notes = config.map(|config| config.notes.clone()).unwrap_or_default();
                let started = Self::with_database(server, engine, &variant.manner, data).await?;
                Self { config_notes, ..started }
            }
        };
        database.endpoint.commit_each_statement().await?;
        Ok(database)
    }

    fn new(endpoint: Endpoint, owned: bool) -> Self {
        Self {
            endpoint,
            owned,
            server: None,
            found_pid: None,
            data_dir: None,
            database_dir: None,
            config_notes: Vec::new(),
        }
    }

    fn embedded(settings: &[(String, String)], place: &CellPaths, data: Data) -> Result<Self, Fault> {
        let is_fresh = data == Data::Fresh;
        if is_fresh {
            prepare_data(&place.data_dir, &place.cancel)?;
        }
        let endpoint = Family::EMBEDDED.open_file(&place.data_dir, settings, is_fresh)?;
        let folder = Some(place.data_dir.clone());
        Ok(Self { data_dir: folder.clone(), database_dir: folder, ..Self::new(endpoint, true) })
    }

    async fn with_database(
        server: Server,
        engine: &str,
        manner: &Manner,
        data: Data,
    ) -> Result<Self, DbError> {
        let mut session = server.target(None, manner).endpoint(engine, true).connect_as(CONDUCTOR).await?;
        if data == Data::Fresh {
            session.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
        }
        let folder = server.base.family.folder_of(&mut session, DATABASE, engine).await?;
        session.close().await;
        let endpoint = server.target(Some(DATABASE), manner).endpoint(engine, true);
        Ok(Self {
            data_dir: Some(server.data_dir.clone()),
            database_dir: folder.map(|folder| server.data_dir.join(folder)),
            server: Some(server.into_running()),
            ..Self::new(endpoint, true)
        })
    }

    /// A session during the load, for set-up and checks.
    pub(crate) async fn connect(&self) -> Result<AnySession, DbError> {
        let mut session = self.connect_to_ask().await?;
        session.lift_own_limits().await?;
        Ok(session)
    }

    /// The same with the settings that the server gives its sessions, to ask for them. It has
    /// nothing to do while a step runs, which may take longer than the server would leave it alone.
    pub(crate) async fn connect_to_ask(&self) -> Result<AnySession, DbError> {
        let mut session = self.endpoint.connect_as(CONDUCTOR).await?;
        session.stay_while_idle().await?;
        Ok(session)
    }

    /// The server's first process, if it runs on this machine as far as can be seen.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Running::pid).or(self.found_pid)
    }

    /// The traffic of the device under the data directory, for settling.
    pub(crate) fn device_gauge(&self) -> Option<DeviceGauge> {
        let device = device_of(self.data_dir.as_deref()?)?;
        Some(DeviceGauge::new(move || device.traffic()))
    }

    /// Where the server's own counters can be asked for while the load runs. Not of SQLite: a
    /// question would take a lock on the very file that is being measured.
    pub(crate) fn status_endpoint(&self) -> Option<Endpoint> {
        self.endpoint.target.login().map(|_| self.endpoint.clone())
    }

    /// What the record should know about how the server was started.
    pub(crate) fn notes(&self) -> Vec<String> {
        let found = self.found_pid.map(|pid| {
            format!("the server is process {pid} of this machine, found through its socket; its CPU, memory and IO are charged to it")
        });
        let of_server = self.server.iter().flat_map(|server| &server.notes);
        found.into_iter().chain(of_server.chain(&self.config_notes).cloned()).collect()
    }

    /// If the server is gone: how it ended, with the end of its log.
    pub(crate) fn obituary(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        let status = server.end_of(server.exit_status()?);
        Some(format!("the server ended with {status}; the end of its log:\n{}", server.last_words()))
    }

    /// What a server of ours that runs has logged as errors: it may wait for space on its disk,
    /// which looks like a slow one.
    pub(crate) fn complaints(&self) -> Option<String> {
        let errors = self.server.as_ref()?.logged_errors()?;
        Some(format!("last errors in the server's log:\n{errors}"))
    }

    /// There is something that can be stopped, started and given other data: a server that dbdyno
    /// starts, or an embedded database's files.
    pub(crate) fn can_turn(&self) -> bool {
        self.owned && self.data_dir.is_some()
    }

    /// CPUs that the server's first process may run on, as the kernel reports them.
    pub(crate) fn effective_cpus(&self) -> Option<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(cpus.trim().to_owned())
    }

    /// The control group that limits the server's memory, if it has one.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.server.as_ref().and_then(Running::cgroup)
    }

    /// Stops the server cleanly and returns its home, in which it can be started again: the
    /// endpoint stays as it is. `None` where there is no server of dbdyno's. All sessions must be
    /// closed.
    pub(crate) fn halt(&mut self, limit: Duration) -> Result<Option<Home>, String> {
        let halted = self.server.take().map(|server| server.halt(limit)).transpose();
        halted.map(|halted| halted.map(|(_, home)| home)).map_err(|error| error.to_string())
    }

    /// Stops what was started and removes the data, unless it is to be kept. Returns what is odd
    /// about the end, and what could not be removed. That a server was killed at the user's wish,
    /// which sets `cancel`, is no fault of its.
    pub(crate) fn end(self, keep_data: bool, limit: Duration, cancel: &AtomicBool) -> Vec<String> {
        let mut warning = None;
        if let Some(server) = self.server {
            match server.stop_within(limit) {
                Ok(stopped) if stopped.killed => {
                    warning = Some(format!(
                        "the server had to be killed: it did not stop within {} s (host.stop_timeout)",
                        limit.as_secs_f64()
                    ));
                }
                Ok(stopped) if stopped.had_ended || stopped.code != Some(0) => {
                    warning = Some(format!("the server did not stop cleanly: {stopped}; see its log"));
                }
                Ok(_) => {}
                Err(error) => warning = Some(error.to_string()),
            }
        }
        let removed = self.data_dir.as_deref().filter(|_| !keep_data).map_or(Ok(()), remove_data);
        let warning = warning.filter(|_| !cancel.load(Ordering::Relaxed));
        warning.into_iter().chain(removed.err().map(|error| error.to_string())).collect()
    }
}

/// The process of a server that others run, if it is the one that has the data.
async fn process_of(endpoint: &Endpoint) -> Result<Option<u32>, DbError> {
    if endpoint.target.login().is_none() || !endpoint.capabilities.is_at_its_socket() {
        return Ok(None);
    }
    let session = endpoint.connect_as(CONDUCTOR).await?;
    let pid = session.server_pid();
    session.close().await;
    Ok(pid)
}

/// The home of a start, with the certificates of the variant's server.
fn homed(home: Option<Home>, variant: &Prepared) -> Result<Home, dbdyno_db::server::Error> {
    let home = home.map_or_else(Home::new, Ok)?;
    variant.certificates.iter().try_fold(home, Home::with_certificates)
}

/// The option file to start with, kept in the run: what the user's own says later on is for a later
/// run.
fn option_file(
    base: &Base,
    is_configured: bool,
    variant: &Prepared,
    place: &CellPaths,
) -> Result<Option<PathBuf>, String> {
    let info = &variant.info;
    let ending = base.family.facts().option_file_ending;
    is_configured
        .then(|| option_files::write(&place.config_dir, &info.name, ending, &info.config))
        .transpose()
}

/// A server that did not start says which option it does not like; the reader knows the intent.
fn blamed(config: Option<&VariantConfig>, error: &dbdyno_db::server::Error) -> String {
    let error = error.to_string();
    config.map_or(error.clone(), |config| config.blame(error))
}
