//! Reads the counters of one process from its CPU clock and from `/proc/<pid>/stat`, `status` and
//! `io`. Sources `server` and `client` have the counters of memory, threads and IO in common. CPU
//! clocks of threads and processes are exact to the nanosecond, whereas `/proc` counts ticks of 10
//! ms.
//!
//! Keys, for the whole process: `rss_bytes` (what `ps` calls RSS), `rss_peak_bytes`, `vsz_bytes`
//! and `threads`. `read_bytes` and `write_bytes` went to a block device. `write_bytes` is counted
//! when page cache is made dirty, a whole folio at a time. For small writes to a buffered file (a
//! redo log without O_DIRECT, on ext4 with large folios) it has been seen 100 times too high. The
//! bytes that reached the device are in source `disk`. `read_chars`, `write_chars`, `read_calls`
//! and `write_calls` count read(2), write(2) and similar calls, whether the page cache answered
//! them or not.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use super::host::TICK_US;
use super::{ProcFile, Values};
use crate::Error;

/// The part of `/proc/<pid>/stat` that is used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// State of the process: `R`, `S`, `D`, `Z`, ...
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) flags: u64,
    pub(crate) own: Used,
    /// Usage of children that have ended and were waited for, and of their children.
    pub(crate) ended: Used,
}

/// The CPU time and page faults of a process up to now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) minor_faults: i64,
    pub(crate) major_faults: i64,
    pub(crate) user_ticks: i64,
    pub(crate) kernel_ticks: i64,
}

impl Used {
    /// Returns the values by the keys of the sources.
    pub(crate) fn counters(self) -> [(&'static str, i64); 4] {
        [
            ("cpu_user_us", self.user_ticks * TICK_US),
            ("cpu_kernel_us", self.kernel_ticks * TICK_US),
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
        ]
    }
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, other: Self) {
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.user_ticks += other.user_ticks;
        self.kernel_ticks += other.kernel_ticks;
    }
}

impl ProcessStat {
    /// Returns whether the process has ended, and is listed only until its parent waits for it.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Returns whether the parent has waited for the process. The kernel has then added the usage
    /// to the parent, and the process's own counters may be zero already.
    pub(crate) fn is_given_away(&self) -> bool {
        matches!(self.state, 'X' | 'x')
    }
}

/// Reads the text of `/proc/<pid>/stat`. The name in the second field may hold spaces and parentheses,
/// so fields are counted from the last closing one.
pub(crate) fn parse_process_stat(text: &str) -> Option<ProcessStat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // After the state, which is field 3 in proc(5), ppid is 4, flags 9, minflt 10, cminflt 11, majflt
    // 12, cmajflt 13, utime 14, stime 15, cutime 16, cstime 17.
    let parent = fields.next()?.parse().ok()?;
    let flags = fields.nth(4)?.parse().ok()?;
    let mut numbers = fields.map_while(|field| field.parse().ok());
    let (mut own, mut ended) = (Used::default(), Used::default());
    (own.minor_faults, ended.minor_faults) = (numbers.next()?, numbers.next()?);
    (own.major_faults, ended.major_faults) = (numbers.next()?, numbers.next()?);
    (own.user_ticks, own.kernel_ticks) = (numbers.next()?, numbers.next()?);
    (ended.user_ticks, ended.kernel_ticks) = (numbers.next()?, numbers.next()?);
    Some(ProcessStat { state, parent, flags, own, ended })
}

/// Returns the number after `key` in a text of lines `key: number`, without its unit.
pub(crate) fn value_of(text: &str, key: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Memory and threads from `/proc/<pid>/status`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) rss_bytes: i64,
    pub(crate) rss_peak_bytes: i64,
    pub(crate) vsz_bytes: i64,
    pub(crate) threads: i64,
    /// `None` before Linux 4.5.
    pub(crate) parts: Option<MemoryParts>,
}

/// The parts of [`Memory::rss_bytes`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemoryParts {
    /// Private memory.
    pub(crate) anonymous_bytes: i64,
    pub(crate) file_bytes: i64,
    pub(crate) shared_bytes: i64,
}

/// Reads the text of `/proc/<pid>/status`. The result is `None` for a process that has ended, because
/// it has no memory any more.
fn parse_memory(text: &str) -> Option<Memory> {
    // The kernel writes kB and means 1024 bytes.
    let bytes = |key| Some(value_of(text, key)? * 1024);
    let parts = || {
        Some(MemoryParts {
            anonymous_bytes: bytes("RssAnon")?,
            file_bytes: bytes("RssFile")?,
            shared_bytes: bytes("RssShmem")?,
        })
    };
    Some(Memory {
        rss_bytes: bytes("VmRSS")?,
        rss_peak_bytes: bytes("VmHWM")?,
        vsz_bytes: bytes("VmSize")?,
        threads: value_of(text, "Threads")?,
        parts: parts(),
    })
}

/// Context switches of one thread, or of many together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) voluntary: i64,
    pub(crate) involuntary: i64,
}

/// Reads the text of `/proc/<pid>/task/<tid>/status`.
pub(crate) fn parse_switches(text: &str) -> Option<Switches> {
    Some(Switches {
        voluntary: value_of(text, "voluntary_ctxt_switches")?,
        involuntary: value_of(text, "nonvoluntary_ctxt_switches")?,
    })
}

/// Keys of the counters, each with the kernel's name in `/proc/<pid>/io`.
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

    /// Returns reads and writes up to now, by the keys of the counters. There are none where they
    /// cannot be seen.
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

/// Returns the CPU time that the calling thread has used.
pub(crate) fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// The CPU clock of a whole process: all its threads, including those that have ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessClock {
    pid: u32,
    id: ClockId,
}

impl ProcessClock {
    pub(crate) fn own() -> Self {
        Self { pid: std::process::id(), id: ClockId::CLOCK_PROCESS_CPUTIME_ID }
    }

    pub(crate) fn of(pid: u32) -> Result<Self, Error> {
        let raw = i32::try_from(pid).map_err(|_| Error::Gone { pid })?;
        let id = clock_getcpuclockid(Pid::from_raw(raw)).map_err(|errno| failure(pid, errno))?;
        Ok(Self { pid, id })
    }

    pub(crate) fn cpu_us(self) -> Result<i64, Error> {
        clock_gettime(self.id).map(|time| time.num_microseconds()).map_err(|errno| failure(self.pid, errno))
    }
}

fn failure(pid: u32, errno: nix::errno::Errno) -> Error {
    match errno {
        // The kernel answers EINVAL for a clock whose process is gone.
        nix::errno::Errno::ESRCH | nix::errno::Errno::EINVAL => Error::Gone { pid },
        other => Error::Clock { pid, source: other.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = include_str!("../../tests/proc/linux-6.18-vm/mariadbd.status");

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "4711 (a) R (b c) S 1 4711 4711 0 -1 4194560 1234 99 56 7 890 123 5 6 20 0 31 0 149464 3133440 418 \
            18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let expected = ProcessStat {
            state: 'S',
            parent: 1,
            flags: 4_194_560,
            own: Used { minor_faults: 1234, major_faults: 56, user_ticks: 890, kernel_ticks: 123 },
            ended: Used { minor_faults: 99, major_faults: 7, user_ticks: 5, kernel_ticks: 6 },
        };
        assert_eq!(parse_process_stat(text), Some(expected));
    }

    #[test]
    fn a_mariadb_server_of_linux_6_18_is_read() {
        let stat = parse_process_stat(include_str!("../../tests/proc/linux-6.18-vm/mariadbd.stat"));
        let stat = stat.unwrap();
        assert_eq!((stat.state, stat.ended), ('S', Used::default()));
        let own = Used { minor_faults: 20_626, major_faults: 1, user_ticks: 5, kernel_ticks: 5 };
        assert_eq!(stat.own, own);
        let expected = Memory {
            rss_bytes: 100_492 * 1024,
            rss_peak_bytes: 100_492 * 1024,
            vsz_bytes: 8_591_079_444 * 1024,
            threads: 9,
            parts: Some(MemoryParts {
                anonymous_bytes: 77_232 * 1024,
                file_bytes: 23_260 * 1024,
                shared_bytes: 0,
            }),
        };
        assert_eq!(parse_memory(STATUS), Some(expected));
        assert_eq!(parse_switches(STATUS), Some(Switches { voluntary: 184, involuntary: 15 }));
    }

    #[test]
    fn linux_before_4_5_tells_memory_without_its_parts() {
        let old: String =
            STATUS.lines().filter(|line| !line.starts_with("Rss")).map(|line| format!("{line}\n")).collect();
        let memory = parse_memory(&old).unwrap();
        assert_eq!((memory.rss_bytes, memory.threads, memory.parts), (100_492 * 1024, 9, None));
    }

    #[test]
    fn io_counters_are_found_by_their_whole_name() {
        let io = include_str!("../../tests/proc/linux-6.18-vm/mariadbd.io");
        let write_bytes = value_of(io, "write_bytes").unwrap();
        assert!(write_bytes > 0);
        assert_ne!(Some(write_bytes), value_of(io, "cancelled_write_bytes"));
        assert_eq!(value_of(io, "bytes"), None);
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        let text = "Name:\tmariadbd\nState:\tZ (zombie)\nThreads:\t1\nvoluntary_ctxt_switches:\t1\n";
        assert_eq!(parse_memory(text), None);
        assert!(parse_process_stat("1 (x) Z 1 1 1 0 -1 0 1 0 0 0 5 6 0 0").unwrap().has_ended());
    }

    #[test]
    fn a_text_that_is_cut_off_is_refused() {
        assert_eq!(parse_process_stat("1 (mariadbd) S 1 1 1 0 -1 0 1 0 0 0 5"), None);
        assert_eq!(parse_process_stat(""), None);
        assert_eq!(parse_switches("voluntary_ctxt_switches:\t1\n"), None);
    }
}
