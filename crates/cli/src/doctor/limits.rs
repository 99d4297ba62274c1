//! Checks limits of this process that many connections would exceed, and memory: how much is free,
//! in which page sizes, and whether it may be swapped out. It also checks control groups: their
//! version, the controllers that dbdyno may use, and the limits on this process.

use dbdyno_plan::grouped;
use dbdyno_sample::control_groups;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::unistd::{AccessFlags, access};

use crate::doctor::{Finding, bad, good, note, note_if};
use crate::host::HostFiles;
use crate::time;

/// Open files for the highest number of connections that dbdyno is made for, with some room.
const MANY_FILES: u64 = 4096 + 512;
/// Open files for the records, logs and sampler of a run with few connections.
const FEW_FILES: u64 = 300;
const MANY_THREADS: u64 = 500;

const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

pub(crate) fn open_files(most: Option<u64>) -> Finding {
    let Some(most) = most else { return good("limit not visible") };
    let found = format!("at most {}", grouped(most));
    match most {
        most if most < FEW_FILES => bad(found, "raise the hard limit (nofile in /etc/security/limits.conf)"),
        most if most < MANY_FILES => note(
            found,
            "enough for fewer connections than 4096; raise the hard limit (nofile in /etc/security/limits.conf)",
        ),
        _ => good(found),
    }
}

pub(crate) fn threads(most: Option<u64>) -> Finding {
    let Some(most) = most else { return good("no limit") };
    let advice =
        "a server with many connections needs more; raise ulimit -u, or pids.max of the control group";
    note_if(most < MANY_THREADS, format!("at most {}", grouped(most)), advice)
}

/// Reports locked memory without a judgement, because only servers with large pages or locked
/// memory need more than any system gives.
pub(crate) fn locked_memory() -> Finding {
    let found = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Err(_) => "limit not visible".to_owned(),
        Ok((_, RLIM_INFINITY)) => "no limit".to_owned(),
        Ok((_, hard)) => {
            format!("at most {}; large pages need as much as the buffer pool", time::bytes(hard))
        }
    };
    good(found)
}

/// Returns the folder of this process's control group of version 2.
fn own_group(files: &HostFiles) -> Option<String> {
    let groups = files.text("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(format!("{CONTROL_GROUPS}{}", path.trim_end_matches('/')))
}

pub(crate) fn group_kind(files: &HostFiles) -> Finding {
    let advice =
        "servers run without a memory limit of their own; run as root, or in a scope with Delegate=yes";
    if !files.has(&format!("{CONTROL_GROUPS}/cgroup.controllers")) {
        let controllers = files.names(CONTROL_GROUPS).join(" ");
        if controllers.is_empty() {
            return note("none visible", advice);
        }
        return good(format!("version 1: {controllers}"));
    }
    let folder = own_group(files).unwrap_or_else(|| CONTROL_GROUPS.to_owned());
    let controllers = files
        .line(&format!("{folder}/cgroup.controllers"))
        .or_else(|| files.line(&format!("{CONTROL_GROUPS}/cgroup.controllers")))
        .unwrap_or_default();
    let switch = files.path(&format!("{folder}/cgroup.subtree_control"));
    if access(&switch, AccessFlags::W_OK).is_err() {
        return note(format!("version 2, not writable: {controllers}"), advice);
    }
    good(format!("version 2: {controllers}"))
}

/// Reports limits of this process's groups and of their parents, in version 1 and 2. They hold for
/// the servers that it starts too.
pub(crate) fn group_limits(files: &HostFiles) -> Finding {
    let groups = |controller: &str| control_groups(&files.path("/"), "self", controller);
    let memory = groups("memory")
        .iter()
        .filter_map(|group| Some((group.memory_limit_bytes()?, group.name.clone())))
        .min()
        .map(|(bytes, name)| format!("memory and page cache at most {} ({name})", time::bytes(bytes)));
    let cpu = groups("cpu")
        .iter()
        .filter_map(|group| Some((group.quota_cpus()?, group.name.clone())))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(cpus, name)| format!("CPU quota of {cpus:.2} CPUs ({name})"));
    let found: Vec<String> = memory.into_iter().chain(cpu).collect();
    if found.is_empty() {
        return good("none");
    }
    let advice = "they hold for servers and client together, and steps that a CPU quota throttles are invalid; lift them, or pin CPUs instead";
    note(found.join(", "), advice)
}

const GB: u64 = 1_000_000_000;
/// Above this swappiness the kernel swaps out processes to keep file pages.
const SWAPPINESS_MAX: u32 = 10;

pub(crate) fn free_memory(files: &HostFiles) -> Finding {
    let Some(free) = files.meminfo("MemAvailable") else { return good("not visible") };
    let found = format!("{} free", time::bytes(free));
    match free {
        free if free < GB / 5 => bad(found, "end other programs"),
        free if free < GB => note(found, "servers with usual settings need more; end other programs"),
        _ => good(found),
    }
}

pub(crate) fn huge_pages(files: &HostFiles) -> Finding {
    match files.chosen("/sys/kernel/mm/transparent_hugepage/enabled").as_deref() {
        Some("always") => note(
            "transparent: always",
            "servers stall while pages are merged, and use more memory; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(other) => good(format!("transparent: {other}")),
        None => good("not transparent"),
    }
}

pub(crate) fn swap(files: &HostFiles) -> Finding {
    let total = files.meminfo("SwapTotal").unwrap_or(0);
    if total == 0 {
        return good("none");
    }
    let used = total.saturating_sub(files.meminfo("SwapFree").unwrap_or(total));
    let swappiness = files.number::<u32>("/proc/sys/vm/swappiness");
    let eager = swappiness.is_some_and(|value| value > SWAPPINESS_MAX);
    let reported = swappiness.map_or(String::new(), |value| format!(", vm.swappiness = {value}"));
    let found = format!("{} used of {}{reported}", time::bytes(used), time::bytes(total));
    let advice = "a swapped-out server measures the disk; swapoff -a, or sysctl vm.swappiness=1";
    note_if(used > 0 || eager, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::host::machine;

    #[test]
    fn few_files_are_bad_and_few_threads_are_noted() {
        let files = [256, 1024, 65_536].map(|most| open_files(Some(most)).verdict);
        assert_eq!(files, [Verdict::Bad, Verdict::Note, Verdict::Good]);
        assert_eq!([threads(Some(100)).verdict, threads(None).verdict], [Verdict::Note, Verdict::Good]);
        assert_eq!(locked_memory().verdict, Verdict::Good);
    }

    #[test]
    fn the_version_and_the_controllers_are_reported() {
        let (_folder, two) = machine(&[
            ("/proc/self/cgroup", "0::/bench\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpu memory io\n"),
            ("/sys/fs/cgroup/bench/cgroup.controllers", "cpu memory\n"),
            ("/sys/fs/cgroup/bench/cgroup.subtree_control", ""),
        ]);
        assert_eq!(group_kind(&two), good("version 2: cpu memory"));
        let (_folder, one) =
            machine(&[("/sys/fs/cgroup/cpu/tasks", ""), ("/sys/fs/cgroup/memory/tasks", "")]);
        assert_eq!(group_kind(&one).found, "version 1: cpu memory");
        let (_folder, closed) = machine(&[("/sys/fs/cgroup/cgroup.controllers", "cpu\n")]);
        assert_eq!(group_kind(&closed).verdict, Verdict::Note);
        assert_eq!(group_kind(&machine(&[]).1).verdict, Verdict::Note);
    }

    #[test]
    fn limits_of_the_own_groups_and_their_parents_are_noted() {
        let of = |memory: &str, cpu: &str| {
            let files = [
                ("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/proc/self/cgroup", "0::/bench/in\n"),
                ("/sys/fs/cgroup/bench/in/memory.max", memory),
                ("/sys/fs/cgroup/bench/cpu.max", cpu),
            ];
            group_limits(&machine(&files).1)
        };
        assert_eq!(of("max\n", "max 100000\n"), good("none"));
        let both = of("4000000000\n", "150000 100000\n");
        assert_eq!(both.verdict, Verdict::Note);
        insta::assert_snapshot!(both.found, @"memory and page cache at most 4.0 GB (/bench/in), CPU quota of 1.50 CPUs (/bench)");
        let (_folder, version_1) = machine(&[
            ("/proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            ("/proc/self/cgroup", "1:cpu:/bench\n"),
            ("/sys/fs/cgroup/cpu/bench/cpu.cfs_quota_us", "20000\n"),
            ("/sys/fs/cgroup/cpu/bench/cpu.cfs_period_us", "100000\n"),
        ]);
        insta::assert_snapshot!(group_limits(&version_1).found, @"CPU quota of 0.20 CPUs (/bench)");
    }

    #[test]
    fn too_little_memory_is_bad() {
        let verdict = |kb: u64| {
            let text = format!("MemTotal: 1 kB\nMemAvailable:   {kb} kB\n");
            free_memory(&machine(&[("/proc/meminfo", &text)]).1).verdict
        };
        assert_eq!([100_000, 500_000, 8_000_000].map(verdict), [Verdict::Bad, Verdict::Note, Verdict::Good]);
    }

    #[test]
    fn huge_pages_for_all_and_an_eager_swap_are_noted() {
        let pages = |text: &str| {
            huge_pages(&machine(&[("/sys/kernel/mm/transparent_hugepage/enabled", text)]).1).verdict
        };
        assert_eq!(
            [pages("[always] madvise never"), pages("always [madvise] never")],
            [Verdict::Note, Verdict::Good]
        );
        let swap = |free: u64, swappiness: &str| {
            let text = format!("SwapTotal: 1000 kB\nSwapFree: {free} kB\n");
            swap(&machine(&[("/proc/meminfo", &text), ("/proc/sys/vm/swappiness", swappiness)]).1).verdict
        };
        assert_eq!(
            [swap(1000, "60"), swap(900, "1"), swap(1000, "1")],
            [Verdict::Note, Verdict::Note, Verdict::Good]
        );
        assert_eq!(super::swap(&machine(&[]).1).found, "none");
    }
}
