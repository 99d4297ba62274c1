//! Source `client`: what source `server` has, for dbdyno's own process. That process holds the load
//! client, the sampler and, where the database is embedded, the database too. The sampler's share is
//! known from its own counter file.
//!
//! Keys are those of `server`. Here context switches are exact and include threads that have ended,
//! because the kernel gives a process its own (getrusage).

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Map, Value};

use super::footprint::Footprint;
use super::{Source, Values, about};
use crate::Error;
use crate::clock::ProcessClock;

#[derive(Debug)]
pub(crate) struct Client {
    pid: u32,
    clock: ProcessClock,
    footprint: Footprint,
}

impl Client {
    pub(crate) fn open() -> Result<Self, Error> {
        let pid = std::process::id();
        Ok(Self { pid, clock: ProcessClock::own(), footprint: Footprint::open(pid)? })
    }
}

impl Source for Client {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into()), ("sees_io", self.footprint.sees_io().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        values.set("cpu_us", self.clock.cpu_us()?);
        let usage = getrusage(UsageWho::RUSAGE_SELF)
            .map_err(|errno| Error::Clock { pid: self.pid, source: errno.into() })?;
        values.set("cpu_user_us", usage.user_time().num_microseconds());
        values.set("cpu_kernel_us", usage.system_time().num_microseconds());
        values.set("voluntary_switches", usage.voluntary_context_switches());
        values.set("involuntary_switches", usage.involuntary_context_switches());
        values.set("minor_faults", usage.minor_page_faults());
        values.set("major_faults", usage.major_page_faults());
        self.footprint.read(values)?;
        Ok(())
    }
}
