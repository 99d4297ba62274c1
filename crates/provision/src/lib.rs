//! Get, configure, initialise, start, pin and stop servers; name and claim those that others run.
//!
//! A [`Base`] is an unpacked server build. [`Server::start`] and [`PgServer::start`] give it a fresh data directory and
//! run it on a private unix socket. [`address`] and [`external`] are for servers that dbdyno neither starts nor stops.
//! [`fetch`] knows the catalogue `servers.toml` and gets the files of its servers; [`servers`] is what `dbdyno servers` does
//! with them.
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
mod near;
mod option_file;
mod peer;
mod port;
mod postgres;
mod process;
#[cfg(test)]
#[path = "../tests/support/program.rs"]
mod program;
mod ready;
mod running;
mod server;
mod snapshot;
mod template;
mod tls;
mod tmp_dir;

pub mod address;
pub mod external;
pub mod fetch;
pub mod intents;
pub mod servers;

pub use address::{Family, credentials};
pub use base::Base;
pub use basedir::{BaseDir, Product, Version};
pub use certificates::Certificates;
pub use cgroup::{Cgroup, CgroupVersion};
pub use command::calling;
pub use copy::Copied;
pub use datadir::{prepare as prepare_data, remove_data};
pub use error::Error;
pub use folder::{find_named, list, servers_dir};
pub use home::Home;
pub use leftovers::remove_leftovers;
pub use peer::local_pid;
pub use postgres::{PgBase, PgServer, PgServerSpec};
pub use process::Stopped;
pub use running::{Data, Running};
pub use server::{Server, ServerSpec};
pub use snapshot::{Snapshot, SnapshotFile, SnapshotInfo};
pub use tls::tls_settings;
