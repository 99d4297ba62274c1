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

/// The sampler, seen by itself. Must be read on the thread that has number `lane`.
#[derive(Debug)]
pub(crate) struct Own {
    tally: Arc<Tally>,
    lane: usize,
}

impl Own {
    /// Reads from `tally`, which the threads keep up to date; `lane` is the thread that reads.
    pub(crate) fn new(tally: Arc<Tally>, lane: usize) -> Self {
        Self { tally, lane }
    }
}

impl Source for Own {
    fn about(&self) -> Map<String, Value> {
        about([("pid", std::process::id().into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        self.tally.set_cpu(self.lane, thread_cpu());
        values.set("cpu_us", self.tally.cpu_us());
        values.set("samples", self.tally.samples());
        values.set("late_us", self.tally.late_us());
        values.set("late_max_us", self.tally.late_max_us());
        Ok(Some(at))
    }
}
