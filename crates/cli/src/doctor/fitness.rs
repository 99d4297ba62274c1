//! Is this machine fit to measure on: each respect looked at, and judged from what was seen alone.

use std::path::{Path, PathBuf};

use dbdyno_record::ClientCalibration;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;

use crate::commands::run::tool;
use crate::doctor::finding::Finding;
use crate::doctor::{host_files, store};
use crate::progress::grouped;
use crate::{limits, time};

const GB: u64 = 1_000_000_000;
/// The most connections that dbdyno is made for, and some room.
const MANY_FILES: u64 = 4096 + 512;
/// Records, logs and sampler of a run with few connections.
const FEW_FILES: u64 = 300;
const MANY_THREADS: u64 = 500;

/// Everything that was looked at, in the order of the list.
pub(crate) fn findings() -> Vec<Finding> {
    let usable = sched_getaffinity(Pid::from_raw(0)).ok();
    let cpus =
        usable.map_or(0, |set| (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).count());
    let can_pin = usable.is_some_and(|set| sched_setaffinity(Pid::from_raw(0), &set).is_ok());
    let cache = store::path().and_then(|path| path.parent().map(Path::to_owned));
    let host = dbdyno_sample::host_info(Path::new("."), None, None);
    let calibrations = store::path().map_or(Vec::new(), |path| store::load(&path));
    let is_ours = |calibration: &ClientCalibration| {
        calibration.tool == tool()
            && (&calibration.host.cpu_model, calibration.host.cpus) == (&host.cpu_model, host.cpus)
    };
    let calibrations: Vec<_> = calibrations.into_iter().filter(is_ours).collect();
    vec![
        build(cfg!(debug_assertions)),
        cpu_count(cpus, host.cpus, can_pin),
        clock_source(host_files::clock_source().as_deref()),
        load_average(host_files::load_average().as_deref(), cpus),
        governor(&host_files::governors()),
        open_files(limits::most_files()),
        threads(limits::most_threads()),
        memory(host_files::memory().as_deref()),
        disk(free_bytes(Path::new("."))),
        cache_folder(cache.as_deref()),
        schedstat(host_files::schedstat().as_deref()),
        perf(host_files::perf_event_paranoid().as_deref()),
        servers(),
        calibrated(&calibrations),
    ]
}

/// What other programs do here, as a warning; `None` while the machine is idle.
pub(crate) fn busy() -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let found = load_average(host_files::load_average().as_deref(), cpus);
    (!found.advice.is_empty()).then(|| format!("load average: {}", found.found))
}

fn build(is_debug: bool) -> Finding {
    if is_debug {
        return Finding::warning("dbdyno", "a debug build", "use --release for numbers that count");
    }
    Finding::ok("dbdyno", "a release build")
}

fn cpu_count(usable: usize, online: u32, can_pin: bool) -> Finding {
    let found = format!("{usable} of {online} may be used");
    match (usable, can_pin) {
        (_, false) => Finding::warning(
            "CPUs",
            format!("{found}, not pinned to"),
            "allow sched_setaffinity to pin client and server",
        ),
        (0 | 1, _) => Finding::warning(
            "CPUs",
            found,
            "client and server will take CPU time from each other; use two or more",
        ),
        _ => Finding::ok("CPUs", format!("{found} and pinned to")),
    }
}

fn clock_source(name: Option<&str>) -> Finding {
    match name {
        None => Finding::ok("clock source", "not visible"),
        // A look at these is an access to a device, a microsecond or more.
        Some(slow @ ("hpet" | "acpi_pm" | "jiffies" | "pit")) => Finding::warning(
            "clock source",
            slow,
            "it is slow to read; boot with clocksource=tsc if the CPU has a stable one",
        ),
        Some(fast) => Finding::ok("clock source", fast),
    }
}

/// More than a tenth of the CPUs, and more than half of one, is somebody else's work.
fn load_average(text: Option<&str>, cpus: usize) -> Finding {
    let minute = text.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let Some(minute) = minute else { return Finding::ok("load average", "not visible") };
    let found = format!("{minute:.2} in the last minute, {cpus} CPUs");
    if minute > f64::max(0.5, 0.1 * cpus as f64) {
        return Finding::warning("load average", found, "other programs run; end them before you measure");
    }
    Finding::ok("load average", found)
}

fn governor(names: &[String]) -> Finding {
    match names.iter().find(|name| *name != "performance") {
        None if names.is_empty() => Finding::ok("governor", "not visible, as in most virtual machines"),
        None => Finding::ok("governor", "performance"),
        Some(other) => Finding::warning(
            "governor",
            other.clone(),
            "the clock rate changes while you measure; set performance (cpupower frequency-set -g performance)",
        ),
    }
}

fn open_files(most: Option<u64>) -> Finding {
    let Some(most) = most else { return Finding::ok("open files", "limit not visible") };
    let found = format!("at most {}", grouped(most));
    match most {
        most if most < FEW_FILES => {
            Finding::unfit("open files", found, "raise the hard limit (nofile in /etc/security/limits.conf)")
        }
        most if most < MANY_FILES => Finding::warning(
            "open files",
            found,
            "enough for fewer connections than 4096; raise the hard limit (nofile in /etc/security/limits.conf)",
        ),
        _ => Finding::ok("open files", found),
    }
}

fn threads(most: Option<u64>) -> Finding {
    match most {
        None => Finding::ok("threads", "no limit"),
        Some(most @ ..MANY_THREADS) => Finding::warning(
            "threads",
            format!("at most {}", grouped(most)),
            "a server with many connections needs more; raise ulimit -u, or pids.max of the control group",
        ),
        Some(most) => Finding::ok("threads", format!("at most {}", grouped(most))),
    }
}

fn memory(text: Option<&str>) -> Finding {
    let value = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    let Some(free) = text.and_then(value) else { return Finding::ok("memory", "not visible") };
    let found = format!("{} free", time::bytes(free));
    match free {
        free if free < GB / 5 => Finding::unfit("memory", found, "end other programs"),
        free if free < GB => {
            Finding::warning("memory", found, "servers with usual settings need more; end other programs")
        }
        _ => Finding::ok("memory", found),
    }
}

fn disk(free: Option<u64>) -> Finding {
    let Some(free) = free else {
        return Finding::unfit("disk", "this folder cannot be looked into", "change to another");
    };
    let found = format!("{} free in this folder", time::bytes(free));
    match free {
        free if free < GB / 10 => Finding::unfit("disk", found, "make room, or change to another folder"),
        free if free < 10 * GB => {
            Finding::warning("disk", found, "make room; dbdyno plan says what a plan needs")
        }
        _ => Finding::ok("disk", found),
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let space = statvfs(folder).ok()?;
    Some(space.blocks_available() * space.fragment_size())
}

/// `folder`, or the nearest one above it that is there.
fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn cache_folder(folder: Option<&Path>) -> Finding {
    let Some(folder) = folder else {
        return Finding::warning(
            "cache folder",
            "none",
            "set HOME or XDG_CACHE_HOME; servers and calibrations are kept there",
        );
    };
    let info = dbdyno_sample::host_info(&existing(folder), None, None);
    let found = format!("{} on {}", folder.display(), info.data_filesystem);
    if ["tmpfs", "ramfs"].contains(&info.data_filesystem.as_str()) {
        return Finding::warning(
            "cache folder",
            found,
            "it is in memory: what is kept there is lost with the next start",
        );
    }
    Finding::ok("cache folder", found)
}

fn schedstat(text: Option<&str>) -> Finding {
    let ran = text.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    match ran {
        Some(1..) => Finding::ok("run-queue delay", "visible"),
        _ => Finding::warning(
            "run-queue delay",
            "not visible",
            "threads that wait for a CPU are not seen; needs a kernel with schedstats (CONFIG_SCHED_INFO)",
        ),
    }
}

/// dbdyno does not need perf; whoever looks for the reason of a figure does.
fn perf(paranoid: Option<&str>) -> Finding {
    match paranoid.and_then(|text| text.parse::<i32>().ok()) {
        None => Finding::ok("perf", "not there; dbdyno does not need it"),
        Some(level) if level > 2 => Finding::ok(
            "perf",
            format!("for root only (kernel.perf_event_paranoid = {level}); dbdyno does not need it"),
        ),
        Some(level) => Finding::ok("perf", format!("allowed (kernel.perf_event_paranoid = {level})")),
    }
}

fn servers() -> Finding {
    let folder = dbdyno_provision::servers_dir();
    let names = dbdyno_provision::list(&folder);
    if names.is_empty() {
        return Finding::ok(
            "servers",
            format!("none in {}; plans may name base directories and addresses", folder.display()),
        );
    }
    Finding::ok("servers", format!("{} in {}", names.join(", "), folder.display()))
}

/// `all` are those of this build and this machine.
fn calibrated(all: &[ClientCalibration]) -> Finding {
    if all.is_empty() {
        let found = "not calibrated for this build of dbdyno";
        return Finding::warning("client", found, "dbdyno doctor --client, with the CPUs of your plans");
    }
    let cpus = |calibration: &ClientCalibration| match &calibration.host.client_cpus {
        Some(list) => format!("CPUs {list}"),
        None => "any CPU".to_owned(),
    };
    Finding::ok(
        "client",
        format!("calibrated on {}", all.iter().map(cpus).collect::<Vec<_>>().join(" and on ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::State;

    #[test]
    fn slow_clocks_busy_machines_and_saving_governors_are_warned_of() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let all = [
            clock_source(Some("tsc")),
            clock_source(Some("hpet")),
            clock_source(None),
            load_average(Some("0.39 2.00 3.00 1/100 7"), 4),
            load_average(Some("0.51 0.00 0.00 1/100 7"), 4),
            load_average(Some("0.51 0.00 0.00 1/100 7"), 64),
            governor(&names(&["performance", "powersave"])),
            governor(&names(&["performance"])),
            governor(&[]),
        ];
        let warned: Vec<_> = all.iter().map(|finding| finding.state == State::Warning).collect();
        assert_eq!(warned, [false, true, false, false, true, false, true, false, false]);
        assert!(all.iter().all(|finding| finding.advice.is_empty() == (finding.state == State::Ok)));
    }

    #[test]
    fn what_makes_measuring_impossible_is_unfit() {
        let states = |findings: &[Finding]| findings.iter().map(|finding| finding.state).collect::<Vec<_>>();
        let (ok, warning, unfit) = (State::Ok, State::Warning, State::Unfit);
        assert_eq!(states(&[256, 1024, 65_536].map(|most| open_files(Some(most)))), [unfit, warning, ok]);
        assert_eq!(states(&[1 << 20, GB, 20 * GB].map(|free| disk(Some(free)))), [unfit, warning, ok]);
        let memory = |kb: u64| memory(Some(&format!("MemTotal: 1 kB\nMemAvailable:   {kb} kB\n")));
        assert_eq!(states(&[memory(1_000), memory(500_000), memory(8_000_000)]), [unfit, warning, ok]);
        assert_eq!(states(&[threads(Some(100)), threads(None)]), [warning, ok]);
        assert_eq!(
            states(&[cpu_count(1, 1, true), cpu_count(4, 4, false), cpu_count(4, 4, true)]),
            [warning, warning, ok]
        );
        assert_eq!(states(&[schedstat(Some("0 0 0")), schedstat(Some("12 3 4"))]), [warning, ok]);
    }

    #[test]
    fn the_list_of_this_machine_has_each_line_once() {
        let findings = findings();
        let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), findings.len()), (14, 14));
    }
}
