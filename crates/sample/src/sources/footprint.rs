//! The counters that `server` and `client` have in common: memory, threads and IO of one process.
//!
//! Keys, for the whole process: `rss_bytes` (what `ps` calls RSS), `rss_peak_bytes`, `vsz_bytes` and
//! `threads`. `read_bytes` and `write_bytes` went to a block device. `write_bytes` is counted when page
//! cache is made dirty, a whole folio at a time. For small writes to a buffered file (a redo log
//! without O_DIRECT, on ext4 with large folios) it has been seen 100 times too high. What reached the
//! device is in source `disk`. `read_chars`, `write_chars`, `read_calls` and `write_calls` count
//! read(2), write(2) and similar calls, whether the page cache answered them or not.

use std::path::PathBuf;

use super::Values;
use super::process::{Memory, parse_memory, value_of};
use crate::Error;
use crate::proc_file::ProcFile;

/// Our key, and the kernel's in `/proc/<pid>/io`.
const IO_KEYS: [(&str, &str); 6] = [
    ("read_bytes", "read_bytes"),
    ("write_bytes", "write_bytes"),
    ("read_chars", "rchar"),
    ("write_chars", "wchar"),
    ("read_calls", "syscr"),
    ("write_calls", "syscw"),
];

#[derive(Debug)]
pub(crate) struct Footprint {
    pid: u32,
    status: ProcFile,
    io: Option<ProcFile>,
}

impl Footprint {
    /// Opens the files of process `pid`. IO is left out where the kernel does not let us see it:
    /// another user's process, or a kernel without CONFIG_TASK_IO_ACCOUNTING.
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        if !dir.exists() {
            return Err(Error::Gone { pid });
        }
        let status = ProcFile::open(dir.join("status"))?;
        // Rights are checked when the file is read, not when it is opened.
        let io = ProcFile::open(dir.join("io")).ok();
        let io = io.and_then(|mut io| io.text().is_ok().then_some(io));
        Ok(Self { pid, status, io })
    }

    pub(crate) fn sees_io(&self) -> bool {
        self.io.is_some()
    }

    pub(crate) fn memory(&mut self) -> Result<Memory, Error> {
        let memory = parse_memory(&self.status.text().map_err(|error| gone(self.pid, error))?);
        memory.ok_or(Error::Gone { pid: self.pid })
    }

    /// Reads and writes up to now, by our keys. There are none where they cannot be seen.
    pub(crate) fn io(&mut self) -> Result<Vec<(&'static str, i64)>, Error> {
        let Some(io) = &mut self.io else { return Ok(Vec::new()) };
        let text = io.text().map_err(|error| gone(self.pid, error))?;
        let value = |(key, kernel_key): &(&'static str, &str)| Some((*key, value_of(&text, kernel_key)?));
        Ok(IO_KEYS.iter().filter_map(value).collect())
    }

    pub(crate) fn read(&mut self, values: &mut Values) -> Result<(), Error> {
        let memory = self.memory()?;
        values.set("rss_bytes", memory.rss_bytes);
        values.set("rss_peak_bytes", memory.rss_peak_bytes);
        values.set("vsz_bytes", memory.vsz_bytes);
        values.set("threads", memory.threads);
        for (key, value) in self.io()? {
            values.set(key, value);
        }
        Ok(())
    }
}

/// Turns an ESRCH, with which a file of a process that has ended fails, into [`Error::Gone`].
pub(crate) fn gone(pid: u32, error: Error) -> Error {
    match &error {
        Error::Unreadable { source, .. }
            if source.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) =>
        {
            Error::Gone { pid }
        }
        _ => error,
    }
}
