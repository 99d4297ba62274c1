//! Stale files: what a killed dbdyno has left on this machine, besides the data in its run
//! directory.

use std::path::PathBuf;

use crate::server::{cgroup, runtime_dir};

/// Removes the runtime directories and control groups of dbdynos that have ended without doing so,
/// and returns their paths. Anything that still has a server in it stays. That server was asked to
/// end when its dbdyno ended, so a later start finds it gone.
pub fn remove_stale_files() -> Vec<PathBuf> {
    let mut removed = runtime_dir::sweep();
    removed.extend(cgroup::sweep());
    removed
}
