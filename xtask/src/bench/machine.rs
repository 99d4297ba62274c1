//! Facts of this machine and moment that the runs do not record themselves.

use jiff::Timestamp;

/// When a measurement began, and how busy the machine was.
pub(super) struct Moment {
    pub(super) date: String,
    /// Runnable tasks, averaged over the minute before.
    pub(super) load: String,
}

pub(super) fn now() -> Moment {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    Moment {
        date: Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        load: load.split(' ').next().filter(|first| !first.is_empty()).unwrap_or("unknown").to_owned(),
    }
}

/// CPUs of this machine that we may use.
pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
