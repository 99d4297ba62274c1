//! The source `processes` sums the CPU time of every process on the machine. The sum can be
//! compared with the CPU time that the machine reports about itself.
//!
//! The key `cpu_us` is the CPU time of all processes, including this one and the server.
//! `kernel_threads_cpu_us` is that of the kernel's own threads, which `cpu_us` leaves out. Both
//! come from `/proc/<pid>/stat`, which counts each process in ticks of 10 ms. `processes` is the
//! number of processes.
//!
//! The CPU time of a process that has ended stays in the sum, because the kernel adds it to the
//! parent that waits for the process (`cutime`, `cstime`). If a parent does not wait, its ended
//! children keep the values of their last reading. The kernel's own threads, which come and go,
//! have such a parent (kthreadd).
//!
//! Only processes in our own PID namespace are seen, and with `hidepid` only those of our own user.
//! The CPU time of all other processes is missing from the sum.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::time::Duration;

use serde_json::{Map, Value};

use super::host::TICK_US;
use super::process::{ProcessStat, parse_process_stat};
use super::{Source, Values, about};
use crate::Error;

/// The process flag for a kernel thread, `PF_KTHREAD` in the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The shortest time between two readings within a window. A reading is costly, because it opens
/// one file per process. The window's boundaries are read in any case.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(crate) struct Processes {
    last: HashMap<u32, Seen>,
    /// The CPU time of ended children whose parents did not wait for them, as of their last
    /// reading.
    lost: Ticks,
    buffer: Vec<u8>,
}

/// CPU time in ticks, by who used it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    user_space: i64,
    kernel_threads: i64,
}

impl Ticks {
    fn add(&mut self, is_kernel_thread: bool, ticks: i64) {
        if is_kernel_thread {
            self.kernel_threads += ticks;
        } else {
            self.user_space += ticks;
        }
    }
}

/// One process in one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    parent: u32,
    is_kernel_thread: bool,
    own_ticks: i64,
    /// Ticks of children that have ended and for which this process has waited.
    ended_ticks: i64,
}

impl Processes {
    pub(crate) fn open() -> Result<Self, Error> {
        // If `/proc` cannot be listed, there is nothing to sample. Listing it here reports that
        // before the step begins.
        process_ids().map(drop)?;
        Ok(Self::default())
    }

    /// Reads all processes and returns their sum.
    fn read_total(&mut self) -> Result<ProcessesTotal, Error> {
        let mut now = HashMap::with_capacity(self.last.len());
        for pid in process_ids()? {
            self.buffer.clear();
            let read = File::open(format!("/proc/{pid}/stat"))
                .and_then(|mut file| file.read_to_end(&mut self.buffer));
            // A process that has ended since the list was read is counted in its parent by now.
            if let (Ok(_), Some(seen)) = (read, parse(&String::from_utf8_lossy(&self.buffer))) {
                now.insert(pid, seen);
            }
        }
        let lost = lost_ticks(&self.last, &now);
        self.lost.add(false, lost.user_space);
        self.lost.add(true, lost.kernel_threads);
        let mut sum = ProcessesTotal { processes: now.len(), ticks: self.lost };
        for seen in now.values() {
            sum.ticks.add(seen.is_kernel_thread, seen.own_ticks + seen.ended_ticks);
        }
        self.last = now;
        Ok(sum)
    }
}

struct ProcessesTotal {
    processes: usize,
    ticks: Ticks,
}

/// Returns the process ids of all processes.
fn process_ids() -> Result<Vec<u32>, Error> {
    let unreadable = |source| Error::Unreadable { path: "/proc".into(), source };
    let entries = fs::read_dir("/proc").map_err(unreadable)?;
    Ok(numbers(entries))
}

/// Returns the names of a folder's entries that are numbers: ids of processes or threads in
/// `/proc`.
pub(super) fn numbers(entries: fs::ReadDir) -> Vec<u32> {
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parse(text: &str) -> Option<Seen> {
    let ProcessStat { parent, flags, own, ended, .. } = parse_process_stat(text)?;
    Some(Seen {
        parent,
        is_kernel_thread: flags & KERNEL_THREAD != 0,
        own_ticks: own.user_ticks + own.kernel_ticks,
        ended_ticks: ended.user_ticks + ended.kernel_ticks,
    })
}

/// Returns the CPU time of processes that ended between two readings, as far as the kernel did not
/// add it to their parents.
fn lost_ticks(before: &HashMap<u32, Seen>, now: &HashMap<u32, Seen>) -> Ticks {
    let mut ended: HashMap<(u32, bool), i64> = HashMap::new();
    for (pid, seen) in before {
        if !now.contains_key(pid) {
            *ended.entry((seen.parent, seen.is_kernel_thread)).or_default() +=
                seen.own_ticks + seen.ended_ticks;
        }
    }
    let mut lost = Ticks::default();
    for ((parent, is_kernel_thread), ticks) in ended {
        // If the parent has ended too, its children went to another parent, which waits for them.
        // So nothing is lost.
        let (Some(now), Some(before)) = (now.get(&parent), before.get(&parent)) else { continue };
        lost.add(is_kernel_thread, (ticks - (now.ended_ticks - before.ended_ticks)).max(0));
    }
    lost
}

impl Source for Processes {
    fn about(&self) -> Map<String, Value> {
        about([("at_least_seconds", SHORTEST_INTERVAL.as_secs().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let sum = self.read_total()?;
        // When a parent and its child end together, the child's CPU time can be missing for a
        // moment. `raise` keeps the higher sum, so that sums never fall.
        values.raise("cpu_us", sum.ticks.user_space * TICK_US);
        values.raise("kernel_threads_cpu_us", sum.ticks.kernel_threads * TICK_US);
        values.set("processes", i64::try_from(sum.processes).unwrap_or(i64::MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::sources::Moment;

    fn seen(parent: u32, own_ticks: i64, ended_ticks: i64) -> Seen {
        Seen { parent, is_kernel_thread: false, own_ticks, ended_ticks }
    }

    fn read(source: &mut Processes, values: &mut Values) -> i64 {
        source.read(Moment::Boundary, values).unwrap().unwrap();
        values.map()["cpu_us"]
    }

    /// Starts a program that uses about 0.3 s of CPU time.
    fn start_busy_program() -> Child {
        let options = ["if=/dev/zero", "of=/dev/null", "bs=64", "count=1500000"];
        Command::new("dd").args(options).stderr(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn kernel_threads_are_known_by_their_flag() {
        let kthreadd = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 3 4 0 0 20 0 1 0 10 0 0";
        let expected = Seen { parent: 0, is_kernel_thread: true, own_ticks: 7, ended_ticks: 0 };
        assert_eq!(parse(kthreadd), Some(expected));
        let shell = "812 (a) b) S 811 812 812 34816 900 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 0 0";
        assert_eq!(parse(shell), Some(seen(811, 11, 15)));
        assert_eq!(parse("1 (x) S"), None);
    }

    #[test]
    fn cpu_time_of_a_child_is_lost_only_if_its_parent_does_not_wait() {
        let before = HashMap::from([(1, seen(0, 5, 100)), (2, seen(1, 40, 2)), (3, seen(1, 9, 0))]);
        let waited = HashMap::from([(1, seen(0, 6, 142)), (3, seen(1, 9, 0))]);
        assert_eq!(lost_ticks(&before, &waited), Ticks::default());
        let not_waited = HashMap::from([(1, seen(0, 6, 100)), (3, seen(1, 9, 0))]);
        assert_eq!(lost_ticks(&before, &not_waited), Ticks { user_space: 42, kernel_threads: 0 });
        // Both the parent and the child have ended. Another process took the child over.
        assert_eq!(lost_ticks(&before, &HashMap::from([(4, seen(0, 0, 0))])), Ticks::default());
    }

    #[test]
    fn an_ended_kernel_thread_counts_as_a_kernel_thread() {
        let thread = |parent, own_ticks| Seen { is_kernel_thread: true, ..seen(parent, own_ticks, 0) };
        let before = HashMap::from([(2, thread(0, 1)), (77, thread(2, 900)), (78, thread(2, 30))]);
        let now = HashMap::from([(2, thread(0, 1)), (78, thread(2, 31))]);
        assert_eq!(lost_ticks(&before, &now), Ticks { user_space: 0, kernel_threads: 900 });
    }

    #[test]
    fn cpu_time_of_an_ended_program_stays_in_the_sum() {
        let (mut source, mut values) = (Processes::open().unwrap(), Values::default());
        let before = read(&mut source, &mut values);
        start_busy_program().wait().unwrap();
        let after = read(&mut source, &mut values);
        assert!(after - before > 50_000, "{before} to {after}");
        assert!(values.map()["processes"] > 1);
    }
}
