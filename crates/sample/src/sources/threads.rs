//! Context switches of another process: summed over its threads, or over its children, never falling when one ends.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use super::process::{Switches, parse_switches};
use super::tree::{children_file, parse_children};
use crate::Error;
use crate::proc_file::ProcFile;

/// Threads whose file stays open between two readings; each costs a file descriptor of ours. The others are opened
/// anew each time.
const MAX_OPEN_FILES: usize = 256;

/// The kernel sums context switches over a process for its parent alone, so they are added up thread by thread. What
/// a thread did between its last reading and its end is not seen.
#[derive(Debug)]
pub(crate) struct ThreadSwitches {
    pid: u32,
    members: Members,
    threads: HashMap<u32, Thread>,
    /// Of threads that have ended, as last seen.
    ended: Switches,
    /// Counts readings, to tell threads that were not seen in the last one.
    reading: u64,
}

/// What is added up.
#[derive(Debug)]
enum Members {
    /// The threads of one process.
    Threads,
    /// The first threads of a process and of its children, which have no others.
    Processes,
}

impl Members {
    /// Their numbers.
    fn list(&self, pid: u32) -> Option<Vec<u32>> {
        match self {
            Self::Threads => {
                let entries = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
                Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
            }
            Self::Processes => {
                let mut pids = parse_children(&children_file(pid).ok()?.text().ok()?);
                pids.push(pid);
                Some(pids)
            }
        }
    }

    fn status_file(&self, pid: u32, number: u32) -> PathBuf {
        match self {
            Self::Threads => PathBuf::from(format!("/proc/{pid}/task/{number}/status")),
            Self::Processes => PathBuf::from(format!("/proc/{number}/status")),
        }
    }
}

#[derive(Debug)]
struct Thread {
    file: Option<ProcFile>,
    last: Switches,
    reading: u64,
}

impl ThreadSwitches {
    /// Of process `pid`. Nothing is read yet.
    pub(crate) fn of(pid: u32) -> Self {
        Self::new(pid, Members::Threads)
    }

    /// Of process `pid` and its children.
    pub(crate) fn of_tree(pid: u32) -> Self {
        Self::new(pid, Members::Processes)
    }

    fn new(pid: u32, members: Members) -> Self {
        Self { pid, members, threads: HashMap::new(), ended: Switches::default(), reading: 0 }
    }

    /// Reads all threads: switches since each began, ended ones included.
    pub(crate) fn read(&mut self) -> Result<Switches, Error> {
        self.reading += 1;
        for number in self.members.list(self.pid).ok_or(Error::Gone { pid: self.pid })? {
            self.read_thread(number);
        }
        let reading = self.reading;
        let ended = &mut self.ended;
        self.threads.retain(|_, thread| {
            let lives = thread.reading == reading;
            if !lives {
                *ended += thread.last;
            }
            lives
        });
        let mut sum = self.ended;
        for thread in self.threads.values() {
            sum += thread.last;
        }
        Ok(sum)
    }

    /// Reads thread `tid`. A thread that ends meanwhile is left as it was last seen.
    fn read_thread(&mut self, tid: u32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            let now = match &mut thread.file {
                Some(file) => read_switches(file),
                None => self.open(tid).and_then(|mut file| read_switches(&mut file)),
            };
            if let Some(now) = now {
                self.keep(tid, now);
                return;
            }
            // The file was bound to a thread that has ended; its number may be another thread's by now.
            self.forget(tid);
        }
        let Some(mut file) = self.open(tid) else { return };
        let Some(last) = read_switches(&mut file) else { return };
        let file = (self.threads.len() < MAX_OPEN_FILES).then_some(file);
        self.threads.insert(tid, Thread { file, last, reading: self.reading });
    }

    /// Takes over what a known thread has done. Fewer switches than before are those of a new thread with an old
    /// number.
    fn keep(&mut self, tid: u32, now: Switches) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if now.voluntary < thread.last.voluntary || now.involuntary < thread.last.involuntary {
            self.ended += thread.last;
        }
        thread.last = now;
        thread.reading = self.reading;
    }

    /// Moves a thread to those that have ended.
    fn forget(&mut self, tid: u32) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.ended += thread.last;
        }
    }

    fn open(&self, tid: u32) -> Option<ProcFile> {
        ProcFile::open(self.members.status_file(self.pid, tid)).ok()
    }
}

fn read_switches(file: &mut ProcFile) -> Option<Switches> {
    parse_switches(&file.text().ok()?)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::recording::wait_for;

    #[test]
    fn switches_do_not_fall_when_a_thread_ends() {
        let mut switches = ThreadSwitches::of(std::process::id());
        let (stop, stopped) = mpsc::channel::<()>();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for _ in 0..2_000 {
                std::thread::sleep(Duration::from_micros(1));
            }
            ready.send(nix::unistd::gettid()).unwrap();
            let _ = stopped.recv();
        });
        let tid = is_ready.recv().unwrap();
        let with = switches.read().unwrap();
        let threads = switches.threads.len();
        // On a busy machine some sleeps are over before they begin, and are no switch.
        assert!(with.voluntary >= 500, "{with:?}");
        drop(stop);
        thread.join().unwrap();
        // Whoever waits for a thread hears of its end a moment before the kernel lists it no more.
        let listed = PathBuf::from(format!("/proc/self/task/{tid}"));
        wait_for("the end of the thread", || !listed.exists());
        let without = switches.read().unwrap();
        assert!(without.voluntary >= with.voluntary, "{without:?} after {with:?}");
        assert!(switches.ended.voluntary >= 500, "{:?}, {threads} threads before", switches.ended);
    }

    #[test]
    fn a_thread_number_that_is_used_again_counts_as_a_new_thread() {
        let mut switches = ThreadSwitches::of(std::process::id());
        let old = Switches { voluntary: 100, involuntary: 7 };
        switches.threads.insert(1, Thread { file: None, last: old, reading: 0 });
        switches.keep(1, Switches { voluntary: 3, involuntary: 8 });
        assert_eq!(switches.ended, old);
        assert_eq!(switches.threads[&1].last, Switches { voluntary: 3, involuntary: 8 });
    }

    #[test]
    fn a_process_that_has_ended_is_said_to_have() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(matches!(ThreadSwitches::of(child.id()).read(), Err(Error::Gone { .. })));
    }
}
