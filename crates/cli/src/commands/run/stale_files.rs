//! Handles what killed runs have left. It removes what is safe to remove, and names what the user
//! may still want.

use std::path::{Path, PathBuf};

use dbdyno_db::server::remove_stale_files;
use dbdyno_record::{has_not_begun, is_written, last_event};

use crate::commands::list::run_dirs;
use crate::{cache_file, other_runs, terminal};

/// Removes the runtime directories, control groups, lock files and unfinished state files on this
/// host that killed dbdynos have left. A runtime directory may stay once more, because its server
/// may still be about to end.
pub(crate) fn remove() {
    let mut removed = remove_stale_files();
    removed.extend(other_runs::sweep());
    removed.extend(cache_file::sweep());
    if !removed.is_empty() {
        let paths: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
        terminal::note(&format!(
            "note: removed what a dbdyno that was killed had left: {}",
            paths.join(", ")
        ));
    }
}

/// Names data that killed runs below `runs` have left there or in `data_dir`, because such a run
/// can go on with them. It also names folders of runs that were killed before they began.
pub(crate) fn name(runs: &Path, data_dir: Option<&Path>) {
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
    with_data.filter(|(run, _)| !is_written(run) && !has_ended(run)).collect()
}

/// Whether a run came to its end. It has then kept its data because its plan says so.
fn has_ended(run: &Path) -> bool {
    last_event(run).is_some_and(|line| line.contains("\"event\":\"ended\""))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

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
