//! Configures, initialises, starts and stops servers, pins them to CPUs, and takes ownership of
//! databases on servers that others run.
//!
//! A [`Base`] is an unpacked server build. [`Server::start`] gives it a fresh data directory and
//! runs it on a private unix socket. [`login_at`] and
//! [`Family::take_ownership`](crate::Family::take_ownership) are for servers that others run.
//! [`intents`] turns a plan's config intents into each version's options.

pub(crate) mod address;
pub(crate) mod base;
pub(crate) mod certificates;
mod cgroup;
pub(crate) mod datadir;
mod error;
pub(crate) mod launch;
mod log;
mod process;
#[cfg(test)]
#[path = "../../tests/support/program.rs"]
pub(crate) mod program;
mod programs;
pub(crate) mod running;
pub(crate) mod runtime_dir;
mod snapshot;
pub(crate) mod template;

pub mod intents;

pub use address::{MARKER_TABLE, Ownership, credentials, login_at, tls_settings};
pub use base::{
    Abilities, Base, FileLogin, ServerProbe, ThreadPool, TlsAbility, find_named, list, servers_dir,
};
pub use certificates::Certificates;
pub use cgroup::Cgroup;
pub use datadir::{Copied, prepare as prepare_data, remove_data};
pub use error::Error;
pub(crate) use intents::OwnConfig;
pub use launch::{clean_command, find_in_path, start_detached};
pub use process::Stopped;
pub use programs::{ProgramError, ProgramLimits, output, run_query_program};
pub use running::{Data, Running, Server, ServerSpec};
pub use runtime_dir::{RuntimeDir, remove_stale_files};
pub use snapshot::{Snapshot, SnapshotFile, SnapshotInfo};
