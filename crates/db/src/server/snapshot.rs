//! Snapshots. A snapshot is a data directory at rest that is kept as a source for copies, so that
//! every run on a copy starts from the same bytes.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::server::datadir::{Copied, files_below, forget_cached, sync};
use crate::server::{Error, datadir};

/// The data directory's name in the snapshot's folder.
const DATA: &str = "data";

/// The file that describes the data. It is written last, so a snapshot that has it is complete.
const ABOUT: &str = "snapshot.json";

/// The description of a snapshot's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Files in the order of their paths.
    pub files: Vec<SnapshotFile>,
    /// Sum of all file lengths, holes included.
    pub bytes: u64,
    /// SHA-256 over each file's path, length and content, in hexadecimal digits.
    pub sha256: String,
    /// The caller's own data, such as the workload's state. The caller needs them again when it
    /// uses a copy.
    pub saved_state: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// Path relative to the data directory.
    pub path: PathBuf,
    pub bytes: u64,
}

/// A data directory at rest, from which copies are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    folder: PathBuf,
    pub info: SnapshotInfo,
}

impl Snapshot {
    /// Turns the data directory `data_dir` into a snapshot in `folder`. The data are moved there,
    /// which needs no copy, and are read once for the checksum. No server may run on the data, and
    /// both folders must be in the same filesystem. An existing snapshot is replaced.
    pub fn take(
        data_dir: &Path,
        folder: &Path,
        saved_state: Value,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        if is_link(folder) {
            return Err(Error::NotOurs { path: folder.to_path_buf(), marker: datadir::MARKER });
        }
        datadir::check_at_rest(data_dir, cancel)?;
        remove(folder)?;
        fs::create_dir_all(folder).map_err(Error::io("cannot make the snapshot folder", folder))?;
        let data = folder.join(DATA);
        fs::rename(data_dir, &data).map_err(Error::io("cannot move the data directory to", data.clone()))?;
        let (files, bytes, sha256) = summed(&data, cancel)?;
        let snapshot =
            Self { folder: folder.to_path_buf(), info: SnapshotInfo { files, bytes, sha256, saved_state } };
        sync(folder)?;
        forget_cached(&data)?;
        write_about(&folder.join(ABOUT), &snapshot.info)?;
        Ok(snapshot)
    }

    /// Opens the snapshot in `folder`. The result is `None` when there is none, when it is
    /// incomplete, or when `folder` is a link.
    pub fn open(folder: &Path) -> Option<Self> {
        if is_link(folder) {
            return None;
        }
        let about = folder.join(ABOUT);
        // dbdyno writes a regular file with this name. A read from a pipe or a device with this
        // name might never end.
        if !fs::symlink_metadata(&about).is_ok_and(|found| found.is_file()) {
            return None;
        }
        let text = fs::read(about).ok()?;
        let info: SnapshotInfo = serde_json::from_slice(&text).ok()?;
        folder.join(DATA).join(datadir::MARKER).is_file().then(|| Self { folder: folder.to_path_buf(), info })
    }

    /// Copies the data to `data_dir`. An existing data directory must belong to dbdyno and is
    /// replaced. When this returns, the copy is on the disk and not in the page cache, even if its
    /// blocks are not shared.
    pub fn restore(&self, data_dir: &Path, cancel: &AtomicBool) -> Result<Copied, Error> {
        let data = self.folder.join(DATA);
        // This compares only names and lengths, because a failing disk or a mistake affects these
        // most often. Reading all of the data before each copy would cost as much as the copy.
        compare(&data, &self.info.files)?;
        datadir::prepare(data_dir, cancel)?;
        let copied = datadir::fill(&data, data_dir, cancel)?;
        forget_cached(data_dir)?;
        Ok(copied)
    }
}

/// Writes the data's description to the disk, completely or not at all.
pub(crate) fn write_about(path: &Path, about: &impl Serialize) -> Result<(), Error> {
    let unfinished = path.with_added_extension("unfinished");
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(about)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().map_err(Error::io("cannot write", path))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink())
}

/// Removes the snapshot in `folder`, complete or not. A missing one is no error.
fn remove(folder: &Path) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    // The description is removed first, because a snapshot without it counts as incomplete.
    match fs::remove_file(folder.join(ABOUT)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("cannot remove", folder.join(ABOUT))(error));
        }
        _ => {}
    }
    datadir::remove_data(&folder.join(DATA))
}

/// Compares the files in `data` with an earlier list by their names and lengths.
pub(crate) fn compare(data: &Path, files: &[SnapshotFile]) -> Result<(), Error> {
    let changed = |what: String| Error::Snapshot { path: data.to_path_buf(), what };
    let there = listed(data)?;
    if let Some((is, was)) = there.iter().zip(files).find(|(is, was)| is != was) {
        return Err(changed(format!(
            "{} with {} bytes in place of {} with {}",
            is.path.display(),
            is.bytes,
            was.path.display(),
            was.bytes
        )));
    }
    match there.len() == files.len() {
        true => Ok(()),
        false => Err(changed(format!("{} files in place of {}", there.len(), files.len()))),
    }
}

/// All files below `data` except the marker, sorted by path.
pub(crate) fn listed(data: &Path) -> Result<Vec<SnapshotFile>, Error> {
    let mut files = Vec::new();
    for path in files_below(data)? {
        let below = path.strip_prefix(data).unwrap_or(&path).to_path_buf();
        if below == Path::new(datadir::MARKER) {
            continue;
        }
        let bytes = fs::metadata(&path).map_err(Error::io("cannot look at", path.clone()))?.len();
        files.push(SnapshotFile { path: below, bytes });
    }
    Ok(files)
}

/// Lists the files, and returns them with their total bytes and the checksum over all of them.
fn summed(data: &Path, cancel: &AtomicBool) -> Result<(Vec<SnapshotFile>, u64, String), Error> {
    let files = listed(data)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    for file in &files {
        let path = data.join(&file.path);
        digest.update(file.path.as_os_str().as_encoded_bytes());
        digest.update(file.bytes.to_le_bytes());
        let mut opened = File::open(&path).map_err(Error::io("cannot open", path.clone()))?;
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled { what: format!("reading {}", path.display()) });
            }
            match opened.read(&mut buffer).map_err(Error::io("cannot read", path.clone()))? {
                0 => break,
                read => digest.update(&buffer[..read]),
            }
        }
    }
    let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let bytes = files.iter().map(|file| file.bytes).sum();
    Ok((files, bytes, sha256))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

    /// A marked data directory with two files.
    fn data_dir(folder: &Path) -> PathBuf {
        let data_dir = folder.join("1-a");
        datadir::prepare(&data_dir, &NOT_CANCELLED).unwrap();
        fs::create_dir(data_dir.join("ib")).unwrap();
        fs::write(data_dir.join("ibdata1"), "system").unwrap();
        fs::write(data_dir.join("ib/t.ibd"), "rows").unwrap();
        data_dir
    }

    #[test]
    fn each_copy_has_the_snapshots_bytes_even_if_an_earlier_copy_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = data_dir(folder.path());
        let taken = Snapshot::take(&data_dir, &folder.path().join("s"), json!({ "rows": 3 }), &NOT_CANCELLED)
            .unwrap();
        assert!(!data_dir.exists(), "moved, not copied");
        for _ in 0..2 {
            assert_eq!(taken.restore(&data_dir, &NOT_CANCELLED).unwrap().files, 2);
            assert_eq!(fs::read_to_string(data_dir.join("ib/t.ibd")).unwrap(), "rows");
            assert!(!data_dir.join("ib/new").exists() && data_dir.join(datadir::MARKER).exists());
            fs::write(data_dir.join("ib/t.ibd"), "changed").unwrap();
            fs::write(data_dir.join("ib/new"), "x").unwrap();
        }
        let found = Snapshot::open(&folder.path().join("s")).unwrap();
        assert_eq!(found, taken);
        assert_eq!((found.info.bytes, &found.info.saved_state), (10, &json!({ "rows": 3 })));
    }

    #[test]
    fn a_snapshot_is_neither_made_nor_found_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, link) = (folder.path().join("theirs"), folder.path().join("s"));
        Snapshot::take(&data_dir(folder.path()), &theirs, Value::Null, &NOT_CANCELLED).unwrap();
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        assert_eq!(Snapshot::open(&link), None);
        let refused = Snapshot::take(&data_dir(folder.path()), &link, Value::Null, &NOT_CANCELLED);
        assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        assert!(Snapshot::open(&theirs).is_some());
    }

    #[test]
    fn the_checksum_covers_names_and_contents() {
        let sum_of = |change: fn(&Path)| {
            let folder = tempfile::tempdir().unwrap();
            let data_dir = data_dir(folder.path());
            change(&data_dir);
            summed(&data_dir, &NOT_CANCELLED).unwrap().2
        };
        let plain = sum_of(|_| {});
        assert_eq!(plain, sum_of(|data| fs::write(data.join(datadir::MARKER), "another marker").unwrap()));
        assert_ne!(plain, sum_of(|data| fs::write(data.join("ibdata1"), "sYstem").unwrap()));
        assert_ne!(plain, sum_of(|data| fs::rename(data.join("ibdata1"), data.join("ibdata2")).unwrap()));
    }

    #[test]
    fn a_changed_snapshot_is_not_copied_and_an_incomplete_one_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = data_dir(folder.path());
        let place = folder.path().join("s");
        let taken = Snapshot::take(&data_dir, &place, Value::Null, &NOT_CANCELLED).unwrap();
        fs::write(place.join("data/ib/t.ibd"), "rowss").unwrap();
        let message = taken.restore(&data_dir, &NOT_CANCELLED).unwrap_err().to_string();
        assert!(message.contains("ib/t.ibd with 5 bytes in place of ib/t.ibd with 4"), "{message}");
        fs::remove_file(place.join(ABOUT)).unwrap();
        assert_eq!(Snapshot::open(&place), None);
    }

    #[test]
    fn a_directory_without_the_marker_does_not_become_a_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("theirs");
        fs::create_dir(&data_dir).unwrap();
        fs::write(data_dir.join("precious"), "x").unwrap();
        let refused = Snapshot::take(&data_dir, &folder.path().join("s"), Value::Null, &NOT_CANCELLED);
        assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        assert!(data_dir.join("precious").exists());
    }
}
