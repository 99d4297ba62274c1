//! Starts the database of a cell: a server on fresh data, on a copy of a snapshot or on what lies at
//! its place; a database in this process; a session with a server that others run.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dbdyno_db::server::intents::Rendered;
use dbdyno_db::server::{
    Cgroup, Data, Error, RuntimeDir, Running, Server, ServerSpec, Snapshot, prepare_data, remove_data,
};
use dbdyno_db::{AnySession, DbError, DeviceGauge, Endpoint, Family, ConnectionSettings, Session, Target, null};
use dbdyno_model::NoLimit;
use dbdyno_plan::Plan;
use dbdyno_products::FamilyFacts;
use dbdyno_record::{CellEvent, CellId, small_text};
use dbdyno_sample::device_of;

use crate::conductor::{Conductor, OpenCell, Stop};
use crate::exit::Fault;
use crate::prepare::{Prepared, Source};
use crate::time;

/// Name of the database on servers that dbdyno starts; the original's.
const DATABASE: &str = "ib";
/// Class of the session during the load, under which its encryption is recorded.
const CONDUCTOR: &str = "conductor";
/// Why a start came to nothing that the user did not wait for.
const STOPPED: &str = "interrupted by the user while the server was started";
/// Folder of a run with the option files that its servers are started with: all of its cells are
/// configured equally, whatever the user's own file says later on.
const OPTION_FILES: &str = "configs";
const WRITABLE_BY_ALL: u32 = 0o002;

/// A database that runs, and how to connect to it.
pub(crate) struct Database {
    pub(crate) endpoint: Endpoint,
    /// dbdyno may change global settings and drop binary logs.
    pub(crate) owned: bool,
    pub(crate) server: Option<Running>,
    /// The process of a server that others run on this machine.
    found_pid: Option<u32>,
    /// Its size and device are sampled.
    pub(crate) data_dir: Option<PathBuf>,
    /// Folder of the benchmark's own tables; of MyRocks, the engine's.
    pub(crate) database_dir: Option<PathBuf>,
    /// See [`Prepared::notes`].
    config_notes: Vec<String>,
}

/// Data directories lie in the run directory unless the plan says where: its filesystem is part of
/// what is measured.
pub(crate) fn data_root(plan: &Plan, run_dir: &Path) -> PathBuf {
    let name = run_dir.file_name().unwrap_or_default();
    let root = plan.host.data_dir.as_ref().map_or_else(|| run_dir.join("data"), |folder| folder.join(name));
    std::path::absolute(&root).unwrap_or(root)
}

/// Where the data of a cell lie.
pub(super) fn data_dir(data_root: &Path, id: &CellId) -> PathBuf {
    data_root.join(format!("{}-{}-{}", id.block, id.variant, id.workload))
}

impl Conductor<'_> {
    /// The database of a cell: on a copy of the snapshot where there is one, else on fresh data.
    pub(super) fn start(
        &mut self,
        cell: &mut OpenCell<'_>,
        snapshot: Option<&Snapshot>,
    ) -> Result<Database, Stop> {
        self.progress.busy(if snapshot.is_some() { "restoring data" } else { "starting on fresh data" });
        let started = self.start_once(cell, snapshot);
        let has_waited = self.has_waited_for_stop()?;
        // Two servers may have been too much for the machine.
        let is_tried_again = started.is_err() && has_waited && !self.cancelled();
        if is_tried_again { self.start_once(cell, snapshot) } else { started }
    }

    /// What a failed start leaves is removed.
    fn start_once(&mut self, cell: &mut OpenCell<'_>, snapshot: Option<&Snapshot>) -> Result<Database, Stop> {
        let started = self.start_on_data(cell, snapshot);
        if started.is_err() && !self.plan.host.keep_data {
            let left = match remove_data(&self.data_dir(cell.id)) {
                // It stays; that the cell failed because of it is said already.
                Ok(()) | Err(Error::NotOurs { .. }) => None,
                Err(error) => Some(error.to_string()),
            };
            self.warn(&mut cell.writer, left)?;
        }
        started
    }

    fn start_on_data(
        &mut self,
        cell: &mut OpenCell<'_>,
        snapshot: Option<&Snapshot>,
    ) -> Result<Database, Stop> {
        let runtime_dir = self.limited_runtime_dir(cell)?;
        let (data_dir, log) = (self.data_dir(cell.id), self.log_file(cell.id, true));
        let mut data = Data::Fresh;
        if let Some(snapshot) = snapshot {
            let copied = self.restored(snapshot, &data_dir).map_err(Stop::failed)?;
            self.write_works(&mut cell.writer, Ok(vec![copied]))?;
            data = Data::AsItIs;
        }
        self.started(self.database(self.prepared(cell.id)?, data_dir, log, runtime_dir, data))
    }

    /// What `start` comes to, unless the user wants the run to end before that.
    pub(super) fn started<T>(&self, start: impl Future<Output = Result<T, Fault>>) -> Result<T, Stop> {
        self.unless_cancelled(start).unwrap_or_else(|| Err(STOPPED.into())).map_err(Stop::failed)
    }

    /// The database of `variant`. What has to be started is started in `runtime_dir` or in a new one, on
    /// fresh data or on those that lie in `data_dir`. Blocks for seconds.
    pub(super) async fn database(
        &self,
        variant: &Prepared,
        data_dir: PathBuf,
        log: PathBuf,
        runtime_dir: Option<RuntimeDir>,
        data: Data,
    ) -> Result<Database, Fault> {
        let mut database = match &variant.source {
            Source::Null => Database::new(Target::Null(null::Options::default()).endpoint("", true), true),
            Source::Embedded(settings) => {
                let is_fresh = data == Data::Fresh;
                if is_fresh {
                    prepare_data(&data_dir, &self.cancel)?;
                }
                let endpoint = Family::EMBEDDED.open_file(&data_dir, settings, is_fresh)?;
                let folder = Some(data_dir);
                Database { data_dir: folder.clone(), database_dir: folder, ..Database::new(endpoint, true) }
            }
            Source::Address(endpoint) => {
                let found_pid = process_of(endpoint).await?;
                Database { found_pid, ..Database::new((**endpoint).clone(), false) }
            }
            Source::Started { base, config, certificates } => {
                let spec = ServerSpec {
                    base: (**base).clone(),
                    config: self.kept(&variant.info.name, config)?,
                    cpus: self.server_cpus.clone(),
                    data_dir,
                    log,
                    template_dir: self.template_dir.clone(),
                    start_timeout: self.plan.host.start_timeout.0,
                    cancel: Arc::clone(&self.cancel),
                };
                let runtime_dir = runtime_dir.map_or_else(RuntimeDir::new, Ok);
                let runtime_dir = runtime_dir.and_then(|runtime_dir| certificates.iter().try_fold(runtime_dir, RuntimeDir::with_certificates));
                let server = runtime_dir.and_then(|runtime_dir| base.family.start(runtime_dir, &spec, data));
                let server = server.map_err(|error| blamed(config, &error))?;
                Database::on(server, &config.engine, &variant.connection_settings, data).await?
            }
        };
        database.config_notes.clone_from(&variant.notes);
        database.endpoint.commit_each_statement().await?;
        Ok(database)
    }

    /// A runtime dir for the cell's server with the memory limit of its variant; `None` without a limit.
    /// Where the limit cannot be set and the plan says to go on, the record warns of it.
    fn limited_runtime_dir(&self, cell: &mut OpenCell<'_>) -> Result<Option<RuntimeDir>, Stop> {
        let limit = self.plan.server_memory(&cell.id.variant);
        match limit.map(|limit| RuntimeDir::new()?.with_memory_limit(limit.0)).transpose() {
            Ok(runtime_dir) => Ok(runtime_dir),
            Err(error @ Error::Cgroup { .. }) if self.plan.host.no_memory_limit == NoLimit::Warn => {
                let text = format!("the server ran without the memory limit that the plan asks for: {error}");
                cell.writer.event(&CellEvent::Warning { at: time::now(), text })?;
                Ok(None)
            }
            Err(error) => Err(Stop::failed(error)),
        }
    }

    /// The config of a variant, with the file of its text in the run directory.
    fn kept(&self, variant: &str, config: &Rendered) -> Result<Rendered, String> {
        let config = config.clone();
        if !config.has_file() {
            return Ok(config);
        }
        let ending = config.product.family().option_file_ending;
        let file = kept_option_file(self.writer.dir(), variant, ending, &config.text())?;
        Ok(config.in_file(file))
    }

    pub(super) fn data_dir(&self, id: &CellId) -> PathBuf {
        data_dir(&self.data_root, id)
    }

    /// A new log, as those of cells that run again are kept apart; else the last one.
    pub(super) fn log_file(&self, id: &CellId, is_new: bool) -> PathBuf {
        let stem = format!("{}-{}-{}", id.block, id.variant, id.workload);
        let file = |attempt: usize| {
            let ending = if attempt == 1 { "log".to_owned() } else { format!("{attempt}.log") };
            self.writer.logs_dir().join(format!("{stem}.{ending}"))
        };
        let there = (1..).take_while(|attempt| file(*attempt).exists()).count();
        file(if is_new { there + 1 } else { there.max(1) })
    }
}

impl Database {
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

    /// The benchmark's database on a server that was started; on fresh data it is made.
    async fn on(server: Server, engine: &str, connection_settings: &ConnectionSettings, data: Data) -> Result<Self, DbError> {
        let mut session = server.target(None, connection_settings).endpoint(engine, true).connect_as(CONDUCTOR).await?;
        if data == Data::Fresh {
            session.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
        }
        let folder = server.base.family.folder_of(&mut session, DATABASE, engine).await?;
        session.close().await;
        let endpoint = server.target(Some(DATABASE), connection_settings).endpoint(engine, true);
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
    pub(crate) fn exit_report(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        let status = server.end_of(server.exit_status()?);
        Some(format!("the server ended with {status}; the end of its log:\n{}", server.log_end()))
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

/// A server that did not start says which option it does not like; the reader knows the intent.
fn blamed(config: &Rendered, error: &Error) -> String {
    let error = error.to_string();
    [vec![error.clone()], config.blamed(&error)].concat().join("\n")
}

/// Writes the option file of a variant's server into the run directory `run`.
pub(crate) fn kept_option_file(
    run: &Path,
    variant: &str,
    ending: &str,
    text: &str,
) -> Result<PathBuf, String> {
    let folder = run.join(OPTION_FILES);
    let path = folder.join(format!("{variant}.{ending}"));
    // A server that runs may read its file once more.
    if small_text(&path, text.len() as u64).is_some_and(|there| there == text) {
        return Ok(path);
    }
    let write = || {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        Ok(std::fs::metadata(&path)?.permissions().mode())
    };
    let mode = write()
        .map_err(|error: io::Error| format!("cannot write the option file {}: {error}", path.display()))?;
    if mode & WRITABLE_BY_ALL != 0 {
        let families = FamilyFacts::of_servers().filter(|family| family.distrusts_writable_files);
        let products: Vec<&str> = families.flat_map(FamilyFacts::product_names).collect();
        return Err(format!(
            "the option file {} can be written by all users, and {} ignore such files: use a run directory on a \
             filesystem that keeps permissions (--out)",
            path.display(),
            products.join(" and ")
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_file_is_written_by_its_owner_only_whatever_the_umask_says() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| kept_option_file(folder.path(), "a", "cnf", text).unwrap();
        // As a umask of 0 leaves it.
        std::fs::set_permissions(write("[mysqld]\n"), Permissions::from_mode(0o666)).unwrap();
        let path = write("[mysqld]\nport = 1\n");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o644);
    }
}
