//! What a server build can do, as far as it decides what can be compared on it.

use serde::{Deserialize, Serialize};

use crate::server::Base;
use crate::{AnySession, Description};

/// A server that runs, to be asked what it can do.
pub struct Question<'a> {
    pub session: &'a mut AnySession,
    pub base: &'a Base,
    pub description: &'a Description,
    /// The server's, so far.
    pub log: &'a str,
}

/// Read from the running server. Lists are in the server's own order unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// Storage engines that tables can be made with (PostgreSQL: table access methods), sorted.
    /// MyRocks is loaded for the question where its plugin is there.
    pub engines: Vec<String>,
    /// The engine of tables that name none, with its own version where it has one: `XtraDB
    /// 5.6.35-80.0`, `heap`.
    pub default_engine: String,
    pub thread_pool: ThreadPool,
    /// Ways of checking a password that the server has, sorted: authentication plugins, or
    /// PostgreSQL's `password_encryption` values.
    pub logins: Vec<String>,
    /// The one of a user that is made without naming any.
    pub default_login: String,
    pub tls: TlsAbility,
    /// Ways of asynchronous input and output, the one in use first: `io_uring`, `libaio`;
    /// PostgreSQL's `io_method` values. Empty: none, or it is not in use on this machine.
    pub aio: Vec<String>,
    /// PostgreSQL can compile queries.
    pub jit: bool,
    /// What there is for vectors: `type` (MySQL 9), `index` (MariaDB 11.7 and later), `pgvector
    /// 0.8.0`.
    pub vector: Option<String>,
}

/// Whether sessions can share threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadPool {
    /// No, or the server has a process for each session.
    #[default]
    None,
    /// In the server itself: MariaDB, Percona Server.
    BuiltIn,
    /// A plugin that must be loaded at start: MySQL of some builds.
    Plugin,
}

/// What is needed for encrypted connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsAbility {
    /// Built without TLS.
    #[default]
    None,
    /// A certificate that someone gives it.
    WithCertificate,
    /// Nothing: it makes a certificate of its own, so that TLS is on unless it is switched off.
    OwnCertificate,
}
