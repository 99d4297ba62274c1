//! What a product is to those who start its servers or are given their addresses.
//!
//! A product, or a family of products that are served alike, is a folder next to this one with a
//! type that implements [`Family`], and a line in [`families`](crate::families).

mod server;

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use dbdyno_drivers::{AnySession, DbError, Description, Endpoint, Options, Target};
use dbdyno_model::TlsSettings;

pub use server::{Server, ServerSpec};
pub(crate) use server::{TLS_HOST, superuser_at};

use crate::abilities::Abilities;
use crate::claim::Claim;
use crate::release::{ConfigProduct, Release};
use crate::running::Data;
use crate::{Error, Home};

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

/// The work of a question to a server.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A server that runs, to be asked what it can do.
pub struct Question<'a> {
    pub session: &'a mut AnySession,
    pub base: &'a Base,
    pub description: &'a Description,
    /// The server's, so far.
    pub log: &'a str,
}

/// What is said of a family in a word or a number.
#[derive(Debug)]
pub struct FamilyFacts {
    /// The driver's name, as in [`dbdyno_drivers::ALL`].
    pub name: &'static str,
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

/// Products that are served alike.
pub trait Family: fmt::Debug + Sync {
    fn facts(&self) -> &'static FamilyFacts;

    /// What a file with logins says for `options`.
    fn login_of_file(&self, path: &Path, options: &Options) -> Result<FileLogin, Error>;

    /// What such a file asks of TLS.
    fn tls_of_file(&self, _path: &Path) -> Result<Option<TlsSettings>, Error> {
        Ok(None)
    }

    fn target(&self, options: Options) -> Target;

    /// Makes sure that `database` is dbdyno's to make and drop tables in, on the server of
    /// `options`, whose own database does not matter. It never drops the database, and neither
    /// should the caller: only the tables that its workload names.
    fn claim<'a>(&'a self, options: &'a Options, database: &'a str) -> Work<'a, Result<Claim, Error>>;

    /// Programs that are looked for in a base directory.
    fn looked_for(&self) -> String;

    /// The server program in a base directory, without running it.
    fn program_in(&self, path: &Path) -> Option<PathBuf>;

    /// Asks the server program in the base directory `path`, absolute, for its version; `None`
    /// without a program.
    fn open(&self, path: &Path) -> Result<Option<Base>, Error>;

    /// The storage engines that a build has without plugins; `None` where there is no choice.
    fn built_in_engines(&self, _base: &Base) -> Option<&'static [&'static str]> {
        None
    }

    /// Names (with underscores) and values in the order of the option file at `path`, as a server
    /// of `base` reads it.
    fn native_settings(&self, base: &Base, path: &Path) -> Result<Vec<(String, Option<String>)>, Error>;

    /// [`Server::start`] in a home of the caller's, on fresh data or on what an earlier start has
    /// left.
    fn start(&self, home: Home, spec: &ServerSpec, data: Data) -> Result<Server, Error>;

    /// Where in the data directory the tables of `database` lie, that have `engine`; `None` when
    /// the server does not say.
    fn folder_of<'a>(
        &'a self,
        session: &'a mut AnySession,
        database: &'a str,
        engine: &'a str,
    ) -> Work<'a, Result<Option<PathBuf>, DbError>>;

    fn abilities<'a>(&'a self, question: Question<'a>) -> Work<'a, Result<Abilities, DbError>>;

    /// Names of client programs, and the folder where a build has its own.
    fn clients(&self, base: &Base) -> (PathBuf, &'static [&'static str]);

    /// Arguments with which a client that printed `version` comes to `socket`.
    fn client_arguments(&self, socket: &Path, version: &str) -> Vec<String>;

    /// The folder or file that an address names for `socket`.
    fn socket_in_address<'a>(&self, socket: &'a Path) -> &'a Path {
        socket
    }
}

/// Opens the database in a folder, made there if it is to be a fresh one. Each connection gets the
/// settings.
pub(crate) type OpenEmbedded =
    fn(folder: &Path, settings: &[(String, String)], is_fresh: bool) -> Result<Endpoint, DbError>;

/// A product that works inside dbdyno, without a server.
pub struct Embedded {
    /// The driver's name, as in [`dbdyno_drivers::ALL`].
    pub name: &'static str,
    pub product: ConfigProduct,
    /// Its options, as TOML.
    pub options: &'static str,
    pub open: OpenEmbedded,
}

/// An unpacked or installed server build.
#[derive(Debug, Clone)]
pub struct Base {
    pub family: &'static dyn Family,
    /// The folder that was opened, absolute.
    pub path: PathBuf,
    /// The folder or its `usr`, where programs and libraries lie.
    pub prefix: PathBuf,
    pub program: PathBuf,
    pub product: ConfigProduct,
    /// As the program prints it, which may end in words of its builder:
    /// `10.11.19-MariaDB-0+deb12u1`, `19rc1`.
    pub version: String,
    pub release: Release,
    /// Product and version for people: `MariaDB 10.11.19`, `PostgreSQL 15.19`.
    pub title: String,
    /// Folder of loadable plugins; builds with built-in plugins only have none.
    pub plugin_dir: Option<PathBuf>,
    /// The program that makes a data directory; some servers need none, some packages leave it out.
    pub(crate) installer: Option<PathBuf>,
    /// Folder of error messages, character sets and SQL scripts, for servers that get it as an
    /// option.
    pub(crate) share_dir: Option<PathBuf>,
}
