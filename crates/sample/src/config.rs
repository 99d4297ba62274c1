//! What a sampler looks at.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use dbdyno_drivers::Endpoint;

/// What to sample, how often, and on which CPUs. Whatever is `None` is not sampled.
#[derive(Debug, Clone)]
pub struct Config {
    /// Process of the server; `None` for an embedded database and for a server on another machine.
    pub server_pid: Option<u32>,
    /// The server is that process and its children, as PostgreSQL is; all are sampled together.
    pub server_tree: bool,
    /// The control group that the server is in, if dbdyno made one: its folder.
    pub server_cgroup: Option<PathBuf>,
    /// The server's data directory: its size, and the block device that holds it.
    pub data_dir: Option<PathBuf>,
    /// Files of the benchmark's own database: `<data_dir>/ib`, or the folder of an SQLite file.
    pub database_dir: Option<PathBuf>,
    /// Where to ask for the server's own counters.
    pub status: Option<Endpoint>,
    /// Time between two samples; must not be zero.
    pub interval: Duration,
    /// Time from the barrier to the begin of the common window, where every source is read.
    pub warmup: Duration,
    /// CPUs that the server may run on.
    pub server_cpus: Option<Vec<u32>>,
    /// CPUs of the client, on which the sampler's threads run too; `None` = wherever the caller
    /// may.
    pub cpus: Option<Vec<u32>>,
    /// Where load thread n of a client that spins counts the nanoseconds of its polls that found
    /// nothing; `None` = it sleeps.
    pub polled_ns: Option<Arc<[AtomicU64]>>,
}

impl Default for Config {
    /// Host and client only, once a second.
    fn default() -> Self {
        Self {
            server_pid: None,
            server_tree: false,
            server_cgroup: None,
            data_dir: None,
            database_dir: None,
            status: None,
            interval: Duration::from_secs(1),
            warmup: Duration::ZERO,
            server_cpus: None,
            cpus: None,
            polled_ns: None,
        }
    }
}
