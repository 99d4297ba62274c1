//! Login options for all drivers whose database has a server. The password in them is never
//! printed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dbdyno_model::ColumnDefinitions;
use dbdyno_products::Address;

use crate::connections::OpenConnections;
use crate::tls::Tls;

/// Time limits for a session's waits on its server, outside the measured statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// Time to connect and log in.
    pub login: Duration,
    /// The name of the setting for [`TimeLimits::login`], for messages.
    pub login_key: &'static str,
    /// Time for the answer to a statement whose duration does not depend on the number of rows.
    pub answer: Duration,
}

impl Default for TimeLimits {
    /// The defaults are 30 s for the login and 60 s for an answer.
    fn default() -> Self {
        Self { login: Duration::from_secs(30), login_key: "login_timeout", answer: Duration::from_secs(60) }
    }
}

/// The RSA key with which a password may be encrypted for a MySQL server, where it would be sent
/// over TCP without TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServerKey {
    /// There is no key, so such a password is not sent.
    #[default]
    Unknown,
    /// This key, in PEM.
    Known(Arc<[u8]>),
    /// The key that the server sends on request. An attacker who poses as the server can send a key
    /// and read the password.
    Retrieved,
}

/// How sessions communicate with their server. These settings are the same for all of a variant's
/// connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// TLS; `None` for plaintext.
    pub tls: Option<Tls>,
    pub column_definitions: ColumnDefinitions,
    /// MySQL and MariaDB: whether to request `CLIENT_DEPRECATE_EOF`, which means results without
    /// EOF packets. With `None` dbdyno does as the product's own client library does; see
    /// [`crate::mysql::MysqlSession::protocol_options`].
    pub deprecate_eof: Option<bool>,
    /// MySQL and MariaDB: whether to request `CLIENT_SESSION_TRACK`, which reports changes of the
    /// session's state in OK packets. `None` does as the client library does.
    pub session_track: Option<bool>,
    /// MySQL: the key with which a password may be encrypted outside TLS and unix sockets.
    pub server_key: ServerKey,
    /// MySQL and MariaDB: the connection's character set, by a name from the server's `SHOW
    /// CHARACTER SET`. `None` stands for utf8mb4.
    pub client_charset: Option<String>,
    /// MySQL and MariaDB: whether sessions begin with `SET autocommit = 1`, because the server's
    /// own setting would not commit after each statement. See
    /// [`crate::DatabaseServer::commit_each_statement`].
    pub sets_autocommit: bool,
    pub limits: TimeLimits,
    pub open_connections: OpenConnections,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginOptions {
    pub address: Address,
    pub user: String,
    pub password: Secret,
    pub database: Option<String>,
    pub connection_settings: ConnectionSettings,
    /// MySQL and MariaDB: whether the session may send rows in answer to LOAD DATA LOCAL INFILE.
    /// They are the caller's rows, and never a file.
    pub local_infile: bool,
}

impl LoginOptions {
    /// Options for `user` at `address`, without password or database.
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

    /// The same login with a database, which must exist when a session connects.
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

    /// The same login with other connection settings.
    #[must_use]
    pub fn with_connection_settings(mut self, connection_settings: ConnectionSettings) -> Self {
        self.connection_settings = connection_settings;
        self
    }

    /// The TLS settings, if a connection should begin with TLS.
    pub(crate) fn wanted_tls(&self) -> Option<&Tls> {
        self.connection_settings.tls.as_ref().filter(|tls| tls.is_wanted_for(&self.address))
    }

    /// User and address, for messages: `root at /run/db.sock, database test`.
    pub(crate) fn login_text(&self) -> String {
        match &self.database {
            Some(database) => format!("{} as {}, database {database}", self.address, self.user),
            None => format!("{} as {}", self.address, self.user),
        }
    }
}

/// How well the connection to the server is protected. This decides what may be sent over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) is_encrypted: bool,
    /// Whether a plaintext password may be sent over it. It may over a unix socket, or over TLS
    /// that was required. TLS that is only preferred is not enough, because an attacker in between
    /// can remove it.
    pub(crate) may_carry_passwords: bool,
    /// Whether it is a unix socket.
    pub(crate) is_local: bool,
}

impl Channel {
    /// The protection of a connection to the server in `options`, with or without TLS.
    pub(crate) fn new(options: &LoginOptions, is_encrypted: bool) -> Self {
        let is_local = matches!(options.address, Address::Socket(_));
        let is_demanded = options.connection_settings.tls.as_ref().is_some_and(Tls::is_required);
        Self { is_encrypted, may_carry_passwords: is_local || is_encrypted && is_demanded, is_local }
    }
}

/// A password. It shows as `***` wherever it might be printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text` so that it is not printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The password itself, for code that must pass it on (a login, an option file).
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows() {
        let options = LoginOptions::socket("/run/a.sock", "root").with_password(Secret::new("hunter2"));
        let shown = format!("{options:?} {} {:?}", options.password, options.password);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("***"));
        assert_eq!(options.password.reveal(), "hunter2");
    }

    #[test]
    fn a_place_names_address_user_and_database() {
        let tcp = LoginOptions::tcp("::1", 3307, "bench").with_database("ib");
        assert_eq!(tcp.login_text(), "[::1]:3307 as bench, database ib");
        assert_eq!(LoginOptions::socket("/run/a.sock", "root").login_text(), "/run/a.sock as root");
    }
}
