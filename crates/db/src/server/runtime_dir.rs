//! A server's runtime directory is a private folder for its socket and certificates, with the
//! control group that limits the server's memory. It stays across restarts, so that clients find
//! the server again under the same path and port. The folder for the server's temporary files is
//! next to the data directory instead, on the device that dbdyno samples and that it has checked
//! for free space.
//!
//! [`remove_stale_files`] removes the files that a killed dbdyno has left on this machine outside
//! its run directory.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use crate::server::certificates::CertificateFiles;
use crate::server::process::{ReservedPort, has_ended, own_marker, started};
use crate::server::{Certificates, Cgroup, Error, cgroup, datadir};

/// Longest path for a unix socket: the kernel's structure has 108 bytes, and the last one is 0.
const MAX_SOCKET_BYTES: usize = 107;

/// The longest name for a socket in a runtime directory, with the longest port number.
const LONGEST_SOCKET: &str = ".s.PGSQL.65535";

/// Prefix for the names of runtime directories. The process number of the dbdyno that made the
/// directory follows. The number identifies a stale runtime directory without an owner file. A kill
/// leaves such a directory before the file is written or during the removal.
const PREFIX: &str = "dbdyno-";

/// The file with the process marker of the dbdyno that made the runtime directory.
const OWNER: &str = "owner";

/// A folder that only this user may enter. Dropping the value removes the folder and its control
/// group.
#[derive(Debug)]
pub struct RuntimeDir {
    folder: TempDir,
    cgroup: Option<Cgroup>,
    pub(crate) tls: Option<RuntimeTls>,
}

/// The certificates and the port with which clients reach a server over TLS.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeTls {
    pub(crate) files: CertificateFiles,
    /// A TCP port for servers that have no TLS over unix sockets. It stays reserved across
    /// restarts.
    pub(crate) port: Arc<ReservedPort>,
}

impl RuntimeDir {
    /// Makes a runtime directory in the folder for temporary files (`$TMPDIR`), without a memory
    /// limit.
    pub fn new() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        let cannot = || Error::io("cannot make a folder for the socket in", parent.clone());
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent).map_err(cannot())?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).map_err(cannot())?;
        let path = folder.path().join(LONGEST_SOCKET);
        if path.as_os_str().len() > MAX_SOCKET_BYTES {
            return Err(Error::SocketTooLong { path });
        }
        fs::write(folder.path().join(OWNER), own_marker()).map_err(cannot())?;
        Ok(Self { folder, cgroup: None, tls: None })
    }

    /// Adds certificates, with which the server offers TLS. A runtime directory that already has
    /// certificates keeps them.
    pub fn with_certificates(mut self, certificates: &Certificates) -> Result<Self, Error> {
        if self.tls.is_none() {
            let files = certificates.write(&self.path().join("tls"))?;
            let cannot = Error::io("cannot find a free port for the server in", self.path());
            let port = ReservedPort::any().map_err(|errno| cannot(errno.into()))?;
            self.tls = Some(RuntimeTls { files, port: Arc::new(port) });
        }
        Ok(self)
    }

    /// Limits the server to `bytes` of memory.
    pub fn with_memory_limit(mut self, bytes: u64) -> Result<Self, Error> {
        self.cgroup = Some(Cgroup::with_memory(bytes)?);
        Ok(self)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The server's control group, if it has one.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// An empty folder for the temporary files of a server that cannot keep them next to its data.
    /// Files from an earlier start are removed.
    pub(crate) fn empty_tmp_dir(&self) -> Result<PathBuf, Error> {
        let path = self.path().join("tmp");
        if path.exists() {
            fs::remove_dir_all(&path).map_err(Error::io("cannot remove", path.clone()))?;
        }
        fs::create_dir(&path).map_err(Error::io("cannot make", path.clone()))?;
        Ok(path)
    }
}

/// Removes from the folder for temporary files all runtime directories whose dbdyno was killed, and
/// returns their paths. A runtime directory in which a server still answers stays.
pub(crate) fn sweep() -> Vec<PathBuf> {
    sweep_in(&std::env::temp_dir())
}

fn sweep_in(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let is_named = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    let runtime_dirs = entries.flatten().map(|entry| entry.path()).filter(is_named);
    // dbdyno tries again at its next start to remove a directory that it cannot remove now.
    runtime_dirs.filter(|path| is_abandoned(path) && fs::remove_dir_all(path).is_ok()).collect()
}

fn is_abandoned(runtime_dir: &Path) -> bool {
    let owner = fs::read_to_string(runtime_dir.join(OWNER)).unwrap_or_default();
    let is_left = if owner.is_empty() { has_named_process_ended(runtime_dir) } else { has_ended(&owner) };
    is_left && !has_answer(runtime_dir)
}

/// Whether the process in the runtime directory's name has ended. This check is only for runtime
/// directories without an owner file. If another process has that number by now, the directory
/// stays until that process has ended too.
fn has_named_process_ended(runtime_dir: &Path) -> bool {
    let name = runtime_dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')?.0.parse().ok());
    number.is_some_and(|pid| started(pid).is_none())
}

/// Whether a server answers on a socket in this runtime directory.
fn has_answer(runtime_dir: &Path) -> bool {
    let entries = fs::read_dir(runtime_dir).into_iter().flatten().flatten();
    let mut sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.any(|entry| UnixStream::connect(entry.path()).is_ok())
}

/// A folder with the marker that only this user may enter. Dropping the value removes the folder.
#[derive(Debug)]
pub(crate) struct TmpDir(PathBuf);

impl TmpDir {
    /// Makes the folder for the server on `data_dir`, which must be at rest. A folder that an
    /// earlier start has left is emptied.
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
        // data. A failure cannot be reported from a drop.
        let _ = datadir::remove_marked(&self.0);
    }
}

/// Whether a server accepts this path in an option. MySQL and MariaDB split lists of paths at
/// colons.
pub(crate) fn can_be_named(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().contains(&b':')
}

/// Removes the runtime directories and control groups that ended dbdyno processes have left, and
/// returns their paths. A directory or group with a live server stays. That server got a signal
/// when its dbdyno ended, so a later dbdyno can remove them.
pub fn remove_stale_files() -> Vec<PathBuf> {
    let mut removed = sweep();
    removed.extend(cgroup::sweep());
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_directory_is_closed_to_others_and_removed_with_its_value() {
        let runtime_dir = RuntimeDir::new().unwrap();
        let path = runtime_dir.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(runtime_dir.empty_tmp_dir().unwrap().join("left"), "x").unwrap();
        assert_eq!(fs::read_dir(runtime_dir.empty_tmp_dir().unwrap()).unwrap().count(), 0);
        drop(runtime_dir);
        assert!(!path.exists());
    }

    #[test]
    fn only_runtime_directories_of_processes_that_have_ended_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let runtime_dir = |name: &str, owner: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(OWNER), owner).unwrap();
            path
        };
        let own = own_marker();
        // No process has this number.
        let ended = format!("{}-{}", u32::MAX, own.split_once('-').unwrap().1);
        runtime_dir("dbdyno-living", &own);
        runtime_dir("dbdyno-odd", "nonsense");
        runtime_dir("other", &ended);
        let answering = runtime_dir("dbdyno-answering", &ended);
        let _listener = std::os::unix::net::UnixListener::bind(answering.join("s")).unwrap();
        let dead = runtime_dir("dbdyno-dead", &ended);
        assert_eq!(sweep_in(parent.path()), [dead]);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 4);
    }

    /// A kill leaves these states before the owner is written, while it is written, and while a
    /// runtime directory is being removed.
    #[test]
    fn a_directory_without_an_owner_is_removed_when_the_process_in_its_name_has_ended() {
        let parent = tempfile::tempdir().unwrap();
        let runtime_dir = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let living = runtime_dir(&format!("dbdyno-{}-aB3xYz", std::process::id()));
        let others = ["dbdyno-play-aB3xYz", "dbdyno-aB3xYz", "dbdyno-run-7"].map(runtime_dir);
        let dead = ["a", "b", "c"].map(|end| runtime_dir(&format!("dbdyno-{}-{end}", u32::MAX)));
        fs::write(dead[1].join(OWNER), "").unwrap();
        fs::create_dir(dead[2].join("tls")).unwrap();
        let mut swept = sweep_in(parent.path());
        swept.sort();
        assert_eq!(swept, dead);
        assert!(living.exists() && others.iter().all(|other| other.exists()));
        let own = RuntimeDir::new().unwrap();
        fs::remove_file(own.path().join(OWNER)).unwrap();
        assert!(!is_abandoned(own.path()), "{}", own.path().display());
    }

    static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn a_tmp_dir_is_emptied_at_a_start_and_removed_with_its_value_or_the_data() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("1-a");
        datadir::prepare(&data, &NOT_CANCELLED).unwrap();
        let left = TmpDir::make(&data, &NOT_CANCELLED).unwrap();
        let path = folder.path().join("1-a.tmp");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("ibXYZ"), "sorted").unwrap();
        // This is the state after `kill -9`.
        std::mem::forget(left);
        let made = TmpDir::make(&data, &NOT_CANCELLED).unwrap();
        assert!(!path.join("ibXYZ").exists());
        drop(made);
        assert!(!path.exists() && data.exists());
        std::mem::forget(TmpDir::make(&data, &NOT_CANCELLED).unwrap());
        datadir::remove_data(&data).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // The data have already been moved into a snapshot.
        std::mem::forget(TmpDir::make(&data, &NOT_CANCELLED).unwrap());
        datadir::remove_data(&data).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_of_others_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (data, theirs) = (folder.path().join("a"), folder.path().join("a.tmp"));
        datadir::prepare(&data, &NOT_CANCELLED).unwrap();
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("precious"), "x").unwrap();
        assert!(matches!(TmpDir::make(&data, &NOT_CANCELLED), Err(Error::NotOurs { .. })));
        datadir::remove_data(&data).unwrap();
        assert!(theirs.join("precious").exists() && !data.exists());
    }

    #[test]
    fn a_path_with_a_colon_is_not_accepted() {
        assert!(can_be_named(Path::new("/data/1-a.tmp")) && !can_be_named(Path::new("/da:ta/1-a.tmp")));
    }
}
