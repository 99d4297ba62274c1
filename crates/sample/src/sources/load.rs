//! Source `load`: how long each of the client's load threads ran and how long it waited for a CPU. This
//! shows whether the client was the limit.
//!
//! Keys: `cpu_us` and `run_delay_us` are summed over all load threads. `load-0.cpu_us`,
//! `load-0.run_delay_us`, ... exist for each of the 64 threads with the lowest numbers. They come
//! from `/proc/self/task/TID/schedstat` (Linux, Documentation/scheduler/sched-stats). A thread that
//! has ended keeps its last values. `voluntary_switches` is how often a thread went to sleep,
//! summed over all. It is absent where there are more than these 64 threads, because then each
//! thread blocks on one connection. A client that spins also has `polled_us` and
//! `load-0.polled_us`, ... They are the part of `cpu_us` that went into polling for answers when
//! there were none.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Map, Value};

use super::process::parse_switches;
use super::{Moment, ProcFile, Source, Values, about};
use crate::Error;

/// How the names of load threads begin.
const PREFIX: &str = "load-";
/// Threads with counters of their own. A blocking driver has one thread per connection, and hundreds of
/// them would fill the record.
const MOST_NAMED: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct LoadSource {
    threads: Vec<LoadThread>,
    /// The polling time that each thread counts itself.
    polled_ns: Option<Arc<[AtomicU64]>>,
}

#[derive(Debug)]
struct LoadThread {
    /// The number N in the thread's name `load-N`.
    number: u32,
    /// Keys of the thread's counters. They are `None` for a thread that is only in the sums.
    keys: Option<[String; 3]>,
    file: ProcFile,
    status: ProcFile,
    last: ThreadTimes,
    voluntary_switches: i64,
}

/// Times since a thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    pub(super) cpu_us: i64,
    pub(super) run_delay_us: i64,
}

impl LoadSource {
    /// Returns the source before it knows any load thread. Load threads begin later, so the first
    /// reading looks for them.
    pub(crate) fn open(polled_ns: Option<Arc<[AtomicU64]>>) -> Result<Self, Error> {
        // A kernel without scheduler statistics is reported here and not in the middle of a step.
        ProcFile::open("/proc/self/schedstat")?.parsed("three numbers", parse)?;
        Ok(Self { threads: Vec::new(), polled_ns })
    }

    /// Finds the load threads of this process by their names.
    fn find(&mut self) {
        for task in tasks() {
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            let Some(Ok(number)) = name.trim_end().strip_prefix(PREFIX).map(str::parse) else { continue };
            let Ok(file) = ProcFile::open(task.join("schedstat")) else { continue };
            let Ok(status) = ProcFile::open(task.join("status")) else { continue };
            let last = ThreadTimes::default();
            self.threads.push(LoadThread { number, keys: None, file, status, last, voluntary_switches: 0 });
        }
        self.threads.sort_by_key(|thread| thread.number);
        for thread in self.threads.iter_mut().take(MOST_NAMED) {
            let key = |counter| format!("{PREFIX}{}.{counter}", thread.number);
            thread.keys = Some([key("cpu_us"), key("run_delay_us"), key("polled_us")]);
        }
    }

    fn voluntary_switches(&mut self) -> i64 {
        let read = |thread: &mut LoadThread| {
            if let Some(now) = thread.status.text().ok().and_then(|text| parse_switches(&text)) {
                thread.voluntary_switches = now.voluntary;
            }
            thread.voluntary_switches
        };
        self.threads.iter_mut().map(read).sum()
    }
}

impl Source for LoadSource {
    fn about(&self) -> Map<String, Value> {
        about([("most_threads", MOST_NAMED.into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        if self.threads.is_empty() {
            self.find();
        }
        let at = Instant::now();
        let (mut sum, mut polled_sum_us) = (ThreadTimes::default(), 0);
        for thread in &mut self.threads {
            if let Some(now) = thread.file.text().ok().and_then(|text| parse(&text)) {
                thread.last = now;
            }
            sum.cpu_us += thread.last.cpu_us;
            sum.run_delay_us += thread.last.run_delay_us;
            let polled_us = self.polled_ns.as_deref().map(|all| polled_us(all, thread.number));
            polled_sum_us += polled_us.unwrap_or(0);
            if let Some([cpu_key, delay_key, polled_key]) = &thread.keys {
                values.set(cpu_key, thread.last.cpu_us);
                values.set(delay_key, thread.last.run_delay_us);
                values.set_known(polled_key, polled_us);
            }
        }
        if self.polled_ns.is_some() {
            values.set("polled_us", polled_sum_us);
        }
        values.set("cpu_us", sum.cpu_us);
        values.set("run_delay_us", sum.run_delay_us);
        if (1..=MOST_NAMED).contains(&self.threads.len()) {
            values.set("voluntary_switches", self.voluntary_switches());
        }
        Ok(Some(at))
    }
}

/// Returns the threads of this process. The kernel ends a listing early where a thread ends meanwhile,
/// so the longest of three is taken.
fn tasks() -> Vec<PathBuf> {
    let list = |_| {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        tasks.map(|task| task.path()).collect::<Vec<_>>()
    };
    (0..3).map(list).max_by_key(Vec::len).unwrap_or_default()
}

/// Returns the polling time of load thread `number`. It is 0 for a thread that sleeps, because such
/// a thread has no counter.
fn polled_us(all: &[AtomicU64], number: u32) -> i64 {
    let ns = all.get(number as usize).map_or(0, |counter| counter.load(Ordering::Relaxed));
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}

/// Parses `123456789 2345 67`: nanoseconds on a CPU, nanoseconds waiting for one, times it ran.
pub(super) fn parse(text: &str) -> Option<ThreadTimes> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<i64>().ok());
    let (cpu_ns, delay_ns) = (numbers.next()??, numbers.next()??);
    Some(ThreadTimes { cpu_us: cpu_ns / 1000, run_delay_us: delay_ns / 1000 })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::recording::wait_for;

    #[test]
    fn schedstat_is_read_in_microseconds() {
        assert_eq!(parse("1234567 89000 5\n"), Some(ThreadTimes { cpu_us: 1234, run_delay_us: 89 }));
        assert_eq!(parse("12"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn all_load_threads_are_summed_and_those_with_the_lowest_numbers_are_named() {
        let (begin, begun) = channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Barrier::new(71));
        for number in (1_000..1_070).rev() {
            let (begin, wait) = (begin.clone(), std::sync::Arc::clone(&wait));
            let body = move || {
                begin.send(()).unwrap();
                wait.wait();
            };
            std::thread::Builder::new().name(format!("load-{number}")).spawn(body).unwrap();
        }
        begun.iter().take(70).for_each(drop);
        let (mut load, mut values) = (LoadSource::open(None).unwrap(), Values::default());
        load.read(Moment::Boundary, &mut values).unwrap();
        wait.wait();
        let numbers: Vec<u32> = load.threads.iter().map(|thread| thread.number).collect();
        assert!(numbers.len() >= 70 && numbers.is_sorted(), "{numbers:?}");
        let sum: i64 = load.threads.iter().map(|thread| thread.last.cpu_us).sum();
        assert_eq!(values.map()["cpu_us"], sum);
        assert!(!values.map().contains_key("voluntary_switches"), "of so many they are not counted");
        for (index, number) in numbers.iter().enumerate() {
            let is_named = values.map().contains_key(&format!("load-{number}.cpu_us"));
            assert_eq!(is_named, index < MOST_NAMED, "{number}");
        }
    }

    #[test]
    fn what_threads_polled_in_vain_is_named_and_summed() {
        let (begin, begun) = channel::<()>();
        let (end, ended) = channel::<()>();
        let body = move || {
            begin.send(()).unwrap();
            let _ = ended.recv();
        };
        let thread = std::thread::Builder::new().name("load-1".to_owned()).spawn(body).unwrap();
        begun.recv().unwrap();
        let polled_ns: Arc<[AtomicU64]> = [1_000, 7_500_999].map(AtomicU64::new).into();
        let (mut load, mut values) = (LoadSource::open(Some(polled_ns)).unwrap(), Values::default());
        load.read(Moment::Boundary, &mut values).unwrap();
        end.send(()).unwrap();
        thread.join().unwrap();
        // Other tests may have threads with other numbers, which have no counter.
        assert_eq!(["load-1.polled_us", "polled_us"].map(|key| values.map()[key]), [7_500, 7_500]);
    }

    #[test]
    fn the_cpu_time_of_a_load_thread_is_read_and_kept_after_its_end() {
        let (end, ended) = channel::<()>();
        let (begin, begun) = channel::<()>();
        let burn = move || {
            begin.send(()).unwrap();
            while ended.try_recv().is_err() {
                std::hint::black_box(0);
            }
        };
        let thread = std::thread::Builder::new().name("load-77".to_owned()).spawn(burn).unwrap();
        // The thread has its name by now.
        begun.recv().unwrap();
        let (mut load, mut values) = (LoadSource::open(None).unwrap(), Values::default());
        load.read(Moment::Boundary, &mut values).unwrap();
        let wanted =
            |values: &Values| ["cpu_us", "run_delay_us"].map(|key| values.map()[&format!("load-77.{key}")]);
        let first = wanted(&values);
        // Time that a hypervisor takes is in neither value.
        wait_for("50 ms of the thread", || {
            load.read(Moment::Tick, &mut values).unwrap();
            wanted(&values).iter().sum::<i64>() - first.iter().sum::<i64>() >= 50_000
        });
        let last = wanted(&values);
        end.send(()).unwrap();
        thread.join().unwrap();
        load.read(Moment::Boundary, &mut values).unwrap();
        let [cpu_us, run_delay_us] = wanted(&values);
        assert!(
            cpu_us >= last[0] && run_delay_us >= last[1] && cpu_us > first[0],
            "{first:?}, {last:?}, {values:?}"
        );
    }
}
