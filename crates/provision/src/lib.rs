//! Configure, initialise, start, pin and stop servers; name and claim those that others run.
//!
//! A [`Base`] is an unpacked server build. [`Server::start`] and [`PgServer::start`] give it a fresh data directory and
//! run it on a private unix socket. [`address`] and [`external`] are for servers that dbdyno neither starts nor stops.
//! [`intents`] turns what a plan says of configurations into the options of each product and version.

mod base;
mod basedir;
mod certificates;
mod cgroup;
mod command;
mod copy;
mod datadir;
mod error;
mod folder;
mod guard;
mod home;
mod initialise;
mod installer;
mod launch;
mod leftovers;
mod log;
mod my_cnf;
mod option_file;
mod peer;
mod port;
mod postgres;
mod postgres_base;
mod process;
#[cfg(test)]
#[path = "../tests/support/program.rs"]
mod program;
mod ready;
mod running;
mod server;
mod snapshot;
mod template;
mod tmp_dir;

pub mod address;
pub mod external;
pub mod intents;

pub use address::{Family, credentials, tls_settings};
pub use base::Base;
pub use basedir::{BaseDir, Product, Version};
pub use certificates::Certificates;
pub use cgroup::{Cgroup, CgroupVersion};
pub use copy::Copied;
pub use datadir::{prepare as prepare_data, remove_data};
pub use error::Error;
pub use folder::{find_named, list, servers_dir};
pub use home::Home;
pub use launch::{calling, find_in_path};
pub use leftovers::remove_leftovers;
pub use peer::local_pid;
pub use postgres::{PgServer, PgServerSpec};
pub use postgres_base::{PgBase, find_programs};
pub use process::Stopped;
pub use running::{Data, Running};
pub use server::{Server, ServerSpec};
pub use snapshot::{Snapshot, SnapshotFile, SnapshotInfo};
