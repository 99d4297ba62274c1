//! Starts and ends the database of a cell. The database is a server that dbdyno starts, an embedded
//! database in this process, or a server that others run. The first two get fresh data, a copy of
//! a snapshot, or the data that are already in the data directory.
//!
//! A cell's database may stop while the next cell's database starts, if the machine has room for
//! both. The templates and snapshots that a run has kept for its cells are removed at its end.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dbdyno_db::server::intents::Rendered;
use dbdyno_db::server::{
    Cgroup, Data, Error, Running, RuntimeDir, Server, ServerSpec, Snapshot, prepare_data, remove_data,
};
use dbdyno_db::{
    AnySession, ConnectionSettings, DatabaseAddress, DatabaseServer, DbError, DeviceGauge, Family, Session,
    null,
};
use dbdyno_model::NoLimit;
use dbdyno_plan::Plan;
use dbdyno_products::FamilyFacts;
use dbdyno_record::{CellEvent, CellId, small_text};
use dbdyno_sample::device_of;

use crate::conductor::reset::{SNAPSHOTS, TEMPLATES};
use crate::conductor::{Conductor, OpenCell, Stop};
use crate::exit::{BoxedError, ExitError};
use crate::host::HostFiles;
use crate::plan::prepare::{PreparedVariant, ServerSource};
use crate::{terminal, time};

/// Name of the database on servers that dbdyno starts. It is the name in the original Insert
/// Benchmark.
const DATABASE: &str = "ib";
/// Connection class under which the record lists the encryption of the session for set-up and
/// checks.
const CONDUCTOR: &str = "conductor";
/// Message for a start that the user interrupted.
const STOPPED: &str = "interrupted by the user while the server was started";
/// Folder in the run directory that keeps the option files of the run's servers. All cells
/// therefore have the same configuration, even when the user's own file changes during the run.
const OPTION_FILES: &str = "configs";
/// Permission bit that lets all users write to a file.
const WRITABLE_BY_ALL: u32 = 0o002;

/// A database that runs, and how to connect to it.
pub(crate) struct Database {
    pub(crate) database_server: DatabaseServer,
    /// Whether dbdyno may change global settings and drop binary logs.
    pub(crate) owned: bool,
    pub(crate) server: Option<Running>,
    /// The process of a server that others run on this machine.
    found_pid: Option<u32>,
    /// The data directory, whose size and device are sampled.
    pub(crate) data_dir: Option<PathBuf>,
    /// Folder of the benchmark's own tables. For MyRocks it is the engine's folder.
    pub(crate) database_dir: Option<PathBuf>,
    /// Notes on the configuration, from [`PreparedVariant::notes`].
    config_notes: Vec<String>,
}

/// Returns the folder of a run's data directories. It is in the run directory unless the plan names
/// another folder, so that the user chooses the filesystem, which affects the results.
pub(crate) fn data_root(plan: &Plan, run_dir: &Path) -> PathBuf {
    let name = run_dir.file_name().unwrap_or_default();
    let root = plan.host.data_dir.as_ref().map_or_else(|| run_dir.join("data"), |folder| folder.join(name));
    std::path::absolute(&root).unwrap_or(root)
}

/// Returns the folder of a cell's data.
pub(super) fn data_dir(data_root: &Path, id: &CellId) -> PathBuf {
    data_root.join(format!("{}-{}-{}", id.block, id.variant, id.workload))
}

impl Conductor<'_> {
    /// Starts the database of a cell, on a copy of the snapshot where there is one, otherwise on
    /// fresh data.
    pub(super) fn start(
        &mut self,
        cell: &mut OpenCell<'_>,
        snapshot: Option<&Snapshot>,
    ) -> Result<Database, Stop> {
        self.progress.busy(if snapshot.is_some() { "restoring data" } else { "starting on fresh data" });
        let started = self.start_once(cell, snapshot);
        let has_waited = self.has_waited_for_stop()?;
        // The start may have failed because the last cell's server still took the machine's memory.
        let tries_again = started.is_err() && has_waited && !self.cancelled();
        if tries_again { self.start_once(cell, snapshot) } else { started }
    }

    /// Starts the database once, and removes what a failed start leaves.
    fn start_once(&mut self, cell: &mut OpenCell<'_>, snapshot: Option<&Snapshot>) -> Result<Database, Stop> {
        let started = self.start_on_data(cell, snapshot);
        if started.is_err() && !self.plan.host.keep_data {
            let left = match remove_data(&self.data_dir(cell.id)) {
                // This folder is not dbdyno's, so it stays. The cell's failure already names it.
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

    /// Waits for `start`, unless the user stops the run before that.
    pub(super) fn started<T>(&self, start: impl Future<Output = Result<T, BoxedError>>) -> Result<T, Stop> {
        self.unless_cancelled(start).unwrap_or_else(|| Err(STOPPED.into())).map_err(Stop::failed)
    }

    /// Provides the database of `variant`. A server is started in `runtime_dir` or in a new one, on
    /// fresh data or on the data in `data_dir`. The call blocks its thread for seconds.
    pub(super) async fn database(
        &self,
        variant: &PreparedVariant,
        data_dir: PathBuf,
        log: PathBuf,
        runtime_dir: Option<RuntimeDir>,
        data: Data,
    ) -> Result<Database, BoxedError> {
        let mut database = match &variant.source {
            ServerSource::Null => {
                Database::new(DatabaseAddress::Null(null::Options::default()).database_server("", true), true)
            }
            ServerSource::Embedded(settings) => {
                let is_fresh = data == Data::Fresh;
                if is_fresh {
                    prepare_data(&data_dir, &self.cancel)?;
                }
                let database_server = Family::EMBEDDED.open_file(&data_dir, settings, is_fresh)?;
                let folder = Some(data_dir);
                Database {
                    data_dir: folder.clone(),
                    database_dir: folder,
                    ..Database::new(database_server, true)
                }
            }
            ServerSource::Address(database_server) => {
                let found_pid = process_of(database_server).await?;
                Database { found_pid, ..Database::new((**database_server).clone(), false) }
            }
            ServerSource::Started { base, config, certificates } => {
                let spec = ServerSpec {
                    base: (**base).clone(),
                    config: self.with_kept_file(&variant.info.name, config)?,
                    cpus: self.server_cpus.clone(),
                    data_dir,
                    log,
                    template_dir: self.template_dir.clone(),
                    start_timeout: self.plan.host.start_timeout.0,
                    cancel: Arc::clone(&self.cancel),
                };
                let runtime_dir = runtime_dir.map_or_else(RuntimeDir::new, Ok);
                let runtime_dir = runtime_dir.and_then(|runtime_dir| {
                    certificates.iter().try_fold(runtime_dir, RuntimeDir::with_certificates)
                });
                let server = runtime_dir.and_then(|runtime_dir| base.family.start(runtime_dir, &spec, data));
                let server = server.map_err(|error| with_causes(config, &error))?;
                Database::on(server, &config.engine, &variant.connection_settings, data).await?
            }
        };
        database.config_notes.clone_from(&variant.notes);
        database.database_server.commit_each_statement().await?;
        Ok(database)
    }

    /// Makes a runtime directory for the cell's server with the memory limit of its variant. The
    /// result is `None` without a limit. Where the limit cannot be set and the plan allows that,
    /// the record gets a warning.
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

    /// Returns the configuration of a variant, with its option file kept in the run directory.
    fn with_kept_file(&self, variant: &str, config: &Rendered) -> Result<Rendered, String> {
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

    /// Returns the path of a new log, or of the last one. New logs get numbers, because a cell that
    /// runs again must not overwrite its earlier log.
    pub(super) fn log_file(&self, id: &CellId, is_new: bool) -> PathBuf {
        let stem = format!("{}-{}-{}", id.block, id.variant, id.workload);
        let file = |attempt: usize| {
            let ending = if attempt == 1 { "log".to_owned() } else { format!("{attempt}.log") };
            self.writer.logs_dir().join(format!("{stem}.{ending}"))
        };
        let existing = (1..).take_while(|attempt| file(*attempt).exists()).count();
        file(if is_new { existing + 1 } else { existing.max(1) })
    }
}

impl Database {
    fn new(database_server: DatabaseServer, owned: bool) -> Self {
        Self {
            database_server,
            owned,
            server: None,
            found_pid: None,
            data_dir: None,
            database_dir: None,
            config_notes: Vec::new(),
        }
    }

    /// Connects to the benchmark's database on a started server. On fresh data it creates the
    /// database.
    async fn on(
        server: Server,
        engine: &str,
        connection_settings: &ConnectionSettings,
        data: Data,
    ) -> Result<Self, DbError> {
        let mut session = server
            .address(None, connection_settings)
            .database_server(engine, true)
            .connect_as(CONDUCTOR)
            .await?;
        if data == Data::Fresh {
            session.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
        }
        let folder = server.base.family.folder_of(&mut session, DATABASE, engine).await?;
        session.close().await;
        let database_server =
            server.address(Some(DATABASE), connection_settings).database_server(engine, true);
        Ok(Self {
            data_dir: Some(server.data_dir.clone()),
            database_dir: folder.map(|folder| server.data_dir.join(folder)),
            server: Some(server.into_running()),
            ..Self::new(database_server, true)
        })
    }

    /// Opens a session for set-up and checks, which stays open while the load runs.
    pub(crate) async fn connect(&self) -> Result<AnySession, DbError> {
        let mut session = self.connect_to_probe().await?;
        session.lift_own_limits().await?;
        Ok(session)
    }

    /// Opens a session like [`Self::connect`], but keeps the settings that the server gives to all
    /// sessions, so that they can be read. The session is idle while a step runs, so the server's
    /// idle timeout is lifted.
    pub(crate) async fn connect_to_probe(&self) -> Result<AnySession, DbError> {
        let mut session = self.database_server.connect_as(CONDUCTOR).await?;
        session.stay_while_idle().await?;
        Ok(session)
    }

    /// Returns the server's first process, if dbdyno has found it on this machine.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Running::pid).or(self.found_pid)
    }

    /// Returns a gauge of the traffic of the device under the data directory, which settling reads.
    pub(crate) fn device_gauge(&self) -> Option<DeviceGauge> {
        let device = device_of(self.data_dir.as_deref()?)?;
        Some(DeviceGauge::new(move || device.traffic()))
    }

    /// Returns where to query the server's own counters while the load runs. The result is `None`
    /// for SQLite, because a query would lock the file that is being measured.
    pub(crate) fn status_server(&self) -> Option<DatabaseServer> {
        self.database_server.address.login().map(|_| self.database_server.clone())
    }

    /// Returns notes on the server's start for the record.
    pub(crate) fn notes(&self) -> Vec<String> {
        let found = self.found_pid.map(|pid| {
            format!("the server is process {pid} of this machine, found through its socket; its CPU, memory and IO are charged to it")
        });
        let of_server = self.server.iter().flat_map(|server| &server.notes);
        found.into_iter().chain(of_server.chain(&self.config_notes).cloned()).collect()
    }

    /// Returns how the server ended, with the last lines of its log, if it has ended.
    pub(crate) fn exit_report(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        let status = server.describe_exit(server.exit_status()?);
        Some(format!("the server ended with {status}; the end of its log:\n{}", server.log_end()))
    }

    /// Returns the errors in the log of a server that dbdyno runs. Such a server may wait for space
    /// on its disk, which looks like a slow server.
    pub(crate) fn complaints(&self) -> Option<String> {
        let errors = self.server.as_ref()?.logged_errors()?;
        Some(format!("last errors in the server's log:\n{errors}"))
    }

    /// Whether dbdyno can restart the database and replace its data. It can for a server that it
    /// starts and for an embedded database.
    pub(crate) fn can_turn(&self) -> bool {
        self.owned && self.data_dir.is_some()
    }

    /// Returns the CPUs that the server's first process may run on, as the kernel reports them.
    pub(crate) fn effective_cpus(&self) -> Option<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(cpus.trim().to_owned())
    }

    /// Returns the control group that limits the server's memory, if it has one.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.server.as_ref().and_then(Running::cgroup)
    }
}

/// Returns the process at the socket of a server that others run, if that process has the data. A
/// proxy does not have them.
async fn process_of(database_server: &DatabaseServer) -> Result<Option<u32>, DbError> {
    if database_server.address.login().is_none() || !database_server.capabilities.is_at_its_socket() {
        return Ok(None);
    }
    let session = database_server.connect_as(CONDUCTOR).await?;
    let pid = session.server_pid();
    session.close().await;
    Ok(pid)
}

/// Adds the plan's intent that has set the option to the error of a server that did not start. The
/// server names only the option, but the user has written the intent.
fn with_causes(config: &Rendered, error: &Error) -> String {
    let error = error.to_string();
    [vec![error.clone()], config.causes(&error)].concat().join("\n")
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
    // A running server may read its file once more, so an equal file stays.
    if small_text(&path, text.len() as u64).is_some_and(|existing| existing == text) {
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

/// A server that is being stopped, and the cell that it ran for.
pub(crate) struct Stopping {
    cell: CellId,
    /// The thread that stops the server. It returns warnings about the shutdown.
    thread: JoinHandle<Vec<String>>,
}

impl Conductor<'_> {
    /// Stops the cell's server and removes its data. Where the machine has room for both servers,
    /// the next cell begins meanwhile.
    pub(super) fn give_back(
        &mut self,
        cell: &mut OpenCell<'_>,
        next: Option<&CellId>,
        database: Database,
    ) -> Result<(), ExitError> {
        if database.can_turn() && self.overlaps(next) {
            self.begin_to_stop(cell.id, database);
            return Ok(());
        }
        self.progress.busy("stopping");
        self.warn(&mut cell.writer, self.end_of(database))
    }

    /// Whether the server of a cell may stop while that of `next` starts on fresh data.
    fn overlaps(&self, next: Option<&CellId>) -> bool {
        let Some(next) = next else { return false };
        // A copy of a snapshot needs the space of the data that are removed now.
        let is_fresh = self.snapshot(next).is_none();
        is_fresh
            && self.plan.host.rest.0.is_zero()
            && !self.cancelled()
            && is_half_of_memory_free(&HostFiles::here())
    }

    /// Ends a database, which takes a while, and returns warnings about its shutdown.
    pub(super) fn end_of(&self, database: Database) -> Vec<String> {
        database.end(self.plan.host.keep_data, self.plan.host.stop_timeout.0, &self.cancel)
    }

    /// Does the work of [`Conductor::end_of`] in a thread, without waiting for it.
    fn begin_to_stop(&mut self, cell: &CellId, database: Database) {
        let (keep_data, limit) = (self.plan.host.keep_data, self.plan.host.stop_timeout.0);
        let cancel = Arc::clone(&self.cancel);
        let thread = std::thread::spawn(move || database.end(keep_data, limit, &cancel));
        self.stopping = Some(Stopping { cell: cell.clone(), thread });
    }

    /// Waits for the server that is being stopped. It returns whether there was one.
    pub(crate) fn has_waited_for_stop(&mut self) -> Result<bool, ExitError> {
        let Some(Stopping { cell, thread }) = self.stopping.take() else { return Ok(false) };
        let odd = thread.join().unwrap_or_else(|_| vec!["the server may not have stopped".into()]);
        self.warn_of_run(odd.into_iter().map(|text| format!("{cell}: {text}")))?;
        Ok(true)
    }
}

impl Database {
    /// Stops the server cleanly and returns its runtime directory, in which it can be started
    /// again. Its address stays as it is. The result is `None` where dbdyno runs no server. All
    /// sessions must be closed.
    pub(crate) fn halt(&mut self, limit: Duration) -> Result<Option<RuntimeDir>, String> {
        let halted = self.server.take().map(|server| server.stop_for_restart(limit)).transpose();
        halted.map(|halted| halted.map(|(_, runtime_dir)| runtime_dir)).map_err(|error| error.to_string())
    }

    /// Stops the server that was started and removes the data, unless they are to be kept. It
    /// returns warnings about the shutdown and about data that could not be removed. Once the user
    /// has stopped the run (`cancel`), a killed server is not a fault and is not reported.
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

/// Whether half of the memory is free. A second server like the running one then has room.
fn is_half_of_memory_free(files: &HostFiles) -> bool {
    let free = files.meminfo("MemAvailable").zip(files.meminfo("MemTotal"));
    free.is_some_and(|(free, total)| free >= total / 2)
}

/// Fails if a folder that a run makes for its data is a symbolic link. Folders that the user names
/// may be links.
pub(crate) fn refuse_links(data_root: &Path) -> Result<(), ExitError> {
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink());
    let own = [data_root.to_owned(), data_root.join(TEMPLATES), data_root.join(SNAPSHOTS)];
    let Some(link) = own.iter().find(|path| is_link(path)) else { return Ok(()) };
    let advice = "remove the link, or name the folder that it leads to with host.data_dir";
    let what =
        format!("{} is a symbolic link, and a run does not follow it for its data; {advice}", link.display());
    Err(ExitError::machine(what))
}

/// Removes the templates and snapshots that a run has kept next to its cells' data, except a folder
/// of templates that the user names. It warns of files that are left.
pub(crate) fn remove_data_root(data_root: &Path, templates: Option<&Path>) {
    if let Err(ExitError { message: Some(message), .. }) = refuse_links(data_root) {
        return terminal::warning(&message);
    }
    let own = [TEMPLATES, SNAPSHOTS].map(|name| data_root.join(name));
    for folder in own.iter().filter(|folder| Some(folder.as_path()) != templates) {
        let _ = std::fs::remove_dir_all(folder);
    }
    match std::fs::remove_dir(data_root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            terminal::warning(&format!("data are left in {}: {error}; remove them", data_root.display()));
        }
        _ => {}
    }
}

/// Removes the data directories of cells that have ended. A process that was killed between a
/// cell's end and the removal has left one.
pub(crate) fn remove_data_of<'a>(ended: impl Iterator<Item = &'a CellId>, data_root: &Path) {
    if let Err(ExitError { message: Some(message), .. }) = refuse_links(data_root) {
        return terminal::warning(&message);
    }
    for cell in ended {
        if let Err(error) = remove_data(&data_dir(data_root, cell)) {
            terminal::warning(&error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{self, machine};

    #[test]
    fn only_its_owner_can_write_an_option_file_whatever_the_umask_is() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| kept_option_file(folder.path(), "a", "cnf", text).unwrap();
        // A umask of 0 leaves these permissions.
        std::fs::set_permissions(write("[mysqld]\n"), Permissions::from_mode(0o666)).unwrap();
        let path = write("[mysqld]\nport = 1\n");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn two_servers_run_at_once_only_where_half_of_the_memory_is_free() {
        let is_free = |free: u64| {
            let text = format!("MemTotal: 100 kB\nMemAvailable: {free} kB\n");
            let (_folder, files) = machine(&[("/proc/meminfo", &text)]);
            is_half_of_memory_free(&files)
        };
        assert!(is_free(50) && !is_free(49));
        assert!(!is_half_of_memory_free(&machine(&[]).1));
    }

    #[test]
    fn templates_of_the_run_are_removed_and_those_that_the_user_names_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data_root, kept) = (folder.path().join("data"), folder.path().join("kept/below"));
        let kept = host::kept_templates(Some(&kept)).expect("it can be made").expect("it is named");
        let own = data_root.join(TEMPLATES);
        std::fs::create_dir_all(&own).expect("a folder");
        remove_data_root(&data_root, Some(&own));
        assert!(own.exists(), "it is named");
        remove_data_root(&data_root, Some(&kept));
        assert!(!data_root.exists() && kept.exists());
    }
}
