//! Source `switches`: context switches of the server's threads, or of its processes where it has
//! many, `voluntary_switches` and `involuntary_switches`, and `run_delay_us`, the time in which
//! they could have run and had no CPU (`schedstat`; absent where the kernel does not count it).
//!
//! Apart from `server`, because one file a thread is read: with hundreds of connections not each
//! second, and a sample that was not taken must not look like one in which nothing has happened.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::cost_limit::CostLimit;
use super::threads::Scheduling;
use super::{Moment, Source, Values, about};
use crate::Error;

/// The threads of the server's process.
#[derive(Debug)]
pub(crate) struct ServerSwitches {
    pid: u32,
    threads: Scheduling,
    limit: CostLimit,
}

impl ServerSwitches {
    /// Of process `pid`.
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, threads: Scheduling::of(pid), limit: CostLimit::new(Duration::ZERO) }
    }

    /// Of process `pid` and its children.
    pub(crate) fn of_tree(pid: u32) -> Self {
        Self { threads: Scheduling::of_tree(pid), ..Self::new(pid) }
    }
}

impl Source for ServerSwitches {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into())])
    }

    fn read(&mut self, moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        if !self.limit.is_due(moment, at) {
            return Ok(None);
        }
        let Self { threads, limit, .. } = self;
        let scheduled = match limit.measure(at, || threads.read()) {
            Ok(scheduled) => scheduled,
            // `server` reports it.
            Err(Error::Gone { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        values.set("voluntary_switches", scheduled.switches.voluntary);
        values.set("involuntary_switches", scheduled.switches.involuntary);
        if let Some(run_delay_us) = scheduled.run_delay_us() {
            values.set("run_delay_us", run_delay_us);
        }
        Ok(Some(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_is_not_due_is_no_sample() {
        let mut source = ServerSwitches::new(std::process::id());
        source.limit = CostLimit::new(Duration::from_secs(60));
        let mut values = Values::default();
        let mut sampled = |moment| source.read(moment, &mut values).unwrap().is_some();
        assert_eq!([Moment::Boundary, Moment::Tick, Moment::Boundary].map(&mut sampled), [true, false, true]);
        assert!(values.map()["voluntary_switches"] >= 0);
    }
}
