//! Sources `server` and `client`: CPU time, memory and IO of a process. Context switches of the server are
//! in [`super::switches`].
//!
//! Keys: `cpu_us` is exact and includes all threads that ever were (the process' CPU clock).
//! `cpu_user_us` and `cpu_kernel_us` are its split as the kernel sees it, in steps of a tick (10
//! ms). The other keys are `minor_faults`, `major_faults` and those of [`super::process`].
//!
//! Source `client` has the same keys for dbdyno's own process. That process holds the load client,
//! the sampler and, where the database is embedded, the database too. The sampler's share is known
//! from its own counter file. The context switches of this source are exact and include threads
//! that have ended, because the kernel tells a process its own (getrusage).
//!
//! A server may consist of many processes: a first one and its children, as in PostgreSQL. Then the
//! keys of one process are summed. A child that has ended stays in the sums, because the kernel
//! adds what it used to its parent. CPU and faults are added as `cutime`, `cstime`, `cminflt` and
//! `cmajflt` (in steps of a tick of 10 ms, over all ended children together), and IO as the
//! parent's own. So nothing of a child's usage is lost, except up to two ticks. A child that ends
//! while the sum is made could be counted neither on its own nor with its parent. The sum is then
//! made again, until at least a tenth of a second and eight tries are over. What is missing after
//! that is in the next sample, and sums never fall. A child that has ended and was not waited for
//! yet counts with everything but memory, because it has none any more.
//!
//! `cpu_us` of all processes is read first and at once, in a few µs per process, before the files
//! that take longer. It therefore belongs to the sample's time however many connections there are.
//! `cpu_user_us` and `cpu_kernel_us` are whole ticks of each process. With many connections that
//! have used a few ms each, their sum differs much from `cpu_us`.
//!
//! Memory cannot be summed, as the processes share most of it. `rss_bytes` is the private memory
//! (RssAnon) of all, plus the largest shared memory (RssShmem) and the largest mapped files
//! (RssFile) of one process. This is an estimate. It is too high by the private memory that
//! children still share with the first process since they were forked. `rss_peak_bytes` is the
//! highest value of all samples. Both are absent before Linux 4.5, which does not report these
//! parts. `vsz_bytes` is that of the largest process, and `threads` the number over all.
//!
//! Children of children are not read while they live. PostgreSQL has none except programs that it runs
//! for archiving.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Map, Value};

use super::host::TICK_US;
use super::process::{Footprint, MemoryParts, ProcessClock, ProcessStat, Used, gone, parse_process_stat};
use super::{ProcFile, Source, Values, about};
use crate::Error;

#[derive(Debug)]
pub(crate) struct ServerSource {
    pub(super) pid: u32,
    clock: ProcessClock,
    stat: ProcFile,
    pub(super) footprint: Footprint,
}

impl ServerSource {
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let footprint = Footprint::open(pid)?;
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))?;
        Ok(Self { pid, clock: ProcessClock::of(pid)?, stat, footprint })
    }

    /// Returns the CPU time of all the process's threads, and the figures in its file `stat`.
    pub(super) fn cpu_us(&mut self) -> Result<(i64, ProcessStat), Error> {
        // The clock is found by process number, but the file is bound to the process. Only the file can
        // show that the number now belongs to another process.
        let cpu_us = self.clock.cpu_us();
        let stat = self.stat()?;
        if stat.has_ended() {
            return Err(Error::Gone { pid: self.pid });
        }
        Ok((cpu_us?, stat))
    }

    pub(super) fn stat(&mut self) -> Result<ProcessStat, Error> {
        let stat = self.stat.parsed("fields up to cstime", parse_process_stat);
        stat.map_err(|error| gone(self.pid, error))
    }
}

impl Source for ServerSource {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into()), ("sees_io", self.footprint.sees_io().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let (cpu_us, stat) = self.cpu_us()?;
        values.set("cpu_us", cpu_us);
        for (key, value) in stat.own.counters() {
            values.set(key, value);
        }
        self.footprint.read(values)?;
        Ok(())
    }
}

/// Children whose files stay open between two readings. Each costs three file descriptors of ours. The
/// files of the others are opened again each time.
const MAX_OPEN: usize = 100;

/// A sum is made again while children end during it, for this long and at least [`MIN_TRIES`]
/// times. On a busy machine the first try may take as long as this.
const PATIENCE: Duration = Duration::from_millis(100);
const MIN_TRIES: u32 = 8;
/// The pause before the sum is made again, because children that end together need a moment.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct ServerTree {
    pid: u32,
    first: ServerSource,
    children_file: ProcFile,
    children: HashMap<u32, ServerSource>,
}

/// A sum over all processes, and whether no child has ended while it was made.
type TreeSum<T> = Result<(T, bool), Error>;

impl ServerTree {
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let (first, children_file) = (ServerSource::open(pid)?, children_file(pid)?);
        Ok(Self { pid, first, children_file, children: HashMap::new() })
    }

    /// Returns the sums over all processes. CPU time is read first, so that it belongs to the time
    /// of the sample.
    fn sum(&mut self) -> Result<TreeTotal, Error> {
        let cpu_us = self.undisturbed(Self::cpu_us)?;
        let sum = self.undisturbed(Self::files)?;
        Ok(TreeTotal { cpu_us, ..sum })
    }

    /// Makes a sum over all processes, and makes it again if children end meanwhile.
    fn undisturbed<T>(&mut self, add: impl Fn(&mut Self, &[u32]) -> TreeSum<T>) -> Result<T, Error> {
        let began = Instant::now();
        let mut tries = 0;
        loop {
            tries += 1;
            // The children are listed before the first process is read. If a child ends in between,
            // its usage has been added to the first process, and for a moment the child itself may
            // still be seen. It would count twice, but it is not in the list after the sum, and so
            // the sum is made again.
            let pids = self.list()?;
            let (sum, is_whole) = add(self, &pids)?;
            let after = self.list()?;
            let all_live = || pids.iter().all(|pid| after.binary_search(pid).is_ok());
            let is_patient = tries < MIN_TRIES || began.elapsed() < PATIENCE;
            if !is_patient || (is_whole && all_live()) {
                return Ok(sum);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the process ids of the children, sorted.
    fn list(&mut self) -> Result<Vec<u32>, Error> {
        let text = self.children_file.text().map_err(|error| gone(self.pid, error))?;
        let mut pids = parse_children(&text);
        pids.sort_unstable();
        Ok(pids)
    }

    /// Returns the CPU time of the first process, of its children `pids` and of those that have
    /// ended. The first process is read first. A child that ends in the meantime is then missing
    /// from the sum, which is noticed. In the other order it could count twice.
    fn cpu_us(&mut self, pids: &[u32]) -> TreeSum<i64> {
        let (mut sum_us, stat) = self.first.cpu_us()?;
        sum_us += (stat.ended.user_ticks + stat.ended.kernel_ticks) * TICK_US;
        let mut is_whole = true;
        for pid in pids {
            match ProcessClock::of(*pid).and_then(ProcessClock::cpu_us) {
                Ok(cpu_us) => sum_us += cpu_us,
                Err(_) => is_whole = false,
            }
        }
        Ok((sum_us, is_whole))
    }

    /// Returns the sums from the files of the first process and of its children `pids`. The first
    /// process is read first here too.
    fn files(&mut self, pids: &[u32]) -> TreeSum<TreeTotal> {
        let mut sum = TreeTotal { has_parts: true, ..TreeTotal::default() };
        let stat = sum.add(&mut self.first)?;
        if stat.has_ended() {
            return Err(Error::Gone { pid: self.pid });
        }
        sum.used += stat.ended;
        self.children.retain(|pid, _| pids.binary_search(pid).is_ok());
        let mut is_whole = true;
        for pid in pids {
            is_whole &= self.add_child(*pid, &mut sum);
        }
        Ok((sum, is_whole))
    }

    /// Adds a child. The result is `false` when it has ended meanwhile.
    fn add_child(&mut self, pid: u32, sum: &mut TreeTotal) -> bool {
        if let Some(child) = self.children.get_mut(&pid) {
            if sum.add(child).is_ok() {
                return true;
            }
            // The files were bound to a child that has ended. Its process id may be another child's
            // by now.
            self.children.remove(&pid);
        }
        let Ok(mut child) = ServerSource::open(pid) else { return false };
        let is_added = sum.add(&mut child).is_ok();
        if is_added && self.children.len() < MAX_OPEN {
            self.children.insert(pid, child);
        }
        is_added
    }
}

impl Source for ServerTree {
    fn about(&self) -> Map<String, Value> {
        about([
            ("pid", self.pid.into()),
            ("sees_io", self.first.footprint.sees_io().into()),
            ("with_children", true.into()),
        ])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        self.sum()?.write(values);
        Ok(())
    }
}

/// Returns the list of a process' children. The kernel keeps one for each thread, and a server's first
/// process has one thread.
pub(crate) fn children_file(pid: u32) -> Result<ProcFile, Error> {
    ProcFile::open(format!("/proc/{pid}/task/{pid}/children"))
}

/// Parses the list in [`children_file`].
pub(crate) fn parse_children(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Resource usage of all processes together.
#[derive(Debug, Default)]
struct TreeTotal {
    cpu_us: i64,
    used: Used,
    io: HashMap<&'static str, i64>,
    /// The sum for private memory, and the highest value for the other parts.
    parts: MemoryParts,
    /// Whether the kernel reports the parts.
    has_parts: bool,
    vsz_bytes: i64,
    threads: i64,
}

impl TreeTotal {
    /// Adds the resource usage in the files of `process`, all of it or nothing. Memory is left out
    /// when the process has none any more.
    fn add(&mut self, process: &mut ServerSource) -> Result<ProcessStat, Error> {
        let stat = process.stat()?;
        if stat.is_given_away() {
            return Err(Error::Gone { pid: process.pid });
        }
        for (key, value) in process.footprint.io()? {
            *self.io.entry(key).or_insert(0) += value;
        }
        if let Ok(memory) = process.footprint.memory() {
            self.vsz_bytes = self.vsz_bytes.max(memory.vsz_bytes);
            self.threads += memory.threads;
            self.add_parts(memory.parts);
        }
        self.used += stat.own;
        Ok(stat)
    }

    /// Adds private memory, and keeps the highest value of shared memory and of mapped files.
    fn add_parts(&mut self, parts: Option<MemoryParts>) {
        let Some(parts) = parts else {
            self.has_parts = false;
            return;
        };
        self.parts.anonymous_bytes += parts.anonymous_bytes;
        self.parts.shared_bytes = self.parts.shared_bytes.max(parts.shared_bytes);
        self.parts.file_bytes = self.parts.file_bytes.max(parts.file_bytes);
    }

    fn write(&self, values: &mut Values) {
        values.raise("cpu_us", self.cpu_us);
        for (key, value) in self.used.counters() {
            values.raise(key, value);
        }
        for (key, value) in &self.io {
            values.raise(key, *value);
        }
        if self.has_parts {
            let rss_bytes = self.parts.anonymous_bytes + self.parts.shared_bytes + self.parts.file_bytes;
            values.set("rss_bytes", rss_bytes);
            values.raise("rss_peak_bytes", rss_bytes);
        }
        values.set("vsz_bytes", self.vsz_bytes);
        values.set("threads", self.threads);
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    pid: u32,
    clock: ProcessClock,
    footprint: Footprint,
}

impl Client {
    pub(crate) fn open() -> Result<Self, Error> {
        let pid = std::process::id();
        Ok(Self { pid, clock: ProcessClock::own(), footprint: Footprint::open(pid)? })
    }
}

impl Source for Client {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into()), ("sees_io", self.footprint.sees_io().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        values.set("cpu_us", self.clock.cpu_us()?);
        let usage = getrusage(UsageWho::RUSAGE_SELF)
            .map_err(|errno| Error::Clock { pid: self.pid, source: errno.into() })?;
        values.set("cpu_user_us", usage.user_time().num_microseconds());
        values.set("cpu_kernel_us", usage.system_time().num_microseconds());
        values.set("voluntary_switches", usage.voluntary_context_switches());
        values.set("involuntary_switches", usage.involuntary_context_switches());
        values.set("minor_faults", usage.minor_page_faults());
        values.set("major_faults", usage.major_page_faults());
        self.footprint.read(values)?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
