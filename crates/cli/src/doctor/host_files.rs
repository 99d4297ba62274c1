//! What the kernel's files say of this machine, as text; `None` where one is not there.

use std::path::Path;

pub(crate) fn clock_source() -> Option<String> {
    line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

pub(crate) fn load_average() -> Option<String> {
    line("/proc/loadavg")
}

/// The governor of each CPU that has one.
pub(crate) fn governors() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu") else { return Vec::new() };
    entries.flatten().filter_map(|entry| line(entry.path().join("cpufreq/scaling_governor"))).collect()
}

pub(crate) fn memory() -> Option<String> {
    std::fs::read_to_string("/proc/meminfo").ok()
}

/// CPU time, run-queue delay and time slices of this process.
pub(crate) fn schedstat() -> Option<String> {
    line("/proc/self/schedstat")
}

pub(crate) fn perf_event_paranoid() -> Option<String> {
    line("/proc/sys/kernel/perf_event_paranoid")
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}
