//! The options that variants on MariaDB, MySQL and Percona Server have.

use std::path::PathBuf;

use dbdyno_model::ColumnDefinitions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::options::{TypedOptions, is_word};

/// `options` of a variant.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MysqlOptions {
    /// MariaDB and MySQL: storage engine of the tables (`innodb`, `rocksdb`, `myisam`); `innodb`
    /// when left out.
    pub engine: Option<String>,
    /// MariaDB and MySQL: character set of the connections, by the server's name for it (`latin1`);
    /// `utf8mb4` when left out.
    pub client_charset: Option<String>,
    /// MariaDB and MySQL: how often MariaDB (from 10.6) sends the column definitions of a prepared
    /// statement: `once`, as its own client library asks for and when left out, or with each answer
    /// (`always`), as all other servers of the family do.
    pub column_definitions: ColumnDefinitions,
    /// MariaDB and MySQL: whether connections ask for results without EOF packets
    /// (`CLIENT_DEPRECATE_EOF`); as the product's own client library does when left out: yes for
    /// MySQL from 5.7, no for MariaDB.
    pub deprecate_eof: Option<bool>,
    /// MariaDB and MySQL: whether connections ask for reports of changes of the session's state
    /// (`CLIENT_SESSION_TRACK`); yes when left out, as both products' own client libraries do where
    /// the server can (MySQL from 5.7, MariaDB from 10.2).
    pub session_track: Option<bool>,
    /// PEM file with the RSA key of the MySQL server at `address`, relative to the plan: what a
    /// password is encrypted with that would otherwise go to no server over TCP without TLS.
    pub server_public_key: Option<PathBuf>,
    /// Such a password may be encrypted with the key that the MySQL server at `address` sends. A
    /// server that poses as it sends a key of its own and reads the password.
    pub allow_public_key_retrieval: bool,
}

impl TypedOptions for MysqlOptions {
    const FILES: &'static [&'static str] = &["server_public_key"];
    const OF_ADDRESSES: &'static [&'static str] = &["server_public_key", "allow_public_key_retrieval"];

    fn problem(&self) -> Option<(&'static str, String)> {
        if self.server_public_key.is_some() && self.allow_public_key_retrieval {
            let message = "has server_public_key and allow_public_key_retrieval at once: the given key is used; remove allow_public_key_retrieval";
            return Some(("allow_public_key_retrieval", message.to_owned()));
        }
        if self.client_charset.as_deref().is_some_and(|charset| !is_word(charset)) {
            let help = "write utf8mb4, latin1, or another of the server's SHOW CHARACTER SET";
            let message = format!("has a client_charset that is no name of a character set: {help}");
            return Some(("client_charset", message));
        }
        let is_wrong = self.engine.as_deref().is_some_and(|engine| !is_word(engine));
        is_wrong.then(|| ("engine", "has an engine that is not a plain name such as innodb".to_owned()))
    }
}
