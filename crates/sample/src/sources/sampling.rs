//! Source `sampler`: what sampling itself costs.
//!
//! Keys: `cpu_us` is the CPU time of all the sampler's threads, and `samples` the number of rounds
//! taken. `late_us` is how long after its scheduled time this round began, and `late_max_us` is the
//! longest such delay so far.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::process::thread_cpu;
use super::{Source, Values, about};
use crate::Error;
use crate::reader::ReadTally;

/// The sampler, seen by itself. It must be read on the sampler's first thread.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// The counts, which the threads keep up to date.
    pub(crate) tally: Arc<ReadTally>,
}

impl Source for Sampling {
    fn about(&self) -> Map<String, Value> {
        about([("pid", std::process::id().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        self.tally.set_cpu(0, thread_cpu());
        values.set("cpu_us", self.tally.cpu_us());
        let [samples, late_us, late_max_us] = self.tally.rounds();
        values.set("samples", samples);
        values.set("late_us", late_us);
        values.set("late_max_us", late_max_us);
        Ok(())
    }
}
