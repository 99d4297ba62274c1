//! What host and server did each second.
//!
//! A [`Sampler`] reads raw counters of the machine, the server's process, the load client, the
//! disk, the server's own status and the size of its files, and appends them to a step's counter
//! files. It computes no rate: that is the business of the files' readers. Each source is in one
//! file below `sources/` and says there which keys it writes, in which unit and where the kernel or
//! the server gets them from.
//!
//! Sources that may hang or take long (the server's status, the walks through the data directory
//! and through processes) have threads of their own, so that the cheap ones are read on time
//! whatever the server does.

mod clock;
mod config;
mod control_groups;
mod device;
mod diskstats;
mod error;
mod host_info;
mod reader;
mod mounts;
mod outlet;
mod proc_file;
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
