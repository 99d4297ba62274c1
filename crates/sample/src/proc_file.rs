//! A file below `/proc` that is kept open and read again and again into one buffer.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::Error;

/// An open file whose text the kernel writes again at each reading. A file that was opened for a
/// process stays bound to that process. After the end of the process it fails, even when the process
/// number has been given to another one.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        match File::open(&path) {
            Ok(file) => Ok(Self { path, file, buffer: vec![0; 4096] }),
            Err(source) => Err(Error::Unreadable { path, source }),
        }
    }

    /// Returns the file's text as it is now. Names of processes may hold any bytes, so those that are
    /// not UTF-8 are replaced.
    pub(crate) fn text(&mut self) -> Result<Cow<'_, str>, Error> {
        let length = self.fill().map_err(|source| Error::Unreadable { path: self.path.clone(), source })?;
        Ok(String::from_utf8_lossy(&self.buffer[..length]))
    }

    /// Returns what `parse` makes of the text. If it returns nothing, the error says that `missing` was
    /// not found.
    pub(crate) fn parsed<T>(
        &mut self,
        missing: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let parsed = parse(&self.text()?);
        parsed.ok_or_else(|| self.format_error(missing))
    }

    /// Returns the error for a text in which `missing` was not found.
    pub(crate) fn format_error(&self, missing: &'static str) -> Error {
        Error::Format { path: self.path.clone(), missing }
    }

    /// Reads to the end, because the kernel may hand out a long text one page at a time.
    fn fill(&mut self) -> io::Result<usize> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(length),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_and_outgrows_the_buffer_is_read_whole_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("growing");
        std::fs::write(&path, "short").unwrap();
        let mut file = ProcFile::open(&path).unwrap();
        assert_eq!(file.text().unwrap(), "short");
        let long = "0123456789".repeat(5_000);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.text().unwrap(), long);
        std::fs::write(&path, "again").unwrap();
        assert_eq!(file.text().unwrap(), "again");
    }

    #[test]
    fn a_file_of_a_process_fails_once_the_process_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut file = ProcFile::open(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(file.text().unwrap().contains("(sleep)"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(file.text(), Err(Error::Unreadable { .. })));
    }
}
