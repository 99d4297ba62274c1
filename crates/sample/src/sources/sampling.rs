//! Source `sampler`: what sampling itself costs.
//!
//! Keys: `cpu_us` of all the sampler's threads, `samples` taken, `late_us` by which this one began
//! after its due time, `late_max_us` of all so far.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::{Moment, Source, Values, about};
use crate::Error;
use crate::clock::thread_cpu;
use crate::tally::Tally;

/// The sampler, seen by itself. Must be read on its first thread.
#[derive(Debug)]
pub(crate) struct Sampling {
    tally: Arc<Tally>,
}

impl Sampling {
    /// Reads from `tally`, which the threads keep up to date.
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        Self { tally }
    }
}

impl Source for Sampling {
    fn about(&self) -> Map<String, Value> {
        about([("pid", std::process::id().into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        self.tally.set_cpu(0, thread_cpu());
        values.set("cpu_us", self.tally.cpu_us());
        values.set("samples", self.tally.samples());
        values.set("late_us", self.tally.late_us());
        values.set("late_max_us", self.tally.late_max_us());
        Ok(Some(at))
    }
}
