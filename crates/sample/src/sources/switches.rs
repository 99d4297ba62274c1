//! Source `switches`: context switches of the server's threads, or of its processes where it has many.
//!
//! Keys: `voluntary_switches` and `involuntary_switches` count switches. `run_delay_us` is the time in
//! which the threads could have run and had no CPU (`schedstat`; absent where the kernel does not count
//! it). The values never fall when a thread ends.
//!
//! The source is separate from `server`, because it reads one file per thread. With hundreds of
//! connections it does not do so each second, and a sample that was not taken must not look like one in
//! which nothing has happened.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value};

use super::load::{ThreadTimes, parse as parse_times};
use super::process::{Switches, parse_switches};
use super::processes::numbers;
use super::server::{children_file, parse_children};
use super::{Moment, ProcFile, Source, Values, about};
use crate::Error;

/// Threads whose files stay open between two readings. Each costs two file descriptors of ours. The
/// files of the others are opened again each time.
const MAX_OPEN: usize = 128;

/// Context switches of one thread, or of many together, and how long they ran and waited for a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Scheduled {
    switches: Switches,
    times: ThreadTimes,
}

impl Scheduled {
    /// Returns the time in which threads could have run and had no CPU. It is `None` where the kernel
    /// does not count, because there the time that threads ran is 0 too.
    fn run_delay_us(self) -> Option<i64> {
        (self.times.cpu_us > 0).then_some(self.times.run_delay_us)
    }
}

impl std::ops::AddAssign for Scheduled {
    fn add_assign(&mut self, other: Self) {
        self.switches.voluntary += other.switches.voluntary;
        self.switches.involuntary += other.switches.involuntary;
        self.times.cpu_us += other.times.cpu_us;
        self.times.run_delay_us += other.times.run_delay_us;
    }
}

/// Adds up context switches thread by thread, because the kernel sums them over a process only for its
/// parent. Switches of a thread between its last reading and its end are not seen.
#[derive(Debug)]
pub(crate) struct Scheduling {
    pid: u32,
    members: Members,
    threads: HashMap<u32, ServerThread>,
    /// The last values of threads that have ended.
    ended: Scheduled,
    /// The number of readings so far, to find threads that the last one did not see.
    reading: u64,
}

/// The threads that are added up.
#[derive(Debug)]
pub(crate) enum Members {
    /// The threads of one process.
    Threads,
    /// The first threads of a process and of its children, which have no others.
    Processes,
}

impl Members {
    /// Returns the numbers of the threads.
    fn list(&self, pid: u32) -> Option<Vec<u32>> {
        match self {
            Self::Threads => Some(numbers(fs::read_dir(format!("/proc/{pid}/task")).ok()?)),
            Self::Processes => {
                let mut pids = parse_children(&children_file(pid).ok()?.text().ok()?);
                pids.push(pid);
                Some(pids)
            }
        }
    }

    fn folder(&self, pid: u32, number: u32) -> PathBuf {
        match self {
            Self::Threads => PathBuf::from(format!("/proc/{pid}/task/{number}")),
            Self::Processes => PathBuf::from(format!("/proc/{number}")),
        }
    }
}

#[derive(Debug)]
struct ServerThread {
    files: Option<Files>,
    last: Scheduled,
    reading: u64,
}

/// The files in which the kernel reports on one thread.
#[derive(Debug)]
struct Files {
    status: ProcFile,
    /// Old kernels, and those built without scheduler statistics, do not have this file.
    schedstat: Option<ProcFile>,
}

impl Files {
    fn read(&mut self) -> Option<Scheduled> {
        let switches = parse_switches(&self.status.text().ok()?)?;
        let times = self.schedstat.as_mut().and_then(|file| parse_times(&file.text().ok()?));
        Some(Scheduled { switches, times: times.unwrap_or_default() })
    }
}

impl Scheduling {
    /// Returns a source for process `pid` and its `members`. Nothing is read yet.
    pub(crate) fn new(pid: u32, members: Members) -> Self {
        Self { pid, members, threads: HashMap::new(), ended: Scheduled::default(), reading: 0 }
    }

    /// Reads all threads. The result is their sum since each began, including ended threads. It is
    /// `None` when the process has ended.
    fn sum(&mut self) -> Option<Scheduled> {
        self.reading += 1;
        for number in self.members.list(self.pid)? {
            self.read_thread(number);
        }
        // The kernel ends a listing early where a thread ends meanwhile.
        let unlisted = self.threads.iter().filter(|(_, thread)| thread.reading != self.reading);
        for number in unlisted.map(|(number, _)| *number).collect::<Vec<_>>() {
            let files = self.threads.get_mut(&number).and_then(|thread| thread.files.as_mut());
            match files.and_then(Files::read) {
                Some(now) => self.keep(number, now),
                None => self.forget(number),
            }
        }
        let mut sum = self.ended;
        for thread in self.threads.values() {
            sum += thread.last;
        }
        Some(sum)
    }

    /// Reads thread `tid`. A thread that ends meanwhile keeps its last values.
    fn read_thread(&mut self, tid: u32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            let now = match &mut thread.files {
                Some(files) => files.read(),
                None => self.open(tid).and_then(|mut files| files.read()),
            };
            if let Some(now) = now {
                self.keep(tid, now);
                return;
            }
            // The files were bound to a thread that has ended. Its number may be another thread's by
            // now.
            self.forget(tid);
        }
        let Some(mut files) = self.open(tid) else { return };
        let Some(last) = files.read() else { return };
        let files = (self.threads.len() < MAX_OPEN).then_some(files);
        self.threads.insert(tid, ServerThread { files, last, reading: self.reading });
    }

    /// Keeps the values of a thread. If it has fewer switches than before, it is a new thread that
    /// has the number of an old one.
    fn keep(&mut self, tid: u32, now: Scheduled) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (before, after) = (thread.last.switches, now.switches);
        if after.voluntary < before.voluntary || after.involuntary < before.involuntary {
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

    fn open(&self, tid: u32) -> Option<Files> {
        let folder = self.members.folder(self.pid, tid);
        let status = ProcFile::open(folder.join("status")).ok()?;
        Some(Files { status, schedstat: ProcFile::open(folder.join("schedstat")).ok() })
    }
}

impl Source for Scheduling {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        // Source `server` reports that the process has ended.
        let Some(scheduled) = self.sum() else { return Ok(None) };
        values.set("voluntary_switches", scheduled.switches.voluntary);
        values.set("involuntary_switches", scheduled.switches.involuntary);
        values.set_known("run_delay_us", scheduled.run_delay_us());
        Ok(Some(at))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::recording::wait_for;

    #[test]
    fn switches_do_not_fall_when_a_thread_ends() {
        let mut scheduling = Scheduling::new(std::process::id(), Members::Threads);
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
        let with = scheduling.sum().unwrap();
        let threads = scheduling.threads.len();
        // On a busy machine some sleeps are over before they begin, so the thread does not switch.
        assert!(with.switches.voluntary >= 500, "{with:?}");
        let own = parse_times(&fs::read_to_string("/proc/self/schedstat").unwrap()).unwrap();
        assert_eq!(with.run_delay_us().is_some(), own.cpu_us > 0, "{with:?}");
        drop(stop);
        thread.join().unwrap();
        // A thread that waits for another one learns of its end a moment before the kernel stops
        // listing it.
        let listed = PathBuf::from(format!("/proc/self/task/{tid}"));
        wait_for("the end of the thread", || !listed.exists());
        let without = scheduling.sum().unwrap();
        assert!(without.switches.voluntary >= with.switches.voluntary, "{without:?} after {with:?}");
        assert!(without.run_delay_us() >= with.run_delay_us(), "{without:?} after {with:?}");
        let ended = scheduling.ended;
        assert!(ended.switches.voluntary >= 500, "{ended:?}, {threads} threads before");
    }

    #[test]
    fn a_thread_number_that_is_used_again_counts_as_a_new_thread() {
        let mut scheduling = Scheduling::new(std::process::id(), Members::Threads);
        let of = |voluntary, involuntary, run_delay_us| Scheduled {
            switches: Switches { voluntary, involuntary },
            times: ThreadTimes { cpu_us: 50, run_delay_us },
        };
        scheduling.threads.insert(1, ServerThread { files: None, last: of(100, 7, 900), reading: 0 });
        scheduling.keep(1, of(3, 8, 1_000));
        assert_eq!((scheduling.ended, scheduling.threads[&1].last), (of(100, 7, 900), of(3, 8, 1_000)));
    }

    #[test]
    fn a_thread_that_a_listing_left_out_has_not_ended() {
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut scheduling = Scheduling::new(std::process::id(), Members::Threads);
        let files = Files {
            status: ProcFile::open(format!("/proc/{}/status", other.id())).unwrap(),
            schedstat: None,
        };
        let last = Scheduled { switches: Switches { voluntary: 0, involuntary: 0 }, ..Scheduled::default() };
        scheduling.threads.insert(u32::MAX, ServerThread { files: Some(files), last, reading: 0 });
        scheduling.sum().unwrap();
        assert!(scheduling.threads.contains_key(&u32::MAX));
        other.kill().unwrap();
        other.wait().unwrap();
        scheduling.sum().unwrap();
        assert!(!scheduling.threads.contains_key(&u32::MAX));
    }

    #[test]
    fn where_the_kernel_does_not_count_there_is_no_delay() {
        assert_eq!(Scheduled::default().run_delay_us(), None);
        let times = ThreadTimes { cpu_us: 1, run_delay_us: 0 };
        assert_eq!(Scheduled { times, ..Scheduled::default() }.run_delay_us(), Some(0));
    }

    #[test]
    fn a_process_that_has_ended_has_no_sum() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(Scheduling::new(child.id(), Members::Threads).sum(), None);
    }
}
