//! Keeps small JSON files in the user's cache and state folders. Their contents can be obtained
//! again, so a damaged file or one of another version counts as absent.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::ExitError;
use crate::other_runs::is_ended_process;

/// What every file holds: the version of its schema, and its entries.
#[derive(Serialize, Deserialize)]
struct CacheFile<T> {
    format: u32,
    entries: Vec<T>,
}

/// Returns the folder that `variable` names, otherwise `otherwise` in the user's home. It is `None`
/// without a home directory.
pub(crate) fn folder(variable: &str, otherwise: &str) -> Option<PathBuf> {
    let of = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of(variable).or_else(|| of("HOME").map(|home| home.join(otherwise)))
}

/// Returns a file in `dbdyno` below `$XDG_STATE_HOME`, otherwise below `~/.local/state`. It is
/// `None` without a home directory.
pub(crate) fn in_state_folder(name: &str) -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state").map(|state| state.join("dbdyno").join(name))
}

/// Returns all entries of a file of version `format`. There are none if it cannot be read or
/// understood.
pub(crate) fn load<T: DeserializeOwned>(path: &Path, format: u32) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match serde_json::from_str::<CacheFile<T>>(&text) {
        Ok(kept) if kept.format == format => kept.entries,
        _ => Vec::new(),
    }
}

/// Writes the whole file. A concurrent reader sees the old file or the new one.
pub(crate) fn save<T: Serialize>(path: &Path, format: u32, entries: Vec<T>) -> Result<(), ExitError> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap_or(path))?;
        let mut text = serde_json::to_string_pretty(&CacheFile { format, entries })?;
        text.push('\n');
        let partial = path.with_extension(format!("{}.partial", std::process::id()));
        std::fs::write(&partial, text)?;
        std::fs::rename(&partial, path)
    };
    write().map_err(|error| ExitError::machine(format!("cannot write {}: {error}", path.display())))
}

/// Removes files in the state folder that killed dbdynos had begun to write, and returns the paths.
pub(crate) fn sweep() -> Vec<PathBuf> {
    in_state_folder("").map_or_else(Vec::new, |folder| sweep_in(&folder))
}

fn sweep_in(folder: &Path) -> Vec<PathBuf> {
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name.strip_suffix(".partial").and_then(|name| name.rsplit('.').next());
        process.is_some_and(is_ended_process)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let left = entries.map(|entry| entry.path()).filter(is_left);
    left.filter(|path| std::fs::remove_file(path).is_ok()).collect()
}

/// Adds entries to a file. They replace equal older entries, and only the newest `most` entries are
/// kept.
pub(crate) fn add<T: Serialize + DeserializeOwned>(
    path: &Path,
    (format, most): (u32, usize),
    new: Vec<T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<(), ExitError> {
    if new.is_empty() {
        return Ok(());
    }
    let mut all: Vec<T> = load(path, format);
    all.retain(|old| !new.iter().any(|new| is_same(old, new)));
    all.extend(new);
    let surplus = all.len().saturating_sub(most);
    all.drain(..surplus);
    save(path, format, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_ones_had_begun_to_write_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = format!("times.{}.partial", std::process::id());
        let names = ["times.4194305.partial", &own, "times.json", "times.x.partial"];
        for name in names {
            std::fs::write(folder.path().join(name), "").expect("a writable folder");
        }
        assert_eq!(sweep_in(folder.path()), [folder.path().join(names[0])]);
        assert!(names[1..].iter().all(|name| folder.path().join(name).exists()));
    }

    #[test]
    fn entries_come_back_unless_the_file_is_damaged_or_of_another_version() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("dbdyno/kept.json");
        assert!(load::<u32>(&path, 2).is_empty());
        save(&path, 2, vec![7, 8]).expect("a writable folder");
        assert_eq!((load::<u32>(&path, 2), load::<u32>(&path, 3)), (vec![7, 8], Vec::new()));
        std::fs::write(&path, "{").expect("a writable file");
        assert!(load::<u32>(&path, 2).is_empty());
        let error = save(Path::new("/proc/kept.json"), 2, vec![7]).expect_err("no one writes there");
        let message = error.message.unwrap_or_default();
        assert!(message.starts_with("cannot write /proc/kept.json: "), "{message}");
    }
}
