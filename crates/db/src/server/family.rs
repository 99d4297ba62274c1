//! What a product is to those who start its servers or are given their addresses, in words and
//! numbers, and what is asked of it.

use std::path::{Path, PathBuf};

use dbdyno_model::TlsSettings;

use crate::product::Product;
use crate::products::each_family;
use crate::server::abilities::{Abilities, Question};
use crate::server::claim::Claim;
use crate::server::release::ConfigProduct;
use crate::server::running::Data;
use crate::server::{Base, Error, Home, Server, ServerSpec};
use crate::{AnySession, DbError, Endpoint, Family, Options, Target};

/// A TLS option of an address or an option file.
#[derive(Debug, Clone, Copy)]
pub enum TlsOption {
    Mode,
    Ca,
    Cert,
    Key,
}

/// A login that a file of the user holds.
#[derive(Default)]
pub struct FileLogin {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// What is said of a family in a word or a number.
#[derive(Debug)]
pub struct FamilyFacts {
    /// In the order of tables.
    pub products: &'static [ConfigProduct],
    /// The options of its products, as TOML.
    pub options: &'static str,
    /// How addresses begin: `mysql://`.
    pub schemes: &'static [&'static str],
    pub default_port: u16,
    /// How the name of a socket begins, of servers whose port ends it. An address may then name the
    /// folder.
    pub socket_prefix: Option<&'static str>,
    /// Its own names of TLS options in addresses.
    pub tls_options: &'static [(&'static str, TlsOption)],
    /// Where a user is named, if not in the address.
    pub other_place_of_user: &'static str,
    /// The key of a plan that names the server's own option file, and the ending of such files.
    pub option_file: (&'static str, &'static str),
    /// The superuser of the servers that dbdyno starts, who has no password.
    pub superuser: &'static str,
    /// The database that a superuser's session is in before there is another one.
    pub first_database: Option<&'static str>,
    /// A server that dbdyno starts takes no certificates but those that dbdyno makes.
    pub only_own_certificates: bool,
    /// A started server has TLS over TCP only.
    pub has_no_tls_on_sockets: bool,
    /// The option with the connections that are kept for superusers, and its default.
    pub reserved_connections: Option<(&'static str, u64)>,
}

impl FamilyFacts {
    /// Of a database that has no servers: nothing.
    pub(crate) const WITHOUT_SERVERS: Self = Self {
        products: &[],
        options: "",
        schemes: &[],
        default_port: 0,
        socket_prefix: None,
        tls_options: &[],
        other_place_of_user: "",
        option_file: ("", ""),
        superuser: "",
        first_database: None,
        only_own_certificates: false,
        has_no_tls_on_sockets: false,
        reserved_connections: None,
    };
}

impl Family {
    /// Those whose servers dbdyno starts or is given the address of, in the order in which a base
    /// directory is looked into, and of tables.
    pub fn with_servers() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|family| !family.facts().schemes.is_empty())
    }

    /// In records, lists and forms of query plans.
    pub fn name(self) -> &'static str {
        each_family!(self, P => P::NAME)
    }

    /// What it is, in the list of drivers.
    pub fn about(self) -> &'static str {
        each_family!(self, P => P::ABOUT)
    }

    pub fn facts(self) -> &'static FamilyFacts {
        each_family!(self, P => P::FACTS)
    }

    pub(crate) fn login_of_file(self, path: &Path, options: &Options) -> Result<FileLogin, Error> {
        each_family!(self, P => P::login_of_file(path, options))
    }

    pub(crate) fn tls_of_file(self, path: &Path) -> Result<Option<TlsSettings>, Error> {
        each_family!(self, P => P::tls_of_file(path))
    }

    pub fn target(self, login: Options) -> Target {
        each_family!(self, P => P::target(login))
    }

    /// Makes sure that `database` is dbdyno's to make and drop tables in, on the server of
    /// `options`, whose own database does not matter. It never drops the database, and neither
    /// should the caller: only the tables that its workload names.
    pub async fn claim(self, options: &Options, database: &str) -> Result<Claim, Error> {
        each_family!(self, P => P::claim(options, database).await)
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

    /// The storage engines that a build has without plugins; `None` where there is no choice.
    pub fn built_in_engines(self, base: &Base) -> Option<&'static [&'static str]> {
        each_family!(self, P => P::built_in_engines(base))
    }

    /// Names (with underscores) and values in the order of the option file at `path`, as a server
    /// of `base` reads it.
    pub fn native_settings(self, base: &Base, path: &Path) -> Result<Vec<(String, Option<String>)>, Error> {
        each_family!(self, P => P::native_settings(base, path))
    }

    /// [`Server::start`] in a home of the caller's, on fresh data or on what an earlier start has
    /// left.
    pub fn start(self, home: Home, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        each_family!(self, P => P::start(home, spec, data))
    }

    /// Opens the database in a folder, made there if it is to be a fresh one. Each connection gets
    /// the settings.
    pub fn open_file(
        self,
        folder: &Path,
        settings: &[(String, String)],
        is_fresh: bool,
    ) -> Result<Endpoint, DbError> {
        each_family!(self, P => P::open_file(folder, settings, is_fresh))
    }

    /// Where in the data directory the tables of `database` lie, that have `engine`; `None` when
    /// the server does not say.
    pub async fn folder_of(
        self,
        session: &mut AnySession,
        database: &str,
        engine: &str,
    ) -> Result<Option<PathBuf>, DbError> {
        each_family!(self, P => P::folder_of(session, database, engine).await)
    }

    pub async fn abilities(self, question: Question<'_>) -> Result<Abilities, DbError> {
        each_family!(self, P => P::abilities(question).await)
    }

    /// Names of client programs, and the folder where a build has its own.
    pub fn clients(self, base: &Base) -> (PathBuf, &'static [&'static str]) {
        each_family!(self, P => P::clients(base))
    }

    /// Arguments with which a client that printed `version` comes to `socket`.
    pub fn client_arguments(self, socket: &Path, version: &str) -> Vec<String> {
        each_family!(self, P => P::client_arguments(socket, version))
    }

    /// The folder or file that an address names for `socket`.
    pub fn socket_in_address(self, socket: &Path) -> &Path {
        each_family!(self, P => P::socket_in_address(socket))
    }
}
