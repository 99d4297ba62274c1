//! What the sampler itself does, counted across its threads.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Shared by the threads of one sampler. The figures are independent of each other, so relaxed
/// order is enough.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reader_cpu_us: [AtomicI64; Self::LANES],
    /// Rounds of samples begun.
    samples: AtomicI64,
    /// How late the most recent round began.
    late_us: AtomicI64,
    /// How late a round began at most.
    late_max_us: AtomicI64,
}

impl Tally {
    /// Threads that a sampler has at most.
    pub(crate) const LANES: usize = 5;

    /// The CPU time that thread number `reader` has used up to now.
    pub(crate) fn set_cpu(&self, reader: usize, cpu: Duration) {
        self.reader_cpu_us[reader].store(i64::try_from(cpu.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn cpu_us(&self) -> i64 {
        self.reader_cpu_us.iter().map(|cpu| cpu.load(Ordering::Relaxed)).sum()
    }

    /// One more round of samples, begun `late` after it was due.
    pub(crate) fn add_sample(&self, late: Duration) {
        let late_us = i64::try_from(late.as_micros()).unwrap_or(i64::MAX);
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.late_us.store(late_us, Ordering::Relaxed);
        self.late_max_us.fetch_max(late_us, Ordering::Relaxed);
    }

    /// Samples; how late the most recent round was and a round was at most, in µs.
    pub(crate) fn rounds(&self) -> [i64; 3] {
        [&self.samples, &self.late_us, &self.late_max_us].map(|figure| figure.load(Ordering::Relaxed))
    }
}
