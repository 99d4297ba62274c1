//! Templates: dbdyno initialises a data directory once for each build and its initial settings,
//! then copies it.
//!
//! A template folder may outlive its run, and several runs may use it at the same time. A template
//! is made under another name, synced and renamed, and it has a list of its files. A template that
//! is incomplete or has lost a file is made again before it is used.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::server::snapshot::{SnapshotFile, compare, listed};
use crate::server::{Base, Error, datadir, snapshot};

/// The data directory's name in a template's folder.
const DATA: &str = "data";

/// The file that describes the data. It is written last, so a template that has it is complete.
const ABOUT: &str = "template.json";

/// The description of a template's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct About {
    files: Vec<SnapshotFile>,
}

/// A data directory that serves as a source for copies. A complete one is never removed.
#[derive(Debug)]
pub(crate) struct Template {
    folder: PathBuf,
}

impl Template {
    /// Returns the template for `key` in `template_dir`. If the template is missing, `make` makes
    /// the data directory `data` in an empty folder. If another process is already making the
    /// template, this waits for that process.
    pub(crate) fn ready(
        key: &TemplateKey,
        template_dir: &Path,
        cancel: &AtomicBool,
        make: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        fs::create_dir_all(template_dir)
            .map_err(Error::io("cannot make the template folder", template_dir))?;
        let template_dir = template_dir
            .canonicalize()
            .map_err(Error::io("cannot find the template folder", template_dir))?;
        let folder = template_dir.join(key.name());
        if let Some(found) = Self::open(&folder) {
            sweep(&template_dir);
            return Ok(found);
        }
        let lock = TemplateLock::take(&template_dir, &key.hash, cancel)?;
        if let Some(found) = Self::open(&folder) {
            return Ok(found);
        }
        remove(&folder, &lock)?;
        // The work folder is removed if anything fails.
        let work = lock.work_dir()?;
        make(work.path())?;
        datadir::mark(&work.path().join(DATA))?;
        write_about(work.path())?;
        match fs::rename(work.path(), &folder) {
            // The work folder has been renamed, so no removal is needed.
            Ok(()) => drop(work.keep()),
            // If the filesystem has no locks for folders, another process may have made the same
            // template meanwhile.
            Err(_) if Self::open(&folder).is_some() => {}
            Err(error) => return Err(Error::io("cannot rename the template to", folder)(error)),
        }
        let gone = || Error::io("cannot find the template just made in", folder.clone());
        Self::open(&folder).ok_or_else(|| gone()(std::io::ErrorKind::NotFound.into()))
    }

    /// Opens the template in `folder`, if there is one and it is complete.
    fn open(folder: &Path) -> Option<Self> {
        let about: About = serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()?;
        let template = Self { folder: folder.to_path_buf() };
        let data = template.data();
        let is_whole = data.join(datadir::MARKER).is_file() && compare(&data, &about.files).is_ok();
        is_whole.then_some(template)
    }

    /// Copies the template to the fresh data directory `data_dir`, with the template's owner. An
    /// existing data directory must belong to dbdyno.
    pub(crate) fn copy_to(&self, data_dir: &Path, cancel: &AtomicBool) -> Result<(), Error> {
        datadir::prepare(data_dir, cancel)?;
        datadir::fill(&self.data(), data_dir, cancel).map(drop)
    }

    fn data(&self) -> PathBuf {
        self.folder.join(DATA)
    }
}

/// Flushes the data to the disk first and then writes their description, so that a template that
/// counts as complete has all its bytes even after a power failure.
fn write_about(work: &Path) -> Result<(), Error> {
    let about = About { files: listed(&work.join(DATA))? };
    crate::server::datadir::sync(work)?;
    snapshot::write_about(&work.join(ABOUT), &about)
}

/// Removes the template in `folder`, complete or not. The folder is first renamed, so that no other
/// process finds it half removed.
fn remove(folder: &Path, lock: &TemplateLock) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    let bin = lock.work_dir()?;
    let cannot = || Error::io("cannot remove the template", folder);
    fs::rename(folder, bin.path().join("old")).map_err(cannot())?;
    bin.close().map_err(cannot())
}

/// Source code that makes data directories for all products. It is part of the key, because two
/// versions of dbdyno that make data directories differently must not share templates.
const MAKER: &str = include_str!("launch.rs");

/// Environment variables that affect the files that installers and servers make: locale, time zone
/// (`initdb` writes it into `postgresql.conf`) and file permissions. All variables that begin with
/// `LC_` are also in the key.
const VARIABLES: [&str; 6] = ["LANG", "LANGUAGE", "TZ", "TZDIR", "UMASK", "UMASK_DIR"];

/// This machine's time zone, which applies when no variable names one.
const LOCAL_TIME: &str = "/etc/localtime";

/// Identifies a template. Anything that changes the data directory changes the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateKey {
    /// Product and version, for people.
    title: String,
    /// Hash over all parts of the key, in 16 digits.
    pub(crate) hash: String,
}

impl TemplateKey {
    /// Makes the key for a data directory with `options` for the build `base`. `makers` is the
    /// product's source code that makes the directory. `user` is set if the server runs as another
    /// user than this process.
    pub(crate) fn new(
        base: &Base,
        makers: &str,
        options: &[String],
        user: Option<&str>,
    ) -> Result<Self, Error> {
        let title = base.title.to_lowercase().replace(' ', "-");
        let build = build(&title, &base.program, base.installer.as_deref())?;
        Ok(Self::of(&title, &base.path, &format!("{makers}\n{build}"), options, user))
    }

    fn of(title: &str, base_dir: &Path, made_by: &str, options: &[String], user: Option<&str>) -> Self {
        let own = nix::unistd::geteuid();
        let text = format!(
            "{}\n{}\n{made_by}\n{own} {}\n{}\n{}",
            MAKER,
            base_dir.display(),
            user.unwrap_or_default(),
            surroundings(env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })),
            options.join("\n"),
        );
        let hash = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { title: title.to_owned(), hash }
    }

    /// Name of the template's folder.
    fn name(&self) -> String {
        format!("{}-{}", self.title, self.hash)
    }
}

/// The version, and the size and modification time of the server program and the installer. They
/// change when another build is installed in the same folder.
fn build(version: &str, program: &Path, installer: Option<&Path>) -> Result<String, Error> {
    fs::metadata(program).map_err(Error::io("cannot look at", program))?;
    let mut text = version.to_owned();
    for path in [Some(program), installer].into_iter().flatten() {
        let Ok(file) = fs::metadata(path) else { continue };
        text.push_str(&format!("\n{} {} {}.{}", path.display(), file.len(), file.mtime(), file.mtime_nsec()));
    }
    Ok(text)
}

/// The environment variables that shape the data, and the machine's time zone.
fn surroundings(variables: impl Iterator<Item = (String, String)>) -> String {
    let mut lines: Vec<String> = variables
        .filter(|(name, _)| VARIABLES.contains(&name.as_str()) || name.starts_with("LC_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    lines.sort();
    let zone = fs::canonicalize(LOCAL_TIME).map(|path| path.display().to_string()).unwrap_or_default();
    let bytes = fs::metadata(LOCAL_TIME).map_or(0, |file| file.len());
    lines.push(format!("{LOCAL_TIME} {zone} {bytes}"));
    lines.join("\n")
}

/// Prefix for the names of folders in which templates are made. The template's hash follows.
const PREFIX: &str = ".dbdyno-";

/// Interval between two attempts to lock a folder that another process has locked.
const POLL: Duration = Duration::from_millis(50);

/// A lock on a folder. The field is `None` where the filesystem has no locks for folders, as with
/// some network filesystems.
#[derive(Debug)]
struct FolderLock {
    _flock: Option<Flock<File>>,
}

/// A lock for making one template. Only one process on this machine can have this lock at a time.
#[derive(Debug)]
struct TemplateLock {
    folder: PathBuf,
    _lock: FolderLock,
}

/// Locks `folder`. The result is `None` when the folder is missing, when it was renamed or removed
/// meanwhile, or when another process has its lock.
fn lock_of(folder: &Path) -> Option<FolderLock> {
    let file = File::open(folder).ok()?;
    let opened = file.metadata().ok()?.ino();
    let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Some(lock),
        Err((_, Errno::EWOULDBLOCK)) => return None,
        Err(_) => None,
    };
    let named = fs::metadata(folder).ok()?.ino();
    (named == opened).then_some(FolderLock { _flock: lock })
}

/// Makes a lock's folder unless it exists. Another process may remove the folder at any moment.
fn make_lock_folder(folder: &Path) -> Result<(), Error> {
    match fs::create_dir_all(folder) {
        // The folder existed, and its maker removed it before this process could look at it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_folder_or_gone(folder) => Ok(()),
        made => made.map_err(Error::io("cannot make", folder)),
    }
}

/// Whether `path` is a folder or no longer exists. A file with a lock folder's name is an error,
/// because no process would remove it.
fn is_folder_or_gone(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

impl TemplateLock {
    /// Waits until no other process makes the template with this hash in `template_dir`, and
    /// removes the files that killed processes have left there.
    fn take(template_dir: &Path, hash: &str, cancel: &AtomicBool) -> Result<Self, Error> {
        let folder = template_dir.join(format!("{PREFIX}{hash}"));
        loop {
            make_lock_folder(&folder)?;
            if let Some(lock) = lock_of(&folder) {
                let template_lock = Self { folder, _lock: lock };
                for left in entries(&template_lock.folder) {
                    let _ = fs::remove_dir_all(left);
                }
                sweep(template_dir);
                return Ok(template_lock);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled { what: format!("waiting for {}", folder.display()) });
            }
            sleep(POLL);
        }
    }

    /// Makes an empty folder that is removed with the value. The folder's name is short, because
    /// old bootstrap scripts put a socket into it and the length of socket paths is limited. The
    /// name is new each time, because a server of a killed process may still write into an earlier
    /// folder.
    fn work_dir(&self) -> Result<TempDir, Error> {
        tempfile::Builder::new()
            .prefix("")
            .tempdir_in(&self.folder)
            .map_err(Error::io("cannot make a folder in", self.folder.clone()))
    }
}

/// Removes the files that killed processes have left in `template_dir`. Only the folders of killed
/// processes can be locked, because a live process still has its lock. If a folder cannot be
/// removed, the next process that wants a template tries again.
fn sweep(template_dir: &Path) {
    let is_makers = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    for folder in entries(template_dir).filter(is_makers) {
        if let Some(FolderLock { _flock: Some(_) }) = lock_of(&folder).as_ref() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

impl Drop for TemplateLock {
    fn drop(&mut self) {
        // A process that waits for the lock finds that the folder is gone, and then looks for the
        // template again.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn touch(path: &Path, text: &str) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        path.to_path_buf()
    }

    #[test]
    fn a_changed_program_or_installer_counts_as_another_build() {
        let folder = tempfile::tempdir().unwrap();
        let program = touch(&folder.path().join("bin/mysqld"), "1");
        let installer = touch(&folder.path().join("scripts/mysql_install_db"), "1");
        let build = || super::build("8.0.31", &program, Some(&installer)).unwrap();
        let mut known = vec![build()];
        for path in [&program, &installer] {
            fs::write(path, "longer").unwrap();
            known.push(build());
        }
        assert_eq!(build(), known[2], "nothing has changed");
        known.dedup();
        assert_eq!(known.len(), 3, "{known:?}");
        assert!(super::build("8.0.31", Path::new("/nowhere/mysqld"), None).is_err());
    }

    #[test]
    fn options_the_user_and_the_base_directory_make_another_key() {
        let key = |base_dir: &str, options: &[&str], user| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            TemplateKey::of("mysql-8.0.31", Path::new(base_dir), "build", &options, user)
        };
        let plain = key("/s", &[], None);
        assert_eq!(plain, key("/s", &[], None));
        assert_eq!(plain.name(), format!("mysql-8.0.31-{}", plain.hash));
        for other in [
            key("/t", &[], None),
            key("/s", &["--innodb_page_size=4k"], None),
            key("/s", &[], Some("nobody")),
        ] {
            assert_ne!(plain.hash, other.hash);
        }
    }

    #[test]
    fn only_the_variables_that_shape_data_are_in_the_key() {
        let with = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            surroundings(pairs.collect::<Vec<_>>().into_iter())
        };
        let plain = with(&[("TZ", "UTC"), ("LC_ALL", "C")]);
        assert_eq!(plain, with(&[("LC_ALL", "C"), ("HOME", "/root"), ("TZ", "UTC")]));
        assert_ne!(plain, with(&[("TZ", "Europe/Berlin"), ("LC_ALL", "C")]));
        assert_ne!(plain, with(&[("TZ", "UTC")]));
        assert!(plain.contains("/etc/localtime "), "{plain}");
    }
}

#[cfg(test)]
#[path = "template/tests.rs"]
mod template_tests;
