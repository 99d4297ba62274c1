//! Configure, initialise, start, pin and stop servers; name and claim those that others run.
//!
//! A [`Base`] is an unpacked server build. [`Server::start`] gives it a fresh data directory and
//! runs it on a private unix socket. [`address`] and [`Family::claim`] are for servers that dbdyno
//! neither starts nor stops. [`intents`] turns what a plan says of configurations into the options
//! of each product and version.

mod abilities;
mod asked;
mod certificates;
mod cgroup;
mod claim;
mod copy;
mod datadir;
mod error;
mod families;
mod folder;
mod guard;
mod home;
mod installer;
mod launch;
mod leftovers;
mod log;
mod mysql;
mod port;
mod postgres;
mod process;
mod product;
#[cfg(test)]
#[path = "../tests/support/program.rs"]
mod program;
mod ready;
mod release;
mod running;
mod snapshot;
mod sqlite;
mod template;
mod tls_options;
mod tmp_dir;

pub mod address;
pub mod intents;

pub use abilities::{Abilities, ThreadPool, TlsAbility};
pub use address::{credentials, tls_settings};
pub use asked::{Bounds, Unanswered, ask, output};
pub use certificates::Certificates;
pub use cgroup::Cgroup;
pub use claim::{Claim, MARK_TABLE};
pub use copy::Copied;
pub use datadir::{prepare as prepare_data, remove_data};
pub use error::Error;
pub use families::{EMBEDDED, FAMILIES};
pub use folder::{find_named, list, servers_dir};
pub use home::Home;
pub use launch::{calling, find_in_path, start_detached};
pub use leftovers::remove_leftovers;
pub use process::Stopped;
pub use product::{Base, Embedded, Family, FamilyFacts, FileLogin, Question, Server, ServerSpec, TlsOption};
pub use running::{Data, Running};
pub use snapshot::{Snapshot, SnapshotFile, SnapshotInfo};
