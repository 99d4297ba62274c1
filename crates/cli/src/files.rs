//! Manages files that dbdyno keeps for its own use. A file next to records is written either whole
//! or not at all. Small JSON files in the user's cache and state folders have contents that can be
//! obtained again, so a damaged file or one of another version counts as absent.
//!
//! Files of killed runs are removed where that is safe. Files that the user may still want are only
//! reported.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dbdyno_db::server::remove_stale_files;
use dbdyno_record::{has_not_begun, is_written, last_event};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::commands::list::run_dirs;
use crate::conductor::{is_ended_process, sweep_run_files};
use crate::exit::ExitError;
use crate::terminal;

/// Writes `text` to `path`. It replaces an existing file, even a link or a FIFO, and follows no
/// link.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_added_extension("unfinished");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::File::create_new(&unfinished)?.write_all(text.as_bytes())?;
    fs::rename(&unfinished, path)
}

/// The content of every JSON file: the version of its schema, and its entries.
#[derive(Serialize, Deserialize)]
struct CacheFile<T> {
    format: u32,
    entries: Vec<T>,
}

/// Returns the folder that `variable` names, otherwise `otherwise` in the user's home. It is `None`
/// without a home directory.
pub(crate) fn user_folder(variable: &str, otherwise: &str) -> Option<PathBuf> {
    let of = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of(variable).or_else(|| of("HOME").map(|home| home.join(otherwise)))
}

/// Returns a file in `dbdyno` below `$XDG_STATE_HOME`, otherwise below `~/.local/state`. It is
/// `None` without a home directory.
pub(crate) fn in_state_folder(name: &str) -> Option<PathBuf> {
    user_folder("XDG_STATE_HOME", ".local/state").map(|state| state.join("dbdyno").join(name))
}

/// Returns all entries of a file of version `format`. There are none if it cannot be read or
/// understood.
pub(crate) fn load_cache<T: DeserializeOwned>(path: &Path, format: u32) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match serde_json::from_str::<CacheFile<T>>(&text) {
        Ok(kept) if kept.format == format => kept.entries,
        _ => Vec::new(),
    }
}

/// Writes the whole file. A concurrent reader sees the old file or the new one.
pub(crate) fn save_cache<T: Serialize>(path: &Path, format: u32, entries: Vec<T>) -> Result<(), ExitError> {
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

/// Removes files in the state folder that killed processes had begun to write, and returns the
/// paths.
pub(crate) fn sweep_caches() -> Vec<PathBuf> {
    in_state_folder("").map_or_else(Vec::new, |folder| sweep_caches_in(&folder))
}

fn sweep_caches_in(folder: &Path) -> Vec<PathBuf> {
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
pub(crate) fn add_to_cache<T: Serialize + DeserializeOwned>(
    path: &Path,
    (format, most): (u32, usize),
    new: Vec<T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<(), ExitError> {
    if new.is_empty() {
        return Ok(());
    }
    let mut all: Vec<T> = load_cache(path, format);
    all.retain(|old| !new.iter().any(|new| is_same(old, new)));
    all.extend(new);
    let surplus = all.len().saturating_sub(most);
    all.drain(..surplus);
    save_cache(path, format, all)
}

/// Removes the runtime directories, control groups, lock files and unfinished state files on this
/// host that killed dbdyno processes have left. A runtime directory may stay until the next call,
/// because its server may still be about to end.
pub(crate) fn remove_stale() {
    let mut removed = remove_stale_files();
    removed.extend(sweep_run_files());
    removed.extend(sweep_caches());
    if !removed.is_empty() {
        let paths: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
        terminal::note(&format!(
            "note: removed what a dbdyno that was killed had left: {}",
            paths.join(", ")
        ));
    }
}

/// Reports data that killed runs below `runs` have left there or in `data_dir`. They are not
/// removed, because such a run can go on with them. It also reports folders of runs that were
/// killed before they began.
pub(crate) fn report_stale(runs: &Path, data_dir: Option<&Path>) {
    for (folder, data) in not_begun(runs, data_dir) {
        let folders: Vec<String> =
            [Some(folder), data].into_iter().flatten().map(|path| path.display().to_string()).collect();
        terminal::note(&format!(
            "note: a run that was killed before it began has left {}, and nothing of it was measured; remove it",
            folders.join(" and ")
        ));
    }
    for (run, data) in abandoned(runs, data_dir) {
        terminal::note(&format!(
            "note: a run that was cut off has left its data in {}; go on with it: dbdyno run --resume {}, or remove the data",
            data.display(),
            run.display()
        ));
    }
}

/// Returns folders of runs that were killed before they began. Each comes with the folder for its
/// data where that lies elsewhere.
fn not_begun(runs: &Path, data_dir: Option<&Path>) -> Vec<(PathBuf, Option<PathBuf>)> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| has_not_begun(path)).collect();
    folders.sort();
    let data_of = |run: &Path| Some(data_dir?.join(run.file_name()?)).filter(|data| data.is_dir());
    folders.into_iter().map(|run| (run.clone(), data_of(&run))).collect()
}

/// Returns run directories that were cut off, each with the folder of its data.
fn abandoned(runs: &Path, data_dir: Option<&Path>) -> Vec<(PathBuf, PathBuf)> {
    let data_of = |run: &PathBuf| {
        let elsewhere = data_dir.and_then(|folder| Some(folder.join(run.file_name()?)));
        [Some(run.join("data")), elsewhere].into_iter().flatten().find(|data| data.is_dir())
    };
    let with_data = run_dirs(runs).into_iter().rev().filter_map(|run| data_of(&run).map(|data| (run, data)));
    with_data.filter(|(run, _)| !is_written(run) && !run_has_ended(run)).collect()
}

/// Whether a run has ended. If it has, data that still exist were kept because the plan demands it.
fn run_has_ended(run: &Path) -> bool {
    last_event(run).is_some_and(|line| line.contains("\"event\":\"ended\""))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_link_in_place_of_a_file_is_replaced_and_its_target_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, path) = (folder.path().join("theirs"), folder.path().join("report.html"));
        fs::write(&theirs, "x").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        write_whole(&path, "a page").unwrap();
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read_to_string(&path).unwrap(), "a page");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "x");
    }

    #[test]
    fn files_that_killed_processes_had_begun_are_swept_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = format!("times.{}.partial", std::process::id());
        let names = ["times.4194305.partial", &own, "times.json", "times.x.partial"];
        for name in names {
            std::fs::write(folder.path().join(name), "").expect("a writable folder");
        }
        assert_eq!(sweep_caches_in(folder.path()), [folder.path().join(names[0])]);
        assert!(names[1..].iter().all(|name| folder.path().join(name).exists()));
    }

    #[test]
    fn entries_come_back_unless_the_file_is_damaged_or_of_another_version() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("dbdyno/kept.json");
        assert!(load_cache::<u32>(&path, 2).is_empty());
        save_cache(&path, 2, vec![7, 8]).expect("a writable folder");
        assert_eq!((load_cache::<u32>(&path, 2), load_cache::<u32>(&path, 3)), (vec![7, 8], Vec::new()));
        std::fs::write(&path, "{").expect("a writable file");
        assert!(load_cache::<u32>(&path, 2).is_empty());
        let error = save_cache(Path::new("/proc/kept.json"), 2, vec![7]).expect_err("no one writes there");
        let message = error.message.unwrap_or_default();
        assert!(message.starts_with("cannot write /proc/kept.json: "), "{message}");
    }

    #[test]
    fn only_runs_that_no_process_writes_and_that_have_data_are_named() {
        let runs = tempfile::tempdir().unwrap();
        for (name, has_data) in [("cut-off", true), ("ended", false), ("going-on", true)] {
            let run = runs.path().join(name);
            std::fs::create_dir(&run).unwrap();
            for file in ["manifest.json", "events.jsonl"] {
                std::fs::write(run.join(file), "").unwrap();
            }
            if has_data {
                std::fs::create_dir(run.join("data")).unwrap();
            }
        }
        let lock = File::open(runs.path().join("going-on/events.jsonl")).unwrap();
        lock.lock().unwrap();
        let cut_off = runs.path().join("cut-off");
        assert_eq!(abandoned(runs.path(), None), [(cut_off.clone(), cut_off.join("data"))]);
        drop(lock);
        assert_eq!(abandoned(runs.path(), None).len(), 2);
        std::fs::write(cut_off.join("events.jsonl"), "{}\n{\"event\":\"ended\"}\n").unwrap();
        assert_eq!(abandoned(runs.path(), None).len(), 1, "it keeps its data");
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::create_dir(elsewhere.path().join("ended")).unwrap();
        assert_eq!(abandoned(runs.path(), Some(elsewhere.path())).len(), 2);
        assert!(abandoned(&runs.path().join("nonesuch"), None).is_empty());
    }

    #[test]
    fn folders_of_runs_that_were_killed_before_they_began_are_named_with_that_of_their_data() {
        let (runs, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, files) in [
            ("a", &["events.jsonl", "manifest.json.unfinished"][..]),
            ("b", &["events.jsonl"]),
            ("begun", &["events.jsonl", "manifest.json"]),
            ("other", &[]),
        ] {
            std::fs::create_dir(runs.path().join(name)).unwrap();
            for file in files {
                std::fs::write(runs.path().join(name).join(file), "").unwrap();
            }
        }
        std::fs::create_dir(data.path().join("b")).unwrap();
        let (a, b) = (runs.path().join("a"), runs.path().join("b"));
        let elsewhere = data.path().join("b");
        assert_eq!(not_begun(runs.path(), Some(data.path())), [(a.clone(), None), (b, Some(elsewhere))]);
        let lock = File::open(a.join("events.jsonl")).unwrap();
        lock.lock().unwrap();
        assert_eq!(not_begun(runs.path(), None).len(), 1, "another one is just being made");
    }
}
