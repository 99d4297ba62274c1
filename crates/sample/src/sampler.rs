//! The sampler as its callers use it: they start it, begin sampling, mark the end of a window, and
//! stop it. A [`Config`] says what it reads, how often, and on which CPUs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbdyno_db::DatabaseServer;
use dbdyno_record::{CounterHeader, CounterWriter};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::Error;
use crate::reader::{self, Open, ReadTally, ReaderCommand, ReaderEvent, Spec};
use crate::sources::{
    Client, Costly, Disk, HardwareCounters, HostSource, Interrupts, LoadSource, Members, MemoryGroup, Processes, Sampling,
    Scheduling, ServerSource, ServerTree, Size, Source, Status, Throttling, Waits, processes, size,
};

/// How long a reader may take to open its sources or to take its last sample. It is longer than a
/// status query and its connection may take.
const READER_LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerReport {
    /// Sources that could not be read and samples that are missing, each with its reason.
    pub warnings: Vec<String>,
    /// Rounds of samples taken, counted on the thread whose sources answer at once.
    pub samples: u64,
    /// CPU time that the sampler's threads used, start included.
    pub cpu: Duration,
}

/// Threads that read counters until they are stopped. If they are dropped without [`Sampler::stop`],
/// they end by themselves.
#[derive(Debug)]
pub struct Sampler {
    readers: Vec<ReaderHandle>,
    tally: Arc<ReadTally>,
    warnings: Vec<String>,
}

/// A requested sample, which may still be in progress.
#[derive(Debug, Default)]
pub struct Mark(Weak<()>);

impl Mark {
    /// Returns whether all sources have been read, or cannot be read any more.
    pub fn is_taken(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// A reader thread, with the channels for its commands and events.
#[derive(Debug)]
struct ReaderHandle {
    name: &'static str,
    commands: Sender<ReaderCommand>,
    events: Receiver<ReaderEvent>,
    thread: JoinHandle<()>,
}

impl Sampler {
    /// Tries every source once, opens a counter file through `counters` for each that can be read, and
    /// waits for [`Sampler::begin`]. A source that cannot be read is left out with a warning.
    pub fn start(
        config: &Config,
        counters: impl Fn(CounterHeader) -> Result<CounterWriter, dbdyno_record::Error>,
    ) -> Result<Self, Error> {
        if config.interval.is_zero() {
            return Err(Error::Interval);
        }
        let tally = Arc::new(ReadTally::default());
        Self::start_readers(readers_for(config, &tally), tally, counters)
    }

    /// Returns a sampler that reads nothing, writes nothing and has no thread. It is for measuring
    /// without sampling.
    pub fn off() -> Self {
        Self { readers: Vec::new(), tally: Arc::new(ReadTally::default()), warnings: Vec::new() }
    }

    fn start_readers(
        specs: Vec<Spec>,
        tally: Arc<ReadTally>,
        counters: impl Fn(CounterHeader) -> Result<CounterWriter, dbdyno_record::Error>,
    ) -> Result<Self, Error> {
        let spawned: Vec<ReaderHandle> =
            specs.into_iter().map(|spec| spawn(spec, Arc::clone(&tally))).collect::<Result<_, _>>()?;
        let mut sampler = Self { readers: Vec::new(), tally, warnings: Vec::new() };
        for reader in spawned {
            sampler.open(reader, &counters)?;
        }
        Ok(sampler)
    }

    /// Returns the warnings from before the clock starts: the sources that are left out, each with
    /// its reason.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Starts sampling, because the clock starts, or has just started, at `barrier`. It takes a sample
    /// now, then one at each whole interval after the barrier, and one at the barrier itself if that is
    /// still to come. It does not wait for the sample.
    pub fn begin(&self, barrier: Instant) {
        self.tell_all(|| ReaderCommand::Begin(barrier));
    }

    /// Takes a sample now, because the common window ends. It does nothing before
    /// [`Sampler::begin`]. It does not wait: the result says whether the sample is taken. Until
    /// then the load's connections should stay open, because a server with a process or a thread
    /// for each of them counts less of those that have ended.
    pub fn mark(&self) -> Mark {
        let alive = Arc::new(());
        self.tell_all(|| ReaderCommand::Mark(Arc::clone(&alive)));
        Mark(Arc::downgrade(&alive))
    }

    /// Takes a last sample, makes the files durable and ends the threads. A server that hangs delays
    /// this by at most 15 s. Its last sample is then missing, and the report says so. After an error
    /// the other files are complete.
    pub fn stop(self) -> Result<SamplerReport, Error> {
        self.stop_within(READER_LIMIT)
    }

    /// Does what [`Sampler::stop`] does, but waits for at most `limit`. A warning names the readers
    /// that have not taken their last sample by then.
    pub fn stop_within(mut self, limit: Duration) -> Result<SamplerReport, Error> {
        self.tell_all(|| ReaderCommand::Stop);
        let deadline = Instant::now() + limit;
        let mut first_error = None;
        for reader in std::mem::take(&mut self.readers) {
            match reader.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(ReaderEvent::Ended { warnings, error }) => {
                    self.warnings.extend(warnings);
                    first_error = first_error.or(error);
                    // The reader has sent its last event, so this does not wait. A panic would have
                    // come before that event.
                    let _ = reader.thread.join();
                }
                Ok(ReaderEvent::Opened { .. }) | Err(_) => self.warnings.push(silence(reader.name, limit)),
            }
        }
        match first_error {
            Some(error) => Err(error.into()),
            None => Ok(SamplerReport {
                warnings: self.warnings,
                samples: self.tally.rounds()[0].unsigned_abs(),
                cpu: Duration::from_micros(self.tally.cpu_us().unsigned_abs()),
            }),
        }
    }

    /// Waits until `reader` has tried its sources, and gives it its files.
    fn open(
        &mut self,
        reader: ReaderHandle,
        counters: &impl Fn(CounterHeader) -> Result<CounterWriter, dbdyno_record::Error>,
    ) -> Result<(), Error> {
        let Ok(ReaderEvent::Opened { headers, warnings }) = reader.events.recv_timeout(READER_LIMIT) else {
            self.warnings.push(silence(reader.name, READER_LIMIT));
            return Ok(());
        };
        self.warnings.extend(warnings);
        let writers = headers.into_iter().map(counters).collect::<Result<Vec<_>, _>>()?;
        // A reader that has ended is noticed when it is stopped.
        let _ = reader.commands.send(ReaderCommand::Write(writers));
        self.readers.push(reader);
        Ok(())
    }

    fn tell_all(&self, command: impl Fn() -> ReaderCommand) {
        for reader in &self.readers {
            // A reader that has ended is noticed when it is stopped.
            let _ = reader.commands.send(command());
        }
    }
}

/// Says that a reader did not answer in time.
fn silence(reader: &str, limit: Duration) -> String {
    format!(
        "the thread `{reader}` did not answer within {} s; its last samples are missing",
        limit.as_secs_f64()
    )
}

fn spawn(spec: Spec, tally: Arc<ReadTally>) -> Result<ReaderHandle, Error> {
    let (commands, received) = channel();
    let (says, events) = channel();
    let name = spec.name;
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || reader::run(spec, tally, &received, &says));
    let thread = thread.map_err(|source| Error::Thread { name: name.to_owned(), source })?;
    Ok(ReaderHandle { name, commands, events, thread })
}

/// Distributes the sources over threads. Sources that answer at once share a thread. A walk through
/// many files has a thread of its own, and so does a server that may hang. The files of the server's
/// processes or threads count as such a walk. `sampler` comes last among the quick sources, so that it
/// counts what the round has cost.
fn readers_for(config: &Config, tally: &Arc<ReadTally>) -> Vec<Spec> {
    let mut quick: Vec<(&'static str, Open)> = Vec::new();
    let mut by_connection: Vec<(&'static str, Open)> = Vec::new();
    if let Some(pid) = config.server_pid.filter(|_| config.server_tree) {
        by_connection.push(costly("server", Duration::ZERO, move || ServerTree::open(pid)));
        by_connection
            .push(costly("switches", Duration::ZERO, move || Ok(Scheduling::new(pid, Members::Processes))));
    } else if let Some(pid) = config.server_pid {
        quick.push(source("server", move || ServerSource::open(pid)));
        by_connection
            .push(costly("switches", Duration::ZERO, move || Ok(Scheduling::new(pid, Members::Threads))));
    }
    if let Some(counters) = config.server_pid.and_then(|pid| HardwareCounters::of(pid, config.server_tree)) {
        by_connection.push(costly("hardware", Duration::ZERO, move || Ok(counters)));
    }
    if let Some(folder) = config.server_cgroup.clone() {
        quick.push(source("cgroup", move || MemoryGroup::open(&folder)));
    }
    quick.push(source("client", Client::open));
    let polled_ns = config.polled_ns.clone();
    quick.push(source("load", move || LoadSource::open(polled_ns)));
    let our_cpus = config.our_cpus();
    quick.push(source("host", move || HostSource::open(&our_cpus)));
    if let Some(throttling) = Throttling::of(config.server_pid) {
        quick.push(source("throttling", move || Ok(throttling)));
    }
    if let Some(data_dir) = config.data_dir.clone() {
        quick.push(source("disk", move || Disk::open(&data_dir)));
    }
    let own_tally = Arc::clone(tally);
    quick.push(source("sampler", move || Ok(Sampling { tally: own_tally })));
    let mut readers = vec![("sampler", quick)];
    if !by_connection.is_empty() {
        readers.push(("sampler-server", by_connection));
    }
    if let Some(database_server) = config.status.clone() {
        readers.push(("sampler-status", vec![source("status", move || Status::new(database_server))]));
    }
    if let Some(database_server) = config.status.clone().filter(|_| config.waits) {
        let pid = config.server_pid;
        let waits = costly("waits", Duration::ZERO, move || Waits::new(database_server, pid));
        readers.push(("sampler-waits", vec![waits]));
    }
    if config.data_dir.is_some() || config.database_dir.is_some() {
        let size = Size { data_dir: config.data_dir.clone(), database_dir: config.database_dir.clone() };
        let size = costly("size", size::MIN_PAUSE, move || Ok(size));
        readers.push(("sampler-size", vec![size]));
    }
    let mut slow = Vec::new();
    if let (Some(server), Some(client)) = (config.server_cpus.clone(), config.cpus.clone())
        && server.iter().all(|cpu| !client.contains(cpu))
    {
        // On a machine of many CPUs and devices the kernel takes milliseconds for the text.
        slow.push(costly("interrupts", Duration::ZERO, move || Interrupts::open(server, client)));
    }
    slow.push(costly("processes", processes::SHORTEST_INTERVAL, Processes::open));
    readers.push(("sampler-processes", slow));
    let readers = readers.into_iter().enumerate().map(|(number, (name, sources))| Spec {
        name,
        number,
        sources,
        interval: config.interval,
        warmup: config.warmup,
        cpus: config.cpus.clone(),
        counts_samples: number == 0,
    });
    readers.collect()
}

fn source<S: Source + 'static>(
    name: &'static str,
    open: impl FnOnce() -> Result<S, Error> + Send + 'static,
) -> (&'static str, Open) {
    (name, Box::new(move || Ok(Box::new(open()?) as Box<dyn Source>)))
}

/// Returns a source whose readings are at least `at_least` apart, except at the boundaries of a
/// window.
fn costly<S: Source + 'static>(
    name: &'static str,
    at_least: Duration,
    open: impl FnOnce() -> Result<S, Error> + Send + 'static,
) -> (&'static str, Open) {
    source(name, move || Ok(Costly::new(open()?, at_least)))
}

/// What to sample, how often, and on which CPUs. Whatever is `None` is not sampled.
#[derive(Debug, Clone)]
pub struct Config {
    /// Process of the server, or `None` for an embedded database and for a server on another machine.
    pub server_pid: Option<u32>,
    /// Whether the server is that process and its children, as PostgreSQL is. All are then sampled
    /// together.
    pub server_tree: bool,
    /// Folder of the control group that the server is in, if dbdyno made one.
    pub server_cgroup: Option<PathBuf>,
    /// The server's data directory. Its size is sampled, and the block device that holds it.
    pub data_dir: Option<PathBuf>,
    /// Files of the benchmark's own database: `<data_dir>/ib`, or the folder of an SQLite file.
    pub database_dir: Option<PathBuf>,
    /// Where to query the server's own counters.
    pub status: Option<DatabaseServer>,
    /// Whether to sample what the server's connections wait for.
    pub waits: bool,
    /// Time between two samples, which must not be zero.
    pub interval: Duration,
    /// Time from the barrier to the beginning of the common window, where every source is read.
    pub warmup: Duration,
    /// CPUs that the server may run on.
    pub server_cpus: Option<Vec<u32>>,
    /// CPUs of the client, on which the sampler's threads run too. `None` means the CPUs that the
    /// caller may use.
    pub cpus: Option<Vec<u32>>,
    /// Where load thread n of a client that spins counts the nanoseconds of its polls that found
    /// nothing. `None` means that the client sleeps.
    pub polled_ns: Option<Arc<[AtomicU64]>>,
}

impl Config {
    /// Returns the CPUs that client and server may use. There are none for a server that cannot be
    /// seen.
    pub(crate) fn our_cpus(&self) -> [BTreeSet<u32>; 2] {
        let of_client = self.cpus.clone().unwrap_or_else(|| usable_by(0));
        let of_server = match (&self.server_cpus, self.server_pid) {
            (Some(cpus), _) => cpus.clone(),
            (None, Some(pid)) => usable_by(pid),
            (None, None) => Vec::new(),
        };
        [of_client, of_server].map(|cpus| cpus.into_iter().collect())
    }
}

/// Returns the CPUs that a process may use, where 0 is the calling thread. The list is empty for a
/// process that is gone.
fn usable_by(pid: u32) -> Vec<u32> {
    let set = i32::try_from(pid).ok().and_then(|pid| sched_getaffinity(Pid::from_raw(pid)).ok());
    let is_usable = |cpu: &u32| set.is_some_and(|set| set.is_set(*cpu as usize).unwrap_or(false));
    let all = u32::try_from(CpuSet::count()).unwrap_or(0);
    (0..all).filter(is_usable).collect()
}

impl Default for Config {
    /// Returns settings that sample only the host and the client, once per second.
    fn default() -> Self {
        Self {
            server_pid: None,
            server_tree: false,
            server_cgroup: None,
            data_dir: None,
            database_dir: None,
            status: None,
            waits: false,
            interval: Duration::from_secs(1),
            warmup: Duration::ZERO,
            server_cpus: None,
            cpus: None,
            polled_ns: None,
        }
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
