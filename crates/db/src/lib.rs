//! The database client: sessions, SQL dialects, error classes, and a server's own counters.
//!
//! A workload sees a [`DatabaseServer`] (where to connect and what the server can do) and
//! [`Session`]s (one connection each). It never asks which product it talks to, only for
//! [`Capabilities`]. Another product needs one new folder and one line in the list in
//! `products.rs`. Its facts are in the crate `products`.

mod advisory_lock;
mod capabilities;
mod connections;
mod database_server;
mod error;
mod exchange;
mod foreign;
#[cfg(test)]
#[path = "tests/fuzz.rs"]
mod fuzz;
mod input;
mod options;
mod product;
mod products;
#[cfg(test)]
#[path = "tests/scripted.rs"]
mod scripted;
mod server_queries;
mod session;
mod stream;
mod tls;

pub mod mysql;
pub mod null;
pub mod postgres;
pub mod server;
pub mod sqlite;

pub use advisory_lock::{AdvisoryLock, LockAttempt, LockOwner};
pub use capabilities::{Capabilities, DeleteForm, IndexDdl, IndexHint, KeySource, RowStream};
pub use connections::{ConnectionClass, ConnectionLog, Encryption, OpenConnections};
pub use database_server::DatabaseServer;
pub use dbdyno_products::Address;
pub use error::{Class, DbError};
pub use foreign::Foreign;
pub use options::{ConnectionSettings, LoginOptions, LoginOptions as Options, Secret, ServerKey, TimeLimits};
pub use product::{
    Bounds, DeferredWork, Description, DeviceGauge, Quiet, Rest, Settling, Unreported, UpkeepReport, column,
};
pub use products::{AnySession, DatabaseAddress, Family};
pub use server_queries::{
    Room, connection_room, deferred_work, describe, drop_binlog, explain, explain_executed, is_engine,
    prepared_room, settle, status, table_engines, tables, unreported, waits,
};
pub use session::{Answer, Cells, Param, Rows, Sent, Session, Statement, first_i64};
pub use tls::{Tls, TlsPem};

/// The result of a request to a database.
type Result<T, E = DbError> = std::result::Result<T, E>;
