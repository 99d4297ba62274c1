//! What a dbdyno that was killed has left on this machine, next to the data in its run directory.

use std::path::PathBuf;

use crate::server::{cgroup, runtime_dir};

/// Removes the runtime dirs of sockets and the control groups of dbdynos that have ended without doing so,
/// and returns their paths. What still has a server in it stays: it is asked to end when its dbdyno
/// ends, and a later start finds it gone.
pub fn remove_stale_files() -> Vec<PathBuf> {
    let mut removed = runtime_dir::sweep();
    removed.extend(cgroup::sweep());
    removed
}
