//! What an agent used while a step ran: CPU of the process and of its load threads.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use dbdyno_provision::calling;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::time::to_us;

const LOAD_THREAD: &str = "load-";

/// Between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) measured_us: u64,
    pub(super) cpu_us: u64,
    /// Of the load thread that had most to do.
    pub(super) busiest_cpu_us: u64,
    pub(super) busiest_run_delay_us: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Usage {
    at: Instant,
    cpu: Duration,
    /// Nanoseconds that each load thread was on a CPU, and waited for one.
    threads: BTreeMap<String, [u64; 2]>,
}

impl Usage {
    pub(super) fn now() -> Self {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let thread = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let statistics = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let mut numbers = statistics.split(' ').map(str::parse);
            let times = [numbers.next()?.ok()?, numbers.next()?.ok()?];
            name.starts_with(LOAD_THREAD).then(|| (task.file_name().to_string_lossy().into_owned(), times))
        };
        Self { at: Instant::now(), cpu, threads: tasks.filter_map(thread).collect() }
    }

    /// What was used since the reading `before`.
    pub(super) fn since(&self, before: &Self) -> Used {
        let change = |(thread, now): (&String, &[u64; 2])| {
            let then = before.threads.get(thread)?;
            Some([0, 1].map(|index| now[index].saturating_sub(then[index]) / 1000))
        };
        let busiest = self.threads.iter().filter_map(change).max_by_key(|[cpu, delay]| cpu + delay);
        let [busiest_cpu_us, busiest_run_delay_us] = busiest.unwrap_or_default();
        Used {
            measured_us: to_us(self.at.saturating_duration_since(before.at)),
            cpu_us: to_us(self.cpu.saturating_sub(before.cpu)),
            busiest_cpu_us,
            busiest_run_delay_us,
        }
    }
}

/// What keeps this host's time of day, as far as it can be seen.
pub(super) fn clock_source() -> String {
    let tracking = calling("chronyc").args(["-n", "tracking"]).output().ok();
    let tracking = tracking.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line =
        tracking.as_deref().into_iter().flat_map(str::lines).find(|line| line.starts_with("System time"));
    if let Some((_, offset)) = line.and_then(|line| line.split_once(':')) {
        return format!("chrony: {}", offset.trim());
    }
    let is_ptp = fs::exists("/dev/ptp0").unwrap_or(false);
    if is_ptp { "/dev/ptp0" } else { "unknown" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_with_most_to_do_counts_and_one_that_came_later_does_not() {
        let at = Instant::now();
        let usage = |seconds, threads: &[(&str, [u64; 2])]| Usage {
            at: at + Duration::from_secs(seconds),
            cpu: Duration::from_secs(seconds / 2),
            threads: threads.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect(),
        };
        let before = usage(2, &[("1", [1_000_000, 0]), ("2", [0, 0])]);
        let after =
            usage(6, &[("1", [3_000_000, 500_000]), ("2", [2_000_000, 1_000_000]), ("3", [u64::MAX, 0])]);
        let used = Used {
            measured_us: 4_000_000,
            cpu_us: 2_000_000,
            busiest_cpu_us: 2000,
            busiest_run_delay_us: 1000,
        };
        assert_eq!(after.since(&before), used);
        let now = Usage::now();
        assert_eq!(now.since(&now).measured_us, 0);
    }
}
