//! Runs one thread of the sampler, which reads its sources on request and at each whole interval.
//! It appends the samples of each source to that source's counter file. A tally has the cost of
//! all threads of the sampler.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dbdyno_record::{CounterHeader, CounterWriter};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::Error;
use crate::sources::process::thread_cpu;
use crate::sources::{Moment, Source, Values};

/// A function that makes a source, on the thread that will read it.
pub(crate) type Open = Box<dyn FnOnce() -> Result<Box<dyn Source>, Error> + Send>;

/// The sources of a reader, its interval, and its CPUs.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    /// Its index in the tally.
    pub(crate) number: usize,
    /// Its sources by name, in the order in which they are read.
    pub(crate) sources: Vec<(&'static str, Open)>,
    pub(crate) interval: Duration,
    /// Time from the barrier to the beginning of the common window.
    pub(crate) warmup: Duration,
    pub(crate) cpus: Option<Vec<u32>>,
    /// Whether this reader's rounds count as the sampler's samples.
    pub(crate) counts_samples: bool,
}

pub(crate) enum ReaderCommand {
    /// Takes the files of the sources that [`ReaderEvent::Opened`] named, in that order.
    Write(Vec<CounterWriter>),
    /// The clock starts, or has started, at this moment.
    Begin(Instant),
    /// Takes a sample now. The value is kept until the sample is taken, or until no one is left to
    /// take it.
    Mark(Arc<()>),
    /// Takes a last sample and ends.
    Stop,
}

/// A reader's report to the sampler.
pub(crate) enum ReaderEvent {
    /// The reader has tried its sources. The event has the headers of those that can be read.
    Opened { headers: Vec<CounterHeader>, warnings: Vec<String> },
    /// The reader's files are complete.
    Ended { warnings: Vec<String>, error: Option<dbdyno_record::Error> },
}

/// A reader that has opened its sources.
struct ReaderThread {
    number: usize,
    outlets: Vec<Outlet>,
    interval: Duration,
    warmup: Duration,
    tally: Arc<ReadTally>,
    counts_samples: bool,
    barrier: Option<Instant>,
}

/// Runs the thread. It ends at [`ReaderCommand::Stop`], or when no one can send it commands any more.
pub(crate) fn run(
    spec: Spec,
    tally: Arc<ReadTally>,
    commands: &Receiver<ReaderCommand>,
    events: &Sender<ReaderEvent>,
) {
    let mut warnings = Vec::new();
    if let Some(cpus) = &spec.cpus
        && let Err(errno) = pin(cpus)
    {
        warnings.push(format!(
            "the thread `{}` could not be pinned to CPUs {cpus:?}: {}",
            spec.name,
            errno.desc()
        ));
    }
    let mut outlets = Vec::new();
    for (name, open) in spec.sources {
        match open().and_then(|source| Outlet::probe(name, source)) {
            Ok(outlet) => outlets.push(outlet),
            Err(error) => warnings.push(format!("`{name}` is not sampled: {error}")),
        }
    }
    let headers = outlets.iter().map(Outlet::header).collect();
    let Spec { number, interval, warmup, counts_samples, .. } = spec;
    let mut reader = ReaderThread { number, outlets, interval, warmup, tally, counts_samples, barrier: None };
    if events.send(ReaderEvent::Opened { headers, warnings }).is_err() {
        return;
    }
    reader.follow(commands);
    // If the sampler was dropped or has stopped waiting for this reader, no one receives the event.
    // The files are complete in any case.
    let _ = events.send(reader.finish());
}

fn pin(cpus: &[u32]) -> Result<(), nix::errno::Errno> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

impl ReaderThread {
    /// Executes commands until it is asked to stop.
    fn follow(&mut self, commands: &Receiver<ReaderCommand>) {
        let mut next_tick: Option<Instant> = None;
        let mut window_begin: Option<Instant> = None;
        loop {
            let wait = next_tick.map(|tick| tick.saturating_duration_since(Instant::now()));
            let command = match wait {
                Some(wait) => commands.recv_timeout(wait),
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match command {
                Ok(ReaderCommand::Write(writers)) => {
                    for (outlet, writer) in self.outlets.iter_mut().zip(writers) {
                        outlet.writer = Some(writer);
                    }
                }
                Ok(ReaderCommand::Begin(barrier)) => {
                    self.barrier = Some(barrier);
                    self.sample(Moment::Boundary, None);
                    next_tick = Some(tick_after(Instant::now(), barrier, self.interval));
                    // Without a warm-up the window begins with the sample just taken.
                    window_begin = (!self.warmup.is_zero()).then(|| barrier + self.warmup);
                }
                Ok(ReaderCommand::Mark(_held)) => self.sample(Moment::Boundary, None),
                Ok(ReaderCommand::Stop) => return self.sample(Moment::Last, None),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let begins = window_begin.take_if(|begin| next_tick >= Some(*begin)).is_some();
                    self.sample(if begins { Moment::Boundary } else { Moment::Tick }, next_tick);
                    next_tick =
                        self.barrier.map(|barrier| tick_after(Instant::now(), barrier, self.interval));
                }
            }
        }
    }

    /// Reads all sources. `due` is when the reading should have begun. Before the clock starts a
    /// sample has no time on that clock, so nothing is read.
    fn sample(&mut self, moment: Moment, due: Option<Instant>) {
        let Some(barrier) = self.barrier else { return };
        if self.counts_samples {
            self.tally.add_sample(due.map_or(Duration::ZERO, |due| due.elapsed()));
        }
        for outlet in &mut self.outlets {
            outlet.sample(moment, barrier);
        }
        self.tally.set_cpu(self.number, thread_cpu());
    }

    /// Makes all files durable.
    fn finish(&mut self) -> ReaderEvent {
        let mut warnings = Vec::new();
        let mut first_error = None;
        for outlet in self.outlets.drain(..) {
            let (warning, error) = outlet.finish();
            warnings.extend(warning);
            first_error = first_error.or(error);
        }
        self.tally.set_cpu(self.number, thread_cpu());
        ReaderEvent::Ended { warnings, error: first_error }
    }
}

/// Returns the first `barrier + n × interval` (n = 0, 1, ...) after `now`. Ticks that were missed
/// are not made up for.
fn tick_after(now: Instant, barrier: Instant, interval: Duration) -> Instant {
    if now < barrier {
        return barrier;
    }
    let into = (now - barrier).as_nanos() % interval.as_nanos();
    now + interval - Duration::from_nanos(u64::try_from(into).unwrap_or(u64::MAX))
}

/// A source with its file. It counts samples that are missing, and reports them once at the end.
pub(crate) struct Outlet {
    /// One of the names in [`ALL`](crate::ALL).
    name: &'static str,
    source: Box<dyn Source>,
    values: Values,
    /// The counter file, which does not exist before the clock starts.
    pub(crate) writer: Option<CounterWriter>,
    tried: u64,
    missed: u64,
    first_miss: Option<(i64, Error)>,
    write_error: Option<dbdyno_record::Error>,
}

impl Outlet {
    /// Reads `source` once, so that a source that cannot be read is known before the clock starts.
    /// There is no file yet.
    fn probe(name: &'static str, mut source: Box<dyn Source>) -> Result<Self, Error> {
        let mut values = Values::default();
        source.read(Moment::Boundary, &mut values)?;
        Ok(Self {
            name,
            source,
            values,
            writer: None,
            tried: 0,
            missed: 0,
            first_miss: None,
            write_error: None,
        })
    }

    /// Returns the first line of the source's counter file.
    pub(crate) fn header(&self) -> CounterHeader {
        CounterHeader { source: self.name.to_owned(), about: self.source.about() }
    }

    /// Reads the source and writes a line, with the time at which it was read. After a failed write
    /// there are no more lines, because a file with a hole in it could not be distinguished from a
    /// complete one.
    pub(crate) fn sample(&mut self, moment: Moment, barrier: Instant) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.write_error.is_none()) else { return };
        self.tried += 1;
        match self.source.read(moment, &mut self.values) {
            Ok(None) => {}
            Ok(Some(at)) => {
                self.write_error = writer.line(micros_since(barrier, at), self.values.map()).err()
            }
            Err(error) => {
                self.missed += 1;
                self.first_miss.get_or_insert((micros_since(barrier, Instant::now()), error));
            }
        }
    }

    /// Makes the lines durable. The result has a warning if samples are missing, and the error of
    /// the file if there was one.
    fn finish(mut self) -> (Option<String>, Option<dbdyno_record::Error>) {
        let synced = match (self.writer.as_mut(), self.write_error.take()) {
            (_, Some(error)) => Some(error),
            (Some(writer), None) => writer.sync().err(),
            (None, None) => None,
        };
        self.source.close();
        let warning = self.first_miss.map(|(at_us, error)| {
            let (name, missed, tried) = (self.name, self.missed, self.tried);
            format!(
                "`{name}`: {missed} of {tried} samples are missing, the first at {} s: {error}",
                seconds(at_us)
            )
        });
        (warning, synced)
    }
}

/// Formats a time in seconds. Tenths are enough to find the sample in the record.
fn seconds(at_us: i64) -> String {
    format!("{:.1}", std::time::Duration::from_micros(at_us.unsigned_abs()).as_secs_f64())
}

/// Returns the microseconds from `barrier` to `at`, negative when `at` comes first.
fn micros_since(barrier: Instant, at: Instant) -> i64 {
    let micros = |later: Instant, earlier: Instant| {
        i64::try_from(later.saturating_duration_since(earlier).as_micros()).unwrap_or(i64::MAX)
    };
    if at >= barrier { micros(at, barrier) } else { -micros(barrier, at) }
}

/// The figures that the threads of one sampler share. They are independent of each other, so
/// relaxed memory order is enough.
#[derive(Debug, Default)]
pub(crate) struct ReadTally {
    reader_cpu_us: [AtomicI64; Self::READERS],
    /// Rounds of samples begun.
    samples: AtomicI64,
    /// How late the most recent round began.
    late_us: AtomicI64,
    /// The longest delay with which any round began.
    late_max_us: AtomicI64,
}

impl ReadTally {
    /// Number of threads that a sampler has at most.
    pub(crate) const READERS: usize = 6;

    /// Sets the CPU time that thread number `reader` has used up to now.
    pub(crate) fn set_cpu(&self, reader: usize, cpu: Duration) {
        self.reader_cpu_us[reader]
            .store(i64::try_from(cpu.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn cpu_us(&self) -> i64 {
        self.reader_cpu_us.iter().map(|cpu| cpu.load(Ordering::Relaxed)).sum()
    }

    /// Counts one more round of samples, begun `late` after it was due.
    fn add_sample(&self, late: Duration) {
        let late_us = i64::try_from(late.as_micros()).unwrap_or(i64::MAX);
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.late_us.store(late_us, Ordering::Relaxed);
        self.late_max_us.fetch_max(late_us, Ordering::Relaxed);
    }

    /// Returns the number of rounds, how late the most recent one was, and how late any was at
    /// most. Times are in µs.
    pub(crate) fn rounds(&self) -> [i64; 3] {
        [&self.samples, &self.late_us, &self.late_max_us].map(|figure| figure.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_next_tick_is_the_next_whole_interval_however_late_it_is() {
        let barrier = Instant::now();
        let at = |ms| barrier + Duration::from_millis(ms);
        assert_eq!(tick_after(at(0), barrier, SECOND), at(1_000));
        assert_eq!(tick_after(at(999), barrier, SECOND), at(1_000));
        assert_eq!(tick_after(at(1_000), barrier, SECOND), at(2_000));
        assert_eq!(tick_after(at(7_300), barrier, SECOND), at(8_000));
    }

    #[test]
    fn before_the_barrier_the_next_tick_is_the_barrier() {
        let barrier = Instant::now() + SECOND;
        assert_eq!(tick_after(barrier - Duration::from_millis(3), barrier, SECOND), barrier);
    }

    #[test]
    fn times_before_the_barrier_are_negative() {
        let barrier = Instant::now() + Duration::from_secs(5);
        assert_eq!(micros_since(barrier, barrier + Duration::from_micros(17)), 17);
        assert_eq!(micros_since(barrier, barrier), 0);
        assert_eq!(micros_since(barrier, barrier - Duration::from_micros(17)), -17);
    }
}
