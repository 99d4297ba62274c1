//! The file in which the times of ended runs are remembered, in the user's state folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbdyno_plan::PastCell;
use serde::{Deserialize, Serialize};

use crate::cache_file;
use crate::exit::ExitError;

/// Version of the file's shape, and of the shipped figures that its times are compared with: to be
/// raised with either. A file of another version counts as absent and is written again.
const FORMAT: u32 = 1;
/// Entries that are kept, the newest.
const MOST: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredCell {
    pub(super) run_id: String,
    /// Kind of build of dbdyno.
    pub(super) build: String,
    /// In words: of a file with other words nothing is found.
    pub(super) host: BTreeMap<String, String>,
    pub(super) cell: PastCell,
}

/// `times.json`; `None` without a home.
pub(super) fn path() -> Option<PathBuf> {
    cache_file::in_state_folder("times.json")
}

/// All that is remembered. A file that cannot be read or understood holds nothing.
pub(super) fn load(path: &Path) -> Vec<StoredCell> {
    cache_file::load(path, FORMAT)
}

/// Adds the cells of one run; those of the same run are replaced, as when a run has gone on.
pub(super) fn save(path: &Path, new: Vec<StoredCell>) -> Result<(), ExitError> {
    cache_file::add(path, (FORMAT, MOST), new, |old, new| old.run_id == new.run_id)
}
