//! The folder for a server's temporary files. It lies next to the data directory, on the device
//! that dbdyno samples and has checked for space.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::server::{Error, datadir};

/// A marked folder that only this user may enter, removed when dropped.
#[derive(Debug)]
pub(crate) struct TmpDir(PathBuf);

impl TmpDir {
    /// Makes the folder for the server on `data_dir`, which must be at rest. The folder is new, or
    /// an earlier start has left it and it is emptied.
    pub(crate) fn make(data_dir: &Path, cancel: &AtomicBool) -> Result<Self, Error> {
        let path = datadir::temporary_files(data_dir);
        datadir::prepare(&path, cancel)?;
        let made = Self(path);
        let closed = fs::set_permissions(&made.0, fs::Permissions::from_mode(0o700));
        closed.map_err(Error::io("cannot close to others", made.0.clone()))?;
        Ok(made)
    }
}

impl Drop for TmpDir {
    fn drop(&mut self) {
        // A folder that cannot be removed now is emptied by the next start and removed with the
        // data. There is no one to inform.
        let _ = datadir::remove_marked(&self.0);
    }
}

/// Whether a server can be given a folder with this name. MySQL and MariaDB split lists of names at
/// colons.
pub(crate) fn can_be_named(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().contains(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn it_is_emptied_at_a_start_and_goes_with_its_value_or_with_the_data() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("1-a");
        datadir::prepare(&data, &GO_ON).unwrap();
        let left = TmpDir::make(&data, &GO_ON).unwrap();
        let path = folder.path().join("1-a.tmp");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("ibXYZ"), "sorted").unwrap();
        // This is the state after `kill -9`.
        std::mem::forget(left);
        let made = TmpDir::make(&data, &GO_ON).unwrap();
        assert!(!path.join("ibXYZ").exists());
        drop(made);
        assert!(!path.exists() && data.exists());
        std::mem::forget(TmpDir::make(&data, &GO_ON).unwrap());
        datadir::remove_data(&data).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // The data are gone already, moved into a snapshot.
        std::mem::forget(TmpDir::make(&data, &GO_ON).unwrap());
        datadir::remove_data(&data).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_of_others_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (data, theirs) = (folder.path().join("a"), folder.path().join("a.tmp"));
        datadir::prepare(&data, &GO_ON).unwrap();
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("precious"), "x").unwrap();
        assert!(matches!(TmpDir::make(&data, &GO_ON), Err(Error::NotOurs { .. })));
        datadir::remove_data(&data).unwrap();
        assert!(theirs.join("precious").exists() && !data.exists());
    }

    #[test]
    fn a_name_with_a_colon_would_be_two() {
        assert!(can_be_named(Path::new("/data/1-a.tmp")) && !can_be_named(Path::new("/da:ta/1-a.tmp")));
    }
}
