//! Server errors. Each message names the object and says what to try.

use std::path::PathBuf;
use std::time::Duration;

use crate::DbError;

/// An error in starting, using or stopping a server. No message ever contains a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{path} contains no server that dbdyno supports: looked for {looked_for}; \
         give the folder that the server was unpacked or installed into", path = .path.display()
    )]
    NoServer { path: PathBuf, looked_for: String },

    #[error("{program} --version failed: {why}", program = .program.display())]
    Version { program: PathBuf, why: String },

    #[error("no server {name} in {folder} (there: {there})", folder = .folder.display())]
    NotInFolder { name: String, folder: PathBuf, there: String },

    #[error("option file {path}: {why}", path = .path.display())]
    OptionFile { path: PathBuf, why: String },

    /// Intents that do not exist or that the server cannot fulfil, with one line for each.
    #[error("{why}")]
    Config { why: String },

    #[error("config file {path}: {why}", path = .path.display())]
    ConfigFile { path: PathBuf, why: String },

    #[error(
        "{base} has no installer: looked for {looked_for}; \
         use a base directory that was not stripped of its share folder", base = .base.display()
    )]
    NoInstaller { base: PathBuf, looked_for: String },

    #[error(
        "engine {engine} needs the plugin {plugin}, which is not in {base}; \
         use a build that has it ({packaged})", base = .base.display()
    )]
    NoPlugin { engine: String, plugin: String, base: PathBuf, packaged: &'static str },

    #[error("initialising a data directory for {server} failed: {why}\n{log_tail}")]
    Initialise { server: String, why: String, log_tail: String },

    #[error(
        "{path} exists and is not a data directory that dbdyno made (no file {marker} in it): it is left as it is; \
         name another folder or remove this one yourself", path = .path.display()
    )]
    NotOurs { path: PathBuf, marker: &'static str },

    #[error("process {pid} still runs on the data directory {path}; stop it first", path = .path.display())]
    StillRunning { pid: u32, path: PathBuf },

    #[error("socket path {path} is longer than 107 bytes; set TMPDIR to a shorter folder", path = .path.display())]
    SocketTooLong { path: PathBuf },

    #[error(
        "cannot make certificates for the server: {why}; leave tls out, or give the server certificates of its own"
    )]
    Certificates { why: String },

    #[error(
        "cannot limit the memory of a server: {why}; run as root or on a machine where you may make control groups, or leave server_memory out"
    )]
    Cgroup { why: String },

    #[error("the snapshot {path} has changed since it was taken: {what}; start a new run", path = .path.display())]
    Snapshot { path: PathBuf, what: String },

    #[error("{product} does not run as root, and this machine {why}")]
    NoUser { product: &'static str, why: String },

    #[error("cannot run the server on CPUs {cpus}: {why}; this machine lets dbdyno use {usable}")]
    Pin { cpus: String, why: String, usable: String },

    #[error("{server} died at start ({status}); the end of its log {log}:\n{log_tail}", log = .log.display())]
    DiedAtStart { server: String, status: String, log: PathBuf, log_tail: String },

    #[error(
        "{server} did not answer on its socket within {} and was stopped; \
         the end of its log {log}:\n{log_tail}", seconds(.limit), log = .log.display()
    )]
    NoAnswer { server: String, limit: Duration, log: PathBuf, log_tail: String },

    #[error("credentials: {why}")]
    Credentials { why: String },

    #[error("{name:?} cannot be a database's name: {why}")]
    DatabaseName { name: String, why: &'static str },

    #[error(
        "database {name} belongs to the server itself; name one that does not exist, and dbdyno makes it"
    )]
    SystemDatabase { name: String },

    #[error(
        "database {database} exists and is not marked as dbdyno's, so it is left alone; name one that does not exist, \
         or hand it over with: {statement}"
    )]
    DatabaseNotOurs { database: String, statement: String },

    #[error(
        "this server has only the database {database}, which contains tables and is not marked as \
         dbdyno's, so it is left alone; hand it over with: {statement}"
    )]
    OnlyDatabaseNotOurs { database: String, statement: String },

    #[error("{what}: {source}; make it yourself and hand it over with: {statement}")]
    CannotMakeDatabase { what: String, source: DbError, statement: String },

    #[error("{what}: {source}")]
    Database { what: String, source: DbError },

    #[error("{what}: stopped")]
    Cancelled { what: String },

    #[error(
        "{server} did not end within {} and was killed, so that its data would need recovery; give it longer \
         (host.stop_timeout)", seconds(.limit)
    )]
    Killed { server: String, limit: Duration },

    #[error("{server} did not stop cleanly ({stopped}); the end of its log {log}:\n{log_tail}", log = .log.display())]
    NotAtRest { server: String, stopped: String, log: PathBuf, log_tail: String },

    #[error("{what} {path}: {source}", path = .path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
}

/// Formats a limit as `2 s`, `0.05 s`.
fn seconds(limit: &Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

impl Error {
    /// For `map_err`: makes an I/O error that says what was done to which path.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
