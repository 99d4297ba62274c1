//! Finds folders: the repository, the cache, and the build output.

use std::env;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

/// Returns `$XDG_CACHE_HOME/dbdyno`, otherwise `~/.cache/dbdyno`. It holds what can be made again,
/// but takes a while.
pub(crate) fn cache() -> PathBuf {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(|| root().join("target/cache")).join("dbdyno")
}

/// Returns the folder of Cargo's build output.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty());
    root().join(named.map_or_else(|| PathBuf::from("target"), PathBuf::from))
}
