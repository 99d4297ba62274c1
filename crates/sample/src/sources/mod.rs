//! Defines the trait of all sources of counters, lists the sources, and holds what they share.
//! [`Costly`] limits how often an expensive source is read, because a reading whose cost grows with
//! the server (threads, files) must not take more than its share of a core. A [`ProcFile`] is kept
//! open and read again and again into one buffer.

mod cgroup;
mod disk;
mod hardware;
mod host;
mod interrupts;
mod load;
pub(crate) mod process;
pub(crate) mod processes;
mod sampling;
mod server;
pub(crate) mod size;
mod status;
mod switches;
mod throttling;
mod waits;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use self::process::thread_cpu;
use crate::Error;

pub(crate) use self::cgroup::MemoryGroup;
pub(crate) use self::disk::Disk;
pub(crate) use self::hardware::HardwareCounters;
pub(crate) use self::host::{HostSource, parse_stat};
pub(crate) use self::interrupts::Interrupts;
pub(crate) use self::load::LoadSource;
pub(crate) use self::processes::Processes;
pub(crate) use self::sampling::Sampling;
pub(crate) use self::server::{Client, ServerSource, ServerTree, children_file, parse_children};
pub(crate) use self::size::Size;
pub(crate) use self::status::Status;
pub(crate) use self::switches::{Members, Scheduling};
pub(crate) use self::throttling::Throttling;
pub(crate) use self::waits::Waits;

/// Names of all sources, each with what the source counts. Its counter file has the same name.
pub const ALL: &[(&str, &str)] = &[
    ("host", "CPU time of the whole machine, context switches, pressure"),
    ("server", "CPU time, memory and IO of the server's process"),
    ("hardware", "instructions, cycles and misses of the server, where the CPU counts them"),
    ("switches", "context switches of the server's threads, and how long they waited for a CPU"),
    ("interrupts", "rescheduling and function-call interrupts of the server's and of the client's CPUs"),
    ("cgroup", "memory, page cache included, of the server's control group, where its memory is limited"),
    ("client", "CPU time, memory and IO of dbdyno's own process, including an embedded database"),
    ("load", "CPU time of each load thread of the client, and how long it waited for a CPU"),
    ("processes", "CPU time of all processes of the machine and of the kernel's own threads"),
    ("throttling", "how long a CPU quota kept the client or the server off the CPUs"),
    ("disk", "reads, writes and flushes of the block device that holds the data directory"),
    ("status", "the server's own counters, under the server's names"),
    ("waits", "what the server's connections wait for, in profile blocks"),
    ("size", "bytes and files of the data directory and of the benchmark's database"),
    ("sampler", "what sampling itself costs"),
];

/// Why a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A whole interval has passed. A costly reading may be left for later.
    Tick,
    /// A window begins or ends, so everything is read.
    Boundary,
    /// The load's connections are closed and sampling ends, so everything is read one last time.
    Last,
}

/// The counters of one source as last read. Keys are kept, so that a sample allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Values(BTreeMap<String, i64>);

impl Values {
    pub(crate) fn set(&mut self, key: &str, value: i64) {
        if let Some(slot) = self.0.get_mut(key) {
            *slot = value;
        } else {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// Sets `key` where there is a value.
    pub(crate) fn set_known(&mut self, key: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets `key` to `value`, unless it is higher already.
    pub(crate) fn raise(&mut self, key: &str, value: i64) {
        let value = self.0.get(key).map_or(value, |known| value.max(*known));
        self.set(key, value);
    }

    pub(crate) fn replace(&mut self, values: BTreeMap<String, i64>) {
        self.0 = values;
    }

    pub(crate) fn map(&self) -> &BTreeMap<String, i64> {
        &self.0
    }
}

/// A source of counters.
pub(crate) trait Source {
    /// Returns a description of the sampled object, for the header of the counter file.
    fn about(&self) -> Map<String, Value>;

    /// Reads the counters into `values`. A source implements either this method or [`Self::read`],
    /// which also lets it skip a moment or say when it read them.
    fn fill(&mut self, _values: &mut Values) -> Result<(), Error> {
        unreachable!("a source reads its counters in `fill` or in `read`")
    }

    /// Reads the counters into `values`. The result is when it read them, or `None` when nothing
    /// was due.
    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        self.fill(values)?;
        Ok(Some(at))
    }

    /// Ends the connection of a source that has one.
    fn close(&mut self) {}
}

/// Returns a header's map from pairs.
pub(crate) fn about<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A source is read again only after this many times the CPU time of its last reading. Readings
/// therefore take at most 0.25 % of a core.
const PAUSE_PER_COST: u32 = 400;

/// A source whose readings cost more for a larger server.
pub(crate) struct Costly<S> {
    source: S,
    at_least: Duration,
    last: Option<(Instant, Duration)>,
}

impl<S> Costly<S> {
    /// Returns the source with a limit on its readings. They are also at least `at_least` apart,
    /// except at the boundaries of a window.
    pub(crate) fn new(source: S, at_least: Duration) -> Self {
        Self { source, at_least, last: None }
    }

    /// Returns whether to read now. The answer is always yes at the boundaries of a window, because
    /// rates are computed from those samples.
    fn is_due(&self, moment: Moment, now: Instant) -> bool {
        let Some((at, cost)) = self.last else { return true };
        moment != Moment::Tick
            || now.saturating_duration_since(at) >= self.at_least.max(cost * PAUSE_PER_COST)
    }
}

impl<S: Source> Source for Costly<S> {
    fn about(&self) -> Map<String, Value> {
        self.source.about()
    }

    fn read(&mut self, moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let now = Instant::now();
        if !self.is_due(moment, now) {
            return Ok(None);
        }
        let before = thread_cpu();
        let read = self.source.read(moment, values);
        self.last = Some((now, thread_cpu().saturating_sub(before)));
        read
    }

    fn close(&mut self) {
        self.source.close();
    }
}

/// An open file whose text the kernel writes again at each reading. A file that was opened for a
/// process stays bound to that process. A reading after the end of the process fails, even when the
/// process number has been given to another one.
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

    /// Returns the file's text as it is now. Names of processes may hold any bytes, so those that
    /// are not UTF-8 are replaced.
    pub(crate) fn text(&mut self) -> Result<Cow<'_, str>, Error> {
        let length = self.fill().map_err(|source| Error::Unreadable { path: self.path.clone(), source })?;
        Ok(String::from_utf8_lossy(&self.buffer[..length]))
    }

    /// Returns the result of `parse` for the text. If that is `None`, the error says that `missing`
    /// was not found.
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

    /// A source that costs nothing.
    struct FreeSource;

    impl Source for FreeSource {
        fn about(&self) -> Map<String, Value> {
            Map::new()
        }

        fn read(&mut self, _moment: Moment, _values: &mut Values) -> Result<Option<Instant>, Error> {
            Ok(Some(Instant::now()))
        }
    }

    #[test]
    fn a_reading_of_10_ms_is_done_every_4_seconds_and_at_boundaries() {
        let start = Instant::now();
        let last = Some((start, Duration::from_millis(10)));
        let costly = Costly { last, ..Costly::new(FreeSource, Duration::ZERO) };
        let after = |ms| start + Duration::from_millis(ms);
        assert!(!costly.is_due(Moment::Tick, after(3_999)));
        assert!(costly.is_due(Moment::Tick, after(4_000)));
        assert!(costly.is_due(Moment::Boundary, after(1)));
    }

    #[test]
    fn a_cheap_reading_keeps_its_shortest_pause() {
        let start = Instant::now();
        let last = Some((start, Duration::ZERO));
        let costly = Costly { last, ..Costly::new(FreeSource, Duration::from_secs(9)) };
        assert!(!costly.is_due(Moment::Tick, start + Duration::from_secs(8)));
        assert!(costly.is_due(Moment::Tick, start + Duration::from_secs(9)));
    }

    #[test]
    fn a_reading_that_is_not_due_is_no_sample() {
        let mut source = Costly::new(FreeSource, Duration::from_secs(60));
        let mut sampled = |moment| source.read(moment, &mut Values::default()).unwrap().is_some();
        assert_eq!([Moment::Boundary, Moment::Tick, Moment::Boundary].map(&mut sampled), [true, false, true]);
    }

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
