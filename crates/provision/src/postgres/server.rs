//! A PostgreSQL server that dbdyno starts: fresh data, private socket, given CPUs, never as root.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_drivers::postgres::{Options, socket_path};
use nix::sys::signal::Signal;

use super::conf::Conf;
use super::user::Runner;
use super::{data, ready};
use crate::certificates::CertificateFiles;
use crate::home::HomeTls;
use crate::process::Stopped;
use crate::running::{Data, Running, Start, absolute, absolute_itself, absolute_log};
use crate::{Error, Home, PgBase, datadir, launch};

/// Part of the socket's name; without TLS the server listens on no port.
const PORT: u16 = 5432;

/// Where a server with TLS listens, because PostgreSQL has none over unix sockets.
const HOST: &str = "127.0.0.1";

/// Superuser of the data directories that dbdyno makes.
const SUPERUSER: &str = "postgres";

/// What to start, and where.
#[derive(Debug, Clone)]
pub struct PgServerSpec {
    pub base: PgBase,
    /// Settings that are added to those that `initdb` writes; paths and network settings are overridden.
    pub conf: Option<PathBuf>,
    /// Further options of `initdb`, such as `--data-checksums`. A data directory is made for each set of them.
    pub initdb: Vec<String>,
    /// CPUs of all processes of the server; those of the calling thread when `None`.
    pub cpus: Option<Vec<u32>>,
    /// Folder of the data: made, or wiped if it carries dbdyno's mark, else refused.
    pub data_dir: PathBuf,
    /// File for the server's log and output. It is appended to.
    pub log: PathBuf,
    /// Folder that keeps an initialised data directory for each build, to be copied; it may be kept, and shared by processes.
    pub template_dir: PathBuf,
    /// Time from spawning to the first session.
    pub start_timeout: Duration,
    /// Set when the user wants all of it to end: nothing is waited for any more, and the server is killed soon.
    pub cancel: Arc<AtomicBool>,
}

/// A running PostgreSQL server. Dropping the value stops it. What it has in common with other servers is behind its
/// [`Deref`].
#[derive(Debug)]
pub struct PgServer {
    base: PgBase,
    socket: PathBuf,
    /// Of [`HOST`], for connections over TLS.
    tls_port: Option<u16>,
    running: Running,
}

impl PgServer {
    /// Makes fresh data, starts the server and waits until it lets someone in.
    ///
    /// Blocks for seconds. Call it from a thread that lives as long as the server shall, as with [`crate::Server`].
    ///
    /// # Errors
    /// [`Error::DiedAtStart`] and [`Error::NoAnswer`] with the end of the log; [`Error::NoUser`] when this is root and
    /// cannot become another user; [`Error::NotOurs`], [`Error::StillRunning`] for the data directory; those of the
    /// configuration file, initialising and pinning.
    pub fn start(spec: &PgServerSpec) -> Result<Self, Error> {
        Self::start_in(Home::new()?, spec, Data::Fresh)
    }

    /// [`PgServer::start`] in a home of the caller's, on fresh data or on what an earlier start has left.
    ///
    /// # Errors
    /// Those of [`PgServer::start`].
    pub fn start_in(home: Home, spec: &PgServerSpec, on: Data) -> Result<Self, Error> {
        let conf = spec.conf.as_deref().map_or(Ok(Conf::default()), Conf::read)?;
        let tls = home.tls().cloned();
        let tls_port = tls.as_ref().map(|tls| tls.port.number());
        let socket = socket_path(home.path(), tls_port.unwrap_or(PORT));
        let (log, data_dir) = (absolute_log(&spec.log)?, absolute_itself(&spec.data_dir)?);
        let template_dir = absolute(&spec.template_dir)?;
        let program = spec.base.program();
        let runner = Runner::choose(&[&program, &data_dir, &template_dir, home.path()])?;

        match on {
            Data::Fresh => {
                let template =
                    data::template(&spec.base, &spec.initdb, &runner, &template_dir, &spec.cancel)?;
                data::make(&data_dir, &template, &conf, &runner, &spec.cancel)?;
            }
            Data::AsItIs => datadir::check_at_rest(&data_dir, &spec.cancel)?,
        }
        runner.own(home.path())?;

        let mut options = start_options(&data_dir, home.path(), tls_port.unwrap_or(PORT));
        let mut notes = runner.notes();
        if let Some(tls) = &tls {
            options.extend(tls_options(tls, home.path(), &runner)?);
            notes.push(format!(
                "it listens on {HOST} too, for TLS: PostgreSQL has none over unix sockets. Certificates are dbdyno's, made for this run"
            ));
        }
        // A fast shutdown: sessions are ended and a checkpoint is written. On SIGTERM the server would wait for them.
        let line = launch::line(runner.setpriv(), &runner.options(), Signal::SIGINT, &program, &options);
        let start = Start {
            title: spec.base.title(),
            line,
            cpus: spec.cpus.as_deref(),
            home,
            data_dir,
            tmp_dir: None,
            log,
            timeout: spec.start_timeout,
            cancel: Arc::clone(&spec.cancel),
            notes,
        };
        let running = Running::start(start, || ready::lets_in(&socket))?;
        Ok(Self { base: spec.base.clone(), socket, tls_port, running })
    }

    /// The build that runs.
    pub fn base(&self) -> &PgBase {
        &self.base
    }

    /// The unix socket: without TLS the only way in.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// How to log in as the superuser, who has no password: over the socket, or, where the home has certificates, over TCP, TLS and
    /// with the client's certificate, which is to be added ([`Options::with_tls`]).
    pub fn options(&self, database: &str) -> Options {
        let options = match self.tls_port {
            Some(port) => Options::tcp(HOST, port, SUPERUSER),
            None => Options::socket(self.socket.clone(), SUPERUSER),
        };
        options.with_database(database)
    }

    /// The database user that a client's certificate must be for.
    pub const USER: &str = SUPERUSER;

    /// See [`Running::stop`].
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn stop(self) -> Result<Stopped, Error> {
        self.running.stop()
    }

    /// The server without what is PostgreSQL's own.
    pub fn into_running(self) -> Running {
        self.running
    }
}

impl Deref for PgServer {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

/// Settings on the command line win over the file: where the data, the socket and the log are is dbdyno's to say.
fn start_options(data_dir: &Path, run_dir: &Path, port: u16) -> Vec<String> {
    let mut options = vec!["-D".to_owned(), data_dir.display().to_string()];
    let folder = run_dir.display().to_string();
    let port = port.to_string();
    for (name, value) in [
        ("unix_socket_directories", folder.as_str()),
        ("unix_socket_permissions", "0700"),
        ("listen_addresses", ""),
        ("port", port.as_str()),
        ("logging_collector", "off"),
        ("log_destination", "stderr"),
    ] {
        options.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    options
}

/// Over TCP only a client with its certificate is let in, and only over TLS: other users of this machine reach the port too.
fn tls_options(tls: &HomeTls, run_dir: &Path, runner: &Runner) -> Result<Vec<String>, Error> {
    let hba = run_dir.join("tls/pg_hba.conf");
    let text = format!("local all all trust\nhostssl all {SUPERUSER} {HOST}/32 cert\n");
    fs::write(&hba, text).map_err(Error::io("cannot write", hba.clone()))?;
    let CertificateFiles { authority, certificate, key } = &tls.files;
    let folder = run_dir.join("tls");
    for path in [&folder, authority, certificate, key, &hba] {
        runner.own(path)?;
    }
    let mut options = Vec::new();
    for (name, value) in [
        ("listen_addresses", HOST.to_owned()),
        ("ssl", "on".to_owned()),
        ("ssl_ca_file", authority.display().to_string()),
        ("ssl_cert_file", certificate.display().to_string()),
        ("ssl_key_file", key.display().to_string()),
        ("hba_file", hba.display().to_string()),
    ] {
        options.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_on_its_private_socket_only() {
        let options = start_options(Path::new("/d"), Path::new("/t"), PORT).join(" ");
        insta::assert_snapshot!(options, @"-D /d -c unix_socket_directories=/t -c unix_socket_permissions=0700 -c listen_addresses= -c port=5432 -c logging_collector=off -c log_destination=stderr");
    }
}
