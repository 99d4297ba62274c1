//! A real PostgreSQL server in a temporary directory. The server ends when its value is dropped or
//! when the test program ends.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dbdyno_db::postgres::{Options, PostgresSession, socket_path};

use crate::mysql_server::bases::{START_LIMIT, tail};
use crate::mysql_server::ports;
use crate::mysql_server::templates::fresh;
use crate::mysql_server::watchers::Watcher;

/// Time limit for the server's end when its value is dropped.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// PostgreSQL refuses to run as root, so tests that run as root start it as this user. The user may
/// read every file that root may read, because the servers folder is often in root's home
/// directory.
const AS_OTHER_USER: &[&str] = &[
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
    "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
    "--securebits=+no_setuid_fixup",
];

/// The permitted logins. Each authentication method has its own user.
const HBA: &str = "\
local all postgres trust
local all clear password
local all,replication all scram-sha-256
host all clear 127.0.0.1/32 password
host all old 127.0.0.1/32 md5
host all all 127.0.0.1/32 scram-sha-256
";

/// The same for servers before 10, which do not support SCRAM.
const HBA_WITHOUT_SCRAM: &str = "\
local all postgres trust
local all clear password
local all all md5
host all clear 127.0.0.1/32 password
host all all 127.0.0.1/32 md5
";

/// A running server. Dropping it kills it and removes its data.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) port: u16,
    child: Child,
    _kept_port: OwnedFd,
    _watcher: Watcher,
    folder: tempfile::TempDir,
}

impl Server {
    /// Initialises and starts the server in the base directory `base`.
    pub(crate) async fn start(base: &Path) -> Self {
        Self::start_with(base, &[]).await
    }

    /// Does the same as [`Server::start`] with `settings`, each as `name=value`.
    pub(crate) async fn start_with(base: &Path, settings: &[String]) -> Self {
        let name = base.file_name().expect("a base directory has a name").to_string_lossy().into_owned();
        let programs = programs(base);
        let folder = tempfile::Builder::new().prefix("dbdyno-").tempdir().expect("a temporary directory");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).expect("a folder for all");
        let data = folder.path().join("data");
        let log = folder.path().join("log");
        fresh(&name, &programs.join("postgres"), include_str!("server.rs"), &data, |made| {
            let log = made.with_file_name("log");
            let mut initdb = command(&programs.join("initdb"), &log);
            initdb.arg("-D").arg(made).args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
                "-N",
            ]);
            run(&mut initdb, &log);
        });
        let has_scram = !name.starts_with("pg-9.");
        std::fs::write(data.join("pg_hba.conf"), if has_scram { HBA } else { HBA_WITHOUT_SCRAM })
            .expect("the server's own list of logins can be replaced");
        let (port, kept_port) = ports::kept();
        let child = command(&programs.join("postgres"), &log)
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .args(["-c", "deadlock_timeout=50ms", "-c", "shared_buffers=32MB", "-c", "max_connections=30"])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .spawn()
            .expect("the server program starts");
        // SIGQUIT requests an immediate shutdown.
        let watcher = Watcher::of(&child, "QUIT", folder.path());
        let mut server = Self { name, port, child, _kept_port: kept_port, _watcher: watcher, folder };
        server.await_login(&log).await;
        server
    }

    /// The login as the superuser, who has no password, over the unix socket.
    pub(crate) fn root(&self) -> Options {
        self.socket("postgres").with_database("postgres")
    }

    /// The login as `user` over the unix socket.
    pub(crate) fn socket(&self, user: &str) -> Options {
        Options::socket(socket_path(self.folder.path(), self.port), user)
    }

    /// The login as `user` over TCP.
    pub(crate) fn tcp(&self, user: &str) -> Options {
        Options::tcp("127.0.0.1", self.port, user)
    }

    /// Kills the server as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
    }

    async fn await_login(&mut self, log: &Path) {
        let begin = Instant::now();
        while let Err(error) = PostgresSession::connect(&self.root()).await {
            let ended = self.child.try_wait().expect("the server's state can be asked");
            if ended.is_some() || begin.elapsed() > START_LIMIT {
                panic!("{} did not start ({ended:?}, {error}); its log:\n{}", self.name, tail(log));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // An immediate shutdown also ends the server's other processes and removes its shared
        // memory. SIGKILL would do neither.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let begin = Instant::now();
        while begin.elapsed() < STOP_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder with `initdb` and `postgres`.
fn programs(base: &Path) -> PathBuf {
    let of_debian = base.join("usr/lib/postgresql");
    let versions = std::fs::read_dir(of_debian).into_iter().flatten().flatten();
    std::iter::once(base.join("bin"))
        .chain(versions.map(|entry| entry.path().join("bin")))
        .find(|folder| folder.join("postgres").is_file())
        .unwrap_or_else(|| {
            panic!("no server program in {}; fetch it again with `cargo xtask servers`", base.display())
        })
}

/// A command that runs as a user that PostgreSQL accepts, and appends its output to `log`.
fn command(program: &Path, log: &Path) -> Command {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let output = File::options().create(true).append(true).open(log).expect("a log file");
    let mut command = if is_root {
        let mut other_user = Command::new("setpriv");
        other_user.args(AS_OTHER_USER).arg("--").arg(program);
        other_user
    } else {
        Command::new(program)
    };
    command.current_dir("/").stdin(Stdio::null());
    command.stdout(output.try_clone().expect("the log file twice")).stderr(output);
    command
}

fn run(command: &mut Command, log: &Path) {
    let status = command.status().expect("the installer starts");
    assert!(status.success(), "{command:?} failed ({status}):\n{}", tail(log));
}
