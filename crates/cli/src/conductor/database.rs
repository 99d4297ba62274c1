//! The database of one cell, from fresh data to its end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_drivers::{AnySession, Class, DbError, Endpoint, Session, Target, mysql, null, sqlite};
use dbdyno_provision::{Server, ServerSpec, remove_data};

use crate::conductor::variants::{Prepared, Source};

/// Name of the database on servers that dbdyno starts; the original's.
const DATABASE: &str = "ib";
/// MariaDB builds with TLS make a key at start, which has taken up to 20 s.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The greatest value that every server of the family takes for `wait_timeout`: a year.
const LONGEST_IDLE_SECONDS: u32 = 31_536_000;
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
    server: Option<Server>,
    data_dir: Option<PathBuf>,
}

impl Database {
    /// Makes fresh data and starts what has to be started. Blocks for seconds.
    ///
    /// # Errors
    /// One sentence, with the end of the server's log where there is one.
    pub(crate) async fn provide(variant: &Prepared, place: &Place) -> Result<Self, String> {
        match &variant.source {
            Source::Null => Ok(Self {
                endpoint: Endpoint {
                    target: Target::Null(null::Options::default()),
                    capabilities: null::capabilities(),
                },
                owned: true,
                server: None,
                data_dir: None,
            }),
            Source::Sqlite { pragmas } => Self::sqlite(pragmas, place).map_err(|error| error.to_string()),
            Source::External { options, engine } => Ok(Self {
                endpoint: Endpoint {
                    target: Target::Mysql(options.clone()),
                    capabilities: mysql::capabilities(engine, false),
                },
                owned: false,
                server: None,
                data_dir: None,
            }),
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
                Self::with_schema(server, engine).await.map_err(|error| error.to_string())
            }
        }
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
        Ok(Self { endpoint, owned: true, server: None, data_dir: Some(place.data_dir.clone()) })
    }

    async fn with_schema(server: Server, engine: &str) -> Result<Self, DbError> {
        let capabilities = mysql::capabilities(engine, true);
        let without =
            Endpoint { target: Target::Mysql(server.options(None)), capabilities: capabilities.clone() };
        let mut session = without.connect().await?;
        session.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
        session.close().await;
        let data_dir = Some(server.data_dir().to_owned());
        let endpoint = Endpoint { target: Target::Mysql(server.options(Some(DATABASE))), capabilities };
        Ok(Self { endpoint, owned: true, server: Some(server), data_dir })
    }

    /// A session beside the load, for set-up and checks. It has nothing to do while a step runs, which may take longer
    /// than the server would leave it alone.
    pub(crate) async fn connect(&self) -> Result<AnySession, DbError> {
        let mut session = self.endpoint.connect().await?;
        if matches!(self.endpoint.target, Target::Mysql(_)) {
            session.query(format!("SET SESSION wait_timeout = {LONGEST_IDLE_SECONDS}").as_bytes()).await?;
        }
        Ok(session)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid)
    }

    /// Folder whose size and device are sampled.
    pub(crate) fn data_dir(&self) -> Option<PathBuf> {
        self.data_dir.clone()
    }

    /// Folder of the benchmark's own tables.
    pub(crate) fn database_dir(&self) -> Option<PathBuf> {
        let data_dir = self.data_dir.as_deref()?;
        Some(if self.server.is_some() { data_dir.join(DATABASE) } else { data_dir.to_owned() })
    }

    /// Where the server's own counters can be asked for while the load runs. Not of SQLite: a question would take a
    /// lock on the very file that is being measured.
    pub(crate) fn status_endpoint(&self) -> Option<Endpoint> {
        matches!(self.endpoint.target, Target::Mysql(_)).then(|| self.endpoint.clone())
    }

    /// What the record should know about how the server was started.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.server.as_ref().map_or_else(Vec::new, |server| server.notes().to_vec())
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
