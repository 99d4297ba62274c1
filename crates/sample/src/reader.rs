//! One thread of the sampler, which reads its sources on request and at each whole interval.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dbdyno_record::{CounterHeader, CounterWriter};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::Error;
use crate::clock::thread_cpu;
use crate::outlet::Outlet;
use crate::sources::{Moment, Source};
use crate::tally::Tally;

/// Makes a source, on the thread that will read it.
pub(crate) type Open = Box<dyn FnOnce() -> Result<Box<dyn Source>, Error> + Send>;

/// What a reader should do.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    /// Its place in the tally.
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

pub(crate) enum Command {
    /// Takes the files of the sources that [`Event::Opened`] named, in that order.
    Write(Vec<CounterWriter>),
    /// The clock starts, or has started, at this moment.
    Begin(Instant),
    /// Takes a sample now. The value is kept until the sample is taken, or until no one is left to take
    /// it.
    Mark(Arc<()>),
    /// Takes a last sample and ends.
    Stop,
}

/// What a reader reports.
pub(crate) enum Event {
    /// Its sources have been tried. The event has the headers of those that can be read.
    Opened { headers: Vec<CounterHeader>, warnings: Vec<String> },
    /// Its files are complete.
    Ended { warnings: Vec<String>, error: Option<dbdyno_record::Error> },
}

struct Reader {
    number: usize,
    outlets: Vec<Outlet>,
    interval: Duration,
    warmup: Duration,
    tally: Arc<Tally>,
    counts_samples: bool,
    barrier: Option<Instant>,
}

/// Runs the thread. It ends at [`Command::Stop`], or when no one can send it commands any more.
pub(crate) fn run(spec: Spec, tally: Arc<Tally>, commands: &Receiver<Command>, events: &Sender<Event>) {
    let mut warnings = Vec::new();
    if let Some(cpus) = &spec.cpus
        && let Err(errno) = pin(cpus)
    {
        warnings.push(format!(
            "the thread `{}` could not be kept to CPUs {cpus:?}: {}",
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
    let mut reader = Reader { number, outlets, interval, warmup, tally, counts_samples, barrier: None };
    if events.send(Event::Opened { headers, warnings }).is_err() {
        return;
    }
    reader.follow(commands);
    // No one listens any more when the sampler was dropped or has given this reader up. The files are
    // complete all the same.
    let _ = events.send(reader.finish());
}

fn pin(cpus: &[u32]) -> Result<(), nix::errno::Errno> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

impl Reader {
    /// Executes commands until it is asked to stop.
    fn follow(&mut self, commands: &Receiver<Command>) {
        let mut next_tick: Option<Instant> = None;
        let mut window_begin: Option<Instant> = None;
        loop {
            let wait = next_tick.map(|tick| tick.saturating_duration_since(Instant::now()));
            let command = match wait {
                Some(wait) => commands.recv_timeout(wait),
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match command {
                Ok(Command::Write(writers)) => {
                    for (outlet, writer) in self.outlets.iter_mut().zip(writers) {
                        outlet.writer = Some(writer);
                    }
                }
                Ok(Command::Begin(barrier)) => {
                    self.barrier = Some(barrier);
                    self.sample(Moment::Boundary, None);
                    next_tick = Some(tick_after(Instant::now(), barrier, self.interval));
                    // Without a warm-up the window begins with the sample just taken.
                    window_begin = (!self.warmup.is_zero()).then(|| barrier + self.warmup);
                }
                Ok(Command::Mark(_held)) => self.sample(Moment::Boundary, None),
                Ok(Command::Stop) => return self.sample(Moment::Last, None),
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

    /// Reads all sources. `due` is when the reading should have begun. Before the clock starts there is
    /// no time to write, so nothing is read.
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
    fn finish(&mut self) -> Event {
        let mut warnings = Vec::new();
        let mut first_error = None;
        for outlet in self.outlets.drain(..) {
            let (warning, error) = outlet.finish();
            warnings.extend(warning);
            first_error = first_error.or(error);
        }
        self.tally.set_cpu(self.number, thread_cpu());
        Event::Ended { warnings, error: first_error }
    }
}

/// Returns the first `barrier + n × interval` (n = 0, 1, ...) after `now`. Ticks that were missed are
/// not made up for.
fn tick_after(now: Instant, barrier: Instant, interval: Duration) -> Instant {
    if now < barrier {
        return barrier;
    }
    let into = (now - barrier).as_nanos() % interval.as_nanos();
    now + interval - Duration::from_nanos(u64::try_from(into).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
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
}
