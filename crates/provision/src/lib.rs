//! Get, configure, initialise, start, pin and stop servers; name and claim those that somebody else runs.
//!
//! A [`BaseDir`] is an unpacked server build. [`Server::start`] gives it a fresh data directory and runs it on a
//! private unix socket. [`address`] and [`external`] are for servers that dbdyno neither starts nor stops.
//! [`fetch`] fills the servers folder from the catalogue `servers.toml`.

mod basedir;
mod command;
mod datadir;
mod error;
mod folder;
mod initialise;
mod launch;
mod log;
mod my_cnf;
mod option_file;
mod process;
mod ready;
mod server;
mod template;

pub mod address;
pub mod external;
pub mod fetch;

pub use address::credentials;
pub use basedir::{BaseDir, Product, Version};
pub use datadir::remove_data;
pub use error::Error;
pub use folder::{find_named, list, servers_dir};
pub use process::Stopped;
pub use server::{Server, ServerSpec};
