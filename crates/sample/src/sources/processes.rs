//! Source `processes`: the CPU time of every process of the machine. The sum can be compared with what
//! the machine reports about itself.
//!
//! Keys: `cpu_us` is the CPU time of all processes, including this one and the server.
//! `kernel_threads_cpu_us` is that of the kernel's own threads. Both come from `/proc/<pid>/stat` (in
//! steps of a tick, 10 ms per process). `processes` is the number of processes. A process that has
//! ended stays in the sum, because the kernel adds what it used to the parent that waits for it
//! (`cutime`, `cstime`). If a parent does not wait, its ended children keep their last values. The
//! kernel's own threads, which come and go, have such a parent (kthreadd). Only processes of our own
//! PID namespace are seen, and with `hidepid` only our own user's. What a machine does beyond them is
//! missing from the sum.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::time::Duration;

use serde_json::{Map, Value};

use super::host::TICK_US;
use super::process::{ProcessStat, parse_process_stat};
use super::{Source, Values, about};
use crate::Error;

/// PF_KTHREAD of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Time between two readings within a window. The window's boundaries are read in any case.
pub(crate) const AT_LEAST: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(crate) struct Processes {
    last: HashMap<u32, Seen>,
    /// What children of parents that do not wait had used when they were last seen.
    lost: Ticks,
    buffer: Vec<u8>,
}

/// CPU time by who used it.
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

/// One process at a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    parent: u32,
    is_kernel_thread: bool,
    own_ticks: i64,
    /// Ticks of children that have ended and were waited for.
    ended_ticks: i64,
}

impl Processes {
    pub(crate) fn open() -> Result<Self, Error> {
        // Where `/proc` cannot be listed there is nothing to sample, and that is reported before the
        // step.
        list().map(drop)?;
        Ok(Self::default())
    }

    fn look(&mut self) -> Result<ProcessesTotal, Error> {
        let mut now = HashMap::with_capacity(self.last.len());
        for pid in list()? {
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

/// Returns the numbers of all processes.
fn list() -> Result<Vec<u32>, Error> {
    let unreadable = |source| Error::Unreadable { path: "/proc".into(), source };
    let entries = fs::read_dir("/proc").map_err(unreadable)?;
    Ok(numbers(entries))
}

/// Returns the numbers among the names of a folder's entries.
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

/// Returns what processes that ended between two readings had used and their parents were not given.
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
        // A parent that has ended too was given nothing by then. Its children went to another one,
        // which waits.
        let (Some(now), Some(before)) = (now.get(&parent), before.get(&parent)) else { continue };
        lost.add(is_kernel_thread, (ticks - (now.ended_ticks - before.ended_ticks)).max(0));
    }
    lost
}

impl Source for Processes {
    fn about(&self) -> Map<String, Value> {
        about([("at_least_seconds", AT_LEAST.as_secs().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let sum = self.look()?;
        // A child of a parent that ended with it can still be missing for a moment. Sums never fall.
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

    /// Returns a program that uses some 0.3 s of CPU.
    fn busy() -> Child {
        let count = ["if=/dev/zero", "of=/dev/null", "bs=64", "count=1500000"];
        Command::new("dd").args(count).stderr(Stdio::null()).spawn().unwrap()
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
    fn a_child_that_its_parent_waited_for_is_not_lost_and_another_one_is() {
        let before = HashMap::from([(1, seen(0, 5, 100)), (2, seen(1, 40, 2)), (3, seen(1, 9, 0))]);
        let waited = HashMap::from([(1, seen(0, 6, 142)), (3, seen(1, 9, 0))]);
        assert_eq!(lost_ticks(&before, &waited), Ticks::default());
        let not_waited = HashMap::from([(1, seen(0, 6, 100)), (3, seen(1, 9, 0))]);
        assert_eq!(lost_ticks(&before, &not_waited), Ticks { user_space: 42, kernel_threads: 0 });
        // Parent and child are gone. What is left of both is with the process that took the child over.
        assert_eq!(lost_ticks(&before, &HashMap::from([(4, seen(0, 0, 0))])), Ticks::default());
    }

    #[test]
    fn a_thread_of_the_kernel_that_has_ended_is_no_program() {
        let thread = |parent, own_ticks| Seen { is_kernel_thread: true, ..seen(parent, own_ticks, 0) };
        let before = HashMap::from([(2, thread(0, 1)), (77, thread(2, 900)), (78, thread(2, 30))]);
        let now = HashMap::from([(2, thread(0, 1)), (78, thread(2, 31))]);
        assert_eq!(lost_ticks(&before, &now), Ticks { user_space: 0, kernel_threads: 900 });
    }

    #[test]
    fn what_a_program_used_stays_in_the_sum_when_it_has_ended() {
        let (mut source, mut values) = (Processes::open().unwrap(), Values::default());
        let before = read(&mut source, &mut values);
        busy().wait().unwrap();
        let after = read(&mut source, &mut values);
        assert!(after - before > 50_000, "{before} to {after}");
        assert!(values.map()["processes"] > 1);
    }
}
