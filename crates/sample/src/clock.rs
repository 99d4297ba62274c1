//! CPU clocks of threads and processes. They are exact to the nanosecond, where `/proc` counts ticks of
//! 10 ms.

use std::time::Duration;

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::Error;

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
