//! What runs that were killed have left: cleaned up where that is safe, named where the user may
//! still want it.

use std::path::{Path, PathBuf};

use dbdyno_provision::remove_leftovers;
use dbdyno_record::{is_written, last_event};

use crate::commands::list::run_dirs;
use crate::terminal;

/// Removes homes of sockets and control groups of dbdynos that were killed.
pub(crate) fn remove() {
    let removed = remove_leftovers();
    if !removed.is_empty() {
        let paths: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
        terminal::note(&format!(
            "note: removed what a dbdyno that was killed had left: {}",
            paths.join(", ")
        ));
    }
}

/// Names data that runs below `runs` have left there or in `data_dir` when they were killed: such a
/// run can go on with them.
pub(crate) fn name(runs: &Path, data_dir: Option<&Path>) {
    for (run, data) in abandoned(runs, data_dir) {
        terminal::note(&format!(
            "note: a run that was cut off has left its data in {}; go on with it: dbdyno run --resume {}, or remove the data",
            data.display(),
            run.display()
        ));
    }
}

/// Run directories that were cut off, each with the folder of its data.
fn abandoned(runs: &Path, data_dir: Option<&Path>) -> Vec<(PathBuf, PathBuf)> {
    let data_of = |run: &PathBuf| {
        let elsewhere = data_dir.and_then(|folder| Some(folder.join(run.file_name()?)));
        [Some(run.join("data")), elsewhere].into_iter().flatten().find(|data| data.is_dir())
    };
    let with_data = run_dirs(runs).into_iter().rev().filter_map(|run| data_of(&run).map(|data| (run, data)));
    with_data.filter(|(run, _)| !is_written(run) && !has_ended(run)).collect()
}

/// A run that came to its end has kept its data because its plan says so.
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
}
