//! Checks the CPUs: their number, clock rate, idle states and other users. Other users of the CPUs
//! show in the load average, in programs by name, and in steal. Steal is the time that the host of
//! a virtual machine takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::doctor::{Finding, bad, good, note, note_if};
use crate::host::HostFiles;

const CPUS: &str = "/sys/devices/system/cpu";

pub(crate) fn count(usable: usize, online: u32, can_pin: bool) -> Finding {
    let found = format!("{usable} of {online} may be used");
    match (usable, can_pin) {
        (_, false) => {
            note(format!("{found}, not pinned to"), "allow sched_setaffinity to pin client and server")
        }
        (0 | 1, _) => note(found, "client and server will take CPU time from each other; use two or more"),
        _ => good(format!("{found} and pinned to")),
    }
}

/// Counts physical cores. The hardware threads of one core have the same list of siblings.
pub(crate) fn cores(files: &HostFiles) -> Finding {
    let siblings = |cpu: &String| files.line(&format!("{CPUS}/{cpu}/topology/thread_siblings_list"));
    let cores: BTreeSet<String> = files.names(CPUS).iter().filter_map(siblings).collect();
    let found = if cores.is_empty() { "not visible".to_owned() } else { cores.len().to_string() };
    good(found)
}

pub(crate) fn governor(files: &HostFiles) -> Finding {
    let cpus = files.names(CPUS);
    let governor = |cpu: &String| files.line(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor"));
    let names: Vec<String> = cpus.iter().filter_map(governor).collect();
    match names.iter().find(|name| *name != "performance") {
        None if names.is_empty() => good("not visible, as in most virtual machines"),
        None => good("performance"),
        Some(other) => note(
            other.clone(),
            "the clock rate changes while you measure; set performance (cpupower frequency-set -g performance)",
        ),
    }
}

/// Checks how idle CPUs wait for work. In a virtual machine that halts them, the hypervisor does
/// the waking.
pub(crate) fn idle(files: &HostFiles) -> Finding {
    let of = |name: &str| files.line(&format!("{CPUS}/cpuidle/{name}")).filter(|text| !text.is_empty());
    let Some(driver) = of("current_driver") else { return good("not visible") };
    let governor = of("current_governor").or_else(|| of("current_governor_ro"));
    let mut found = format!("driver {driver}, governor {}", governor.as_deref().unwrap_or("not visible"));
    let polls_ns = files.number::<u64>("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    match (governor.as_deref(), polls_ns) {
        (Some("haltpoll"), Some(0)) => found.push_str(", CPUs halt at once"),
        (Some("haltpoll"), Some(polls_ns)) => {
            found.push_str(&format!(", CPUs poll for up to {} µs before they halt", polls_ns / 1_000));
        }
        _ => {}
    }
    good(found)
}

/// Checks turbo. Intel's driver says when it is off, the other drivers when it is on.
pub(crate) fn turbo(files: &HostFiles) -> Finding {
    let off = files.line(&format!("{CPUS}/intel_pstate/no_turbo"));
    let on = files.line(&format!("{CPUS}/cpufreq/boost"));
    match (off.as_deref(), on.as_deref()) {
        (Some("1"), _) | (None, Some("0")) => good("off"),
        (Some("0"), _) => note(
            "on",
            "the clock rate depends on heat and on how many CPUs are busy; echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        (None, Some(_)) => note(
            "on",
            "the clock rate depends on heat and on how many CPUs are busy; echo 0 > /sys/devices/system/cpu/cpufreq/boost",
        ),
        _ => good("not visible"),
    }
}

pub(crate) fn smt(files: &HostFiles) -> Finding {
    if files.line(&format!("{CPUS}/smt/active")).as_deref() != Some("1") {
        return good("off, or not visible");
    }
    let siblings = files.line(&format!("{CPUS}/cpu0/topology/thread_siblings_list")).unwrap_or_default();
    note(
        format!("on (CPUs {siblings} are one core)"),
        "give server and client whole cores in server_cpus and client_cpus, or boot with nosmt",
    )
}

pub(crate) fn numa(files: &HostFiles) -> Finding {
    let online = files.line("/sys/devices/system/node/online").unwrap_or_else(|| "0".to_owned());
    if online == "0" {
        return good("one node");
    }
    let nodes = files.names("/sys/devices/system/node");
    let cpus = |node: &String| {
        let list = files.line(&format!("/sys/devices/system/node/{node}/cpulist"))?;
        Some(format!("{node}: CPUs {list}"))
    };
    let reported: Vec<String> = nodes.iter().filter_map(cpus).collect();
    note(
        reported.join(", "),
        "memory of another node is slower, and its placement differs from start to start; keep the \
         server on CPUs of one node",
    )
}

pub(crate) fn virtualisation(files: &HostFiles) -> Finding {
    let is_guest = files.text("/proc/cpuinfo").is_some_and(|text| {
        text.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"))
    });
    let product = files.line("/sys/class/dmi/id/product_name").filter(|name| !name.is_empty());
    match (is_guest, product) {
        (true, Some(product)) => good(format!("a virtual machine ({product})")),
        (true, None) => good("a virtual machine"),
        (false, _) => good("none visible"),
    }
}

/// Reports mitigations without a judgement, because a production system pays for them too.
pub(crate) fn mitigations(files: &HostFiles) -> Finding {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let states: Vec<String> =
        files.names(FOLDER).iter().filter_map(|name| files.line(&format!("{FOLDER}/{name}"))).collect();
    let count = |begins: &str| states.iter().filter(|state| state.starts_with(begins)).count();
    let (mitigated, open) = (count("Mitigation"), count("Vulnerable"));
    let missing = if open == 0 { "none".to_owned() } else { open.to_string() };
    good(format!("{mitigated} active, {missing} missing"))
}

/// Measures CPU speed as multiply-adds per second of the calling thread's CPU time, in chains that
/// do not wait for each other. It returns the median of five slices, which take 20 ms together.
pub(crate) fn operations_per_second() -> f64 {
    const SLICE: Duration = Duration::from_millis(4);
    const ROUNDS: u64 = 1_000;
    // Time in which other threads ran does not count.
    let cpu_time = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    let mut chains: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let mut rates = [(); 5].map(|()| {
        let (began, mut operations) = (cpu_time(), 0.0);
        loop {
            for round in 0..ROUNDS {
                for chain in &mut chains {
                    *chain = chain.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
                }
            }
            chains = std::hint::black_box(chains);
            operations += (ROUNDS * chains.len() as u64) as f64;
            let used = cpu_time().saturating_sub(began);
            if used >= SLICE {
                return operations / used.as_secs_f64();
            }
        }
    });
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Share of one CPU that other programs may use. Any idle system uses less.
const OTHERS_SHARE_MAX: f64 = 0.1;
/// Share of all CPUs that other programs must use before a run would measure them and not the
/// server.
const OTHERS_BAD: f64 = 0.5;
const STEAL_NOTED: f64 = 0.01;
/// Share of steal above which figures reflect the host of the virtual machine and not the server.
const STEAL_BAD: f64 = 0.2;
/// Number of programs that are named. They are the busiest ones.
const NAMED: usize = 3;
/// Position of `steal` in a CPU line of `/proc/stat`. The fields up to it add up to all time,
/// because the time of guests is in `user`.
const STEAL: usize = 7;
const ALL_TIME: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    all: u64,
    steal: u64,
    cpus: u64,
    /// Name and ticks of each process, by its id.
    processes: BTreeMap<u32, (String, u64)>,
}

/// Notes the load average when it is more than a tenth of the CPUs, and more than half of one CPU.
pub(crate) fn load_average(files: &HostFiles, cpus: usize) -> Finding {
    let text = files.line("/proc/loadavg");
    let minute = text.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let Some(minute) = minute else { return good("not visible") };
    let found = format!("{minute:.2} in the last minute, {cpus} CPUs");
    let is_busy = minute > f64::max(0.5, 0.1 * cpus as f64);
    note_if(is_busy, found, "other programs run; end them before you measure")
}

/// Reads the ticks of all CPUs, and of all processes except this one.
pub(crate) fn ticks(files: &HostFiles) -> Ticks {
    let stat = files.text("/proc/stat").unwrap_or_default();
    let first = stat.lines().next().unwrap_or_default();
    let fields: Vec<u64> =
        first.split_ascii_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let own = std::process::id();
    let pids = files.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let of_process = |pid: u32| {
        let text = files.text(&format!("/proc/{pid}/stat"))?;
        Some((pid, process(&text)?))
    };
    Ticks {
        all: fields.iter().take(ALL_TIME).sum(),
        steal: fields.get(STEAL).copied().unwrap_or(0),
        cpus: stat.lines().filter(is_cpu).count() as u64,
        processes: pids.filter(|pid| *pid != own).filter_map(of_process).collect(),
    }
}

/// Returns name and ticks of a process from a line of its `stat`. The name is in brackets and may
/// hold anything.
fn process(stat: &str) -> Option<(String, u64)> {
    let (begin, rest) = (stat.find('(')?, stat.rfind(')')?);
    let mut fields = stat[rest + 1..].split_ascii_whitespace();
    // State is the first field after the name. User and kernel ticks are the 12th and 13th.
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some((stat[begin + 1..rest].to_owned(), user + kernel))
}

pub(crate) fn others(before: &Ticks, after: &Ticks) -> Finding {
    let per_cpu = after.all.saturating_sub(before.all) as f64 / after.cpus.max(1) as f64;
    if per_cpu < 1.0 {
        return good("not visible");
    }
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (pid, (name, ticks)) in &after.processes {
        let was = before.processes.get(pid).map_or(*ticks, |(_, ticks)| *ticks);
        *by_name.entry(name).or_default() += ticks.saturating_sub(was);
    }
    let sum: u64 = by_name.values().sum();
    let mut busiest: Vec<(&str, u64)> = by_name.into_iter().filter(|(_, ticks)| *ticks > 0).collect();
    busiest.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    let percent = |ticks: u64| 100.0 * ticks as f64 / per_cpu;
    let named: Vec<String> =
        busiest.iter().take(NAMED).map(|(name, ticks)| format!("{name} {:.0} %", percent(*ticks))).collect();
    let share = sum as f64 / per_cpu;
    if share > OTHERS_SHARE_MAX {
        let cpus = after.cpus;
        let found = format!("{:.0} % of one CPU, of {cpus}: {}", percent(sum), named.join(", "));
        if share > OTHERS_BAD * cpus as f64 {
            return bad(found, "end them: they take CPU time from the measurement");
        }
        return note(found, "end them before you measure");
    }
    good(format!("{:.0} % of one CPU", percent(sum)))
}

pub(crate) fn steal(before: &Ticks, after: &Ticks) -> Finding {
    let all = after.all.saturating_sub(before.all);
    if all == 0 {
        return good("not visible");
    }
    let share = after.steal.saturating_sub(before.steal) as f64 / all as f64;
    let found = format!("{:.1} % of the CPUs' time", 100.0 * share);
    let advice = "the hypervisor gives this virtual machine's CPU time to others; use dedicated CPUs or \
         another machine";
    match share {
        STEAL_BAD.. => bad(found, advice),
        STEAL_NOTED.. => note(found, advice),
        _ => good(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::host::machine;

    const SYS: &str = "/sys/devices/system";

    fn verdict(files: &[(&str, &str)], check: fn(&HostFiles) -> Finding) -> Verdict {
        let found = check(&machine(files).1);
        assert_eq!(found.advice.is_empty(), found.verdict == Verdict::Good, "{found:?}");
        found.verdict
    }

    #[test]
    fn cpus_that_cannot_be_pinned_or_are_too_few_are_noted() {
        let verdicts = [(1, true), (4, false), (4, true)].map(|(usable, pin)| count(usable, 4, pin).verdict);
        assert_eq!(verdicts, [Verdict::Note, Verdict::Note, Verdict::Good]);
    }

    #[test]
    fn a_clock_rate_that_changes_is_noted() {
        let path = |cpu: u32| format!("{SYS}/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let (one, two) = (path(0), path(1));
        assert_eq!(verdict(&[(&one, "performance\n"), (&two, "powersave\n")], governor), Verdict::Note);
        assert_eq!(verdict(&[(&one, "performance\n")], governor), Verdict::Good);
        assert_eq!(verdict(&[], governor), Verdict::Good);
        let (intel, other) = (format!("{SYS}/cpu/intel_pstate/no_turbo"), format!("{SYS}/cpu/cpufreq/boost"));
        assert_eq!(
            [verdict(&[(&intel, "0\n")], turbo), verdict(&[(&intel, "1\n")], turbo)],
            [Verdict::Note, Verdict::Good]
        );
        assert_eq!(
            [verdict(&[(&other, "1\n")], turbo), verdict(&[(&other, "0\n")], turbo)],
            [Verdict::Note, Verdict::Good]
        );
    }

    #[test]
    fn how_cpus_idle_is_reported() {
        let path = |name: &str| format!("{SYS}/cpu/cpuidle/{name}");
        let (driver, governor, writable) =
            (path("current_driver"), path("current_governor_ro"), path("current_governor"));
        let polls = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
        let found = |files: &[(&str, &str)]| idle(&machine(files).1).found;
        let halting = found(&[(&driver, "haltpoll\n"), (&governor, "haltpoll\n"), (polls, "200000\n")]);
        assert_eq!(
            halting,
            "driver haltpoll, governor haltpoll, CPUs poll for up to 200 µs before they halt"
        );
        let halting = found(&[(&driver, "haltpoll\n"), (&governor, "haltpoll\n"), (polls, "0\n")]);
        assert_eq!(halting, "driver haltpoll, governor haltpoll, CPUs halt at once");
        let bare = found(&[(&driver, "intel_idle\n"), (&writable, "menu\n"), (polls, "200000\n")]);
        assert_eq!(bare, "driver intel_idle, governor menu");
        assert_eq!(found(&[]), "not visible");
    }

    #[test]
    fn a_cpu_does_some_operations() {
        assert!(operations_per_second() > 0.0);
    }

    #[test]
    fn threads_of_one_core_are_counted_once() {
        let siblings = |cpu: u32, list: &str| {
            (format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"), list.to_owned())
        };
        let files = [siblings(0, "0,2"), siblings(1, "1,3"), siblings(2, "0,2"), siblings(3, "1,3")];
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let (_folder, files) = machine(&files);
        assert_eq!(cores(&files).found, "2");
        let (_folder, files) = machine(&[]);
        assert_eq!(cores(&files).found, "not visible");
    }

    #[test]
    fn shared_cores_and_several_nodes_are_noted_with_their_cpus() {
        let active = format!("{SYS}/cpu/smt/active");
        let siblings = format!("{SYS}/cpu/cpu0/topology/thread_siblings_list");
        let (_folder, files) = machine(&[(&active, "1\n"), (&siblings, "0,32\n")]);
        assert_eq!(smt(&files).found, "on (CPUs 0,32 are one core)");
        let nodes = ["online", "node0/cpulist", "node1/cpulist"].map(|name| format!("{SYS}/node/{name}"));
        let (_folder, files) = machine(&[(&nodes[0], "0-1\n"), (&nodes[1], "0-3\n"), (&nodes[2], "4-7\n")]);
        assert_eq!(numa(&files).found, "node0: CPUs 0-3, node1: CPUs 4-7");
        assert_eq!(verdict(&[(&nodes[0], "0\n")], numa), Verdict::Good);
    }

    #[test]
    fn guests_and_mitigations_are_reported() {
        let (_folder, files) = machine(&[
            ("/proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse\n"),
            ("/sys/class/dmi/id/product_name", "KVM\n"),
            ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
            ("/sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n"),
            ("/sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable: no microcode\n"),
        ]);
        assert_eq!(virtualisation(&files).found, "a virtual machine (KVM)");
        assert_eq!(mitigations(&files).found, "1 active, 1 missing");
    }

    #[test]
    fn a_busy_machine_is_noted_by_its_number_of_cpus() {
        let of = |text: &str, cpus| load_average(&machine(&[("/proc/loadavg", text)]).1, cpus).verdict;
        assert_eq!(of("0.39 2.00 3.00 1/100 7\n", 4), Verdict::Good);
        assert_eq!(of("0.51 0.00 0.00 1/100 7\n", 4), Verdict::Note);
        assert_eq!(of("0.51 0.00 0.00 1/100 7\n", 64), Verdict::Good);
    }

    fn at(all: u64, steal: u64, cargo: u64) -> Ticks {
        let stat = format!("cpu  {all} 0 0 0 0 0 0 {steal} 99 0\ncpu0 1\ncpu1 1\nintr 5\n");
        let of = |name: &str, user: u64| format!("1 ({name}) R 1 1 1 0 -1 0 0 0 0 0 {user} 5 0 0 20 0\n");
        let (odd, cargo) = (of("a) b", 7), of("cargo", cargo));
        ticks(&machine(&[("/proc/stat", &stat), ("/proc/10/stat", &odd), ("/proc/11/stat", &cargo)]).1)
    }

    #[test]
    fn programs_are_named_with_their_share_of_one_cpu() {
        assert_eq!(process("1 (a) b) R 1 1 1 0 -1 0 0 0 0 0 7 5 0"), Some(("a) b".to_owned(), 12)));
        let (before, after) = (at(1_000, 0, 50), at(1_200, 0, 200));
        assert_eq!((after.all - before.all, after.cpus), (200, 2));
        let noted = others(&before, &at(1_200, 0, 140));
        assert_eq!(
            (noted.verdict, noted.found.as_str()),
            (Verdict::Note, "90 % of one CPU, of 2: cargo 90 %")
        );
        let bad = others(&before, &after);
        assert_eq!((bad.verdict, bad.found.as_str()), (Verdict::Bad, "150 % of one CPU, of 2: cargo 150 %"));
        assert_eq!(others(&before, &at(1_200, 0, 55)).verdict, Verdict::Good);
        assert_eq!(others(&before, &before).found, "not visible");
    }

    #[test]
    fn much_steal_is_bad() {
        let of = |steal| super::steal(&at(1_000, 0, 0), &at(1_000 + 1_000 - steal, steal, 0)).verdict;
        assert_eq!([of(5), of(20), of(300)], [Verdict::Good, Verdict::Note, Verdict::Bad]);
    }
}
