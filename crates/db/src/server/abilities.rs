//! What a server build can do, where that decides which comparisons are possible on it.

use serde::{Deserialize, Serialize};

use crate::server::Base;
use crate::{AnySession, Description};

/// What a product uses to find out what a running server can do.
pub struct ServerProbe<'a> {
    pub session: &'a mut AnySession,
    pub base: &'a Base,
    pub description: &'a Description,
    /// What the server has logged so far.
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
    /// `io_method` values. The list is empty when there is none or when it is not in use on this
    /// machine.
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

/// What the server needs for encrypted connections.
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
