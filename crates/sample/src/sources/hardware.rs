//! Source `hardware`: the CPU's own counters for the server, in user mode and in the kernel.
//!
//! Keys: `instructions_user`, `instructions_kernel`, `cycles_user`, `cycles_kernel`, and
//! `cache_misses`, `branch_misses` and `tlb_misses` (of data reads) in both modes together. They
//! count all threads and processes of the server, also those that it makes after the counters were
//! opened (perf_event_open with `inherit`). Where a CPU has fewer counters than are asked for, the
//! kernel takes turns; each value is then scaled by the time in which it was counted.
//!
//! Most virtual machines have no such counters. The source is then left out without a warning.

use std::fs;
use std::sync::OnceLock;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
use perf_event::{Builder, Counter, ReadFormat};
use serde_json::{Map, Value};

use super::processes::numbers;
use super::server::{children_file, parse_children};
use super::{Source, Values, about};
use crate::Error;

/// Whether a counter counts in user mode, in the kernel, or in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    User,
    Kernel,
    Both,
}

/// The counters of the server's threads, by key.
pub(crate) struct HardwareCounters {
    pid: u32,
    counters: Vec<(&'static str, Vec<Counter>)>,
}

impl HardwareCounters {
    /// Opens the counters for a server's threads, or for its processes where it has many. The
    /// result is `None` on a machine without such counters.
    pub(crate) fn of(pid: u32, has_children: bool) -> Option<Self> {
        static IS_THERE: OnceLock<bool> = OnceLock::new();
        let is_there = || open(Hardware::INSTRUCTIONS, Mode::User, std::process::id()).is_some();
        if !*IS_THERE.get_or_init(is_there) {
            return None;
        }
        let members = members(pid, has_children);
        let of = |event: Hardware, mode| members.iter().filter_map(|member| open(event, mode, *member)).collect();
        let misses = Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
        let tlb = members.iter().filter_map(|member| open(misses.clone(), Mode::Both, *member)).collect();
        let all = vec![
            ("instructions_user", of(Hardware::INSTRUCTIONS, Mode::User)),
            ("instructions_kernel", of(Hardware::INSTRUCTIONS, Mode::Kernel)),
            ("cycles_user", of(Hardware::CPU_CYCLES, Mode::User)),
            ("cycles_kernel", of(Hardware::CPU_CYCLES, Mode::Kernel)),
            ("cache_misses", of(Hardware::CACHE_MISSES, Mode::Both)),
            ("branch_misses", of(Hardware::BRANCH_MISSES, Mode::Both)),
            ("tlb_misses", tlb),
        ];
        // A counter that is not there for every thread would count too little.
        let is_whole = |counters: &Vec<Counter>| !members.is_empty() && counters.len() == members.len();
        let counters: Vec<_> = all.into_iter().filter(|(_, counters)| is_whole(counters)).collect();
        (!counters.is_empty()).then_some(Self { pid, counters })
    }
}

/// Returns the threads of a process, or the process and its children.
fn members(pid: u32, has_children: bool) -> Vec<u32> {
    if !has_children {
        return fs::read_dir(format!("/proc/{pid}/task")).map(numbers).unwrap_or_default();
    }
    let mut children = children_file(pid).ok();
    let text = children.as_mut().and_then(|file| file.text().ok());
    let mut pids = text.map_or_else(Vec::new, |text| parse_children(&text));
    pids.push(pid);
    pids
}

/// Opens one counter of a thread and of all that it makes, or returns `None` where it cannot.
fn open(event: impl Event, mode: Mode, thread: u32) -> Option<Counter> {
    let mut builder = Builder::new(event);
    builder
        .observe_pid(i32::try_from(thread).ok()?)
        .inherit(true)
        .exclude_kernel(mode == Mode::User)
        .exclude_user(mode == Mode::Kernel)
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
    let mut counter = builder.build().ok()?;
    counter.enable().ok()?;
    Some(counter)
}

/// Reads a counter, scaled to the time for which it was enabled.
fn read(counter: &mut Counter) -> Option<f64> {
    let found = counter.read_full().ok()?;
    let (enabled, running) = (found.time_enabled()?, found.time_running()?);
    if running.is_zero() {
        return Some(0.0);
    }
    Some(found.count() as f64 * enabled.as_secs_f64() / running.as_secs_f64())
}

impl Source for HardwareCounters {
    fn about(&self) -> Map<String, Value> {
        about([("pid", self.pid.into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        for (key, counters) in &mut self.counters {
            let sum: f64 = counters.iter_mut().filter_map(read).sum();
            // Scaled values may fall a little when the kernel takes turns.
            values.raise(key, sum as i64);
        }
        Ok(())
    }
}
