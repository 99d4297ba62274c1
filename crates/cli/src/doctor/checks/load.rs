//! Checks who else uses the CPUs: load average, programs by name, and steal, which is the time that
//! the host of a virtual machine takes.

use std::collections::BTreeMap;

use crate::doctor::finding::{Finding, bad, good, note, note_if};
use crate::host_files::HostFiles;

/// Share of one CPU that other programs may use. Any idle system uses less.
const OTHERS_SHARE_MAX: f64 = 0.1;
/// Share of all CPUs from which a run would measure the other programs and not the server.
const OTHERS_BAD: f64 = 0.5;
const STEAL_NOTED: f64 = 0.01;
/// Share of steal from which the figures are the host's and not the server's.
const STEAL_BAD: f64 = 0.2;
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
    /// Name and ticks by process id.
    processes: BTreeMap<u32, (String, u64)>,
}

/// Notes the load average when it is more than a tenth of the CPUs, and more than half of one CPU.
pub(crate) fn average(files: &HostFiles, cpus: usize) -> Finding {
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
    let mut greatest: Vec<(&str, u64)> = by_name.into_iter().filter(|(_, ticks)| *ticks > 0).collect();
    greatest.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    let percent = |ticks: u64| 100.0 * ticks as f64 / per_cpu;
    let named: Vec<String> =
        greatest.iter().take(NAMED).map(|(name, ticks)| format!("{name} {:.0} %", percent(*ticks))).collect();
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
    use crate::doctor::finding::Verdict;
    use crate::host_files::machine;

    #[test]
    fn a_busy_machine_is_noted_by_its_number_of_cpus() {
        let of = |text: &str, cpus| average(&machine(&[("/proc/loadavg", text)]).1, cpus).verdict;
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
