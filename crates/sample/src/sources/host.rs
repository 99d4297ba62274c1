//! Source `host`: the whole machine, from `/proc/stat`, `/proc/loadavg` and `/proc/pressure`.
//!
//! Keys: `cpu_<state>_us` has the CPU time in user, nice, system, idle, iowait, irq, softirq and
//! steal, over all CPUs, in steps of a tick (10 ms). Guest time is part of user, as the kernel
//! counts it. `context_switches` counts since boot, and `procs_running` and `procs_blocked` are as
//! of now. `load1_milli` is the load average of one minute × 1000. `our_cpus_programs_us` and
//! `our_cpus_interrupts_us` are only for the CPUs that server and client may use: the CPU time of
//! programs and the kernel, and that of interrupts. `psi_<what>_some_us` and `_full_us`, where the
//! kernel counts pressure, are the time in which some or all tasks waited for that resource. Three
//! more keys count CPUs: those online (`cpus_online`), those that server or client may use
//! (`our_cpus`), and those of server or client, whichever has fewer (`fewest_cpus`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{ProcFile, Source, Values, about};
use crate::Error;

/// Ticks in `/proc` are always hundredths of a second to user space (USER_HZ), whatever the kernel's
/// own HZ.
pub(crate) const TICK_US: i64 = 10_000;

/// Keys of CPU time, in the order of the kernel's columns.
const CPU_KEYS: [&str; 8] = [
    "cpu_user_us",
    "cpu_nice_us",
    "cpu_system_us",
    "cpu_idle_us",
    "cpu_iowait_us",
    "cpu_irq_us",
    "cpu_softirq_us",
    "cpu_steal_us",
];

/// Indices in [`CPU_KEYS`] for the time of programs and of the kernel's own threads.
const PROGRAMS: [usize; 3] = [0, 1, 2];
/// Indices in [`CPU_KEYS`] for the time of interrupts.
const INTERRUPTS: [usize; 2] = [5, 6];

/// The figures in `/proc/stat`. CPU times are in ticks, in the order of the kernel's columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    cpu_ticks: [i64; CPU_KEYS.len()],
    /// Ticks of the CPUs that server or client may use.
    our_ticks: [i64; CPU_KEYS.len()],
    /// CPUs online.
    pub(crate) cpus: u32,
    /// How many of the online CPUs server or client may use.
    our_cpus: u32,
    context_switches: i64,
    procs_running: i64,
    procs_blocked: i64,
}

/// Reads the text of `/proc/stat`. The result is `None` when it has no line for all CPUs. Columns that
/// an old kernel does not have (steal came with 2.6.11) are 0. The ticks of `ours` are added up too.
pub(crate) fn parse_stat(text: &str, ours: &BTreeSet<u32>) -> Option<Stat> {
    let mut stat = Stat::default();
    let mut found = false;
    for line in text.lines() {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.trim().parse().unwrap_or(0);
        match key {
            "cpu" => {
                found = true;
                add(&mut stat.cpu_ticks, rest)?;
            }
            "ctxt" => stat.context_switches = number(),
            "procs_running" => stat.procs_running = number(),
            "procs_blocked" => stat.procs_blocked = number(),
            _ if key.starts_with("cpu") => {
                stat.cpus += 1;
                if key[3..].parse().is_ok_and(|cpu| ours.contains(&cpu)) {
                    stat.our_cpus += 1;
                    add(&mut stat.our_ticks, rest)?;
                }
            }
            _ => {}
        }
    }
    found.then_some(stat)
}

/// Adds the columns of a line of CPU times.
fn add(sum: &mut [i64; CPU_KEYS.len()], columns: &str) -> Option<()> {
    for (slot, ticks) in sum.iter_mut().zip(columns.split_ascii_whitespace()) {
        *slot += ticks.parse::<i64>().ok()?;
    }
    Some(())
}

/// Returns the load average of the last minute × 1000, from the text of `/proc/loadavg`.
fn parse_load1_milli(text: &str) -> Option<i64> {
    let (whole, hundredths) = text.split_ascii_whitespace().next()?.split_once('.')?;
    Some(whole.parse::<i64>().ok()? * 1000 + hundredths.parse::<i64>().ok()? * 10)
}

/// Returns the total µs in the line `kind` (`some`, `full`) in a text of `/proc/pressure`.
fn parse_pressure_us(text: &str, kind: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(kind))?;
    line.split_once("total=")?.1.trim().parse().ok()
}

/// One file of `/proc/pressure`, with the keys of its lines.
struct Pressure {
    file: ProcFile,
    some_key: String,
    full_key: String,
}

pub(crate) struct HostSource {
    stat: ProcFile,
    loadavg: ProcFile,
    pressures: Vec<Pressure>,
    ours: BTreeSet<u32>,
    cpus: u32,
    our_cpus: u32,
    /// CPUs of client or server, whichever may use fewer.
    fewest_cpus: u32,
}

impl HostSource {
    /// Opens the files. Pressure is left out where the kernel has none or was booted with `psi=0`.
    /// `sides` are the CPUs that client and server may use.
    pub(crate) fn open(sides: &[BTreeSet<u32>]) -> Result<Self, Error> {
        let mut stat = ProcFile::open("/proc/stat")?;
        let mut count = |cpus: &BTreeSet<u32>| stat.parsed("line `cpu`", |text| parse_stat(text, cpus));
        let ours = sides.iter().flatten().copied().collect();
        let Stat { cpus, our_cpus, .. } = count(&ours)?;
        let of_sides =
            sides.iter().map(|side| Ok(count(side)?.our_cpus)).collect::<Result<Vec<_>, Error>>()?;
        let fewest_cpus = of_sides.into_iter().filter(|cpus| *cpus > 0).min().unwrap_or(our_cpus);
        let pressures = ["cpu", "io", "memory"].into_iter().filter_map(open_pressure).collect();
        let loadavg = ProcFile::open("/proc/loadavg")?;
        Ok(Self { stat, loadavg, pressures, ours, cpus, our_cpus, fewest_cpus })
    }
}

/// Opens a pressure file and reads it once. With `psi=0` the files exist and can be opened, but not
/// read.
fn open_pressure(what: &str) -> Option<Pressure> {
    let mut file = ProcFile::open(format!("/proc/pressure/{what}")).ok()?;
    file.text().ok()?;
    Some(Pressure { file, some_key: format!("psi_{what}_some_us"), full_key: format!("psi_{what}_full_us") })
}

impl Source for HostSource {
    fn about(&self) -> Map<String, Value> {
        about([
            ("cpus_online", self.cpus.into()),
            ("our_cpus", self.our_cpus.into()),
            ("fewest_cpus", self.fewest_cpus.into()),
        ])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let stat = self.stat.parsed("line `cpu`", |text| parse_stat(text, &self.ours))?;
        for (key, ticks) in CPU_KEYS.into_iter().zip(stat.cpu_ticks) {
            values.set(key, ticks * TICK_US);
        }
        let ours = |columns: &[usize]| columns.iter().map(|at| stat.our_ticks[*at] * TICK_US).sum();
        values.set("our_cpus_programs_us", ours(&PROGRAMS));
        values.set("our_cpus_interrupts_us", ours(&INTERRUPTS));
        values.set("context_switches", stat.context_switches);
        values.set("procs_running", stat.procs_running);
        values.set("procs_blocked", stat.procs_blocked);
        values.set_known("load1_milli", parse_load1_milli(&self.loadavg.text()?));
        for pressure in &mut self.pressures {
            let text = pressure.file.text()?;
            for (kind, key) in [("some", &pressure.some_key), ("full", &pressure.full_key)] {
                values.set_known(key, parse_pressure_us(&text, kind));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Moment;

    #[test]
    fn stat_of_a_virtual_machine_with_linux_6_18() {
        let stat =
            parse_stat(include_str!("../../tests/proc/linux-6.18-vm/stat"), &BTreeSet::from([1, 3, 9]))
                .unwrap();
        assert_eq!(stat.cpu_ticks, [62_220, 0, 5_106, 618_557, 769, 0, 705, 46]);
        assert_eq!((stat.cpus, stat.context_switches), (4, 863_156));
        assert_eq!((stat.procs_running, stat.procs_blocked), (1, 0));
        assert_eq!((stat.our_ticks, stat.our_cpus), ([31_306, 0, 2_505, 309_238, 251, 0, 350, 11], 2));
    }

    #[test]
    fn stat_of_centos_6_has_no_guest_nice_column() {
        let stat = parse_stat(include_str!("../../tests/proc/linux-2.6.32/stat"), &BTreeSet::new()).unwrap();
        assert_eq!(stat.cpu_ticks, [1_393_280, 32_966, 572_056, 13_343_292, 6_130, 0, 17_875, 0]);
        assert_eq!((stat.cpus, stat.context_switches), (2, 38_014_093));
        assert_eq!((stat.procs_running, stat.procs_blocked), (3, 1));
    }

    #[test]
    fn a_text_without_cpus_is_refused() {
        assert_eq!(parse_stat("ctxt 12\n", &BTreeSet::new()), None);
        assert_eq!(parse_stat("cpu  a b c\n", &BTreeSet::new()), None);
    }

    #[test]
    fn load_averages_are_read_to_the_hundredth() {
        assert_eq!(parse_load1_milli("0.07 0.01 0.00 1/123 4567\n"), Some(70));
        assert_eq!(parse_load1_milli("123.45 0.01 0.00 1/123 4567\n"), Some(123_450));
        assert_eq!(parse_load1_milli(""), None);
    }

    #[test]
    fn pressure_before_linux_5_13_has_no_full_line_for_cpus() {
        let text = "some avg10=0.09 avg60=0.21 avg300=0.34 total=19492114\n";
        assert_eq!(parse_pressure_us(text, "some"), Some(19_492_114));
        assert_eq!(parse_pressure_us(text, "full"), None);
    }

    #[test]
    fn the_host_that_runs_this_test_is_read_with_all_listed_keys() {
        let mut values = Values::default();
        let mut host = HostSource::open(&[(0..1024).collect(), [0].into(), [].into()]).unwrap();
        host.read(Moment::Boundary, &mut values).unwrap();
        for key in CPU_KEYS.into_iter().chain(["context_switches", "procs_running", "load1_milli"]) {
            assert!(values.map().contains_key(key), "{key}");
        }
        assert!(values.map()["cpu_idle_us"] > 0 && values.map()["context_switches"] > 0);
        assert!(host.cpus > 0 && (host.our_cpus, host.fewest_cpus) == (host.cpus, 1));
        let programs = ["cpu_user_us", "cpu_nice_us", "cpu_system_us"].map(|key| values.map()[key]);
        // Each line is a tick or so apart from the sum of all.
        let (all, ours) = (programs.iter().sum::<i64>(), values.map()["our_cpus_programs_us"]);
        assert!((all - ours).abs() <= 3 * TICK_US * i64::from(host.cpus), "{all} {ours}");
    }
}
