//! Writes and reads files of lines. The writer appends without ever leaving half a line after a
//! good one. The reader copes with lines that a crash cut off.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, layout};

/// Lines are written to the file once more than this many bytes wait in memory.
const PENDING_LIMIT_BYTES: usize = 64 * 1024;

/// Longest line that is read. The longest lines that dbdyno writes hold the plan of a statement.
pub(crate) const LINE_MAX_BYTES: u64 = 16 << 20;

/// The most lines in a row that crashes can have cut off. Each of them comes from a process that
/// was killed in its first line.
const CUT_OFF_MAX: usize = 100;

/// A reader that checks whether the file is being written is done after this time.
const READER_CHECK: Duration = Duration::from_millis(20);

/// A file that only grows, by whole lines.
///
/// Bytes that a full disk did not take stay in memory and are written first the next time. A later
/// line therefore never continues half of an earlier one.
pub(crate) struct LineWriter {
    file: File,
    path: PathBuf,
    pending: Vec<u8>,
}

impl LineWriter {
    /// Opens `path` to append. If a crash cut off the last line, the line is given its end.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
        Self::of(opened.map_err(|source| Error::Write { path: path.clone(), source })?, path)
    }

    /// Opens a file like [`LineWriter::open`], but one that another process may have left. It must
    /// be a regular file.
    pub(crate) fn reopen(path: PathBuf) -> Result<Self, Error> {
        match layout::open_regular_with(OpenOptions::new().read(true).append(true), &path)? {
            Some(file) => Self::of(file, path),
            None => Self::open(path),
        }
    }

    fn of(mut file: File, path: PathBuf) -> Result<Self, Error> {
        let open_ended = ends_open(&mut file).map_err(|source| Error::Read { path: path.clone(), source })?;
        let pending = if open_ended { vec![b'\n'] } else { Vec::new() };
        Ok(LineWriter { file, path, pending })
    }

    /// Takes the lock, so that no other process can write this file as long as this writer lives.
    pub(crate) fn lock(&self) -> Result<(), Error> {
        for is_last in [false, false, true] {
            match self.file.try_lock() {
                Err(TryLockError::WouldBlock) if is_last => {}
                // The lock may be that of a reader that checks whether the file is being written
                // (`is_locked`), which takes microseconds.
                Err(TryLockError::WouldBlock) => std::thread::sleep(READER_CHECK),
                // A run on a filesystem without locks is still allowed.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
            }
        }
        Err(Error::InUse { path: self.path.clone() })
    }

    /// Takes one value as a line of JSON. It reaches the file with the next `flush`.
    pub(crate) fn push<T: Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|error| self.write_error(error.into()))?;
        line.push(b'\n');
        self.push_bytes(&line)
    }

    pub(crate) fn push_bytes(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.pending.extend_from_slice(lines);
        if self.pending.len() > PENDING_LIMIT_BYTES { self.flush() } else { Ok(()) }
    }

    /// Gives everything to the operating system, so that it survives the death of this process.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        write_out(&mut self.file, &mut self.pending).map_err(|source| self.write_error(source))
    }

    /// Puts everything on the disk, so that it survives a power cut.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.file.sync_data().map_err(|source| self.write_error(source))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn write_error(&self, source: std::io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }
}

impl Drop for LineWriter {
    /// Writes the pending lines when a step ends with an error. A caller that must know whether
    /// they were written calls `sync`.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Returns whether a process holds the lock of the file at `path`, and so writes it. Where that
/// cannot be known, the answer is no.
pub(crate) fn is_locked(path: &Path) -> bool {
    let Ok(Some(file)) = layout::open_regular(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Writes `pending` and removes the written bytes from it, even when the rest could not be written.
fn write_out(sink: &mut impl Write, pending: &mut Vec<u8>) -> std::io::Result<()> {
    let mut written = 0;
    let mut result = Ok(());
    while result.is_ok() && written < pending.len() {
        match sink.write(&pending[written..]) {
            Ok(0) => result = Err(ErrorKind::WriteZero.into()),
            Ok(bytes) => written += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => result = Err(error),
        }
    }
    pending.drain(..written);
    result
}

/// Returns whether the file's last line has no end.
fn ends_open(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The content that could be read from a file of lines.
pub(crate) struct Lines<T> {
    pub(crate) items: Vec<T>,
    /// One sentence for each line that a crash cut off.
    pub(crate) cut_off: Vec<String>,
    /// Damage that no crash explains. `items` holds what comes before it.
    pub(crate) damage: Option<Error>,
}

/// The irregularities in the lines of a file.
#[derive(Debug, Default)]
pub(crate) struct LineFaults {
    /// As in [`Lines`].
    pub(crate) cut_off: Vec<String>,
    pub(crate) damage: Option<Error>,
}

impl LineFaults {
    fn damaged(self, damage: Option<Error>) -> Self {
        Self { damage, ..self }
    }
}

/// The kind of a line that was read without an error.
pub(crate) enum Line {
    /// The line was taken.
    Good,
    /// The line was taken, and it is the first that a later process wrote after a crash.
    GoesOn,
}

/// Gives `take` the lines of `input`, which is the file at `path`, one after the other and without
/// their ends. The second argument of `take` says whether the line before was broken. The memory
/// used is that of the longest line, and none is longer than [`LINE_MAX_BYTES`].
///
/// A broken line is skipped only where a crash leaves one. That is at the end of the file and
/// without an end of its own or, with `can_go_on`, before the line with which a later process
/// continued. After a broken line `take` may therefore take nothing but [`Line::GoesOn`]: any other
/// good line turns the broken one into damage.
pub(crate) fn each_line(
    path: &Path,
    input: impl BufRead,
    can_go_on: bool,
    mut take: impl FnMut(&[u8], bool) -> Result<Line, String>,
) -> LineFaults {
    let mut input = input.take(0);
    let mut odd = LineFaults::default();
    let mut broken: Vec<(usize, String)> = Vec::new();
    let (mut line, mut is_ended) = (Vec::new(), true);
    for number in 1.. {
        line.clear();
        input.set_limit(LINE_MAX_BYTES + 1);
        match input.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(source) => return odd.damaged(Some(Error::Read { path: path.into(), source })),
        }
        is_ended = line.pop_if(|byte| *byte == b'\n').is_some();
        if line.len() as u64 > LINE_MAX_BYTES {
            broken.push((number, format!("it is longer than {} MiB, and no line is", LINE_MAX_BYTES >> 20)));
            return odd.damaged(damage(path, &broken));
        }
        match take(&line, !broken.is_empty()) {
            Ok(Line::Good) if broken.is_empty() => {}
            Ok(Line::Good) => return odd.damaged(damage(path, &broken)),
            Ok(Line::GoesOn) => odd.cut_off.extend(broken.drain(..).map(|(line, _)| cut_off(path, line))),
            Err(message) => {
                broken.push((number, message));
                let may_be_cut_off = !is_ended || can_go_on && broken.len() <= CUT_OFF_MAX;
                if !may_be_cut_off {
                    return odd.damaged(damage(path, &broken));
                }
            }
        }
    }
    let open_ended = usize::from(!broken.is_empty() && !is_ended);
    let with_ends = &broken[..broken.len() - open_ended];
    // A process that resumes ends such a line, and can be killed in its own first one.
    if with_ends.iter().all(|(_, message)| can_go_on && is_too_short(message)) {
        odd.cut_off.extend(broken.iter().map(|(line, _)| cut_off(path, *line)));
        return odd;
    }
    odd.damaged(damage(path, &broken))
}

/// Returns the items in the lines of `input`, which is the file at `path`. `parse` gets a line
/// without its end and may skip it with `Ok(None)`. `resumes` says whether an item is the first
/// that a later process wrote after a crash, as in [`each_line`].
pub(crate) fn parse_lines<T>(
    path: &Path,
    input: impl BufRead,
    mut parse: impl FnMut(&[u8]) -> Result<Option<T>, String>,
    resumes: Option<fn(&T) -> bool>,
) -> Lines<T> {
    let mut items = Vec::new();
    let LineFaults { cut_off, damage } =
        each_line(path, input, resumes.is_some(), |line, is_after_broken| {
            let item = parse(line)?;
            let goes_on = item.as_ref().zip(resumes).is_some_and(|(item, resumes)| resumes(item));
            if goes_on || !is_after_broken {
                items.extend(item);
            }
            Ok(if goes_on { Line::GoesOn } else { Line::Good })
        });
    Lines { items, cut_off, damage }
}

/// Does what `parse_lines` does, for one JSON value per line of the file at `path`. A file that is
/// absent is empty.
pub(crate) fn read_json_lines<T: DeserializeOwned>(path: &Path, resumes: Option<fn(&T) -> bool>) -> Lines<T> {
    match layout::open_regular(path) {
        Ok(Some(file)) => parse_lines(path, BufReader::new(file), |line| parse_json(line).map(Some), resumes),
        absent => Lines { items: Vec::new(), cut_off: Vec::new(), damage: absent.err() },
    }
}

/// Returns whether the JSON reader's message says that the line ended too early.
fn is_too_short(message: &str) -> bool {
    message.starts_with("EOF while parsing")
}

/// Returns one JSON value, or a message that says what is wrong and in which column.
pub(crate) fn parse_json<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string().replace("at line 1 column", "at column"))
}

fn cut_off(path: &Path, line: usize) -> String {
    format!("{} line {line} was cut off by a crash and is passed over", path.display())
}

fn damage(path: &Path, broken: &[(usize, String)]) -> Option<Error> {
    let (line, message) = broken.first()?;
    Some(Error::Damaged { path: path.into(), line: *line, message: message.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that takes `room` bytes, at most three at a time.
    struct Disk {
        content: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.room).min(3);
            if taken == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.content.extend_from_slice(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_met_a_full_disk_is_completed_before_the_next_one() {
        for room in 0..12 {
            let mut disk = Disk { content: Vec::new(), room };
            let mut pending = b"first line\n".to_vec();
            assert_eq!(write_out(&mut disk, &mut pending).is_ok(), room >= 11);
            pending.extend_from_slice(b"second\n");
            disk.room = 100;
            write_out(&mut disk, &mut pending).unwrap();
            assert_eq!(String::from_utf8(disk.content).unwrap(), "first line\nsecond\n", "room for {room}");
            assert!(pending.is_empty());
        }
    }

    #[test]
    fn the_column_of_a_broken_line_is_its_own() {
        let message = parse_json::<u8>(b"x").unwrap_err();
        assert!(message.ends_with("at column 1"), "{message}");
    }
}
