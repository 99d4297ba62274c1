//! Makes, marks, wipes, fills and copies data directories. A directory that has files but not
//! dbdyno's marker is never touched.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use dbdyno_products::ALL;
use nix::fcntl::OFlag;
use rustix::fs::{Advice, SeekFrom, fadvise, ioctl_ficlone, seek};
use rustix::io::Errno;

use crate::server::Error;
use crate::server::process::{has_ended, is_alive, own_marker, parent_of, processes, started};

/// The marker file's name. The file says that dbdyno may wipe this data directory.
pub(crate) const MARKER: &str = ".dbdyno-data";

const MARKER_TEXT: &str = "dbdyno made this data directory and may wipe it.\n";

/// Prefix for the marker's line that notes a server by its process number and start time. Before
/// the server has started, the prefix is [`STARTING`], and the line notes the dbdyno that starts
/// the server.
const SERVER: &str = "server ";
const STARTING: &str = "starting ";

/// Suffix that turns a data directory's name into the name of the folder for the server's temporary
/// files. That folder is next to the data directory, because a server would treat a folder inside
/// it as a database.
const TEMPORARY: &str = ".tmp";

/// Time limit for the end of a server whose dbdyno was killed. If the server still runs after this
/// time, its data directory is refused.
const SERVER_END_LIMIT: Duration = Duration::from_secs(60);

/// An open folder. Its path is not a link to a folder elsewhere. All work is done inside the opened
/// folder, even if another file has taken over the path meanwhile.
struct Folder(File);

impl Folder {
    /// Opens the folder. It fails with [`Error::NotOurs`] for a link and for any other path that is
    /// not a folder.
    fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY;
        match File::options().read(true).custom_flags(flags.bits()).open(path) {
            Ok(file) => Ok(Self(file)),
            Err(_) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) => Err(not_ours(path)),
            Err(error) => Err(Error::io("cannot open the data directory", path)(error)),
        }
    }

    /// A path that the kernel resolves to the opened folder.
    fn inside(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    fn has_marker(&self) -> bool {
        fs::symlink_metadata(self.inside().join(MARKER)).is_ok_and(|found| found.is_file())
    }

    fn is_empty(&self) -> bool {
        entries(&self.inside()).is_ok_and(|entries| entries.is_empty())
    }

    fn write_marker(&self, text: &str) -> std::io::Result<()> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).custom_flags(OFlag::O_NOFOLLOW.bits());
        options.open(self.inside().join(MARKER))?.write_all(text.as_bytes())
    }
}

fn not_ours(path: &Path) -> Error {
    Error::NotOurs { path: path.to_path_buf(), marker: MARKER }
}

/// Makes `path` an empty directory with the marker. The directory may be new or empty already. A
/// directory that has the marker is wiped.
pub fn prepare(path: &Path, cancel: &AtomicBool) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let cannot = || Error::io("cannot make the data directory", path);
            fs::create_dir_all(path.parent().unwrap_or(path)).map_err(cannot())?;
            fs::create_dir(path).map_err(cannot())?;
        }
        Err(error) => return Err(Error::io("cannot look at the data directory", path)(error)),
        Ok(_) => {
            let folder = Folder::open(path)?;
            if folder.has_marker() {
                wait_for_server_end(path, cancel)?;
                wipe(path, &folder)?;
            } else if !folder.is_empty() {
                return Err(not_ours(path));
            }
        }
    }
    mark(path)
}

/// Removes the data directory `path`, and the temporary files that a killed server has left next to
/// it. A missing data directory is no error.
pub fn remove_data(path: &Path) -> Result<(), Error> {
    remove_marked(path)?;
    let temporary = temporary_files(path);
    match remove_marked(&temporary) {
        // A folder that does not belong to dbdyno stays, because no server uses it.
        Err(Error::NotOurs { .. }) => Ok(()),
        removed => removed,
    }
}

/// Path of the folder for temporary files that belongs to the server on `data_dir`.
pub(crate) fn temporary_files(data_dir: &Path) -> PathBuf {
    let mut path = data_dir.as_os_str().to_owned();
    path.push(TEMPORARY);
    PathBuf::from(path)
}

/// Removes one folder that has the marker or is empty. A process leaves an empty folder when it is
/// killed before it writes the marker or after it has removed the marker. A missing folder is no
/// error.
pub(crate) fn remove_marked(path: &Path) -> Result<(), Error> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(());
    }
    let folder = Folder::open(path)?;
    let cannot = || Error::io("cannot remove the data directory", path);
    if folder.is_empty() {
        return fs::remove_dir(path).map_err(cannot());
    }
    if !folder.has_marker() {
        return Err(not_ours(path));
    }
    wait_for_server_end(path, &AtomicBool::new(false))?;
    wipe(path, &folder)?;
    // The marker is removed last, so that the rest of an interrupted removal is still recognised as
    // dbdyno's.
    let removed = fs::remove_file(folder.inside().join(MARKER)).and_then(|()| fs::remove_dir(path));
    removed.map_err(cannot())
}

/// Writes the marker into the folder, so that dbdyno may wipe it later.
pub(crate) fn mark(path: &Path) -> Result<(), Error> {
    Folder::open(path)?
        .write_marker(MARKER_TEXT)
        .map_err(Error::io("cannot write the marker", path.join(MARKER)))
}

/// Notes in the marker that this process is about to start a server on the data directory. If
/// dbdyno is killed before it notes the server's process, the next dbdyno searches for that
/// process.
pub(crate) fn note_start(path: &Path) -> Result<(), Error> {
    note(path, &format!("{STARTING}{}", own_marker()))
}

/// Notes in the marker which process runs on the data directory, so that no other dbdyno wipes the
/// directory while the server runs.
pub(crate) fn note_server(path: &Path, pid: u32) -> Result<(), Error> {
    note(path, &format!("{SERVER}{pid} {}", started(pid).unwrap_or_default()))
}

fn note(path: &Path, line: &str) -> Result<(), Error> {
    let text = format!("{MARKER_TEXT}{line}\n");
    Folder::open(path)?.write_marker(&text).map_err(Error::io("cannot write the marker", path.join(MARKER)))
}

/// Copies another data directory into the prepared `data_dir`, and shares blocks where the
/// filesystem can. It flushes the writes to the disk, so that they are not charged to the next
/// measurement.
pub(crate) fn fill(from: &Path, data_dir: &Path, cancel: &AtomicBool) -> Result<Copied, Error> {
    let copied = copy_tree(from, data_dir, MARKER, cancel)?;
    let metadata = fs::metadata(from).map_err(Error::io("cannot look at", from))?;
    copy_owner_and_mode(data_dir, &metadata)?;
    sync(data_dir)?;
    Ok(copied)
}

/// Checks that dbdyno made the data directory `path`, and that no server runs on it.
pub(crate) fn check_at_rest(path: &Path, cancel: &AtomicBool) -> Result<(), Error> {
    if !Folder::open(path)?.has_marker() {
        return Err(not_ours(path));
    }
    wait_for_server_end(path, cancel)
}

fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let cannot = || Error::io("cannot read the data directory", path);
    let entries = fs::read_dir(path).map_err(cannot())?;
    entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(cannot())
}

/// Removes everything except the marker. The marker stays, so that an interrupted wipe can be
/// resumed.
fn wipe(path: &Path, folder: &Folder) -> Result<(), Error> {
    for entry in entries(&folder.inside())?.into_iter().filter(|entry| !entry.ends_with(MARKER)) {
        let is_folder = fs::symlink_metadata(&entry).is_ok_and(|metadata| metadata.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
        let place = || path.join(entry.file_name().unwrap_or_default());
        removed.map_err(|error| Error::io("cannot remove", place())(error))?;
    }
    Ok(())
}

fn wait_for_server_end(path: &Path, cancel: &AtomicBool) -> Result<(), Error> {
    let deadline = Instant::now() + SERVER_END_LIMIT;
    while let Some(pid) = server_on(path).or_else(|| process_working_in(path)) {
        // A server of this dbdyno does not end by itself. Any other server got a signal from the
        // kernel when its dbdyno died.
        if parent_of(pid) == Some(std::process::id()) || Instant::now() > deadline {
            return Err(Error::StillRunning { pid, path: path.to_path_buf() });
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled {
                what: format!("waiting for process {pid} to leave {}", path.display()),
            });
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Finds the process noted in the marker, if it still runs. Process numbers are reused, so the
/// start time must match too. If dbdyno was killed before it could note the process, this finds a
/// process that has `path` on its command line.
fn server_on(path: &Path) -> Option<u32> {
    let marker = fs::read_to_string(path.join(MARKER)).ok()?;
    let noted = |begin: &str| marker.lines().find_map(|line| line.strip_prefix(begin));
    if noted(STARTING).is_some_and(has_ended) {
        return process_with_argument(path);
    }
    let (pid, noted) = noted(SERVER)?.split_once(' ')?;
    let pid = pid.parse().ok()?;
    is_alive(pid, noted).then_some(pid)
}

/// Finds a process that has `path` as an argument or as an option's value.
fn process_with_argument(path: &Path) -> Option<u32> {
    let path = std::path::absolute(path).ok()?;
    let path = path.as_os_str().as_encoded_bytes();
    let is_it = |word: &[u8]| word.strip_suffix(path).is_some_and(|before| matches!(before, [] | [.., b'=']));
    let is_called = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(is_it)
    };
    processes().filter(|pid| *pid != std::process::id()).find(is_called)
}

/// Finds a process of a multi-process server whose working directory is `path`. When the first
/// process of such a server is killed, the others end a little later and may still write.
fn process_working_in(path: &Path) -> Option<u32> {
    let path = path.canonicalize().ok()?;
    let mut all = ALL.iter().filter_map(|family| family.workers);
    let (program, _) = all.find(|(_, file)| path.join(file).exists())?;
    let works_there = |pid: &u32| {
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
        let is_server = || link("exe").is_some_and(|exe| exe.ends_with(program));
        link("cwd").as_ref() == Some(&path) && is_server()
    };
    processes().find(works_there)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    pub files: u64,
    /// Sum of all file lengths, holes included.
    pub bytes: u64,
    /// Files whose blocks are shared with the original (reflinks). They needed no extra space and
    /// no writes.
    pub shared_files: u64,
}

/// Bytes that one step copies. The user may cancel between two steps.
const PIECE_BYTES: u64 = 32 << 20;

/// Copies the entries in `from` into the existing folder `to`, except for an entry directly in
/// `from` with the name `left_out`. Sockets and pipes are skipped, because they are useless without
/// their processes.
fn copy_tree(from: &Path, to: &Path, left_out: &str, cancel: &AtomicBool) -> Result<Copied, Error> {
    let mut copied = Copied::default();
    for path in sorted_entries(from)?.into_iter().filter(|path| path.file_name() != Some(left_out.as_ref())) {
        copy_entry(&path, &to.join(path.file_name().unwrap_or_default()), &mut copied, cancel)?;
    }
    Ok(copied)
}

fn copy_entry(from: &Path, to: &Path, copied: &mut Copied, cancel: &AtomicBool) -> Result<(), Error> {
    let cancelled = || Error::Cancelled { what: format!("copying to {}", to.display()) };
    if cancel.load(Ordering::Relaxed) {
        return Err(cancelled());
    }
    let metadata = fs::symlink_metadata(from).map_err(Error::io("cannot look at", from))?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        let target = fs::read_link(from).map_err(Error::io("cannot read the link", from))?;
        symlink(target, to).map_err(Error::io("cannot make the link", to))?;
        if is_root() {
            lchown(to, Some(metadata.uid()), Some(metadata.gid()))
                .map_err(Error::io("cannot change the owner of", to))?;
        }
    } else if kind.is_dir() {
        fs::create_dir(to).map_err(Error::io("cannot make", to))?;
        for path in sorted_entries(from)? {
            copy_entry(&path, &to.join(path.file_name().unwrap_or_default()), copied, cancel)?;
        }
        copy_owner_and_mode(to, &metadata)?;
    } else if kind.is_file() {
        let is_shared = copy_file(from, to, &metadata, cancel).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => cancelled(),
            _ => Error::io("cannot copy to", to)(error),
        })?;
        copy_owner_and_mode(to, &metadata)?;
        copied.files += 1;
        copied.bytes += metadata.len();
        copied.shared_files += u64::from(is_shared);
    }
    Ok(())
}

/// Gives the copy the original's permissions, and its owner where this process may.
fn copy_owner_and_mode(to: &Path, of: &fs::Metadata) -> Result<(), Error> {
    if is_root() {
        chown(to, Some(of.uid()), Some(of.gid())).map_err(Error::io("cannot change the owner of", to))?;
    }
    let rights = fs::Permissions::from_mode(of.mode() & 0o7777);
    fs::set_permissions(to, rights).map_err(Error::io("cannot set the rights of", to))
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Copies one file and returns whether its blocks are shared.
fn copy_file(from: &Path, to: &Path, metadata: &fs::Metadata, cancel: &AtomicBool) -> io::Result<bool> {
    let source = File::open(from)?;
    let copy = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let is_shared = ioctl_ficlone(&copy, &source).is_ok();
    if !is_shared {
        copy.set_len(metadata.len())?;
        copy_data(&source, &copy, metadata.len(), cancel)?;
    }
    copy.set_modified(metadata.modified()?)?;
    Ok(is_shared)
}

/// Copies everything except holes. It fails with `Interrupted` when `cancel` becomes true.
fn copy_data(source: &File, mut copy: &File, length: u64, cancel: &AtomicBool) -> io::Result<()> {
    let mut at = 0;
    while at < length {
        if cancel.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        let begin = match seek(source, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // The rest of the file is a hole.
            Err(Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        // The file has grown since its length was read.
        if begin >= length {
            return Ok(());
        }
        at = seek(source, SeekFrom::Hole(begin))?.min(length).min(begin + PIECE_BYTES);
        seek(source, SeekFrom::Start(begin))?;
        seek(copy, SeekFrom::Start(begin))?;
        // The kernel copies the data itself where the filesystems support that.
        if io::copy(&mut source.take(at - begin), &mut copy)? < at - begin {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Flushes all writes in the filesystem that holds `folder` to the disk, so that they are not
/// charged to the next measurement.
pub(crate) fn sync(folder: &Path) -> Result<(), Error> {
    let opened = File::open(folder).map_err(Error::io("cannot open", folder))?;
    nix::unistd::syncfs(&opened).map_err(|errno| Error::io("cannot sync", folder)(errno.into()))
}

/// Drops the files below `folder` from the page cache. They must be synced already. The next
/// process that reads a file then reads it from the disk, and the memory is charged to that
/// process. Otherwise the pages would stay charged to the process that made the copy.
pub(crate) fn forget_cached(folder: &Path) -> Result<(), Error> {
    for path in files_below(folder)? {
        let file = File::open(&path).map_err(Error::io("cannot open", path.clone()))?;
        fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|errno| Error::io("cannot drop from the page cache", path)(errno.into()))?;
    }
    Ok(())
}

/// All regular files below `folder`, sorted by path.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in sorted_entries(folder)? {
        let kind =
            fs::symlink_metadata(&path).map_err(Error::io("cannot look at", path.clone()))?.file_type();
        if kind.is_dir() {
            files.extend(files_below(&path)?);
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let cannot = || Error::io("cannot read the folder", folder);
    let entries = fs::read_dir(folder).map_err(cannot())?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(cannot())?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::process::{Command, Stdio};

    use super::*;

    static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn a_directory_without_the_marker_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("precious"), "x").unwrap();
        assert!(matches!(prepare(&path, &NOT_CANCELLED), Err(Error::NotOurs { .. })));
        assert!(path.join("precious").exists());
        assert!(matches!(prepare(&path.join("precious"), &NOT_CANCELLED), Err(Error::NotOurs { .. })));
    }

    #[test]
    fn a_marked_directory_is_wiped_and_keeps_its_marker() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/data");
        prepare(&path, &NOT_CANCELLED).unwrap();
        fs::create_dir(path.join("mysql")).unwrap();
        fs::write(path.join("mysql/user"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), path.join("link")).unwrap();
        prepare(&path, &NOT_CANCELLED).unwrap();
        assert_eq!(entries(&path).unwrap(), [path.join(MARKER)]);
        assert!(folder.path().exists());
    }

    #[test]
    fn only_a_marked_directory_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        remove_data(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("precious"), "x").unwrap();
        assert!(matches!(remove_data(&path), Err(Error::NotOurs { .. })));
        mark(&path).unwrap();
        fs::write(path.join("ibdata1"), "x").unwrap();
        remove_data(&path).unwrap();
        assert!(!path.exists());
    }

    /// `kill -9` leaves this state before the marker is written, or after the marker is removed and
    /// before the folder is.
    #[test]
    fn an_empty_directory_is_removed_and_so_are_temporary_files_next_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        for left in [&path, &temporary_files(&path)] {
            fs::create_dir(left).unwrap();
        }
        remove_data(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_written_or_removed_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, path) = (folder.path().join("theirs"), folder.path().join("data"));
        // This folder has the marker, as a folder of another run or a forged one has.
        prepare(&theirs, &NOT_CANCELLED).unwrap();
        fs::write(theirs.join("precious"), "x").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        let refused = [
            prepare(&path, &NOT_CANCELLED),
            remove_data(&path),
            check_at_rest(&path, &NOT_CANCELLED),
            mark(&path),
        ];
        assert!(refused.iter().all(|refused| matches!(refused, Err(Error::NotOurs { .. }))), "{refused:?}");
        assert_eq!(fs::read_to_string(theirs.join("precious")).unwrap(), "x");
        // The folder that was checked is emptied, even if another file has its name by then.
        fs::remove_file(&path).unwrap();
        prepare(&path, &NOT_CANCELLED).unwrap();
        fs::write(path.join("old"), "x").unwrap();
        let opened = Folder::open(&path).unwrap();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        wipe(&path, &opened).unwrap();
        assert!(theirs.join("precious").exists() && !folder.path().join("moved/old").exists());
        // A link does not count as a marker, and nothing is written through the link.
        let (outside, linked) = (folder.path().join("outside"), folder.path().join("linked"));
        fs::write(&outside, "x").unwrap();
        fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(&outside, linked.join(MARKER)).unwrap();
        assert!(matches!(remove_data(&linked), Err(Error::NotOurs { .. })));
        assert!(mark(&linked).is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "x");
    }

    #[test]
    fn a_directory_with_a_running_server_is_not_wiped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        prepare(&path, &NOT_CANCELLED).unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        note_server(&path, child.id()).unwrap();
        let refused = prepare(&path, &NOT_CANCELLED);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(refused, Err(Error::StillRunning { .. })), "{refused:?}");
        prepare(&path, &NOT_CANCELLED).unwrap();
    }

    /// `kill -9` leaves this state after a server has started and before dbdyno has noted the
    /// server's process.
    #[test]
    fn a_started_server_without_a_note_is_found_by_its_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        prepare(&path, &NOT_CANCELLED).unwrap();
        note_start(&path).unwrap();
        let option = format!("--datadir={}", path.display());
        let mut child = Command::new("sh")
            .args(["-c", "read -r _", "sh", &option])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // The marker names this process as the one that starts the server.
        assert_eq!(server_on(&path), None);
        let ended =
            format!("{STARTING}{}-1-{}", std::process::id(), own_marker().rsplit_once('-').unwrap().1);
        note(&path, &ended).unwrap();
        let deadline = Instant::now() + SERVER_END_LIMIT;
        while server_on(&path).is_none() && Instant::now() < deadline {
            // The child has not executed the shell yet.
            sleep(Duration::from_millis(1));
        }
        let refused = prepare(&path, &NOT_CANCELLED);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            matches!(&refused, Err(Error::StillRunning { pid, .. }) if *pid == child.id()),
            "{refused:?}"
        );
        prepare(&path, &NOT_CANCELLED).unwrap();
    }

    #[test]
    fn a_process_that_reuses_an_ended_servers_number_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MARKER), format!("{MARKER_TEXT}server {} 1\n", std::process::id()))
            .unwrap();
        assert_eq!(server_on(folder.path()), None);
        note_server(folder.path(), std::process::id()).unwrap();
        assert_eq!(server_on(folder.path()), Some(std::process::id()));
    }

    #[test]
    fn filling_copies_the_template_with_its_marker() {
        let folder = tempfile::tempdir().unwrap();
        let (template, data) = (folder.path().join("template"), folder.path().join("data"));
        fs::create_dir_all(template.join("mysql")).unwrap();
        fs::write(template.join("mysql/user"), "x").unwrap();
        prepare(&data, &NOT_CANCELLED).unwrap();
        fill(&template, &data, &NOT_CANCELLED).unwrap();
        assert_eq!(fs::read_to_string(data.join("mysql/user")).unwrap(), "x");
        assert!(data.join(MARKER).exists());
    }

    #[test]
    fn a_copy_keeps_contents_rights_links_and_times_and_leaves_one_name_out() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("inner/file"), vec![7; 3_000_000]).unwrap();
        fs::write(from.join("inner/mark"), "inner").unwrap();
        fs::write(from.join("mark"), "outer").unwrap();
        fs::set_permissions(from.join("inner"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("inner/file", from.join("link")).unwrap();
        let copied = copy_tree(&from, &to, "mark", &NOT_CANCELLED).unwrap();
        assert_eq!((copied.files, copied.bytes), (2, 3_000_005));
        assert_eq!(fs::read(to.join("inner/file")).unwrap(), vec![7; 3_000_000]);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("inner/file"));
        assert!(to.join("inner/mark").exists() && !to.join("mark").exists());
        let metadata = |folder: &Path| fs::metadata(folder.join("inner")).unwrap();
        assert_eq!(metadata(&from).mode(), metadata(&to).mode());
        let modified = |folder: &Path| fs::metadata(folder.join("inner/file")).unwrap().modified().unwrap();
        assert_eq!(modified(&from), modified(&to));
    }

    #[test]
    fn a_copy_ends_when_the_user_cancels() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("file"), "x").unwrap();
        let cancel = AtomicBool::new(true);
        let ended = copy_tree(&from, &to, "", &cancel);
        assert!(matches!(ended, Err(Error::Cancelled { .. })), "{ended:?}");
        let file = File::open(from.join("file")).unwrap();
        let copy = File::create(to.join("file")).unwrap();
        assert_eq!(copy_data(&file, &copy, 1, &cancel).unwrap_err().kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn holes_stay_holes() {
        const HOLE: u64 = 64 << 20;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        let file = File::create(from.join("sparse")).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"middle", HOLE / 2).unwrap();
        file.set_len(HOLE).unwrap();
        copy_tree(&from, &to, "", &NOT_CANCELLED).unwrap();
        let copy = to.join("sparse");
        assert_eq!(fs::read(&copy).unwrap(), fs::read(from.join("sparse")).unwrap());
        let metadata = fs::metadata(&copy).unwrap();
        assert_eq!(metadata.len(), HOLE);
        assert!(metadata.blocks() * 512 < 1 << 20, "{} blocks", metadata.blocks());
    }

    #[test]
    fn a_file_of_more_than_one_piece_is_copied_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = vec![7; PIECE_BYTES as usize];
        bytes.extend(0..77);
        fs::write(folder.path().join("from"), &bytes).unwrap();
        let source = File::open(folder.path().join("from")).unwrap();
        let copy = File::create(folder.path().join("to")).unwrap();
        copy_data(&source, &copy, bytes.len() as u64, &NOT_CANCELLED).unwrap();
        assert!(fs::read(folder.path().join("to")).unwrap() == bytes);
    }

    #[test]
    fn bytes_appended_to_a_file_meanwhile_are_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("from");
        let file = File::create(&path).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"appended", 8 << 20).unwrap();
        let (source, to) = (File::open(&path).unwrap(), folder.path().join("to"));
        copy_data(&source, &File::create(&to).unwrap(), 4 << 20, &NOT_CANCELLED).unwrap();
        let copied = fs::read(&to).unwrap();
        assert!(copied.starts_with(b"begin") && copied.len() <= 4 << 20, "{} bytes", copied.len());
    }
}
