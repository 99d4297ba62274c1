//! What can go wrong with servers, in sentences that name the thing and what to try.

use std::path::PathBuf;
use std::time::Duration;

use dbdyno_drivers::DbError;

/// An error of this crate. No message ever holds a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder that was said to be a base directory holds no server program.
    #[error(
        "{path} holds no server that dbdyno knows: looked for {looked_for}; \
         give the folder that the server was unpacked or installed into", path = .path.display()
    )]
    NoServer { path: PathBuf, looked_for: String },

    /// The server program is there but does not report its version.
    #[error("{program} --version failed: {why}", program = .program.display())]
    Version { program: PathBuf, why: String },

    /// No server of that name in the servers folder.
    #[error("no server {name} in {folder} (there: {there})", folder = .folder.display())]
    NotInFolder { name: String, folder: PathBuf, there: String },

    /// An option file that cannot be read or understood.
    #[error("option file {path}: {why}", path = .path.display())]
    OptionFile { path: PathBuf, why: String },

    /// Intents that a config cannot ask for, or that a server cannot do: a line each.
    #[error("{why}")]
    Config { why: String },

    /// A config file that cannot be read or understood.
    #[error("config file {path}: {why}", path = .path.display())]
    ConfigFile { path: PathBuf, why: String },

    /// The base directory has no way to make a data directory.
    #[error(
        "{base} has no installer: looked for {looked_for}; \
         use a base directory that was not stripped of its share folder", base = .base.display()
    )]
    NoInstaller { base: PathBuf, looked_for: String },

    #[error(
        "engine {engine} needs the plugin {plugin}, which is not in {base}; \
         use a build that has it (MariaDB of Debian: package mariadb-plugin-rocksdb)", base = .base.display()
    )]
    NoPlugin { engine: String, plugin: String, base: PathBuf },

    /// Making a data directory failed.
    #[error("initialising a data directory for {server} failed: {why}\n{log_tail}")]
    Initialise { server: String, why: String, log_tail: String },

    /// A data directory that dbdyno did not make.
    #[error(
        "{path} exists and is not a data directory that dbdyno made (no file {mark} in it): it is left as it is; \
         name another folder or remove this one yourself", path = .path.display()
    )]
    NotOurs { path: PathBuf, mark: &'static str },

    /// Another server still runs on the data directory.
    #[error("process {pid} still runs on the data directory {path}; stop it first", path = .path.display())]
    StillRunning { pid: u32, path: PathBuf },

    /// A unix socket path is limited to 107 bytes by the kernel.
    #[error("socket path {path} is longer than 107 bytes; set TMPDIR to a shorter folder", path = .path.display())]
    SocketTooLong { path: PathBuf },

    /// Certificates for a server that dbdyno starts.
    #[error(
        "cannot make certificates for the server: {why}; leave tls out, or give the server certificates of its own"
    )]
    Certificates { why: String },

    #[error(
        "cannot limit the memory of a server: {why}; run as root, or where control groups may be made, or leave server_memory \
         out"
    )]
    Cgroup { why: String },

    /// A snapshot is not what it was when it was taken.
    #[error("the snapshot {path} has changed since it was taken: {what}; start a new run", path = .path.display())]
    Snapshot { path: PathBuf, what: String },

    /// PostgreSQL does not run as root.
    #[error("PostgreSQL does not run as root, and this machine {why}")]
    NoUser { why: String },

    /// The CPUs asked for cannot be used.
    #[error("cannot run the server on CPUs {cpus}: {why}; this machine lets dbdyno use {usable}")]
    Pin { cpus: String, why: String, usable: String },

    /// The server ended before it answered.
    #[error("{server} died at start ({status}); the end of its log {log}:\n{log_tail}", log = .log.display())]
    DiedAtStart { server: String, status: String, log: PathBuf, log_tail: String },

    /// The server runs but does not answer.
    #[error(
        "{server} did not answer on its socket within {} and was stopped; \
         the end of its log {log}:\n{log_tail}", seconds(.limit), log = .log.display()
    )]
    NoAnswer { server: String, limit: Duration, log: PathBuf, log_tail: String },

    /// An address that is not understood. The text of the address is not repeated: it may hold a
    /// password.
    #[error(
        "server address: {why}; write mysql://user@host:port/database or postgres://user@host:port/database"
    )]
    Address { why: String },

    /// No way to log in.
    #[error("credentials: {why}")]
    Credentials { why: String },

    /// A database name that cannot be one.
    #[error("{name:?} cannot be a database's name: {why}")]
    DatabaseName { name: String, why: &'static str },

    /// A database that servers have for themselves.
    #[error(
        "database {name} belongs to the server itself; name one that does not exist, and dbdyno makes it"
    )]
    SystemDatabase { name: String },

    /// A database that exists and does not carry dbdyno's mark.
    #[error(
        "database {database} exists and is not marked as dbdyno's, so it is left alone; name one that does not exist, \
         or hand it over with: {statement}"
    )]
    DatabaseNotOurs { database: String, statement: String },

    /// The server said no.
    #[error("{what}: {source}")]
    Database { what: String, source: DbError },

    /// Stopped by the user.
    #[error("{what}: stopped")]
    Cancelled { what: String },

    /// A server that should have come to rest had to be killed.
    #[error(
        "{server} did not end within {} and was killed, so that its data would need recovery; give it longer \
         (host.stop_timeout)", seconds(.limit)
    )]
    Killed { server: String, limit: Duration },

    /// A server that should have come to rest ended in another way.
    #[error("{server} did not stop cleanly ({stopped}); the end of its log {log}:\n{log_tail}", log = .log.display())]
    NotAtRest { server: String, stopped: String, log: PathBuf, log_tail: String },

    /// A file or folder.
    #[error("{what} {path}: {source}", path = .path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
}

/// `2 s`, `0.05 s`.
fn seconds(limit: &Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

impl Error {
    /// For `map_err`: an I/O error that says what was done to which path.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
