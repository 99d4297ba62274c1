//! Source `sampler`: what sampling itself costs.
//!
//! Keys: `cpu_us` of all the sampler's threads, `samples` taken, `late_us` by which this one began
//! after its due time, `late_max_us` of all so far.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Source, Values, about};
use crate::Error;
use crate::clock::thread_cpu;
use crate::tally::Tally;

/// The sampler, seen by itself. Must be read on its first thread.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// The threads keep it up to date.
    pub(crate) tally: Arc<Tally>,
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
