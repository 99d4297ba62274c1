//! Counts what the sampler itself does, over all its threads.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The figures that the threads of one sampler share. They are independent of each other, so relaxed
/// order is enough.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reader_cpu_us: [AtomicI64; Self::READERS],
    /// Rounds of samples begun.
    samples: AtomicI64,
    /// How late the most recent round began.
    late_us: AtomicI64,
    /// How late the latest of all rounds began.
    late_max_us: AtomicI64,
}

impl Tally {
    /// Highest number of threads that a sampler has.
    pub(crate) const READERS: usize = 5;

    /// Sets the CPU time that thread number `reader` has used up to now.
    pub(crate) fn set_cpu(&self, reader: usize, cpu: Duration) {
        self.reader_cpu_us[reader]
            .store(i64::try_from(cpu.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn cpu_us(&self) -> i64 {
        self.reader_cpu_us.iter().map(|cpu| cpu.load(Ordering::Relaxed)).sum()
    }

    /// Counts one more round of samples, begun `late` after it was due.
    pub(crate) fn add_sample(&self, late: Duration) {
        let late_us = i64::try_from(late.as_micros()).unwrap_or(i64::MAX);
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.late_us.store(late_us, Ordering::Relaxed);
        self.late_max_us.fetch_max(late_us, Ordering::Relaxed);
    }

    /// Returns the number of rounds, how late the most recent one was, and how late any was at most.
    /// Times are in µs.
    pub(crate) fn rounds(&self) -> [i64; 3] {
        [&self.samples, &self.late_us, &self.late_max_us].map(|figure| figure.load(Ordering::Relaxed))
    }
}
