//! Defines the names and paths in a run directory, which the writer and the reader share. It opens
//! files safely: only regular files, never through a link, without blocking, and with a limit on
//! the bytes that are read at once.
//!
//! A run directory may come from anywhere. A FIFO in it would block its reader for ever, and a
//! device or a huge file would fill its memory.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use serde::Serialize;

use crate::{CellId, Error};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const INTERVALS: &str = "intervals.jsonl";
/// Sampled stacks, each with its number of samples.
pub(crate) const STACKS: &str = "stacks.folded";
pub(crate) const HISTOGRAMS: &str = "histograms.hlog";
pub(crate) const COUNTERS: &str = "counters";
pub(crate) const COUNTERS_ENDING: &str = ".jsonl";
pub(crate) const CHECKSUMS: &str = "checksums.json";
pub(crate) const CELLS: &str = "cells";
pub(crate) const LOGS: &str = "logs";
pub(crate) const ASIDE: &str = "aside";
pub(crate) const REPEATED: &str = "repeated";

/// Returns `<block>/<variant>/<workload>`, which is the cell's folder below `cells` or `aside/<n>`.
pub(crate) fn cell_path(cell: &CellId) -> Result<PathBuf, Error> {
    Ok(Path::new(&cell.block.to_string())
        .join(folder_name(&cell.variant)?)
        .join(folder_name(&cell.workload)?))
}

/// Returns `name` itself when it can name a file or folder. This keeps a name from leading out of the
/// run directory.
pub(crate) fn folder_name(name: &str) -> Result<&str, Error> {
    let unfit = name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\']);
    if unfit || name.contains(char::is_control) { Err(Error::Name { name: name.into() }) } else { Ok(name) }
}

/// Makes the entries of a folder survive a power cut.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| Error::Write { path: path.into(), source })
}

/// Creates a folder that must not be there yet. Its parents are created as needed.
pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    let write_error = |source| Error::Write { path: path.into(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(write_error)?;
    }
    std::fs::create_dir(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists { path: path.into() },
        _ => write_error(source),
    })
}

/// Returns the sorted names of the entries in a folder. There are none when there is no such
/// folder.
pub(crate) fn names_in(dir: &Path) -> Result<Vec<String>, Error> {
    let read_error = |source| Error::Read { path: dir.into(), source };
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(read_error)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(read_error)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Writes a file with one JSON document, so that a reader sees either none or all of it.
pub(crate) fn write_whole(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let write = || {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        let mut file = File::create_new(&unfinished)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(|source| Error::Write { path: path.into(), source })
}

/// Refuses a path from the run directory `top` to `below` that goes through a link, because the
/// target of a link is not part of the run. The run directory itself may be reached through a link.
pub(crate) fn refuse_links(top: &Path, below: &Path) -> Result<(), Error> {
    let mut folders = below.ancestors().take_while(|folder| *folder != top);
    let is_link =
        |folder: &&Path| std::fs::symlink_metadata(folder).is_ok_and(|found| found.file_type().is_symlink());
    folders.find(is_link).map_or(Ok(()), |link| Err(Error::Link { path: link.into() }))
}

/// The limit for a manifest. It is enough for a million cells, or for a thousand variants with option
/// files of 200 KiB.
pub(crate) const MANIFEST_MAX_BYTES: u64 = 256 << 20;

/// The limit for checksums. They take a hundred bytes for each file of a step, and a step has some
/// twenty files.
pub(crate) const CHECKSUMS_MAX_BYTES: u64 = 1 << 20;

/// Returns the regular file at `path`, or `None` when there is nothing.
pub(crate) fn open_regular(path: &Path) -> Result<Option<File>, Error> {
    open_regular_with(OpenOptions::new().read(true), path)
}

/// Opens a file like [`open_regular`], with other options.
pub(crate) fn open_regular_with(options: &mut OpenOptions, path: &Path) -> Result<Option<File>, Error> {
    // Without `O_NONBLOCK`, opening a FIFO would wait for its other end. Regular files ignore the flag.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let not_regular = || Error::NotRegular { path: path.into() };
    let read_error = |source| Error::Read { path: path.into(), source };
    let file = match options.custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // These are links, sockets, and folders that were opened for writing.
        Err(_) if path.symlink_metadata().is_ok_and(|found| !found.is_file()) => return Err(not_regular()),
        Err(error) => return Err(read_error(error)),
    };
    match file.metadata().map_err(read_error)?.is_file() {
        true => Ok(Some(file)),
        false => Err(not_regular()),
    }
}

/// Returns the content of the file at `path`, or `None` when there is none. A file with more than
/// `limit_bytes` is refused, whether it is that long from the start or grows while it is read.
pub(crate) fn read_bounded(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
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
    String::from_utf8(read_bounded(path, limit_bytes).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["", ".", "..", "a/b", "/etc", "a\\b", "a\nb", "a\0b"] {
            assert!(matches!(folder_name(name), Err(Error::Name { .. })), "{name:?}");
        }
        for name in ["l.i0", "point-query.pre", "mariadb 10.11", "..a"] {
            assert_eq!(folder_name(name).unwrap(), name);
        }
    }
}
