//! The servers folder and the actions of `dbdyno servers`. A server can be fetched, added, probed,
//! listed, started as a scratch server, and removed.
//!
//! [`Catalogue`] lists what can be fetched. It is read from `servers.toml` and the user's own file.

mod actions;
mod build;
mod error;
mod files;
mod inventory;
#[cfg(test)]
#[path = "../../db/tests/support/program.rs"]
mod program;
mod scratch;
mod server_entry;

pub use actions::{add, get, remove};
pub use build::{BuildFacts, BuildRequest, Repository, Revision, build, build_name, builds_older_than};
pub use error::Error;
pub use files::{
    Catalogue, Entry, Layout, Source, by_name, catalogue, install_tools, missing_libraries, missing_tools,
};
pub use inventory::{Here, ListedServer, find_named, inventory};
pub use scratch::{ScratchOptions, ScratchServer, client, probe_embedded};
pub use server_entry::{ProbeAnswer, ServerEntry, ServerOrigin, answer_of};
