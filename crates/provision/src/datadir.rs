//! Data directories: made, marked, wiped and filled; one without dbdyno's mark is never touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::copy::{copy_tree, keep_owner, sync};
use crate::process::{is_alive, parent_of, started};
use crate::tmp_dir;

/// The file that says a data directory is dbdyno's to wipe.
pub(crate) const MARK: &str = ".dbdyno-data";

const MARK_TEXT: &str = "dbdyno made this data directory and may wipe it.\n";

/// How long a server whose dbdyno was killed may take to end before its data directory is refused.
const LEAVING: Duration = Duration::from_secs(60);

/// Makes `path` an empty directory with the mark: new, empty before, or ours and wiped.
///
/// # Errors
/// [`Error::NotOurs`] for anything else that lies there, [`Error::StillRunning`] when a server still uses it.
pub fn prepare(path: &Path) -> Result<(), Error> {
    let not_ours = || Error::NotOurs { path: path.to_path_buf(), mark: MARK };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(path).map_err(Error::io("cannot make the data directory", path))?;
        }
        Err(error) => return Err(Error::io("cannot look at the data directory", path)(error)),
        Ok(_) if !path.is_dir() => return Err(not_ours()),
        Ok(_) if path.join(MARK).is_file() => {
            wait_for_leaving_server(path)?;
            wipe(path)?;
        }
        Ok(_) if entries(path)?.is_empty() => {}
        Ok(_) => return Err(not_ours()),
    }
    mark(path)
}

/// Removes the data directory `path`, and what a server that was killed has left of temporary files beside it; a data directory
/// that is not there is fine.
///
/// # Errors
/// [`Error::NotOurs`] without dbdyno's mark, [`Error::StillRunning`] when a server still uses it.
pub fn remove_data(path: &Path) -> Result<(), Error> {
    remove_marked(path)?;
    let temporary = tmp_dir::beside(path);
    // What is not dbdyno's stays: no server has been told of it.
    if temporary.join(MARK).is_file() { remove_marked(&temporary) } else { Ok(()) }
}

/// Removes one folder that has the mark; one that is not there is fine.
pub(crate) fn remove_marked(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        _ if !path.join(MARK).is_file() => {
            return Err(Error::NotOurs { path: path.to_path_buf(), mark: MARK });
        }
        _ => wait_for_leaving_server(path)?,
    }
    // The mark goes last: what is left by a removal that is cut short is still known as ours.
    wipe(path)?;
    fs::remove_dir_all(path).map_err(Error::io("cannot remove the data directory", path))
}

/// Writes the mark into `path`.
pub(crate) fn mark(path: &Path) -> Result<(), Error> {
    let file = path.join(MARK);
    fs::write(&file, MARK_TEXT).map_err(Error::io("cannot write the mark", file.clone()))
}

/// Notes in the mark which process runs on the data directory, so that nobody wipes it under a running server.
pub(crate) fn note_server(path: &Path, pid: u32) -> Result<(), Error> {
    let file = path.join(MARK);
    let started = started(pid).unwrap_or_default();
    let text = format!("{MARK_TEXT}server {pid} {started}\n");
    fs::write(&file, text).map_err(Error::io("cannot write the mark", file.clone()))
}

/// Fills the prepared `data_dir` from `template`, sharing blocks where the filesystem can, and lets the writes
/// reach the disk, so that they are not charged to what is measured next.
pub(crate) fn fill(template: &Path, data_dir: &Path) -> Result<(), Error> {
    copy_tree(template, data_dir, MARK)?;
    let metadata = fs::metadata(template).map_err(Error::io("cannot look at", template))?;
    keep_owner(data_dir, &metadata)?;
    sync(data_dir)
}

/// Makes sure that `path` is a data directory that dbdyno made, and that nothing runs on it.
///
/// # Errors
/// [`Error::NotOurs`], [`Error::StillRunning`].
pub(crate) fn check_at_rest(path: &Path) -> Result<(), Error> {
    if !path.join(MARK).is_file() {
        return Err(Error::NotOurs { path: path.to_path_buf(), mark: MARK });
    }
    wait_for_leaving_server(path)
}

fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let cannot = || Error::io("cannot read the data directory", path);
    let entries = fs::read_dir(path).map_err(cannot())?;
    entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(cannot())
}

/// Removes everything but the mark, which stays so that a wipe that is cut short can be taken up again.
fn wipe(path: &Path) -> Result<(), Error> {
    for entry in entries(path)?.into_iter().filter(|entry| !entry.ends_with(MARK)) {
        let is_folder = fs::symlink_metadata(&entry).is_ok_and(|metadata| metadata.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
        removed.map_err(Error::io("cannot remove", entry.clone()))?;
    }
    Ok(())
}

fn wait_for_leaving_server(path: &Path) -> Result<(), Error> {
    let deadline = Instant::now() + LEAVING;
    while let Some(pid) = server_on(path).or_else(|| worker_in(path)) {
        // One that dbdyno still owns will not leave; one without its parent was told to end when that died.
        if parent_of(pid) == Some(std::process::id()) || Instant::now() > deadline {
            return Err(Error::StillRunning { pid, path: path.to_path_buf() });
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The process noted in the mark, if it still runs. Numbers of processes are reused, so its time of start counts.
fn server_on(path: &Path) -> Option<u32> {
    let mark = fs::read_to_string(path.join(MARK)).ok()?;
    let (pid, noted) = mark.lines().find_map(|line| line.strip_prefix("server "))?.split_once(' ')?;
    let pid = pid.parse().ok()?;
    is_alive(pid, noted).then_some(pid)
}

/// A process of PostgreSQL that works in `path`: when the server's first process was killed, the others end a little
/// later, and may still write.
fn worker_in(path: &Path) -> Option<u32> {
    let path = path.canonicalize().ok()?;
    if !path.join("PG_VERSION").exists() {
        return None;
    }
    let works_there = |pid: &u32| {
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
        let is_server = || link("exe").is_some_and(|program| program.ends_with("postgres"));
        link("cwd").as_ref() == Some(&path) && is_server()
    };
    let names =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).find(works_there)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_directory_without_the_mark_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("precious"), "x").unwrap();
        assert!(matches!(prepare(&path), Err(Error::NotOurs { .. })));
        assert!(path.join("precious").exists());
        assert!(matches!(prepare(&path.join("precious")), Err(Error::NotOurs { .. })));
    }

    #[test]
    fn a_marked_directory_is_wiped_and_keeps_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/data");
        prepare(&path).unwrap();
        fs::create_dir(path.join("mysql")).unwrap();
        fs::write(path.join("mysql/user"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), path.join("link")).unwrap();
        prepare(&path).unwrap();
        assert_eq!(entries(&path).unwrap(), [path.join(MARK)]);
        assert!(folder.path().exists());
    }

    #[test]
    fn only_a_marked_directory_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        remove_data(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(remove_data(&path), Err(Error::NotOurs { .. })));
        mark(&path).unwrap();
        fs::write(path.join("ibdata1"), "x").unwrap();
        remove_data(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_with_a_running_server_is_not_wiped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        prepare(&path).unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        note_server(&path, child.id()).unwrap();
        let refused = prepare(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(refused, Err(Error::StillRunning { .. })), "{refused:?}");
        prepare(&path).unwrap();
    }

    #[test]
    fn a_process_that_got_the_number_of_an_ended_server_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MARK), format!("{MARK_TEXT}server {} 1\n", std::process::id())).unwrap();
        assert_eq!(server_on(folder.path()), None);
        note_server(folder.path(), std::process::id()).unwrap();
        assert_eq!(server_on(folder.path()), Some(std::process::id()));
    }

    #[test]
    fn filling_copies_the_template_with_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let (template, data) = (folder.path().join("template"), folder.path().join("data"));
        fs::create_dir_all(template.join("mysql")).unwrap();
        fs::write(template.join("mysql/user"), "x").unwrap();
        prepare(&data).unwrap();
        fill(&template, &data).unwrap();
        assert_eq!(fs::read_to_string(data.join("mysql/user")).unwrap(), "x");
        assert!(data.join(MARK).exists());
    }
}
