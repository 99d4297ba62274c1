//! A real MySQL or MariaDB server in a temporary directory. The server ends when its value is
//! dropped or when the test program ends.

#[path = "../bases/mod.rs"]
pub(crate) mod bases;
#[path = "../ports/mod.rs"]
pub(crate) mod ports;
#[path = "../templates/mod.rs"]
pub(crate) mod templates;
#[path = "../watchers/mod.rs"]
pub(crate) mod watchers;

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dbdyno_db::mysql::{MysqlSession, Options};

use bases::{START_LIMIT, tail};
use templates::fresh;
use watchers::Watcher;

/// A running server. Dropping it kills it and removes its data.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
    pub(crate) port: u16,
    child: Child,
    log: PathBuf,
    _kept_port: OwnedFd,
    _watcher: Watcher,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Initialises and starts the server in the base directory `base`, without TLS.
    #[allow(dead_code, reason = "not all tests that share this file start one without TLS")]
    pub(crate) async fn start(base: &Path) -> Self {
        Self::start_with(base, &["--loose-skip-ssl".to_owned()]).await
    }

    /// Does the same as [`Server::start`] with `options`, so TLS is on unless they turn it off.
    pub(crate) async fn start_with(base: &Path, options: &[String]) -> Self {
        let name = base.file_name().expect("a base directory has a name").to_string_lossy().into_owned();
        let base = if base.join("usr").is_dir() { base.join("usr") } else { base.to_owned() };
        let folder = tempfile::Builder::new().prefix("dbdyno-").tempdir().expect("a temporary directory");
        let data = folder.path().join("data");
        let log = folder.path().join("log");
        fresh(&name, &program(&base), include_str!("server.rs"), &data, |made| {
            initialise(&name, &base, made, &made.with_file_name("log"));
        });
        let socket = folder.path().join("sock");
        let (port, kept_port) = ports::kept();
        let child = command(&base, &data)
            .args(common_options(&base, &data))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--log-error={}", log.display()))
            .arg(format!("--pid-file={}", folder.path().join("pid").display()))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--max-allowed-packet=64M"])
            .args(["--loose-mysqlx=OFF", "--local-infile=ON"])
            .args(options)
            .stdout(Stdio::null())
            // This file gets the messages that the server prints before it has opened its log.
            .stderr(File::create(log.with_extension("first")).expect("a file for its first words"))
            .spawn()
            .expect("the server program starts");
        let watcher = Watcher::of(&child, "KILL", folder.path());
        let mut server = Self {
            name,
            socket,
            port,
            child,
            log,
            _kept_port: kept_port,
            _watcher: watcher,
            _folder: folder,
        };
        server.await_greeting().await;
        server
    }

    /// The login as `root`, who has no password, over the unix socket.
    pub(crate) fn root(&self) -> Options {
        Options::socket(&self.socket, "root")
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

    async fn await_greeting(&mut self) {
        let begin = Instant::now();
        while let Err(error) = MysqlSession::connect(&self.root()).await {
            let ended = self.child.try_wait().expect("the server's state can be asked");
            if ended.is_some() || begin.elapsed() > START_LIMIT {
                let said = [tail(&self.log.with_extension("first")), tail(&self.log)].join("\n");
                panic!("{} did not start ({ended:?}, {error}); its log:\n{said}", self.name);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server program, which has one of two names.
fn program(base: &Path) -> PathBuf {
    ["bin/mariadbd", "sbin/mariadbd", "bin/mysqld", "sbin/mysqld"]
        .iter()
        .map(|name| base.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!("no server program in {}; fetch it again with `cargo xtask servers`", base.display())
        })
}

/// The test's own folder. It is also the folder for temporary files, because a server that starts
/// would remove other servers' temporary files from a shared folder.
fn folder_of(data: &Path) -> &Path {
    data.parent().expect("the data directory lies in the test's folder")
}

fn command(base: &Path, data: &Path) -> Command {
    let mut command = Command::new(program(base));
    // Some base directories contain libaio or protobuf, in a library folder or at the top.
    if !base.ends_with("usr") {
        let paths =
            [base.to_owned(), base.join("lib"), base.join("libs")].map(|path| path.display().to_string());
        command.env("LD_LIBRARY_PATH", paths.join(":"));
    }
    command.current_dir(folder_of(data)).env("TMPDIR", folder_of(data));
    command
}

/// Options for both initialisation and operation. Buffers are small, and native AIO is off because
/// a machine has only a limited number of AIO contexts.
fn common_options(base: &Path, data: &Path) -> Vec<String> {
    let mut options = vec![
        "--no-defaults".to_owned(),
        format!("--basedir={}", base.display()),
        format!("--datadir={}", data.display()),
        "--user=root".to_owned(),
        "--loose-innodb-use-native-aio=0".to_owned(),
        "--loose-innodb-flush-log-at-trx-commit=0".to_owned(),
        "--loose-innodb-buffer-pool-size=64M".to_owned(),
        "--loose-performance-schema=OFF".to_owned(),
    ];
    if base.join("lib/mysql/plugin").is_dir() {
        options.push(format!("--plugin-dir={}/lib/mysql/plugin", base.display()));
        options.push(format!("--lc-messages-dir={}/share/mysql", base.display()));
        options.push(format!("--character-sets-dir={}/share/mysql/charsets", base.display()));
    }
    if base.parent().is_some_and(|above| {
        above.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mysql-"))
    }) {
        options.push("--secure-file-priv=NULL".to_owned());
    }
    options
}

/// Makes the data directory, in which `root` has no password.
fn initialise(name: &str, base: &Path, data: &Path, log: &Path) {
    let installer = [
        "scripts/mariadb-install-db",
        "bin/mariadb-install-db",
        "scripts/mysql_install_db",
        "bin/mysql_install_db",
    ]
    .iter()
    .map(|script| base.join(script))
    .find(|path| path.is_file() && name.starts_with("mariadb"));
    let output = File::create(log).expect("a log file");
    let mut command = match installer {
        Some(script) => {
            let mut installer = Command::new(script);
            installer.env("TMPDIR", folder_of(data));
            installer.args(["--no-defaults", "--user=root", "--force", "--skip-name-resolve"]);
            installer
                .arg(format!("--basedir={}", base.display()))
                .arg(format!("--datadir={}", data.display()));
            if !name.starts_with("mariadb-10.1.") && !name.starts_with("mariadb-10.2.") {
                installer.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
            }
            installer
        }
        None => {
            let mut server = command(base, data);
            server.args(common_options(base, data));
            let old = name.starts_with("mysql-5.5.") || name.starts_with("mysql-5.6.");
            let bootstrap = old && base.join("share/mysql_system_tables.sql").is_file();
            server.arg(if bootstrap { "--bootstrap" } else { "--initialize-insecure" });
            if bootstrap {
                std::fs::create_dir_all(data.join("mysql")).expect("a data directory");
                server.stdin(bootstrap_sql(base, data));
            }
            server
        }
    };
    let errors = output.try_clone().expect("the log file twice");
    let status = command.stdout(output).stderr(errors).status().expect("the installer starts");
    assert!(status.success(), "{name} could not be initialised ({status}):\n{}", tail(log));
}

/// A file with the SQL that makes the system tables of MySQL 5.5 and 5.6, opened for reading.
fn bootstrap_sql(base: &Path, data: &Path) -> File {
    let path = data.with_file_name("bootstrap.sql");
    let mut file = File::create(&path).expect("a file for the bootstrap");
    writeln!(file, "use mysql;").expect("room for the bootstrap");
    for part in ["mysql_system_tables.sql", "mysql_system_tables_data.sql"] {
        let sql = std::fs::read(base.join("share").join(part)).expect("the server's own bootstrap SQL");
        file.write_all(&sql).expect("room for the bootstrap");
    }
    File::open(path).expect("the file just written")
}
