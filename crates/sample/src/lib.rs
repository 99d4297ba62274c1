//! Samples raw counters of the host, the server and the load client once per interval, usually every
//! second.
//!
//! A [`Sampler`] reads counters of the machine, the server's process, the load client, the disk, the
//! server's own status and the size of its files. It appends them to a step's counter files. It
//! computes no rate: the readers of the files do that. Each source has one file below `sources/`. That
//! file says which keys the source writes, in which unit, and where the kernel or the server gets them
//! from.
//!
//! Sources that may hang or take long have threads of their own, so that the cheap sources are read on
//! time whatever the server does. These are the server's status and the walks through the data
//! directory and through processes.

mod clock;
mod config;
mod control_groups;
mod device;
mod diskstats;
mod error;
mod host_info;
mod mounts;
mod outlet;
mod proc_file;
mod reader;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod recording;
mod sampler;
mod sources;
mod tally;

pub use config::Config;
pub use control_groups::{ControlGroup, GroupVersion, control_groups};
pub use device::{Device, device_of};
pub use error::Error;
pub use host_info::host_info;
pub use sampler::{Mark, Report, Sampler};
pub use sources::ALL;
