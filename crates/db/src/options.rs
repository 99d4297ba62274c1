//! How to log in to a server, for all drivers that speak to servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dbdyno_model::ColumnDefinitions;
use dbdyno_products::Address;

use crate::open_connections::OpenConnections;
use crate::secret::Secret;
use crate::tls::Tls;

/// How long a session waits for its server, outside of the statements that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// To connect and to log in.
    pub login: Duration,
    /// By which users set that, for messages.
    pub login_key: &'static str,
    /// For the answer to a statement whose time does not depend on how many rows there are.
    pub answer: Duration,
}

impl Default for TimeLimits {
    /// Half a minute and a minute.
    fn default() -> Self {
        Self { login: Duration::from_secs(30), login_key: "login_timeout", answer: Duration::from_secs(60) }
    }
}

/// Which RSA key of a MySQL server a password may be encrypted with, where it would go over TCP
/// without TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServerKey {
    /// None: such a password is not sent.
    #[default]
    Unknown,
    /// This one, in PEM.
    Known(Arc<[u8]>),
    /// The one that the server sends when it is asked. Who poses as the server sends its own and
    /// reads the password.
    Retrieved,
}

/// How sessions speak with their server, the same for all connections of a variant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// `None` = in clear.
    pub tls: Option<Tls>,
    pub column_definitions: ColumnDefinitions,
    /// MySQL and MariaDB: asks for `CLIENT_DEPRECATE_EOF`, results without EOF packets; `None` = as
    /// the product's own client library does, see [`crate::mysql::MysqlSession::protocol_options`].
    pub deprecate_eof: Option<bool>,
    /// MySQL and MariaDB: asks for `CLIENT_SESSION_TRACK`, changes of the session's state in OK
    /// packets; `None` as above.
    pub session_track: Option<bool>,
    /// MySQL: which key a password may be encrypted with outside of TLS and unix sockets.
    pub server_key: ServerKey,
    /// MySQL and MariaDB: character set of the connection, a word of the server's `SHOW CHARACTER
    /// SET`; `None` = utf8mb4.
    pub client_charset: Option<String>,
    /// MySQL and MariaDB: sessions begin with `SET autocommit = 1`, because the server's own would
    /// not commit after each statement. See [`crate::Endpoint::commit_each_statement`].
    pub sets_autocommit: bool,
    pub limits: TimeLimits,
    pub open_connections: OpenConnections,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub address: Address,
    pub user: String,
    pub password: Secret,
    pub database: Option<String>,
    pub connection_settings: ConnectionSettings,
    /// MySQL and MariaDB: the session may send rows in answer to LOAD DATA LOCAL INFILE, those of
    /// the caller and never a file.
    pub local_infile: bool,
}

impl Options {
    /// `user` without password or database at `address`.
    pub fn new(address: Address, user: impl Into<String>) -> Self {
        Self {
            address,
            user: user.into(),
            password: Secret::default(),
            database: None,
            connection_settings: ConnectionSettings::default(),
            local_infile: false,
        }
    }

    pub fn socket(path: impl Into<PathBuf>, user: impl Into<String>) -> Self {
        Self::new(Address::Socket(path.into()), user)
    }

    pub fn tcp(host: impl Into<String>, port: u16, user: impl Into<String>) -> Self {
        Self::new(Address::Tcp { host: host.into(), port }, user)
    }

    #[must_use]
    pub fn with_password(mut self, password: Secret) -> Self {
        self.password = password;
        self
    }

    /// The same login into a database, which must exist when a session connects.
    #[must_use]
    pub fn with_database(mut self, database: impl Into<String>) -> Self {
        self.database = Some(database.into());
        self
    }

    #[must_use]
    pub fn with_limits(mut self, limits: TimeLimits) -> Self {
        self.connection_settings.limits = limits;
        self
    }

    #[must_use]
    pub fn with_tls(mut self, tls: Option<Tls>) -> Self {
        self.connection_settings.tls = tls;
        self
    }

    /// The same login, after which the session speaks in another connection settings.
    #[must_use]
    pub fn with_connection_settings(mut self, connection_settings: ConnectionSettings) -> Self {
        self.connection_settings = connection_settings;
        self
    }

    /// TLS, when a connection is to begin with it.
    pub(crate) fn wanted_tls(&self) -> Option<&Tls> {
        self.connection_settings.tls.as_ref().filter(|tls| tls.is_wanted_for(&self.address))
    }

    /// Whom and where, for messages: `root at /run/db.sock, database test`.
    pub(crate) fn place(&self) -> String {
        match &self.database {
            Some(database) => format!("{} as {}, database {database}", self.address, self.user),
            None => format!("{} as {}", self.address, self.user),
        }
    }
}

/// What the way to the server keeps from others, which decides what may be said on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) is_encrypted: bool,
    /// A password may go over it as it is: a unix socket, or TLS that was demanded. TLS that is
    /// only preferred is not enough, because an attacker in between takes it away.
    pub(crate) may_carry_passwords: bool,
    /// A unix socket.
    pub(crate) is_local: bool,
}

impl Channel {
    /// The way to the server of `options`, with TLS under it or not.
    pub(crate) fn new(options: &Options, is_encrypted: bool) -> Self {
        let is_local = matches!(options.address, Address::Socket(_));
        let is_demanded = options.connection_settings.tls.as_ref().is_some_and(Tls::is_required);
        Self { is_encrypted, may_carry_passwords: is_local || is_encrypted && is_demanded, is_local }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows() {
        let options = Options::socket("/run/a.sock", "root").with_password(Secret::new("hunter2"));
        let shown = format!("{options:?} {} {:?}", options.password, options.password);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("***"));
        assert_eq!(options.password.reveal(), "hunter2");
    }

    #[test]
    fn a_place_names_address_user_and_database() {
        let tcp = Options::tcp("::1", 3307, "bench").with_database("ib");
        assert_eq!(tcp.place(), "[::1]:3307 as bench, database ib");
        assert_eq!(Options::socket("/run/a.sock", "root").place(), "/run/a.sock as root");
    }
}
