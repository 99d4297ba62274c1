//! A database product, or a family of products that are served alike, as one object: its sessions,
//! the questions that its servers are asked, how they are found, configured and started, and what
//! it does otherwise than others.
//!
//! A product is a folder next to this one with a type that implements [`Product`], and a line in
//! the list of [`products`](crate::products). What it does not say is that of a database without a
//! server.

mod answering;
mod deferred_work;
mod limited;
mod status;
mod upkeep;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use dbdyno_model::TlsSettings;
use dbdyno_products::FamilyFacts;
use serde_json::{Map, Value};

pub(crate) use answering::{Answering, answering};
pub use deferred_work::DeferredWork;
pub(crate) use deferred_work::{LEAST_BOUND_COUNT, owed, permitted};
pub(crate) use limited::Limited;
pub use status::column;
pub use status::{Description, Unreported};
pub(crate) use status::{Texts, cell, name_value_pairs, numbers, version_numbers};
#[cfg(test)]
pub(crate) use upkeep::TEST_BOUNDS;
pub use upkeep::{Bounds, DeviceGauge, Quiet, Rest, Settling, UpkeepReport};
pub(crate) use upkeep::{Work, settle};

#[cfg(doc)]
use crate::Family;
use crate::exchange::Exchange;
use crate::options::Options as Login;
use crate::open_connections::Ticket;
use crate::server::{
    Abilities, Base, Claim, Data, Error, FileLogin, RuntimeDir, OwnConfig, Question, Server, ServerSpec,
};
use crate::{
    Answer, AnySession, Capabilities, Class, DbError, Encryption, Endpoint, ConnectionSettings, Result, Rows, Sent,
    Session, Target,
};

/// A session with what is not asked of it in a step.
pub(crate) trait Connection: Session {
    /// State of its exchanges with a server; `None` of an embedded database.
    fn exchange(&self) -> Option<&Exchange> {
        None
    }

    fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        None
    }

    /// What the connection agreed on; `None` in clear.
    fn encryption(&self) -> Option<Encryption> {
        None
    }

    /// The process at the other end of a unix socket; `None` where it is not known.
    fn peer_pid(&self) -> Option<u32> {
        None
    }

    /// Whether the session is in a transaction, by what the database said with the last answer.
    fn in_transaction(&self) -> bool {
        false
    }

    /// Ends the statement that a database in this process is at, from any thread; `None` of a
    /// server.
    fn interrupt(&self) -> Option<Box<dyn Fn() + Send>> {
        None
    }

    async fn load_rows(&mut self, _sql: &str, _rows: &[u8]) -> Result<Answer> {
        let text = "this database knows no statement that reads rows from the client";
        Err(DbError::new(Class::Refused, "", text))
    }

    async fn pipeline(&mut self, _statements: &[Sent<'_>]) -> Result<Answer> {
        let text = "statements with parameters cannot be sent at once, or without waiting, to this database; use protocol = \"simple\" or \"prepared\"";
        Err(DbError::new(Class::Refused, "", text))
    }

    async fn results(&mut self, _statement: Sent<'_>) -> Result<Vec<Rows>> {
        let text = "the driver of this database does not read column names, so \\gset and \\aset do not work";
        Err(DbError::new(Class::Refused, "", text))
    }
}

/// A session of a product, with its time limit for statements.
pub(crate) type LimitedSession<'a, P> = Limited<'a, <P as Product>::Session>;

/// What is asked only of products that have servers.
fn without_servers() -> ! {
    unreachable!("a product without servers has neither builds nor addresses")
}

/// See the module. Names, types, [`Product::capabilities`], [`Product::connect`] and
/// [`Product::describe`] have no default.
pub(crate) trait Product: Debug + Sized + 'static {
    /// In records, lists and forms of query plans.
    const NAME: &'static str = Self::FACTS.name;
    /// The product whose protocol it is, for people; empty of what has none.
    const PROTOCOL: &'static str = "";
    /// What it is, in the list of drivers.
    const ABOUT: &'static str;
    /// Asks for the names of the tables of the session's database, in their order; empty where
    /// there are none.
    const TABLES: &'static str;
    /// The words that ask for a query plan, and the form of the answer; the first that the server
    /// understands are taken.
    const EXPLAIN: &'static [(&'static str, &'static str)] = &[];
    /// The same of words that have a query executed and its operators counted.
    const ANALYZE: &'static [(&'static str, &'static str)] = &[];
    /// A server is its first process and the children of that.
    const IS_PROCESS_TREE: bool = false;
    /// Sees to it that the server does not close the session for being idle.
    const STAY_WHILE_IDLE: Option<&'static str> = None;
    /// Take away the limits that the server's own settings give a session's statements. Each version
    /// knows some of them.
    const LIFT_OWN_LIMITS: &'static [&'static str] = &[];
    /// An expression: the server's number for the connection.
    const OWN_NUMBER: Option<&'static str> = None;
    /// Asks whether a session commits after each statement: 0 or 1.
    const COMMITS_EACH: Option<&'static str> = None;
    /// Asks how many connections the server takes, and the setting that says so.
    const ROOM: Option<(&'static str, &'static str)> = None;
    /// Asks how many prepared statements it holds for all connections together, and the setting
    /// that says so.
    const PREPARED_ROOM: Option<(&'static str, &'static str)> = None;
    /// Levels of [`Product::deferred_work`] that a server may keep for ever until it is asked to write them.
    const WRITTEN_WHEN_ASKED: &'static [&'static str] = &[];

    /// Names, addresses and options of its servers.
    const FACTS: &'static FamilyFacts = FamilyFacts::UNKNOWN;

    type Options: Clone + Debug;
    type Session: Connection;

    /// What it does with tables of `engine` (case does not matter), where it has several. `owned`
    /// says that dbdyno started the server and may drop its binary logs.
    fn capabilities(engine: &str, owned: bool) -> Capabilities;

    async fn connect(options: &Self::Options) -> Result<Self::Session>;

    /// How to log in, if there is a server.
    fn login(_options: &Self::Options) -> Option<&Login> {
        None
    }

    fn login_mut(_options: &mut Self::Options) -> Option<&mut Login> {
        None
    }

    /// See [`crate::Endpoint::connect_to_insert`].
    async fn begin_to_insert(_session: &mut Self::Session) -> Result<()> {
        Ok(())
    }

    /// See [`crate::Endpoint::connect_to_load`].
    async fn begin_to_load(_session: &mut Self::Session, _table: &str) -> Result<()> {
        Ok(())
    }

    /// Who the server is: product, version, engine, and all its settings as they are in force.
    async fn describe(session: &mut LimitedSession<'_, Self>) -> Result<Description>;

    /// The server's counters, as it writes them.
    async fn counters(_session: &mut LimitedSession<'_, Self>) -> Result<Texts> {
        Ok(Texts::new())
    }

    /// What [`Product::counters`] does not hold yet; `None` of servers that count at once.
    async fn unreported(_session: &mut LimitedSession<'_, Self>) -> Result<Option<Unreported>> {
        Ok(None)
    }

    /// Reads what the server has put off.
    async fn deferred_work(_session: &mut LimitedSession<'_, Self>, _capabilities: &Capabilities) -> Result<DeferredWork> {
        Ok(DeferredWork::default())
    }

    /// The most of a level that a quiet server has; `None` where it says nothing of rest. Work that
    /// goes on must have ended.
    fn quiet_at(_level: &str, _debt: &DeferredWork, _bounds: &Bounds) -> Option<i64> {
        None
    }

    /// Brings `tables` to rest after the load.
    async fn upkeep(_work: &mut Work<'_, Self>, _tables: &[String]) -> Result<()> {
        Ok(())
    }

    /// Deletes the binary logs. Says whether there were any.
    async fn drop_binlog(_session: &mut LimitedSession<'_, Self>) -> Result<bool> {
        Ok(false)
    }

    /// The engine of each of these tables.
    async fn table_engines(_session: &mut LimitedSession<'_, Self>, _tables: &[String]) -> Result<Texts> {
        Ok(Texts::new())
    }

    /// Whether `found`, as a server spells it, is the engine that was asked for as `asked`.
    fn is_engine(asked: &str, found: &str) -> bool {
        asked.eq_ignore_ascii_case(found)
    }

    /// How `database` is locked; `None` where it cannot be.
    fn locks(_database: &str) -> Option<Locks> {
        None
    }

    /// Asks the server without a login to end what it does for a connection.
    async fn request_cancel(_options: &Self::Options, _ticket: Ticket) -> Result<()> {
        Ok(())
    }

    /// The same over a session.
    async fn kill(_session: &mut LimitedSession<'_, Self>, _ticket: Ticket) {}

    /// Numbers of the connections with this login that the server works for.
    async fn at_work(_session: &mut LimitedSession<'_, Self>, _login: &Login) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// See [`Family::connection_settings`].
    fn connection_settings(_options: &Map<String, Value>) -> Result<ConnectionSettings, String> {
        Ok(ConnectionSettings::default())
    }

    /// See [`Family::own_settings`].
    fn own_settings(_options: &Map<String, Value>) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What a file with logins says for `options`.
    fn login_of_file(_path: &Path, _options: &Login) -> Result<FileLogin, Error> {
        without_servers()
    }

    /// What such a file asks of TLS.
    fn tls_of_file(_path: &Path) -> Result<Option<TlsSettings>, Error> {
        Ok(None)
    }

    fn target(_login: Login) -> Target {
        without_servers()
    }

    /// See [`Family::claim`].
    async fn claim(_options: &Login, _database: &str) -> Result<Claim, Error> {
        without_servers()
    }

    /// Programs that are looked for in a base directory.
    fn looked_for() -> String {
        without_servers()
    }

    /// The server program in a base directory, without running it.
    fn program_in(_path: &Path) -> Option<PathBuf> {
        None
    }

    /// Asks the server program in the base directory `path`, absolute, for its version; `None`
    /// without a program.
    fn open(_path: &Path) -> Result<Option<Base>, Error> {
        Ok(None)
    }

    /// See [`Family::built_in_engines`].
    fn built_in_engines(_base: &Base) -> Option<&'static [&'static str]> {
        None
    }

    /// See [`Family::engine_plugin`].
    fn engine_plugin(_engine: &str) -> String {
        String::new()
    }

    /// See [`Family::own_config`].
    fn own_config(_base: &Base, _path: &Path) -> Result<OwnConfig, Error> {
        without_servers()
    }

    /// See [`Family::start`].
    fn start(_home: RuntimeDir, _spec: &ServerSpec, _data: Data) -> Result<Server, Error> {
        without_servers()
    }

    /// See [`Family::open_file`].
    fn open_file(_folder: &Path, _settings: &[(String, String)], _is_fresh: bool) -> Result<Endpoint> {
        unreachable!("a product with servers is opened in no folder")
    }

    /// See [`Family::folder_of`].
    async fn folder_of(_session: &mut AnySession, _database: &str, _engine: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Asks a server what it can do.
    async fn abilities(_question: Question<'_>) -> Result<Abilities> {
        without_servers()
    }

    /// See [`Family::clients`].
    fn clients(_base: &Base) -> (PathBuf, &'static [&'static str]) {
        without_servers()
    }

    /// See [`Family::client_arguments`].
    fn client_arguments(_socket: &Path, _version: &str) -> Vec<String> {
        without_servers()
    }

    /// See [`Family::socket_in_address`].
    fn socket_in_address(socket: &Path) -> &Path {
        socket
    }
}

/// The statements with which a connection locks a database.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Which server, and which start of it.
    pub(crate) server: &'static str,
    /// Takes the lock and answers 1, or does not wait for it.
    pub(crate) take: String,
    /// 1 as long as this connection has the lock.
    pub(crate) is_kept: String,
    /// Number and origin of the connection that has it.
    pub(crate) holder: String,
    pub(crate) release: String,
    /// Statements of others that have been at work in the database for a second or longer.
    pub(crate) others: &'static str,
}
