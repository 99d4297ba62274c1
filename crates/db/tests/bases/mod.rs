//! The folder with the servers that the tests start, and helpers that the tests of both protocols
//! use to start a server.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for a server's start on a busy machine.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(600);

/// The folder that holds the servers' base directories.
fn servers_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("DBDYNO_SERVERS") {
        return folder.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME is set where XDG_CACHE_HOME is not"))
            .join(".cache")
    });
    cache.join("dbdyno/servers")
}

/// Base directories whose names begin with `prefix`, sorted. Use this only for servers that `cargo
/// xtask servers` does not get. A test of any other server must fail if the server is missing.
pub(crate) fn found(prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(servers_folder()) else { return Vec::new() };
    let mut bases: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        // A server entry, which is a file, may be next to a base directory.
        .filter(|path| path.is_dir())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect();
    bases.sort();
    bases
}

/// Does the same as [`found`], but panics if there is none.
pub(crate) fn required(prefix: &str) -> Vec<PathBuf> {
    let bases = found(prefix);
    assert!(
        !bases.is_empty(),
        "no server whose name begins with {prefix} in {}; fetch the servers with `cargo xtask servers`, or name \
         their folder in DBDYNO_SERVERS",
        servers_folder().display()
    );
    bases
}

/// The last 25 lines of a server's log.
pub(crate) fn tail(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}
