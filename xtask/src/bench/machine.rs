//! Facts of this machine and moment that the runs do not record themselves.

use jiff::Timestamp;

/// When a measurement began, and how busy the machine was.
#[derive(Debug, Clone)]
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

/// CPUs of the server and of the client: half of the machine's each; `None` for both when there is only one.
pub(super) fn halves() -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    split(u32::try_from(cpus()).unwrap_or(1))
}

fn split(cpus: u32) -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    match cpus / 2 {
        0 => (None, None),
        half => (Some((0..half).collect()), Some((half..cpus).collect())),
    }
}

/// `2,3` as `taskset` and plans read it; all CPUs for `None`.
pub(super) fn list(cpus: Option<&[u32]>) -> String {
    let all: Vec<u32> = (0..u32::try_from(self::cpus()).unwrap_or(1)).collect();
    let cpus = cpus.unwrap_or(&all);
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_client_share_no_cpu_where_there_are_two() {
        assert_eq!(split(5), (Some(vec![0, 1]), Some(vec![2, 3, 4])));
        assert_eq!(split(1), (None, None));
        assert_eq!(list(Some(&[2, 3])), "2,3");
    }
}
