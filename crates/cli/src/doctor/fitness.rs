//! Checks whether this machine is fit to measure on, in the order of the list that `dbdyno doctor`
//! prints.

use std::path::Path;
use std::time::Duration;

use dbdyno_record::{ClientCalibration, HostCalibration};

use crate::doctor::checks::{cpu, disk, kernel, limits, load, memory, tools};
use crate::doctor::finding::Finding;
use crate::doctor::store;
use crate::host;
use crate::host_files::HostFiles;
use crate::manifest::tool;

pub(crate) use crate::doctor::checks::disk::existing;

/// Time for which other programs and steal are observed.
const LOOK: Duration = Duration::from_secs(1);

/// Returns all findings, including those that must be measured, which takes about three seconds.
/// `data_dir` is where data would lie.
pub(crate) fn findings(data_dir: &Path) -> Vec<Finding> {
    let files = HostFiles::here();
    let before = load::ticks(&files);
    std::thread::sleep(LOOK);
    let after = load::ticks(&files);
    let folder = existing(data_dir);
    let mut all = vec![tools::build(cfg!(debug_assertions)).named("dbdyno")];
    all.extend(machine(&files, &folder));
    all.extend([
        load::others(&before, &after).named("other programs"),
        load::steal(&before, &after).named("steal"),
        kernel::timers(kernel::measure_timers()).named("timers"),
        kernel::wake_ups(kernel::measure_wake_ups()).named("wake-ups"),
        disk::fsync(folder.clone(), disk::measure_fsync(&folder)).named("fsync"),
        tools::cache_folder(store::path().and_then(|path| path.parent().map(Path::to_owned)).as_deref())
            .named("cache folder"),
        tools::servers().named("servers"),
        tools::calibrated(&calibrations()).named("client"),
    ]);
    all
}

/// Returns what can be read at once and belongs to the machine itself, for the start of a run.
pub(crate) fn at_once(data_dir: &Path) -> Vec<Finding> {
    machine(&HostFiles::here(), &existing(data_dir))
}

/// What a reader of a report may ask about the machine, in this order.
const FACTS: [&str; 8] =
    ["physical cores", "SMT", "NUMA", "governor", "turbo", "virtualisation", "device", "filesystem"];

/// Returns the findings of [`at_once`] as name and value. It also measures the CPU and an fsync,
/// which takes about a second.
pub(crate) fn facts(found: &[Finding], data_dir: &Path) -> (Vec<(String, String)>, HostCalibration) {
    let folder = existing(data_dir);
    let measured = disk::measure_fsync(&folder);
    let calibration = HostCalibration {
        cpu_operations_per_second: cpu::operations_per_second(),
        fsync_us: measured.as_ref().ok().map(|took| disk::at(took, 50).as_secs_f64() * 1e6),
        client_statements_per_second: None,
    };
    let fsync = disk::fsync(folder, measured).named("fsync");
    let of_machine = FACTS.iter().filter_map(|name| found.iter().find(|finding| finding.name == *name));
    let all = of_machine.chain([&fsync]);
    (all.map(|finding| (finding.name.to_owned(), finding.found.clone())).collect(), calibration)
}

fn machine(files: &HostFiles, data_dir: &Path) -> Vec<Finding> {
    let usable = host::usable_cpus().ok();
    let cpus = usable.as_ref().map_or(0, |usable| usable.0.len());
    let can_pin = usable.is_some_and(|usable| host::keep_to(&usable).is_ok());
    let known = dbdyno_sample::host_info(data_dir, None, None);
    let device = dbdyno_sample::device_of(data_dir);
    vec![
        cpu::count(cpus, known.cpus, can_pin).named("CPUs"),
        cpu::cores(files).named("physical cores"),
        cpu::governor(files).named("governor"),
        cpu::idle(files).named("idle"),
        cpu::turbo(files).named("turbo"),
        cpu::smt(files).named("SMT"),
        cpu::numa(files).named("NUMA"),
        cpu::virtualisation(files).named("virtualisation"),
        cpu::mitigations(files).named("mitigations"),
        load::average(files, cpus).named("load average"),
        memory::free(files).named("memory"),
        memory::huge_pages(files).named("huge pages"),
        memory::swap(files).named("swap"),
        disk::device(files, device.as_ref()).named("device"),
        disk::filesystem(files, device.as_ref(), &known.data_filesystem).named("filesystem"),
        disk::free(host::free_bytes(data_dir).ok()).named("disk space"),
        kernel::clock_source(files).named("clock source"),
        kernel::schedstat(files).named("run-queue delay"),
        kernel::aio(files).named("aio"),
        kernel::io_uring(files).named("io_uring"),
        limits::open_files(crate::limits::most_files()).named("open files"),
        limits::threads(crate::limits::most_threads()).named("threads"),
        limits::locked_memory().named("locked memory"),
        limits::group_kind(files).named("control groups"),
        limits::group_limits(files).named("group limits"),
    ]
}

/// Returns the calibrations of this build and this machine.
fn calibrations() -> Vec<ClientCalibration> {
    let host = dbdyno_sample::host_info(Path::new("."), None, None);
    let all = store::path().map_or(Vec::new(), |path| store::load(&path));
    let is_ours = |calibration: &ClientCalibration| {
        calibration.tool == tool()
            && (&calibration.host.cpu_model, calibration.host.cpus) == (&host.cpu_model, host.cpus)
    };
    all.into_iter().filter(is_ours).collect()
}

/// Warns of what other programs do here. It is `None` while the machine is idle.
pub(crate) fn busy() -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let found = load::average(&HostFiles::here(), cpus);
    (!found.advice.is_empty()).then(|| format!("load average: {}", found.found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_this_machine_has_each_line_once_and_advice_where_something_is_to_be_done() {
        use crate::doctor::finding::Verdict;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let findings = findings(&folder.path().join("not/yet/there"));
        let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), findings.len()), (34, 34));
        for finding in &findings {
            assert_eq!(finding.advice.is_empty(), finding.verdict == Verdict::Good, "{finding:?}");
        }
        let machine = at_once(folder.path());
        let (facts, calibration) = facts(&machine, folder.path());
        assert_eq!((machine.len(), facts.len()), (25, FACTS.len() + 1));
        assert!(calibration.fsync_us.is_some_and(|us| us > 0.0), "{calibration:?}");
    }
}
