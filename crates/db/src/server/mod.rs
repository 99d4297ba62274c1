//! Configures, initialises, starts, pins and stops servers, and takes ownership of databases on
//! servers that others run.
//!
//! A [`Base`] is an unpacked server build. [`Server::start`] gives it a fresh data directory and
//! runs it on a private unix socket. [`login_at`] and
//! [`Family::take_ownership`](crate::Family::take_ownership) are for servers that dbdyno neither
//! starts nor stops. [`intents`] turns what a plan says about configurations into each version's
//! options.

pub(crate) mod abilities;
mod address;
mod asked;
pub(crate) mod base;
pub(crate) mod certificates;
mod cgroup;
mod copy;
pub(crate) mod datadir;
mod error;
pub(crate) mod family;
mod folder;
pub(crate) mod installer;
pub(crate) mod launch;
mod log;
pub(crate) mod ownership;
mod port;
mod process;
mod process_group;
#[cfg(test)]
#[path = "../../tests/support/program.rs"]
pub(crate) mod program;
mod ready;
pub(crate) mod running;
pub(crate) mod runtime_dir;
mod snapshot;
mod stale_files;
pub(crate) mod started;
pub(crate) mod template;
pub(crate) mod tmp_dir;

pub mod intents;

pub use abilities::{Abilities, ServerProbe, ThreadPool, TlsAbility};
pub use address::{credentials, login_at, tls_settings};
pub use asked::{ProgramLimits, ProgramLimits as Bounds, Unanswered, ask, output};
pub use base::Base;
pub use certificates::Certificates;
pub use cgroup::Cgroup;
pub use copy::Copied;
pub use datadir::{prepare as prepare_data, remove_data};
pub use error::Error;
pub use family::FileLogin;
pub use folder::{find_named, list, servers_dir};
pub(crate) use intents::OwnConfig;
pub use launch::{calling, find_in_path, start_detached};
pub use ownership::{MARKER_TABLE, Ownership};
pub use process::Stopped;
pub use running::{Data, Running};
pub use runtime_dir::RuntimeDir;
pub use snapshot::{Snapshot, SnapshotFile, SnapshotInfo};
pub use stale_files::remove_stale_files;
pub use started::{Server, ServerSpec};
