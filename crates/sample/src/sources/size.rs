//! Source `size`: how large the database has become, as `du --apparent-size` counts it.
//!
//! Keys: `data_dir_bytes` is the sum of the lengths of all files below the data directory (logs and
//! binary logs included). `database_bytes` is the same sum below the folder of the benchmark's own
//! database, or of the storage engine that holds it. `files` is the number of files below the data
//! directory, or below the database's folder where no data directory is known. A file with two
//! names (a hard link) counts twice. What a symbolic link points to is not counted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::{Source, Values, about};
use crate::Error;

/// A walk takes CPU time, so it is done every 10 s, and at the boundaries of a window. The pause is
/// half a second less, so that a tick that comes a little early counts.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(9_500);

/// Total size and number of the files below a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Total {
    bytes: i64,
    files: i64,
}

#[derive(Debug)]
pub(crate) struct Size {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) database_dir: Option<PathBuf>,
}

impl Source for Size {
    fn about(&self) -> Map<String, Value> {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).into();
        about([("data_dir", text(&self.data_dir)), ("database_dir", text(&self.database_dir))])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let database = match &self.database_dir {
            // The folder is not yet created, or was dropped, so nothing is in it.
            Some(dir) if !dir.exists() => Some(Total::default()),
            Some(dir) => Some(walk(dir)?),
            None => None,
        };
        let data_dir = self.data_dir.as_deref().map(walk).transpose()?;
        values.set_known("data_dir_bytes", data_dir.map(|total| total.bytes));
        values.set_known("database_bytes", database.map(|total| total.bytes));
        values.set_known("files", data_dir.or(database).map(|total| total.files));
        Ok(())
    }
}

/// Adds up all files below `root`. Only their metadata is read, and they are never opened, because
/// closing one would drop the locks that an embedded SQLite in this process holds on it. Files come
/// and go while a server runs, so a file that is gone before its metadata is read does not count.
fn walk(root: &Path) -> Result<Total, Error> {
    let mut total = Total::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |source| Error::Unreadable { path: folder.clone(), source };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != root => continue,
            entries => entries.map_err(unreadable)?,
        };
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            // This does not follow symbolic links.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() {
                total.bytes += i64::try_from(metadata.len()).unwrap_or(i64::MAX);
                total.files += 1;
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Costly;
    use crate::sources::Moment;

    fn write(path: PathBuf, bytes: usize) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; bytes]).unwrap();
    }

    #[test]
    fn files_are_counted_at_any_depth_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("ibdata1"), 1000);
        write(dir.path().join("ib/pi1.ibd"), 200);
        write(dir.path().join("ib/deep/er/pi2.ibd"), 30);
        std::os::unix::fs::symlink(dir.path(), dir.path().join("ib/loop")).unwrap();
        let size = Size { data_dir: Some(dir.path().to_owned()), database_dir: Some(dir.path().join("ib")) };
        let mut size = Costly::new(size, MIN_PAUSE);
        let mut values = Values::default();
        assert!(size.read(Moment::Boundary, &mut values).unwrap().is_some());
        insta::assert_debug_snapshot!(values.map(), @r#"
        {
            "data_dir_bytes": 1230,
            "database_bytes": 230,
            "files": 3,
        }
        "#);
        write(dir.path().join("ib/pi1.ibd"), 201);
        assert!(size.read(Moment::Tick, &mut values).unwrap().is_none(), "10 s have not passed");
        assert_eq!(values.map()["database_bytes"], 230);
        size.read(Moment::Boundary, &mut values).unwrap();
        assert_eq!(values.map()["database_bytes"], 231);
    }

    #[test]
    fn a_database_that_is_not_there_yet_is_empty_but_a_data_directory_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut values = Values::default();
        let mut size = Size { data_dir: None, database_dir: Some(dir.path().join("ib")) };
        size.read(Moment::Boundary, &mut values).unwrap();
        insta::assert_debug_snapshot!(values.map(), @r#"
        {
            "database_bytes": 0,
            "files": 0,
        }
        "#);
        let missing = dir.path().join("data");
        let mut size = Size { data_dir: Some(missing), database_dir: None };
        let error = size.read(Moment::Boundary, &mut values).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    }
}
