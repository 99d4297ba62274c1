//! `dbdyno doctor` checks whether this machine is fit for measuring, and measures the highest rate
//! of the load client on it.
//!
//! A finding is one line of the fitness list: the fact, a verdict on it for measuring, and advice.
//! The checks are in one file per topic. Each check judges only from its arguments, and reads files
//! only through [`HostFiles`].

pub(crate) mod calibration;
mod cpu;
mod disk;
mod kernel;
mod limits;

use std::path::Path;
use std::time::Duration;

use dbdyno_record::{ClientCalibration, HostCalibration};
use dbdyno_report::document::{Block, Column, Table, TableCell, Tone};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::exit::{ExitError, MACHINE};
use crate::host::{self, HostFiles};
use crate::plan::prepare::tool;
use crate::terminal;
use calibration::{calibration_blocks, calibration_json};
use disk::existing;

pub(crate) fn doctor(args: &DoctorArgs) -> Result<(), ExitError> {
    if args.client { client(args) } else { machine(args) }
}

fn client(args: &DoctorArgs) -> Result<(), ExitError> {
    let path = calibration::path().ok_or_else(|| {
        ExitError::machine("there is no folder to keep the calibration in; set HOME or XDG_CACHE_HOME")
    })?;
    if let Some(busy) = busy() {
        terminal::warning(&format!(
            "{busy}: other programs run, so the calibration is too low and valid steps may be \
             called invalid; calibrate again when they have ended"
        ));
    }
    let calibration = calibration::calibrate(args)?;
    calibration::save(&path, &calibration)?;
    let kept = path.display().to_string();
    if args.json {
        return terminal::out_json(&calibration_json(&calibration, &kept));
    }
    terminal::out_blocks(&calibration_blocks(&calibration, &kept))
}

fn machine(args: &DoctorArgs) -> Result<(), ExitError> {
    let data_dir = args.data_dir.as_deref().unwrap_or(Path::new("."));
    if !data_dir.is_dir() {
        let looked_at = existing(data_dir);
        terminal::warning(&format!(
            "folder {} does not exist; the disk checks are for {}, its nearest existing parent",
            data_dir.display(),
            looked_at.display()
        ));
    }
    let findings = findings(data_dir);
    if args.json {
        terminal::out_json(&findings)?;
    } else {
        terminal::out_blocks(&[Block::Table(findings_table(&findings))])?;
    }
    if findings.iter().any(|found| found.verdict == Verdict::Bad) {
        return Err(ExitError::silent(MACHINE));
    }
    Ok(())
}

/// Time for which other programs and steal are observed.
const OBSERVATION: Duration = Duration::from_secs(1);

/// Returns all findings, including those that must be measured, which takes about three seconds.
/// `data_dir` is the folder in which data would lie.
pub(crate) fn findings(data_dir: &Path) -> Vec<Finding> {
    let files = HostFiles::here();
    let before = cpu::ticks(&files);
    std::thread::sleep(OBSERVATION);
    let after = cpu::ticks(&files);
    let folder = existing(data_dir);
    let mut all = vec![check_build(cfg!(debug_assertions)).named("dbdyno")];
    all.extend(machine_findings(&files, &folder));
    all.extend([
        cpu::others(&before, &after).named("other programs"),
        cpu::steal(&before, &after).named("steal"),
        kernel::timers(kernel::measure_timers()).named("timers"),
        kernel::wake_ups(kernel::measure_wake_ups()).named("wake-ups"),
        disk::fsync(folder.clone(), disk::measure_fsync(&folder)).named("fsync"),
        check_cache_folder(calibration::path().and_then(|path| path.parent().map(Path::to_owned)).as_deref())
            .named("cache folder"),
        kernel::profiler(&files, dbdyno_sample::profile::version()).named("profiler"),
        check_servers().named("servers"),
        check_calibrations(&calibrations()).named("client"),
    ]);
    all
}

/// Returns the findings on the machine itself, which need no time to measure, for the start of a
/// run.
pub(crate) fn at_once(data_dir: &Path) -> Vec<Finding> {
    machine_findings(&HostFiles::here(), &existing(data_dir))
}

/// Names of the findings that a report shows about the machine, in this order.
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

fn machine_findings(files: &HostFiles, data_dir: &Path) -> Vec<Finding> {
    let usable = host::usable_cpus().ok();
    let cpus = usable.as_ref().map_or(0, |usable| usable.0.len());
    let can_pin = usable.is_some_and(|usable| host::pin_thread(&usable).is_ok());
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
        cpu::load_average(files, cpus).named("load average"),
        limits::free_memory(files).named("memory"),
        limits::huge_pages(files).named("huge pages"),
        limits::swap(files).named("swap"),
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
    let all = calibration::path().map_or(Vec::new(), |path| calibration::load(&path));
    let is_ours = |calibration: &ClientCalibration| {
        calibration.tool == tool()
            && (&calibration.host.cpu_model, calibration.host.cpus) == (&host.cpu_model, host.cpus)
    };
    all.into_iter().filter(is_ours).collect()
}

/// Warns of other programs that use the CPUs. It is `None` while the machine is idle.
pub(crate) fn busy() -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let found = cpu::load_average(&HostFiles::here(), cpus);
    (!found.advice.is_empty()).then(|| format!("load average: {}", found.found))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Good,
    /// Figures may be worse, or vary more, than necessary.
    Note,
    /// Measuring makes no sense before this is changed.
    Bad,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
    /// Advice to the user. It is empty where nothing has to be done.
    pub(crate) advice: &'static str,
}

impl Finding {
    fn new(verdict: Verdict, found: impl Into<String>, advice: &'static str) -> Self {
        Self { name: "", verdict, found: found.into(), advice }
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

pub(crate) fn good(found: impl Into<String>) -> Finding {
    Finding::new(Verdict::Good, found, "")
}

pub(crate) fn note(found: impl Into<String>, advice: &'static str) -> Finding {
    Finding::new(Verdict::Note, found, advice)
}

/// Makes a note where there is something to note.
pub(crate) fn note_if(is_noted: bool, found: impl Into<String>, advice: &'static str) -> Finding {
    if is_noted { note(found, advice) } else { good(found) }
}

pub(crate) fn bad(found: impl Into<String>, advice: &'static str) -> Finding {
    Finding::new(Verdict::Bad, found, advice)
}

pub(crate) fn findings_table(findings: &[Finding]) -> Table {
    let columns = ["what", "verdict", "found; what to do"].map(Column::words).to_vec();
    let mut table = Table { labels: 2, columns, ..Table::default() };
    for finding in findings {
        let (word, tone) = match finding.verdict {
            Verdict::Good => ("good", Tone::Plain),
            Verdict::Note => ("note", Tone::Doubt),
            Verdict::Bad => ("bad", Tone::Worse),
        };
        let advice = if finding.advice.is_empty() { String::new() } else { format!("; {}", finding.advice) };
        let found = TableCell::from(format!("{}{advice}", finding.found));
        table.push([TableCell::from(finding.name), TableCell::toned(word, tone), found]);
    }
    table
}

/// Writes the findings that are not good in one sentence, for the record of a run. It is `None`
/// when all are good.
pub(crate) fn doubts(findings: &[Finding]) -> Option<String> {
    let doubtful = findings.iter().filter(|finding| finding.verdict != Verdict::Good);
    let reported: Vec<String> =
        doubtful.map(|finding| format!("{}: {}", finding.name, finding.found)).collect();
    (!reported.is_empty())
        .then(|| format!("Machine at the start of the run: {}. See dbdyno doctor.", reported.join("; ")))
}

pub(crate) fn check_build(is_debug: bool) -> Finding {
    if is_debug {
        return note("a debug build", "use --release for numbers that count");
    }
    good("a release build")
}

pub(crate) fn check_cache_folder(folder: Option<&Path>) -> Finding {
    let Some(folder) = folder else {
        return note("none", "set HOME or XDG_CACHE_HOME; servers and calibrations are kept there");
    };
    let nearest = existing(folder);
    // Permissions alone do not show a filesystem that takes no files.
    let trial = nearest.join(format!(".dbdyno-{}", std::process::id()));
    if std::fs::File::create_new(&trial).and_then(|_| std::fs::remove_file(&trial)).is_err() {
        let advice =
            "let this user write there, or set XDG_CACHE_HOME; servers and calibrations are kept there";
        return note(format!("{} cannot be written", nearest.display()), advice);
    }
    let info = dbdyno_sample::host_info(&nearest, None, None);
    let found = format!("{} on {}", folder.display(), info.data_filesystem);
    let is_in_memory = ["tmpfs", "ramfs"].contains(&info.data_filesystem.as_str());
    note_if(is_in_memory, found, "it is in memory: its content is lost at the next boot")
}

pub(crate) fn check_servers() -> Finding {
    let folder = dbdyno_db::server::servers_dir();
    let names = dbdyno_db::server::list(&folder);
    if names.is_empty() {
        return good(format!("none in {}; plans may name base directories and addresses", folder.display()));
    }
    good(format!("{} in {}", names.join(", "), folder.display()))
}

/// Reports the calibrations. `all` are those of this build and this machine.
pub(crate) fn check_calibrations(all: &[ClientCalibration]) -> Finding {
    if all.is_empty() {
        let found = "not calibrated for this build of dbdyno";
        return note(found, "dbdyno doctor --client, with the CPUs of your plans");
    }
    let cpus = |calibration: &ClientCalibration| match &calibration.host.client_cpus {
        Some(list) => format!("CPUs {list}"),
        None => "any CPU".to_owned(),
    };
    good(format!("calibrated on {}", all.iter().map(cpus).collect::<Vec<_>>().join(" and on ")))
}

#[cfg(test)]
mod tests {
    use dbdyno_report::document::{Block, terminal};

    use super::*;

    #[test]
    fn the_list_of_this_machine_has_each_line_once_and_advice_where_something_is_to_be_done() {
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

    fn three_findings() -> [Finding; 3] {
        [
            good("4").named("CPUs"),
            note("powersave", "set performance").named("governor"),
            bad("1 MB free", "make room").named("disk"),
        ]
    }

    #[test]
    fn the_list_is_aligned_and_advice_follows_what_was_found() {
        let blocks = [Block::Table(findings_table(&three_findings()))];
        insta::assert_snapshot!(terminal(&blocks, 80, false), @r"
        what      verdict  found; what to do
        ─────────────────────────────────────────────
        CPUs      good     4
        governor  note     powersave; set performance
        disk      bad      1 MB free; make room
        ");
    }

    #[test]
    fn findings_that_are_not_good_are_one_sentence_of_a_run() {
        insta::assert_snapshot!(doubts(&three_findings()).unwrap(), @"Machine at the start of the run: governor: powersave; disk: 1 MB free. See dbdyno doctor.");
        assert_eq!(doubts(&three_findings()[..1]), None);
    }

    #[test]
    fn debug_builds_unwritable_caches_and_missing_calibrations_are_noted() {
        assert_eq!([check_build(true).verdict, check_build(false).verdict], [Verdict::Note, Verdict::Good]);
        assert_eq!(check_cache_folder(None).verdict, Verdict::Note);
        let unwritable = check_cache_folder(Some(Path::new("/proc/cache/dbdyno")));
        assert_eq!(
            (unwritable.verdict, unwritable.found.as_str()),
            (Verdict::Note, "/proc cannot be written")
        );
        let folder = tempfile::tempdir().unwrap();
        assert_ne!(
            check_cache_folder(Some(folder.path())).found,
            format!("{} cannot be written", folder.path().display())
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the trial is removed");
        assert_eq!(check_calibrations(&[]).verdict, Verdict::Note);
    }
}
