//! Opens files of a record: regular ones, through no link, without waiting for anyone, and with a
//! bound on what is read at once.
//!
//! A run directory may come from anywhere. A FIFO in it would hold its reader for ever, and a device
//! or a huge file would fill its memory.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::Error;

/// Of a manifest: a million cells, or a thousand variants with option files of 200 KiB.
pub(crate) const MANIFEST_MAX_BYTES: u64 = 256 << 20;

/// Of checksums, a hundred bytes for each file of a step, which are some twenty.
pub(crate) const CHECKSUMS_MAX_BYTES: u64 = 1 << 20;

/// The regular file at `path`; `None` when there is nothing.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Error> {
    open_with(OpenOptions::new().read(true), path)
}

/// As [`open`], with other options.
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> Result<Option<File>, Error> {
    // `O_NONBLOCK`: to open a FIFO would wait for its other end. Regular files do not heed it.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let not_regular = || Error::NotRegular { path: path.into() };
    let read_error = |source| Error::Read { path: path.into(), source };
    let file = match options.custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // Links, sockets, and folders that were to be written.
        Err(_) if path.symlink_metadata().is_ok_and(|found| !found.is_file()) => return Err(not_regular()),
        Err(error) => return Err(read_error(error)),
    };
    match file.metadata().map_err(read_error)?.is_file() {
        true => Ok(Some(file)),
        false => Err(not_regular()),
    }
}

/// What the file at `path` holds; `None` when there is none. One with more than `limit_bytes` is
/// refused, whether it says so or grows meanwhile.
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

/// The text of a small file in a run directory that is no record: no more than `limit_bytes` of it,
/// and only of a regular file. `None` for anything else.
pub fn small_text(path: &Path, limit_bytes: u64) -> Option<String> {
    String::from_utf8(read(path, limit_bytes).ok()??).ok()
}
