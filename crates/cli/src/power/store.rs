//! The file in which the noise of ended runs is remembered, in the user's state folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbdyno_analyse::StepNoise;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cache_file;
use crate::exit::ExitError;

/// Version of the file's shape. A file of another version counts as absent and is written anew.
const FORMAT: u32 = 2;
/// Entries that are kept, the newest.
const MOST: usize = 200;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredNoise {
    pub(super) run_id: String,
    pub(super) started: String,
    /// Kind of build of dbdyno: a debug build scatters in its own way.
    pub(super) build: String,
    /// In words: of a file with other words nothing is found.
    pub(super) host: BTreeMap<String, String>,
    pub(super) workload: String,
    pub(super) version: u32,
    pub(super) options: Map<String, Value>,
    pub(super) steps: Vec<StepNoise>,
}

/// `noise.json`; `None` without a home.
pub(super) fn path() -> Option<PathBuf> {
    cache_file::in_state_folder("noise.json")
}

/// All that is remembered. A file that cannot be read or understood holds nothing.
pub(super) fn load(path: &Path) -> Vec<StoredNoise> {
    cache_file::load(path, FORMAT)
}

/// Adds entries; those of the same run and workload are replaced, as when a run has gone on.
pub(super) fn save(path: &Path, new: Vec<StoredNoise>) -> Result<(), ExitError> {
    let is_same =
        |old: &StoredNoise, new: &StoredNoise| (&old.run_id, &old.workload) == (&new.run_id, &new.workload);
    cache_file::add(path, (FORMAT, MOST), new, is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(run_id: &str, degrees: u32) -> StoredNoise {
        let noise = StepNoise {
            workload: "oltp".to_owned(),
            step: "load".to_owned(),
            deviation: 0.01,
            degrees,
            again: false,
            within: None,
            seconds: 10.0,
        };
        StoredNoise {
            run_id: run_id.to_owned(),
            started: String::new(),
            build: "release".to_owned(),
            host: BTreeMap::new(),
            workload: "oltp".to_owned(),
            version: 1,
            options: Map::new(),
            steps: vec![noise],
        }
    }

    #[test]
    fn a_run_is_remembered_once_and_only_the_newest_are_kept() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("state/noise.json");
        save(&path, Vec::new()).expect("nothing to write");
        assert!(!path.exists());
        for (run, degrees) in [("a", 2), ("b", 2), ("a", 4)] {
            save(&path, vec![entry(run, degrees)]).expect("a writable folder");
        }
        assert_eq!(load(&path), [entry("b", 2), entry("a", 4)]);
        save(&path, (0..MOST).map(|run| entry(&run.to_string(), 1)).collect()).expect("a writable folder");
        assert_eq!((load(&path).len(), load(&path)[0].run_id.as_str()), (MOST, "0"));
        std::fs::write(&path, "{\"format\":2}").expect("a file");
        assert!(load(&path).is_empty());
    }
}
