//! Errors in the servers folder. Each message names the object and says what to try.

use std::path::PathBuf;

/// An error in this crate. No message ever contains a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error with the server itself: its base directory, its start or its files.
    #[error(transparent)]
    Server(#[from] dbdyno_db::server::Error),

    #[error("no server {name} in {folder}; {help}", folder = .folder.display())]
    NotInFolder { name: String, folder: PathBuf, help: String },

    #[error("no server {name} in the catalogue; {help}")]
    NotInCatalogue { name: String, help: String },

    /// The user's own catalogue is wrong.
    #[error("{path}:{line}: {why}", path = .path.display())]
    Catalogue { path: PathBuf, line: usize, why: String },

    #[error("{path} was changed or damaged ({why}); remove the file, and dbdyno probes the server again", path = .path.display())]
    ServerEntry { path: PathBuf, why: String },

    #[error("cannot add {name}: {why}")]
    NameTaken { name: String, why: String },

    #[error("{name} stays: {why}")]
    NotRemovable { name: String, why: String },

    #[error(
        "cannot get {name}: the SHA-256 of what was downloaded is {found}, and should be {wanted}; \
         the file was damaged or replaced during the download, so it was removed"
    )]
    Checksum { name: String, wanted: String, found: String },

    #[error(
        "cannot get {name}: Debian {suite} has {now} by now, and a suite keeps one version only; {instead}\
         to get this version, unpack packages that you have kept and add their folder with `dbdyno servers add`"
    )]
    Moved { name: String, suite: String, now: String, instead: String },

    #[error("{name} is not what its entry says: it answers as {answered}, and should be {wanted}")]
    OtherVersion { name: String, wanted: String, answered: String },

    /// The server's program does not run, or the server fails at its first start.
    #[error("{name} does not run on this machine, so it was removed: {source}")]
    DoesNotRun { name: String, source: Box<dbdyno_db::server::Error> },

    #[error("{what}: `{command}` {status}\n{output}")]
    Tool { what: String, command: String, status: String, output: String },

    #[error("{what} needs packages that are not installed; as root: apt-get install {packages}")]
    MissingTools { what: String, packages: String },

    #[error("cannot get {name}: {why}")]
    Unfetchable { name: String, why: String },

    #[error("cannot use the repository {path}: {why}", path = .path.display())]
    Repository { path: PathBuf, why: String },

    #[error("cannot build {what}: {why}")]
    Unbuildable { what: String, why: String },

    #[error("{what}: stopped")]
    Cancelled { what: String },
}

impl Error {
    /// For `map_err`: makes an I/O error that says what was done to which path.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let io = dbdyno_db::server::Error::io(what, path);
        move |source| Self::Server(io(source))
    }
}
