//! Opens files of a record safely: only regular files, through no link, without waiting for anyone, and
//! with a bound on what is read at once.
//!
//! A run directory may come from anywhere. A FIFO in it would hold its reader for ever, and a device or
//! a huge file would fill its memory.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::Error;

/// The limit for a manifest. It is enough for a million cells, or for a thousand variants with option
/// files of 200 KiB.
pub(crate) const MANIFEST_MAX_BYTES: u64 = 256 << 20;

/// The limit for checksums. They take a hundred bytes for each file of a step, and a step has some
/// twenty files.
pub(crate) const CHECKSUMS_MAX_BYTES: u64 = 1 << 20;

/// Returns the regular file at `path`, or `None` when there is nothing.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Error> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file like [`open`], with other options.
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> Result<Option<File>, Error> {
    // Without `O_NONBLOCK`, opening a FIFO would wait for its other end. Regular files ignore the flag.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let not_regular = || Error::NotRegular { path: path.into() };
    let read_error = |source| Error::Read { path: path.into(), source };
    let file = match options.custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // These are links, sockets, and folders that were to be written.
        Err(_) if path.symlink_metadata().is_ok_and(|found| !found.is_file()) => return Err(not_regular()),
        Err(error) => return Err(read_error(error)),
    };
    match file.metadata().map_err(read_error)?.is_file() {
        true => Ok(Some(file)),
        false => Err(not_regular()),
    }
}

/// Returns the content of the file at `path`, or `None` when there is none. A file with more than
/// `limit_bytes` is refused, whether its length says so or it grows meanwhile.
pub(crate) fn read(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open(path)? else { return Ok(None) };
    let read_error = |source| Error::Read { path: path.into(), source };
    let too_large = || Error::TooLarge { path: path.into(), limit_bytes };
    if file.metadata().map_err(read_error)?.len() > limit_bytes {
        return Err(too_large());
    }
    let mut content = Vec::new();
    file.take(limit_bytes + 1).read_to_end(&mut content).map_err(read_error)?;
    if content.len() as u64 > limit_bytes { Err(too_large()) } else { Ok(Some(content)) }
}

/// Returns the text of a small file in a run directory that is no record. The result is `None` unless
/// this is a regular file of at most `limit_bytes`.
pub fn small_text(path: &Path, limit_bytes: u64) -> Option<String> {
    String::from_utf8(read(path, limit_bytes).ok()??).ok()
}
