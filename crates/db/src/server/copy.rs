//! Copies data folders. It shares blocks where the filesystem can (reflinks), and keeps holes,
//! owners and permissions.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, SeekFrom, fadvise, ioctl_ficlone, seek};
use rustix::io::Errno;

use crate::server::Error;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    pub files: u64,
    /// Sum of all file lengths, holes included.
    pub bytes: u64,
    /// Files whose blocks are shared with the original (reflinks). They took no space and no
    /// writes.
    pub shared_files: u64,
}

/// Bytes that one step copies. The user may cancel between two steps.
const PIECE_BYTES: u64 = 32 << 20;

/// Copies the entries in `from` into the existing folder `to`, except for an entry directly in
/// `from` with the name `but`. Sockets and pipes belong to processes, so they are skipped.
pub(crate) fn copy_tree(from: &Path, to: &Path, but: &str, cancel: &AtomicBool) -> Result<Copied, Error> {
    let mut copied = Copied::default();
    for path in sorted_entries(from)?.into_iter().filter(|path| path.file_name() != Some(but.as_ref())) {
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
        keep_owner(to, &metadata)?;
    } else if kind.is_file() {
        let is_shared = copy_file(from, to, &metadata, cancel).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => cancelled(),
            _ => Error::io("cannot copy to", to)(error),
        })?;
        keep_owner(to, &metadata)?;
        copied.files += 1;
        copied.bytes += metadata.len();
        copied.shared_files += u64::from(is_shared);
    }
    Ok(())
}

/// Gives the copy the original's permissions, and its owner where this process may.
pub(crate) fn keep_owner(to: &Path, of: &fs::Metadata) -> Result<(), Error> {
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

/// Copies everything but holes. It fails as interrupted when `cancel` becomes true.
fn copy_data(source: &File, mut copy: &File, length: u64, cancel: &AtomicBool) -> io::Result<()> {
    let mut at = 0;
    while at < length {
        if cancel.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        let begin = match seek(source, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // Only a hole is left.
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

/// Drops the files below `folder` from the page cache; they must be synced already. The next reader
/// then reads from the disk and is charged for the memory. Otherwise the pages would stay charged
/// to the process that made the copy.
pub(crate) fn forget_cached(folder: &Path) -> Result<(), Error> {
    for path in files_below(folder)? {
        let file = File::open(&path).map_err(Error::io("cannot open", path.clone()))?;
        fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|errno| Error::io("cannot take out of the cache", path)(errno.into()))?;
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

    use super::*;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn contents_rights_links_and_times_are_the_originals_and_one_name_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("inner/file"), vec![7; 3_000_000]).unwrap();
        fs::write(from.join("inner/mark"), "inner").unwrap();
        fs::write(from.join("mark"), "outer").unwrap();
        fs::set_permissions(from.join("inner"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("inner/file", from.join("link")).unwrap();
        let copied = copy_tree(&from, &to, "mark", &GO_ON).unwrap();
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
    fn a_copy_ends_when_the_user_has_enough() {
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
        copy_tree(&from, &to, "", &GO_ON).unwrap();
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
        copy_data(&source, &copy, bytes.len() as u64, &GO_ON).unwrap();
        assert!(fs::read(folder.path().join("to")).unwrap() == bytes);
    }

    #[test]
    fn what_is_appended_to_a_file_meanwhile_is_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("from");
        let file = File::create(&path).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"appended", 8 << 20).unwrap();
        let (source, to) = (File::open(&path).unwrap(), folder.path().join("to"));
        copy_data(&source, &File::create(&to).unwrap(), 4 << 20, &GO_ON).unwrap();
        let copied = fs::read(&to).unwrap();
        assert!(copied.starts_with(b"begin") && copied.len() <= 4 << 20, "{} bytes", copied.len());
    }
}
