//! What a sampler reads, how often, and on which CPUs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use dbdyno_db::DatabaseServer;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// What to sample, how often, and on which CPUs. Whatever is `None` is not sampled.
#[derive(Debug, Clone)]
pub struct Config {
    /// Process of the server, or `None` for an embedded database and for a server on another machine.
    pub server_pid: Option<u32>,
    /// Whether the server is that process and its children, as PostgreSQL is. All are then sampled
    /// together.
    pub server_tree: bool,
    /// Folder of the control group that the server is in, if dbdyno made one.
    pub server_cgroup: Option<PathBuf>,
    /// The server's data directory. Its size is sampled, and the block device that holds it.
    pub data_dir: Option<PathBuf>,
    /// Files of the benchmark's own database: `<data_dir>/ib`, or the folder of an SQLite file.
    pub database_dir: Option<PathBuf>,
    /// Where to query the server's own counters.
    pub status: Option<DatabaseServer>,
    /// Time between two samples, which must not be zero.
    pub interval: Duration,
    /// Time from the barrier to the beginning of the common window, where every source is read.
    pub warmup: Duration,
    /// CPUs that the server may run on.
    pub server_cpus: Option<Vec<u32>>,
    /// CPUs of the client, on which the sampler's threads run too. `None` means the CPUs that the
    /// caller may use.
    pub cpus: Option<Vec<u32>>,
    /// Where load thread n of a client that spins counts the nanoseconds of its polls that found
    /// nothing. `None` means that the client sleeps.
    pub polled_ns: Option<Arc<[AtomicU64]>>,
}

impl Config {
    /// Returns the CPUs that client and server may use. There are none for a server that cannot be
    /// seen.
    pub(crate) fn our_cpus(&self) -> [BTreeSet<u32>; 2] {
        let of_client = self.cpus.clone().unwrap_or_else(|| usable_by(0));
        let of_server = match (&self.server_cpus, self.server_pid) {
            (Some(cpus), _) => cpus.clone(),
            (None, Some(pid)) => usable_by(pid),
            (None, None) => Vec::new(),
        };
        [of_client, of_server].map(|cpus| cpus.into_iter().collect())
    }
}

/// Returns the CPUs that a process may use, where 0 is the calling thread. The list is empty for a
/// process that is gone.
fn usable_by(pid: u32) -> Vec<u32> {
    let set = i32::try_from(pid).ok().and_then(|pid| sched_getaffinity(Pid::from_raw(pid)).ok());
    let is_usable = |cpu: &u32| set.is_some_and(|set| set.is_set(*cpu as usize).unwrap_or(false));
    let all = u32::try_from(CpuSet::count()).unwrap_or(0);
    (0..all).filter(is_usable).collect()
}

impl Default for Config {
    /// Samples host and client only, once per second.
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
