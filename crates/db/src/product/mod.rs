//! Defines what a database product is to dbdyno. One type stands for a product, or for a family of
//! similar products. It brings the product's sessions and server queries. It also says how the
//! product's servers are found, configured and started, and where it differs from other products.
//!
//! A product is a folder next to this one with a type that implements [`Product`], and a line in
//! the list of [`products`](crate::products). The defaults here are for a database without a
//! server.

mod status;
mod upkeep;

use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_model::TlsSettings;
use dbdyno_products::FamilyFacts;
use serde_json::{Map, Value};

#[cfg(doc)]
use crate::Family;
use crate::connections::Ticket;
use crate::error::excerpt;
use crate::exchange::Exchange;
use crate::options::LoginOptions;
use crate::server::{
    Abilities, Base, Data, Error, FileLogin, OwnConfig, Ownership, RuntimeDir, Server, ServerProbe,
    ServerSpec,
};
use crate::{
    Answer, AnySession, Capabilities, Cells, Class, ConnectionSettings, DatabaseAddress, DatabaseServer,
    DbError, Encryption, Param, Result, Rows, Sent, Session, Statement, first_i64,
};
pub use status::{DeferredWork, Description, Unreported, column};
pub(crate) use status::{
    MIN_BOUND_COUNT, Texts, deferred_work, first_value, name_value_pairs, numbers, permitted, version_numbers,
};
#[cfg(test)]
pub(crate) use upkeep::TEST_BOUNDS;
pub use upkeep::{Bounds, DeviceGauge, Quiet, Rest, Settling, UpkeepReport};
pub(crate) use upkeep::{UpkeepWork, settle};

/// What a session can do for dbdyno beyond preparing and running single statements.
pub(crate) trait Connection: Session {
    /// The state of the session's exchanges with a server; `None` for an embedded database.
    fn exchange(&self) -> Option<&Exchange> {
        None
    }

    fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        None
    }

    /// The encryption on which client and server agreed; `None` for plaintext.
    fn encryption(&self) -> Option<Encryption> {
        None
    }

    /// The id of the process at the other end of a unix socket; `None` where it is unknown.
    fn peer_pid(&self) -> Option<u32> {
        None
    }

    /// Whether the session is in a transaction, according to the database's last answer.
    fn in_transaction(&self) -> bool {
        false
    }

    /// Returns a function that ends the running statement from any thread, for a database that runs
    /// inside this process; `None` for a server.
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

/// A product's session, with its time limit for statements.
pub(crate) type LimitedSession<'a, P> = Limited<'a, <P as Product>::Session>;

/// The default body of functions that dbdyno calls only on products with servers.
fn without_servers() -> ! {
    unreachable!("a product without servers has neither builds nor addresses")
}

/// A database product, as the module's comment explains it. Its description, its query for tables,
/// its types, [`Product::capabilities`], [`Product::connect`] and [`Product::describe`] have no
/// default.
pub(crate) trait Product: Debug + Sized + 'static {
    /// The product's name in records and in lists. It also names the product's form of query plan.
    const NAME: &'static str = Self::FACTS.name;
    /// The product after which messages name the protocol. It is empty for a database without a
    /// protocol.
    const PROTOCOL: &'static str = "";
    /// The product's description in the list of drivers.
    const ABOUT: &'static str;
    /// Query for the names of the tables in the session's database, in order. It is empty for a
    /// database that never has tables.
    const TABLES: &'static str;
    /// Query for the waits of the server's other connections: the name of each wait, and how many
    /// connections are in it. It is empty for a database without such names.
    const WAITS: &'static str = "";
    /// The statements that ask for a query plan, and each answer's form. The first one that the
    /// server understands is used.
    const EXPLAIN: &'static [(&'static str, &'static str)] = &[];
    /// Likewise, the statements that execute a query and report counts per operator, and each
    /// answer's form.
    const ANALYZE: &'static [(&'static str, &'static str)] = &[];
    /// Whether a server consists of its first process and that process's children.
    const IS_PROCESS_TREE: bool = false;
    /// Statement that keeps the server from closing an idle session.
    const STAY_WHILE_IDLE: Option<&'static str> = None;
    /// Statements that remove the limits which the server's own settings put on a session's
    /// statements. A version may lack some of these settings.
    const LIFT_OWN_LIMITS: &'static [&'static str] = &[];
    /// SQL expression for the number that the server gives the connection.
    const OWN_NUMBER: Option<&'static str> = None;
    /// Query that returns 1 if a session commits after each statement, and otherwise 0.
    const COMMITS_EACH: Option<&'static str> = None;
    /// Query for the number of connections that the server accepts, and the setting that limits it.
    const ROOM: Option<(&'static str, &'static str)> = None;
    /// Query for the number of prepared statements that the server holds for all connections
    /// together, and the setting that limits it.
    const PREPARED_ROOM: Option<(&'static str, &'static str)> = None;
    /// Levels in [`Product::deferred_work`] that a server may keep for ever until it is asked to
    /// write them.
    const LOWERED_ONLY_BY_FLUSH: &'static [&'static str] = &[];

    /// Names, addresses and options of the product's servers.
    const FACTS: &'static FamilyFacts = FamilyFacts::UNKNOWN;

    type Options: Clone + Debug;
    type Session: Connection;

    /// What the product can do with `engine` tables (case does not matter), where it has several
    /// engines. `owned` says that dbdyno started the server and may drop its binary logs.
    fn capabilities(engine: &str, owned: bool) -> Capabilities;

    async fn connect(options: &Self::Options) -> Result<Self::Session>;

    /// The login, if there is a server.
    fn login(_options: &Self::Options) -> Option<&LoginOptions> {
        None
    }

    fn login_mut(_options: &mut Self::Options) -> Option<&mut LoginOptions> {
        None
    }

    /// Prepares a session for [`crate::DatabaseServer::connect_to_insert`].
    async fn begin_to_insert(_session: &mut Self::Session) -> Result<()> {
        Ok(())
    }

    /// Prepares a session for [`crate::DatabaseServer::connect_to_load`].
    async fn begin_to_load(_session: &mut Self::Session, _table: &str) -> Result<()> {
        Ok(())
    }

    /// Describes the server: product, version, engine, and all settings in force.
    async fn describe(session: &mut LimitedSession<'_, Self>) -> Result<Description>;

    /// The server's counters, as the server writes them.
    async fn counters(_session: &mut LimitedSession<'_, Self>) -> Result<Texts> {
        Ok(Texts::new())
    }

    /// What is still missing in [`Product::counters`]; `None` for servers that count at once.
    async fn unreported(_session: &mut LimitedSession<'_, Self>) -> Result<Option<Unreported>> {
        Ok(None)
    }

    /// Reads the work that the server has deferred.
    async fn deferred_work(
        _session: &mut LimitedSession<'_, Self>,
        _capabilities: &Capabilities,
    ) -> Result<DeferredWork> {
        Ok(DeferredWork::default())
    }

    /// The highest value that a level may have on a quiet server; `None` where the level does not
    /// matter for rest. It is 0 for a level that counts work in progress.
    fn quiet_at(_level: &str, _deferred_work: &DeferredWork, _bounds: &Bounds) -> Option<i64> {
        None
    }

    /// Brings `tables` to rest after the load.
    async fn upkeep(_work: &mut UpkeepWork<'_, Self>, _tables: &[String]) -> Result<()> {
        Ok(())
    }

    /// Deletes the binary logs, and returns whether there were any.
    async fn drop_binlog(_session: &mut LimitedSession<'_, Self>) -> Result<bool> {
        Ok(false)
    }

    /// Returns the engine of each table, by the table's name.
    async fn table_engines(_session: &mut LimitedSession<'_, Self>, _tables: &[String]) -> Result<Texts> {
        Ok(Texts::new())
    }

    /// Whether `found`, in a server's spelling, is the engine that was requested as `asked`.
    fn is_engine(asked: &str, found: &str) -> bool {
        asked.eq_ignore_ascii_case(found)
    }

    /// The statements that lock `database`; `None` where it cannot be locked.
    fn locks(_database: &str) -> Option<Locks> {
        None
    }

    /// Asks the server, without a login, to end the statement on a connection.
    async fn request_cancel(_options: &Self::Options, _ticket: Ticket) -> Result<()> {
        Ok(())
    }

    /// Asks for the same over a session that is logged in.
    async fn kill(_session: &mut LimitedSession<'_, Self>, _ticket: Ticket) {}

    /// Lists the numbers of the connections with this login on which the server is working.
    async fn at_work(_session: &mut LimitedSession<'_, Self>, _login: &LoginOptions) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Implements [`Family::connection_settings`].
    fn connection_settings(_options: &Map<String, Value>) -> Result<ConnectionSettings, String> {
        Ok(ConnectionSettings::default())
    }

    /// Implements [`Family::own_settings`].
    fn own_settings(_options: &Map<String, Value>) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Reads user and password for `options` from a login file.
    fn login_of_file(_path: &Path, _options: &LoginOptions) -> Result<FileLogin, Error> {
        without_servers()
    }

    /// Reads the TLS settings from a login file.
    fn tls_of_file(_path: &Path) -> Result<Option<TlsSettings>, Error> {
        Ok(None)
    }

    fn address(_login: LoginOptions) -> DatabaseAddress {
        without_servers()
    }

    /// Implements [`Family::take_ownership`].
    async fn take_ownership(_options: &LoginOptions, _database: &str) -> Result<Ownership, Error> {
        without_servers()
    }

    /// Lists the programs that dbdyno looks for in a base directory, for messages.
    fn expected_programs() -> String {
        without_servers()
    }

    /// Finds the server program in a base directory, without running it.
    fn program_in(_path: &Path) -> Option<PathBuf> {
        None
    }

    /// Asks the server program in the base directory `path` (absolute) for its version. The result
    /// is `None` without a program.
    fn open(_path: &Path) -> Result<Option<Base>, Error> {
        Ok(None)
    }

    /// Implements [`Family::built_in_engines`].
    fn built_in_engines(_base: &Base) -> Option<&'static [&'static str]> {
        None
    }

    /// Implements [`Family::engine_plugin`].
    fn engine_plugin(_engine: &str) -> String {
        String::new()
    }

    /// Implements [`Family::own_config`].
    fn own_config(_base: &Base, _path: &Path) -> Result<OwnConfig, Error> {
        without_servers()
    }

    /// Implements [`Family::start`].
    fn start(_runtime_dir: RuntimeDir, _spec: &ServerSpec, _data: Data) -> Result<Server, Error> {
        without_servers()
    }

    /// Implements [`Family::open_file`].
    fn open_file(_folder: &Path, _settings: &[(String, String)], _is_fresh: bool) -> Result<DatabaseServer> {
        unreachable!("a product with servers is opened in no folder")
    }

    /// Implements [`Family::folder_of`].
    async fn folder_of(_session: &mut AnySession, _database: &str, _engine: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Finds out what a server can do.
    async fn abilities(_probe: ServerProbe<'_>) -> Result<Abilities> {
        without_servers()
    }

    /// Implements [`Family::clients`].
    fn clients(_base: &Base) -> (PathBuf, &'static [&'static str]) {
        without_servers()
    }

    /// Implements [`Family::client_arguments`].
    fn client_arguments(_socket: &Path, _version: &str) -> Vec<String> {
        without_servers()
    }

    /// Implements [`Family::socket_in_address`].
    fn socket_in_address(socket: &Path) -> &Path {
        socket
    }
}

/// The statements with which a connection locks a database.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Query for a text that identifies the server. It is the same through each of the server's
    /// addresses.
    pub(crate) server: &'static str,
    /// Statement that takes the lock if it is free. It returns 1 if it took the lock, and never
    /// waits.
    pub(crate) take: String,
    /// Query that returns 1 as long as this connection has the lock.
    pub(crate) is_kept: String,
    /// Query for the connection that owns the lock: its number, and its user and host.
    pub(crate) owner: String,
    pub(crate) release: String,
    /// Query for other connections' statements that have been running in the database for a second
    /// or longer.
    pub(crate) others: &'static str,
}

/// Runs the session's statements, and fails one that has no answer within the session's limit.
/// Without a limit, as in steps, it only awaits the session's own future.
pub(crate) struct Limited<'a, S>(pub(crate) &'a mut S);

/// Evaluates `$done` within the time limit that `$session` has.
macro_rules! within_limit {
    ($session:expr, $what:expr, $inner:ident => $done:expr) => {
        match limit($session) {
            None => {
                let $inner = &mut *$session;
                $done
            }
            Some(limit) => {
                let $inner = &mut *$session;
                let work = Box::pin(async { $done });
                match tokio::time::timeout(limit, work).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(no_answer_error(&*$session, limit, $what)),
                }
            }
        }
    };
}

#[inline]
fn limit(session: &impl Connection) -> Option<Duration> {
    session.exchange()?.limit
}

/// The error for a statement that had no answer within `limit`.
fn no_answer_error(session: &impl Connection, limit: Duration, what: &[u8]) -> DbError {
    let place = session.exchange().map_or("", |exchange| exchange.login_text.as_str());
    let what = excerpt(what);
    let advice = "see what the server does, or raise statement_timeout in [host]";
    DbError::new(Class::Lost, "io", format!("{what} on {place}: no answer within {limit:?}; {advice}"))
}

impl<S: Connection> Session for Limited<'_, S> {
    async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
        within_limit!(self.0, sql, session => session.query(sql).await)
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        within_limit!(self.0, sql.as_bytes(), session => session.prepare(sql).await)
    }

    async fn forget(&mut self, statement: Statement) -> Result<()> {
        within_limit!(self.0, b"closing a statement", session => session.forget(statement).await)
    }

    async fn execute(&mut self, statement: Statement, params: &[Param]) -> Result<Answer> {
        within_limit!(self.0, b"a prepared statement", session => session.execute(statement, params).await)
    }

    async fn rows(&mut self, sql: &str) -> Result<Cells> {
        within_limit!(self.0, sql.as_bytes(), session => session.rows(sql).await)
    }

    async fn close(self) {}
}

impl<S> Deref for Limited<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.0
    }
}

impl<S> DerefMut for Limited<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.0
    }
}

/// The word that [`answering`] sends, and that a server returns with the connection's number.
const WORD: &str = "dbdyno";

/// Which server answers a session's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    /// The server that accepted the login.
    Itself,
    /// A server that has another number for the connection. A proxy or pooler is in between, and it
    /// may send each statement over a different connection to the server.
    Another,
    /// Something that does not return [`WORD`], and so does not answer SQL.
    Nothing,
}

/// Asks for the connection's number with `expression`, and compares it with `number`, the one that
/// the login reported.
pub(crate) async fn answering(session: &mut impl Session, expression: &str, number: u32) -> Answering {
    let rows = session.rows(&format!("SELECT {expression}, '{WORD}'")).await.unwrap_or_default();
    if rows.first().and_then(|row| row.get(1)?.as_deref()) != Some(WORD) {
        return Answering::Nothing;
    }
    // The login has only 32 bits of the number, which may have 64.
    match first_i64(&rows).map(|said| said.cast_unsigned() & u64::from(u32::MAX)) {
        Some(said) if said == u64::from(number) => Answering::Itself,
        _ => Answering::Another,
    }
}
