//! Measures what an agent used while a step ran: the CPU time of the process and of its load
//! threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dbdyno_db::server::{ask, calling};
use dbdyno_record::Throttled;
use dbdyno_sample::control_groups;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::time::to_us;

const LOAD_THREAD: &str = "load-";

/// Usage between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) measured_us: u64,
    pub(super) cpu_us: u64,
    /// CPU time of the load thread that had most to do.
    pub(super) busiest_cpu_us: u64,
    pub(super) busiest_run_delay_us: u64,
    /// Throttling of the control group that was throttled longest.
    pub(super) throttled: Throttled,
}

#[derive(Debug, Clone)]
pub(super) struct Usage {
    at: Instant,
    cpu: Duration,
    /// Nanoseconds that each load thread was on a CPU, and that it waited for one.
    threads: BTreeMap<String, [u64; 2]>,
    /// Throttling of each control group, the innermost first.
    throttled: Vec<Throttled>,
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
        let groups = control_groups(Path::new("/"), "self", "cpu");
        let throttled = groups.iter().map(|group| group.throttled().unwrap_or_default()).collect();
        Self { at: Instant::now(), cpu, threads: tasks.filter_map(thread).collect(), throttled }
    }

    /// Returns what was used since the reading `before`.
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
            throttled: self.throttled_since(before),
        }
    }

    fn throttled_since(&self, before: &Self) -> Throttled {
        let change = |(now, then): (&Throttled, &Throttled)| Throttled {
            us: now.us - then.us,
            periods: now.periods - then.periods,
            throttled_periods: now.throttled_periods - then.throttled_periods,
        };
        let changes = self.throttled.iter().zip(&before.throttled).map(change);
        changes.max_by_key(|change| change.us).unwrap_or_default()
    }
}

/// Returns an identifier of this machine's boot. It differs between machines and between boots, and
/// containers on one machine share it.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns what sets this host's time of day, as far as it can be seen.
pub(super) fn clock_source() -> String {
    let tracking = ask(calling("chronyc").args(["-n", "tracking"])).ok();
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
        let throttled = |us| Throttled { us, periods: 10 * us, throttled_periods: us / 2 };
        let usage = |seconds, threads: &[(&str, [u64; 2])]| Usage {
            at: at + Duration::from_secs(seconds),
            cpu: Duration::from_secs(seconds / 2),
            threads: threads.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect(),
            throttled: [0, 7].map(|us| throttled(us * i64::try_from(seconds).unwrap())).to_vec(),
        };
        let before = usage(2, &[("1", [1_000_000, 0]), ("2", [0, 0])]);
        let after =
            usage(6, &[("1", [3_000_000, 500_000]), ("2", [2_000_000, 1_000_000]), ("3", [u64::MAX, 0])]);
        let used = Used {
            measured_us: 4_000_000,
            cpu_us: 2_000_000,
            busiest_cpu_us: 2000,
            busiest_run_delay_us: 1000,
            throttled: throttled(28),
        };
        assert_eq!(after.since(&before), used);
        let now = Usage::now();
        assert_eq!(now.since(&now).measured_us, 0);
    }
}
