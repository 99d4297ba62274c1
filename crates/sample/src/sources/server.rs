//! Source `server`: CPU time, memory and IO of the server's process. Its context switches:
//! [`super::switches`].
//!
//! Keys: `cpu_us`, exact, of all threads that ever were (the process' CPU clock); `cpu_user_us` and
//! `cpu_kernel_us`, its split as the kernel sees it, in steps of a tick (10 ms); `minor_faults`,
//! `major_faults`; and those of [`super::footprint`].

use std::time::Instant;

use serde_json::{Map, Value};

use super::footprint::{Footprint, gone};
use super::host::TICK_US;
use super::process::parse_process_stat;
use super::{Moment, Source, Values, about};
use crate::Error;
use crate::clock::ProcessClock;
use crate::proc_file::ProcFile;

/// The server's process.
#[derive(Debug)]
pub(crate) struct Server {
    pid: u32,
    clock: ProcessClock,
    stat: ProcFile,
    footprint: Footprint,
}

impl Server {
    /// Looks at process `pid`.
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let footprint = Footprint::open(pid)?;
        Ok(Self {
            pid,
            clock: ProcessClock::of(pid)?,
            stat: ProcFile::open(format!("/proc/{pid}/stat"))?,
            footprint,
        })
    }
}

impl Source for Server {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into()), ("sees_io", self.footprint.sees_io().into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        // The clock goes by number and the file by process: only the file can show that the number
        // is another's now.
        let cpu_us = self.clock.cpu_us();
        let stat = parse_process_stat(&self.stat.text().map_err(|error| gone(self.pid, error))?);
        let stat = stat.ok_or_else(|| self.stat.format_error("fields up to stime"))?;
        if stat.has_ended() {
            return Err(Error::Gone { pid: self.pid });
        }
        values.set("cpu_us", cpu_us?);
        values.set("cpu_user_us", stat.user_ticks * TICK_US);
        values.set("cpu_kernel_us", stat.kernel_ticks * TICK_US);
        values.set("minor_faults", stat.minor_faults);
        values.set("major_faults", stat.major_faults);
        self.footprint.read(values)?;
        Ok(Some(at))
    }
}
