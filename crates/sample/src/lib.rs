//! Samples raw counters of the host, the server and the load client once per interval, usually
//! every second.
//!
//! A [`Sampler`] reads counters of the machine, the server's process, the load client, the disk,
//! the server's own status and the size of its files. It appends them to a step's counter files. It
//! computes no rate: the readers of the files do that. Each source has a file below `sources/`.
//! That file says which keys the source writes, in which unit, and where the kernel or the server
//! gets them from.
//!
//! Sources that may hang or take long have separate threads, so that the cheap sources are read on
//! time whatever the server does. These are the server's status and the walks through the data
//! directory and through processes.

mod control_groups;
mod device;
mod host_info;
pub mod profile;
mod reader;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod recording;
mod sampler;
mod sources;

pub use control_groups::{ControlGroup, GroupVersion, control_groups};
pub use device::{Device, device_of};
pub use host_info::host_info;
pub use sampler::{Config, Mark, Sampler, SamplerReport};
pub use sources::ALL;

use std::path::PathBuf;
use std::time::Duration;

/// An error whose message names what failed and where. Only [`Error::Counters`], [`Error::Thread`]
/// and [`Error::Interval`] end a sampler. The others end one source and reach the caller as texts
/// in [`crate::SamplerReport::warnings`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A counter file could not be opened or written.
    #[error(transparent)]
    Counters(#[from] dbdyno_record::Error),
    #[error("cannot start the thread `{name}`: {source}; check the limit of processes (ulimit -u)")]
    Thread { name: String, source: std::io::Error },
    #[error("the sampling interval is zero; give at least a millisecond")]
    Interval,
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} has a format that this dbdyno does not know (no {missing}); please report it with the kernel's version"
    )]
    Format { path: PathBuf, missing: &'static str },
    #[error("process {pid} has ended")]
    Gone { pid: u32 },
    #[error("cannot read the CPU clock of process {pid}: {source}")]
    Clock { pid: u32, source: std::io::Error },
    #[error(
        "no block device of this machine is known to hold {path} (filesystem {filesystem}); disk IO is not counted"
    )]
    NoDevice { path: PathBuf, filesystem: String },
    #[error("cannot query the server's status: {0}")]
    Status(#[from] dbdyno_db::DbError),
    #[error("the server did not answer a status query within {} s", .limit.as_secs_f64())]
    StatusSlow { limit: Duration },
    #[error("cannot set up the event loop for status queries: {0}")]
    Runtime(std::io::Error),
}
