//! Source `server`: CPU time, memory and IO of the server's process. Its context switches are in
//! [`super::switches`].
//!
//! Keys: `cpu_us` is exact and includes all threads that ever were (the process' CPU clock).
//! `cpu_user_us` and `cpu_kernel_us` are its split as the kernel sees it, in steps of a tick (10 ms).
//! `minor_faults` and `major_faults` follow, and the keys of [`super::footprint`].

use serde_json::{Map, Value};

use super::footprint::{Footprint, gone};
use super::process::{ProcessStat, parse_process_stat};
use super::{Source, Values, about};
use crate::Error;
use crate::clock::ProcessClock;
use crate::proc_file::ProcFile;

#[derive(Debug)]
pub(crate) struct Server {
    pub(super) pid: u32,
    clock: ProcessClock,
    stat: ProcFile,
    pub(super) footprint: Footprint,
}

impl Server {
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let footprint = Footprint::open(pid)?;
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))?;
        Ok(Self { pid, clock: ProcessClock::of(pid)?, stat, footprint })
    }

    /// Returns the CPU time of all its threads, and what its file says about it.
    pub(super) fn cpu_us(&mut self) -> Result<(i64, ProcessStat), Error> {
        // The clock is found by process number, but the file is bound to the process. Only the file can
        // show that the number now belongs to another process.
        let cpu_us = self.clock.cpu_us();
        let stat = self.stat()?;
        if stat.has_ended() {
            return Err(Error::Gone { pid: self.pid });
        }
        Ok((cpu_us?, stat))
    }

    pub(super) fn stat(&mut self) -> Result<ProcessStat, Error> {
        let stat = self.stat.parsed("fields up to cstime", parse_process_stat);
        stat.map_err(|error| gone(self.pid, error))
    }
}

impl Source for Server {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into()), ("sees_io", self.footprint.sees_io().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let (cpu_us, stat) = self.cpu_us()?;
        values.set("cpu_us", cpu_us);
        for (key, value) in stat.own.counters() {
            values.set(key, value);
        }
        self.footprint.read(values)?;
        Ok(())
    }
}
