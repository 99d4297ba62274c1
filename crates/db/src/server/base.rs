//! Server builds, and the servers folder that contains them. A build is a set of unpacked or
//! installed programs of one product and version, and its [`Abilities`] say what its server can do.
//! Each database product must provide the functions of [`Family`], so that dbdyno can start its
//! servers or use their addresses.

use std::env;
use std::path::{Path, PathBuf};

use dbdyno_model::TlsSettings;
use dbdyno_products::{FamilyFacts, Product, Release};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::product::Product as _;
use crate::products::each_family;
use crate::server::address::Ownership;
use crate::server::running::Data;
use crate::server::{Error, OwnConfig, RuntimeDir, Server, ServerSpec};
use crate::{
    AnySession, ConnectionSettings, DatabaseAddress, DatabaseServer, DbError, Description, Family,
    LoginOptions,
};

/// An unpacked or installed server build.
#[derive(Debug, Clone)]
pub struct Base {
    pub family: Family,
    /// The folder that was opened, absolute.
    pub path: PathBuf,
    /// The folder or its `usr`, which holds the programs and libraries.
    pub prefix: PathBuf,
    pub program: PathBuf,
    pub product: &'static Product,
    /// The version as the program prints it. It may end in words from its builder:
    /// `10.11.19-MariaDB-0+deb12u1`, `19rc1`.
    pub version: String,
    pub release: Release,
    /// Product and version for people: `MariaDB 10.11.19`, `PostgreSQL 15.19`.
    pub title: String,
    /// Folder with loadable plugins. Builds that have only built-in plugins have none.
    pub plugin_dir: Option<PathBuf>,
    /// The program that makes a data directory. Some servers need none, and some packages leave it
    /// out.
    pub(crate) installer: Option<PathBuf>,
    /// Folder with error messages, character sets and SQL scripts, for servers that get it as an
    /// option.
    pub(crate) share_dir: Option<PathBuf>,
}

impl Base {
    /// Finds the server program in `path` and reads its version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if let Ok(absolute) = path.canonicalize() {
            for family in Family::with_servers() {
                if let Some(base) = family.open(&absolute)? {
                    return Ok(base);
                }
            }
        }
        let looked_for: Vec<String> = Family::with_servers().map(Family::expected_programs).collect();
        Err(Error::NoServer { path: path.to_path_buf(), looked_for: looked_for.join(", ") })
    }

    /// Whether `path` contains a server. This runs no program.
    pub fn is_in(path: &Path) -> bool {
        Self::program_in(path).is_some()
    }

    /// Whether `plugin` (a file name) is among the plugins that can be loaded.
    pub fn has_plugin(&self, plugin: &str) -> bool {
        self.plugin_dir.as_ref().is_some_and(|folder| folder.join(plugin).is_file())
    }

    /// Finds the server program in `path` without running it.
    pub fn program_in(path: &Path) -> Option<PathBuf> {
        Family::with_servers().find_map(|family| family.program_in(path))
    }
}

/// The sources from which a product reads a running server's abilities.
pub struct ServerProbe<'a> {
    pub session: &'a mut AnySession,
    pub base: &'a Base,
    pub description: &'a Description,
    /// The server's log so far.
    pub log: &'a str,
}

/// Abilities read from the running server. Lists keep the server's own order unless a field says
/// otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// Storage engines that tables can use, sorted. For PostgreSQL these are table access methods.
    /// dbdyno loads the MyRocks plugin for this query where the build has it.
    pub engines: Vec<String>,
    /// The engine for tables that name none, with its own version where it has one: `XtraDB
    /// 5.6.35-80.0`, `heap`.
    pub default_engine: String,
    pub thread_pool: ThreadPool,
    /// Password checks that the server supports, sorted: authentication plugins, or PostgreSQL's
    /// `password_encryption` values.
    pub logins: Vec<String>,
    /// The login that a new user gets when `CREATE USER` names none.
    pub default_login: String,
    pub tls: TlsAbility,
    /// Asynchronous I/O methods, the active one first: `io_uring`, `libaio`, or PostgreSQL's
    /// `io_method` values. The list is empty if the server has none or uses none on this machine.
    pub aio: Vec<String>,
    /// Whether PostgreSQL can compile queries (JIT).
    pub jit: bool,
    /// Support for vectors: `type` (MySQL 9), `index` (MariaDB 11.7 and later), `pgvector 0.8.0`.
    pub vector: Option<String>,
}

/// Whether sessions can share threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadPool {
    /// Sessions cannot share threads, or the server has one process for each session.
    #[default]
    None,
    /// The pool is part of the server: MariaDB, Percona Server.
    BuiltIn,
    /// The pool is a plugin that must be loaded at start, as in some MySQL builds.
    Plugin,
}

/// The server's support for encrypted connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsAbility {
    /// The server was built without TLS.
    #[default]
    None,
    /// The server needs a certificate from outside.
    WithCertificate,
    /// The server makes its own certificate, so TLS is on unless it is switched off.
    OwnCertificate,
}

/// A login from one of the user's option files.
#[derive(Default)]
pub struct FileLogin {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl Family {
    /// Families whose servers dbdyno can start or reach by an address. Base directories are
    /// searched and tables are written in this order.
    pub fn with_servers() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|family| !family.facts().schemes.is_empty())
    }

    /// The family with these facts. For [`FamilyFacts::UNKNOWN`] it is the null family, which needs
    /// no server.
    pub fn of(facts: &FamilyFacts) -> Self {
        Self::with_servers().find(|family| std::ptr::eq(family.facts(), facts)).unwrap_or(Self::Null)
    }

    /// Name in records, lists and forms of query plans.
    pub fn name(self) -> &'static str {
        each_family!(self, P => P::NAME)
    }

    /// Description in the list of drivers.
    pub fn about(self) -> &'static str {
        each_family!(self, P => P::ABOUT)
    }

    pub fn facts(self) -> &'static FamilyFacts {
        each_family!(self, P => P::FACTS)
    }

    /// The connection settings in a checked variant's `options`. This reads the files that the
    /// options name.
    pub fn connection_settings(self, options: &Map<String, Value>) -> Result<ConnectionSettings, String> {
        each_family!(self, P => P::connection_settings(options))
    }

    /// The settings for [`Family::open_file`] in a checked variant's `options`.
    pub fn own_settings(self, options: &Map<String, Value>) -> Vec<(String, String)> {
        each_family!(self, P => P::own_settings(options))
    }

    pub(crate) fn login_of_file(self, path: &Path, options: &LoginOptions) -> Result<FileLogin, Error> {
        each_family!(self, P => P::login_of_file(path, options))
    }

    pub(crate) fn tls_of_file(self, path: &Path) -> Result<Option<TlsSettings>, Error> {
        each_family!(self, P => P::tls_of_file(path))
    }

    pub fn address(self, login: LoginOptions) -> DatabaseAddress {
        each_family!(self, P => P::address(login))
    }

    /// Makes sure that dbdyno may make and drop tables in `database`, on the server that `options`
    /// names. The database in `options` does not matter. This never drops the database. The caller
    /// should not drop the database either, and should drop only the tables that its workload
    /// names.
    pub async fn take_ownership(self, options: &LoginOptions, database: &str) -> Result<Ownership, Error> {
        each_family!(self, P => P::take_ownership(options, database).await)
    }

    pub(crate) fn expected_programs(self) -> String {
        each_family!(self, P => P::expected_programs())
    }

    pub(crate) fn program_in(self, path: &Path) -> Option<PathBuf> {
        each_family!(self, P => P::program_in(path))
    }

    pub(crate) fn open(self, path: &Path) -> Result<Option<Base>, Error> {
        each_family!(self, P => P::open(path))
    }

    /// The storage engines that a build has without plugins. `None` means that the product has no
    /// choice of engines.
    pub fn built_in_engines(self, base: &Base) -> Option<&'static [&'static str]> {
        each_family!(self, P => P::built_in_engines(base))
    }

    /// The plugin file that provides an engine that a build may lack.
    pub fn engine_plugin(self, engine: &str) -> String {
        each_family!(self, P => P::engine_plugin(engine))
    }

    /// Whether `found`, in the server's spelling, is the engine that was requested as `asked`.
    pub fn is_engine(self, asked: &str, found: &str) -> bool {
        each_family!(self, P => P::is_engine(asked, found))
    }

    /// Reads the user's option file at `path` as a `base` server does. It refuses settings that
    /// cannot apply in dbdyno's data directories.
    pub(crate) fn own_config(self, base: &Base, path: &Path) -> Result<OwnConfig, Error> {
        each_family!(self, P => P::own_config(base, path))
    }

    /// Does the same as [`Server::start`] in the caller's runtime directory, on fresh data or on
    /// the data of an earlier start.
    pub fn start(self, runtime_dir: RuntimeDir, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        each_family!(self, P => P::start(runtime_dir, spec, data))
    }

    /// Opens the database in a folder, and first makes a new one if it should be fresh. The
    /// settings apply to each connection.
    pub fn open_file(
        self,
        folder: &Path,
        settings: &[(String, String)],
        is_fresh: bool,
    ) -> Result<DatabaseServer, DbError> {
        each_family!(self, P => P::open_file(folder, settings, is_fresh))
    }

    /// Folder in the data directory that holds the `database` tables with this `engine`. The result
    /// is `None` when the server does not say.
    pub async fn folder_of(
        self,
        session: &mut AnySession,
        database: &str,
        engine: &str,
    ) -> Result<Option<PathBuf>, DbError> {
        each_family!(self, P => P::folder_of(session, database, engine).await)
    }

    pub async fn abilities(self, probe: ServerProbe<'_>) -> Result<Abilities, DbError> {
        each_family!(self, P => P::abilities(probe).await)
    }

    /// The folder where a build has its own client programs, and the names of such programs.
    pub fn clients(self, base: &Base) -> (PathBuf, &'static [&'static str]) {
        each_family!(self, P => P::clients(base))
    }

    /// Arguments with which a client that printed `version` connects to `socket`.
    pub fn client_arguments(self, socket: &Path, version: &str) -> Vec<String> {
        each_family!(self, P => P::client_arguments(socket, version))
    }

    /// The folder or file by which an address names `socket`.
    pub fn socket_in_address(self, socket: &Path) -> &Path {
        each_family!(self, P => P::socket_in_address(socket))
    }
}

/// The folder with base directories: `$DBDYNO_SERVERS`, otherwise `$XDG_CACHE_HOME/dbdyno/servers`,
/// otherwise `~/.cache/dbdyno/servers`.
pub fn servers_dir() -> PathBuf {
    servers_dir_of(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn servers_dir_of(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    if let Some(folder) = variable("DBDYNO_SERVERS") {
        return folder;
    }
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| {
        let home = variable("HOME").unwrap_or_else(|| PathBuf::from("/root"));
        home.join(".cache")
    });
    cache.join("dbdyno/servers")
}

/// Names of the folders in `servers_dir` that hold a server program, sorted. This runs no program.
pub fn list(servers_dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(servers_dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with(['.', '_']) && !name.contains(".partial"))
        .filter(|name| Base::is_in(&servers_dir.join(name)))
        .collect();
    names.sort();
    names
}

/// Opens the base directory `name` in [`servers_dir`].
pub fn find_named(name: &str) -> Result<Base, Error> {
    find_in(&servers_dir(), name)
}

fn find_in(folder: &Path, name: &str) -> Result<Base, Error> {
    let path = folder.join(name);
    let plain = !name.is_empty() && !name.contains('/') && name != ".." && name != ".";
    if plain && path.is_dir() {
        return Base::open(path);
    }
    let names = list(folder);
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Error::NotInFolder { name: name.to_owned(), folder: folder.to_path_buf(), there })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_folder_without_a_server_lists_the_expected_programs() {
        let folder = tempfile::tempdir().unwrap();
        let message = Base::open(folder.path()).unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(message, @"FOLDER contains no server that dbdyno supports: looked for bin/mysqld, bin/mariadbd, sbin/mysqld, sbin/mariadbd, usr/sbin/mysqld, usr/sbin/mariadbd, libexec/mysqld, libexec/mariadbd, bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres; give the folder that the server was unpacked or installed into");
    }

    #[test]
    fn the_variable_takes_precedence_over_the_cache_folder_and_home() {
        let all = |name: &str| Some(PathBuf::from(format!("/{name}")));
        assert_eq!(servers_dir_of(all), Path::new("/DBDYNO_SERVERS"));
        let no_own = |name: &str| all(name).filter(|_| name != "DBDYNO_SERVERS");
        assert_eq!(servers_dir_of(no_own), Path::new("/XDG_CACHE_HOME/dbdyno/servers"));
        let home_only = |name: &str| all(name).filter(|_| name == "HOME");
        assert_eq!(servers_dir_of(home_only), Path::new("/HOME/.cache/dbdyno/servers"));
    }

    #[test]
    fn an_unknown_name_lists_the_servers_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mysql-8.0.31", "mariadb-10.1.23", "half.partial", "_dl"] {
            std::fs::create_dir_all(folder.path().join(name).join("bin")).unwrap();
            std::fs::write(folder.path().join(name).join("bin/mysqld"), "").unwrap();
        }
        let message = find_in(folder.path(), "mysql-8.0.99").unwrap_err().to_string();
        let message = message.replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(message, @"no server mysql-8.0.99 in FOLDER (there: mariadb-10.1.23, mysql-8.0.31)");
    }

    #[test]
    fn a_name_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../bin", "..", "", "/usr"] {
            assert!(matches!(find_in(folder.path(), name), Err(Error::NotInFolder { .. })), "{name}");
        }
    }
}
