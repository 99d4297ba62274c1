//! Speak to a database: sessions, dialects, error classes, a server's own counters.
//!
//! A workload sees an [`Endpoint`] (where to connect and what the server can do) and [`Session`]s (one connection
//! each). It never asks which product it talks to, only for [`Capabilities`]. One more driver is one new folder,
//! one variant of [`Endpoint`] and [`AnySession`], and one line in [`ALL`].

mod address;
mod cancel;
mod capabilities;
mod channel;
mod connections;
mod debt;
mod der;
mod endpoint;
mod engines;
mod error;
mod excerpt;
mod exchange;
mod explain;
#[cfg(test)]
mod fuzz;
mod hold;
mod input;
mod kept;
mod options;
mod roster;
#[cfg(test)]
mod scripted;
mod session;
mod status;
mod stream;
mod tls;
mod unix_stream;
mod upkeep;

pub mod mysql;
pub mod null;
pub mod postgres;
pub mod sqlite;

pub use capabilities::{Capabilities, DeleteForm, IndexDdl, IndexHint, KeySource, RowStream, Upkeep};
pub use connections::{ConnectionClass, ConnectionLog, Encryption};
pub use debt::{Debt, debt};
pub use endpoint::{AnySession, Endpoint, Target};
pub use engines::{is_engine, table_engines};
pub use error::{Class, DbError};
pub use explain::explain;
pub use hold::{Held, Hold, Holder};
pub use roster::Roster;
pub use session::{Answer, Cells, Param, Session, Statement, first_i64};
pub use status::{Description, Untold, describe, status, untold};
pub use tls::{Tls, TlsMode, TlsPem, TlsSettings};
pub use upkeep::{Bounds, DeviceGauge, Quiet, Rest, Settling, UpkeepReport, drop_binlog, settle};

/// Every driver: its name and what it is for, in the order in which they are listed to users.
pub const ALL: &[(&str, &str)] = &[
    ("sqlite", "SQLite, embedded; no server needed"),
    ("mysql", "MySQL 5.5 to 9.7, MariaDB 10.1 to 11.8, Percona Server, over unix socket or TCP"),
    ("postgres", "PostgreSQL 9.6 to 19, over unix socket or TCP"),
    ("null", "answers at once; shows what dbdyno itself costs"),
];
