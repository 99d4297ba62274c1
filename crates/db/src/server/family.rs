//! What each database product must provide, so that dbdyno can start its servers or use their
//! addresses.

use std::path::{Path, PathBuf};

use dbdyno_model::TlsSettings;
use dbdyno_products::FamilyFacts;
use serde_json::{Map, Value};

use crate::product::Product;
use crate::products::each_family;
use crate::server::abilities::{Abilities, ServerProbe};
use crate::server::ownership::Ownership;
use crate::server::running::Data;
use crate::server::{Base, Error, OwnConfig, RuntimeDir, Server, ServerSpec};
use crate::{AnySession, ConnectionSettings, DatabaseAddress, DatabaseServer, DbError, Family, LoginOptions};

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

    /// The family with these facts. For [`FamilyFacts::UNKNOWN`] it is the null family, which
    /// answers by itself.
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

    /// How sessions talk to their server, as a checked variant's `options` say. Reads the files
    /// that these name.
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
    /// names. The database in `options` does not matter. This never drops the database, and the
    /// caller should not either: the caller drops only the tables that its workload names.
    pub async fn take_ownership(self, options: &LoginOptions, database: &str) -> Result<Ownership, Error> {
        each_family!(self, P => P::take_ownership(options, database).await)
    }

    pub(crate) fn looked_for(self) -> String {
        each_family!(self, P => P::looked_for())
    }

    pub(crate) fn program_in(self, path: &Path) -> Option<PathBuf> {
        each_family!(self, P => P::program_in(path))
    }

    pub(crate) fn open(self, path: &Path) -> Result<Option<Base>, Error> {
        each_family!(self, P => P::open(path))
    }

    /// The storage engines that a build has without plugins. `None` means that there is no choice.
    pub fn built_in_engines(self, base: &Base) -> Option<&'static [&'static str]> {
        each_family!(self, P => P::built_in_engines(base))
    }

    /// The plugin file that provides an engine which a build may lack.
    pub fn engine_plugin(self, engine: &str) -> String {
        each_family!(self, P => P::engine_plugin(engine))
    }

    /// Whether `found`, in the server's spelling, is the engine that was requested as `asked`.
    pub fn is_engine(self, asked: &str, found: &str) -> bool {
        each_family!(self, P => P::is_engine(asked, found))
    }

    /// Reads the user's option file at `path` as a `base` server does. Refuses settings that cannot
    /// apply in dbdyno's data directories.
    pub(crate) fn own_config(self, base: &Base, path: &Path) -> Result<OwnConfig, Error> {
        each_family!(self, P => P::own_config(base, path))
    }

    /// [`Server::start`] in the caller's runtime directory, on fresh data or on what an earlier
    /// start has left.
    pub fn start(self, runtime_dir: RuntimeDir, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        each_family!(self, P => P::start(runtime_dir, spec, data))
    }

    /// Opens the database in a folder, and makes it there if it should be fresh. Each connection
    /// gets the settings.
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

    /// Names of client programs, and the folder where a build has its own.
    pub fn clients(self, base: &Base) -> (PathBuf, &'static [&'static str]) {
        each_family!(self, P => P::clients(base))
    }

    /// Arguments with which a client that printed `version` connects to `socket`.
    pub fn client_arguments(self, socket: &Path, version: &str) -> Vec<String> {
        each_family!(self, P => P::client_arguments(socket, version))
    }

    /// The folder or file that stands for `socket` in an address.
    pub fn socket_in_address(self, socket: &Path) -> &Path {
        each_family!(self, P => P::socket_in_address(socket))
    }
}
