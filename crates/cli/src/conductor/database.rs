//! The database of one cell, from fresh data to its end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_drivers::{
    AnySession, Class, DbError, DeviceGauge, Endpoint, Session, Target, Tls, first_i64, mysql, null,
    postgres, sqlite,
};
use dbdyno_provision::{PgServer, PgServerSpec, Running, Server, ServerSpec, local_pid, remove_data};
use dbdyno_sample::device_of;

use crate::conductor::variants::{Prepared, Source};

/// Name of the database on servers that dbdyno starts; the original's.
const DATABASE: &str = "ib";
/// MariaDB builds with TLS make a key at start, which has taken up to 20 s.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The greatest value that every server of the family takes for `wait_timeout`: a year.
const LONGEST_IDLE_SECONDS: u32 = 31_536_000;
/// The same for PostgreSQL, where 0 is for ever; the setting came with 14.
const NEVER_IDLE_TOO_LONG: &str =
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";
/// Class of the session beside the load, under which its encryption is recorded.
const CONDUCTOR: &str = "conductor";
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a cell's files go.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Folder of this cell's data.
    pub(crate) data_dir: PathBuf,
    pub(crate) template_dir: PathBuf,
    /// The server's log, kept in the run.
    pub(crate) log: PathBuf,
    pub(crate) server_cpus: Option<Vec<u32>>,
}

/// A database that is ready for its workload.
pub(crate) struct Database {
    pub(crate) endpoint: Endpoint,
    /// dbdyno may change global settings and drop binary logs.
    pub(crate) owned: bool,
    server: Option<Running>,
    /// The process of a server that somebody else runs on this machine.
    found_pid: Option<u32>,
    data_dir: Option<PathBuf>,
    /// Folder of the benchmark's own tables.
    database_dir: Option<PathBuf>,
}

impl Database {
    /// Makes fresh data and starts what has to be started. Blocks for seconds.
    ///
    /// # Errors
    /// One sentence, with the end of the server's log where there is one.
    pub(crate) async fn provide(variant: &Prepared, place: &Place) -> Result<Self, String> {
        match &variant.source {
            Source::Null => {
                let target = Target::Null(null::Options::default());
                Ok(Self::in_process(Endpoint { target, capabilities: null::capabilities() }, None))
            }
            Source::Sqlite { pragmas } => Self::sqlite(pragmas, place).map_err(|error| error.to_string()),
            Source::External { options, engine } => {
                let target = Target::Mysql(options.clone());
                let capabilities = mysql::capabilities(engine, false);
                Ok(Self::elsewhere(Endpoint { target, capabilities }, local_pid(&options.address)))
            }
            Source::ExternalPostgres { options } => {
                let target = Target::Postgres(options.clone());
                let capabilities = postgres::capabilities();
                Ok(Self::elsewhere(Endpoint { target, capabilities }, local_pid(&options.address)))
            }
            Source::Owned { base, my_cnf, engine } => {
                let spec = ServerSpec {
                    base: (**base).clone(),
                    my_cnf: my_cnf.clone(),
                    cpus: place.server_cpus.clone(),
                    data_dir: place.data_dir.clone(),
                    log: place.log.clone(),
                    template_dir: place.template_dir.clone(),
                    start_timeout: START_TIMEOUT,
                    engine: engine.clone(),
                };
                let server = Server::start(&spec).map_err(|error| error.to_string())?;
                Self::with_schema(server, engine, variant.tls.as_ref())
                    .await
                    .map_err(|error| error.to_string())
            }
            Source::OwnedPostgres { base, conf } => {
                let spec = PgServerSpec {
                    base: (**base).clone(),
                    conf: conf.clone(),
                    cpus: place.server_cpus.clone(),
                    data_dir: place.data_dir.clone(),
                    log: place.log.clone(),
                    template_dir: place.template_dir.clone(),
                    start_timeout: START_TIMEOUT,
                };
                let server = PgServer::start(&spec).map_err(|error| error.to_string())?;
                Self::with_postgres_database(server).await.map_err(|error| error.to_string())
            }
        }
    }

    /// On a server that somebody else runs.
    fn elsewhere(endpoint: Endpoint, found_pid: Option<u32>) -> Self {
        Self { endpoint, owned: false, server: None, found_pid, data_dir: None, database_dir: None }
    }

    /// Without a server; its files, if it has any, lie in `folder`.
    fn in_process(endpoint: Endpoint, folder: Option<PathBuf>) -> Self {
        let (data_dir, database_dir) = (folder.clone(), folder);
        Self { endpoint, owned: true, server: None, found_pid: None, data_dir, database_dir }
    }

    fn sqlite(pragmas: &[(String, String)], place: &Place) -> Result<Self, DbError> {
        std::fs::create_dir_all(&place.data_dir).map_err(|error| {
            let message = format!("cannot make folder {}: {error}", place.data_dir.display());
            DbError::new(Class::Fatal, "io", message)
        })?;
        let options = sqlite::Options {
            path: place.data_dir.join("ib.db"),
            pragmas: pragmas.to_vec(),
            busy_timeout: BUSY_TIMEOUT,
        };
        sqlite::wipe(&options.path)?;
        sqlite::create_marked(&options)?;
        let endpoint = Endpoint { target: Target::Sqlite(options), capabilities: sqlite::capabilities() };
        Ok(Self::in_process(endpoint, Some(place.data_dir.clone())))
    }

    async fn with_schema(server: Server, engine: &str, tls: Option<&Tls>) -> Result<Self, DbError> {
        let capabilities = mysql::capabilities(engine, true);
        let target = |database| Target::Mysql(server.options(database).with_tls(tls.cloned()));
        let without = Endpoint { target: target(None), capabilities: capabilities.clone() };
        let mut session = without.connect_as(CONDUCTOR).await?;
        session.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
        session.close().await;
        let endpoint = Endpoint { target: target(Some(DATABASE)), capabilities };
        let database_dir = server.data_dir().join(DATABASE);
        Ok(Self::with_server(endpoint, server.into_running(), Some(database_dir)))
    }

    async fn with_postgres_database(server: PgServer) -> Result<Self, DbError> {
        const MAINTENANCE: &str = "postgres";
        let capabilities = postgres::capabilities();
        let target = Target::Postgres(server.options(MAINTENANCE));
        let mut session = Endpoint { target, capabilities: capabilities.clone() }.connect().await?;
        session.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
        let oid = format!("SELECT oid FROM pg_database WHERE datname = '{DATABASE}'");
        let oid = first_i64(&session.rows(&oid).await?);
        session.close().await;
        let endpoint = Endpoint { target: Target::Postgres(server.options(DATABASE)), capabilities };
        let database_dir = oid.map(|oid| server.data_dir().join(format!("base/{oid}")));
        Ok(Self::with_server(endpoint, server.into_running(), database_dir))
    }

    fn with_server(endpoint: Endpoint, server: Running, database_dir: Option<PathBuf>) -> Self {
        let data_dir = Some(server.data_dir().to_owned());
        Self { endpoint, owned: true, server: Some(server), found_pid: None, data_dir, database_dir }
    }

    /// A session beside the load, for set-up and checks. It has nothing to do while a step runs, which may take longer
    /// than the server would leave it alone.
    pub(crate) async fn connect(&self) -> Result<AnySession, DbError> {
        let mut session = self.endpoint.connect_as(CONDUCTOR).await?;
        match self.endpoint.target {
            Target::Mysql(_) => {
                let sql = format!("SET SESSION wait_timeout = {LONGEST_IDLE_SECONDS}");
                session.query(sql.as_bytes()).await?;
            }
            Target::Postgres(_) => {
                session.query(NEVER_IDLE_TOO_LONG.as_bytes()).await?;
            }
            Target::Sqlite(_) | Target::Null(_) => {}
        }
        Ok(session)
    }

    /// The server's first process, if it runs on this machine as far as can be seen.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Running::pid).or(self.found_pid)
    }

    /// The server is that process and its children.
    pub(crate) fn is_process_tree(&self) -> bool {
        matches!(self.endpoint.target, Target::Postgres(_))
    }

    /// Folder whose size and device are sampled.
    pub(crate) fn data_dir(&self) -> Option<PathBuf> {
        self.data_dir.clone()
    }

    /// The traffic of the device under the data directory, for settling.
    pub(crate) fn device_gauge(&self) -> Option<DeviceGauge> {
        let device = device_of(self.data_dir.as_deref()?)?;
        Some(DeviceGauge::new(move || device.traffic()))
    }

    /// Folder of the benchmark's own tables.
    pub(crate) fn database_dir(&self) -> Option<PathBuf> {
        self.database_dir.clone()
    }

    /// Where the server's own counters can be asked for while the load runs. Not of SQLite: a question would take a
    /// lock on the very file that is being measured.
    pub(crate) fn status_endpoint(&self) -> Option<Endpoint> {
        let has_server = matches!(self.endpoint.target, Target::Mysql(_) | Target::Postgres(_));
        has_server.then(|| self.endpoint.clone())
    }

    /// What the record should know about how the server was started.
    pub(crate) fn notes(&self) -> Vec<String> {
        let found = self.found_pid.map(|pid| {
            format!("the server is process {pid} of this machine, found through its socket; its CPU, memory and IO are charged to it")
        });
        let of_server = self.server.iter().flat_map(|server| server.notes());
        found.into_iter().chain(of_server.cloned()).collect()
    }

    /// If the server is gone: how it ended, with the end of its log.
    pub(crate) fn obituary(&self) -> Option<String> {
        const LINES: usize = 15;
        let server = self.server.as_ref()?;
        let status = server.exit_status()?;
        Some(format!("the server ended with {status}; the end of its log:\n{}", server.log_tail(LINES)))
    }

    /// Stops what was started and removes the data, unless it is to be kept. What is odd about the end is returned.
    pub(crate) fn end(self, keep_data: bool) -> Option<String> {
        let mut warning = None;
        if let Some(server) = self.server {
            match server.stop() {
                Ok(stopped) if stopped.killed => {
                    warning = Some("the server had to be killed: it did not stop in time".to_owned())
                }
                Ok(_) => {}
                Err(error) => warning = Some(error.to_string()),
            }
        }
        if let (Some(data_dir), false) = (&self.data_dir, keep_data) {
            let removed = match &self.endpoint.target {
                Target::Sqlite(options) => remove_sqlite(options, data_dir),
                _ => remove_data(data_dir).map_err(|error| error.to_string()),
            };
            warning = removed.err().or(warning);
        }
        warning
    }
}

/// Only dbdyno's own files go: the folder must be empty without them.
fn remove_sqlite(options: &sqlite::Options, folder: &Path) -> Result<(), String> {
    sqlite::wipe(&options.path).map_err(|error| error.to_string())?;
    std::fs::remove_dir(folder).map_err(|error| format!("cannot remove folder {}: {error}", folder.display()))
}
