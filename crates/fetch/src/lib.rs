//! The servers folder and the actions of `dbdyno servers`: get, add, probe, list, start as a scratch
//! server, remove.
//!
//! [`Catalogue`] lists what can be fetched (`servers.toml`, and the user's own file).

mod add;
mod client;
mod error;
mod files;
mod get;
mod inventory;
mod lock;
mod named;
mod probe;
#[cfg(test)]
#[path = "../../db/tests/support/program.rs"]
mod program;
mod remove;
mod scratch;
mod server_entry;
mod suggestions;

pub use add::add;
pub use client::client;
pub use error::Error;
pub use files::{
    Catalogue, Entry, Layout, Source, by_name, catalogue, install_tools, missing_libraries, missing_tools,
};
pub use get::get;
pub use inventory::{Here, ListedServer, inventory};
pub use named::find_named;
pub use probe::probe_embedded;
pub use remove::remove;
pub use scratch::{ScratchOptions, ScratchServer};
pub use server_entry::{Answer, Origin, ServerEntry, answer_of};
