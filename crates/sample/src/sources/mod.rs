//! All sources of counters: one file each, one trait, one list.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::Error;

mod cgroup;
mod client;
mod costly;
mod disk;
mod footprint;
mod host;
mod interrupts;
mod load;
mod process;
pub(crate) mod processes;
mod sampling;
mod server;
pub(crate) mod size;
mod status;
mod switches;
mod throttling;
mod tree;

pub(crate) use cgroup::Group;
pub(crate) use client::Client;
pub(crate) use costly::Costly;
pub(crate) use disk::Disk;
pub(crate) use host::{Host, parse_stat};
pub(crate) use interrupts::Interrupts;
pub(crate) use load::Load;
pub(crate) use processes::Processes;
pub(crate) use sampling::Sampling;
pub(crate) use server::Server;
pub(crate) use size::Size;
pub(crate) use status::Status;
pub(crate) use switches::{Members, Scheduling};
pub(crate) use throttling::Throttling;
pub(crate) use tree::ServerTree;

/// Every source: its name, which is also its counter file's, and what it counts.
pub const ALL: &[(&str, &str)] = &[
    ("host", "CPU time of the whole machine, context switches, pressure"),
    ("server", "CPU time, memory and IO of the server's process"),
    ("switches", "context switches of the server's threads, and how long they waited for a CPU"),
    ("interrupts", "rescheduling and function-call interrupts of the server's and of the client's CPUs"),
    ("cgroup", "memory, page cache included, of the server's control group, where its memory is limited"),
    ("client", "CPU time, memory and IO of dbdyno's own process, including an embedded database"),
    ("load", "CPU time of each load thread of the client, and how long it waited for a CPU"),
    ("processes", "CPU time of all processes of the machine and of the kernel's own threads"),
    ("throttling", "how long a CPU quota kept the client or the server off the CPUs"),
    ("disk", "reads, writes and flushes of the block device that holds the data directory"),
    ("status", "the server's own counters, under the server's names"),
    ("size", "bytes and files of the data directory and of the benchmark's database"),
    ("sampler", "what sampling itself costs"),
];

/// Why a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A whole interval has passed. A costly reading may be left for later.
    Tick,
    /// A window begins or ends, so everything is read.
    Boundary,
    /// The load's connections are closed and sampling ends, so everything is read for the last time.
    Last,
}

/// The counters of one source as last read. Keys are kept, so that a sample allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Values(BTreeMap<String, i64>);

impl Values {
    pub(crate) fn set(&mut self, key: &str, value: i64) {
        if let Some(slot) = self.0.get_mut(key) {
            *slot = value;
        } else {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// Sets `key` where there is a value.
    pub(crate) fn set_known(&mut self, key: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets `key` to `value`, unless it is higher already.
    pub(crate) fn raise(&mut self, key: &str, value: i64) {
        let value = self.0.get(key).map_or(value, |known| value.max(*known));
        self.set(key, value);
    }

    pub(crate) fn replace(&mut self, values: BTreeMap<String, i64>) {
        self.0 = values;
    }

    pub(crate) fn map(&self) -> &BTreeMap<String, i64> {
        &self.0
    }
}

/// Something whose counters can be read.
pub(crate) trait Source {
    /// Returns what is sampled, for the header of the counter file.
    fn about(&self) -> Map<String, Value>;

    /// Reads the counters into `values`. This is for a source that reads them at any moment. Others
    /// have their own [`Self::read`].
    fn fill(&mut self, _values: &mut Values) -> Result<(), Error> {
        unreachable!("a source reads its counters in `fill` or in `read`")
    }

    /// Reads the counters into `values`. The result is when it read them, or `None` when nothing was
    /// due.
    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        self.fill(values)?;
        Ok(Some(at))
    }

    /// Ends the connection of a source that has one.
    fn close(&mut self) {}
}

/// Returns a header's map from pairs.
pub(crate) fn about<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
