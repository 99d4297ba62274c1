//! `dbdyno run` turns a plan into a run directory with records, and writes its report.
//! `dbdyno task` runs one block of a fleet's run as a run of its own, on the machine that the fleet
//! has chosen.

mod resume;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dbdyno_analyse::margins_without_step;
use dbdyno_db::Family;
use dbdyno_plan::{Plan, each_file};
use dbdyno_record::{CellId, ClientCalibration, HostCalibration, Manifest, Run, RunEvent, RunWriter};
use dbdyno_report::{
    PageOptions, ReportPart, TerminalOptions, find, published_html, run_html, run_openmetrics, run_terminal,
};
use tokio::runtime::Runtime;

use crate::args::{RunArgs, TaskArgs};
use crate::clients::ClientHosts;
use crate::conductor::{
    AdvisoryLocks, Conductor, Partial, RunClock, RunTally, TEMPLATES, data_root, elsewhere, partial,
    profiled, refuse_links, remove_data_root,
};
use crate::doctor::{self, calibration};
use crate::engines::{Launcher, engine};
use crate::exit::ExitError;
use crate::fleet::{self, Fleet};
use crate::host::{self, give_cpus};
use crate::http::{Metrics, serve_metrics};
use crate::plan::prepare::{PreparedVariant, manifest, prepare, tool};
use crate::plan::{forecast, parity, plan_source, power};
use crate::progress::Progress;
use crate::{files, signals, terminal, time};
use resume::{other_program, other_variant, own_option_files, resume};

/// Name of the report file in a run directory.
const REPORT: &str = "report.html";
/// Name of the page with the details, next to a page in the form of published reports.
const DETAILS: &str = "report-details.html";
/// Name of the table with every value, which the page links to.
const VALUES: &str = "report.csv";
const METRICS: &str = "metrics.prom";

/// A run that is about to begin or to go on.
pub(super) struct ReadyRun {
    pub(super) plan: Plan,
    pub(super) variants: Vec<PreparedVariant>,
    pub(super) writer: RunWriter,
    pub(super) manifest: Manifest,
    /// Cells that have not run yet.
    pub(super) cells: Vec<CellId>,
    /// Counts of how the other cells ended.
    pub(super) before: RunTally,
    pub(super) clock: RunClock,
    pub(super) advisory_locks: AdvisoryLocks,
    pub(super) partial: Partial,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), ExitError> {
    refuse_resume_flags(args)?;
    // Servers are started from this thread, so it must not end before the run does.
    let runtime = host::event_loop()?;
    let cancel = signals::watch(signals::RUN_STOPS)?;
    crate::files::remove_stale();
    let engine = args.on.as_ref().map(engine).transpose()?;
    let metrics = args.metrics.as_deref().map(metrics).transpose()?;
    let templates = host::kept_templates(args.templates.as_deref())?;
    signals::idle(true);
    let ready = match &args.resume {
        Some(_) => resume(args, &runtime),
        None => begin(args, &runtime).map(Some),
    };
    signals::idle(false);
    let Some(ready) = ready? else {
        crate::files::remove_stale();
        return Ok(());
    };
    let dir = ready.writer.dir().to_owned();
    terminal::note(&format!("run directory: {}", dir.display()));
    let add_hint = |ended| with_hint(ended, &dir, args);
    let tally = match engine {
        Some(engine) => on_fleet(ready, engine, cancel, templates, add_hint)?,
        None => conduct(ready, runtime, cancel, templates, metrics, add_hint)?,
    };
    // Servers of a dbdyno that was killed just before this run began have ended by now.
    crate::files::remove_stale();
    finish(&tally, &dir, args)
}

/// Runs the remaining cells on the machines of a fleet. `add_hint` adds to an error that ends the
/// run the command that continues it.
fn on_fleet(
    ready: ReadyRun,
    launcher: Box<dyn Launcher>,
    cancel: Arc<AtomicBool>,
    templates: Option<PathBuf>,
    add_hint: impl FnOnce(ExitError) -> ExitError,
) -> Result<RunTally, ExitError> {
    let ReadyRun { mut plan, writer, manifest, cells, before, clock, advisory_locks, .. } = ready;
    // The fleet's tasks read the option files from the run directory.
    own_option_files(&mut plan, writer.dir(), &manifest)?;
    let progress = Progress::new(&forecast::of(&plan), &cells);
    let first = fleet::first_measured(writer.dir());
    let fleet = Fleet {
        plan: &plan,
        run_id: &manifest.run_id,
        writer,
        launcher,
        templates,
        progress,
        advisory_locks,
        cancel,
        spent_us: clock.elapsed_us(),
        first,
    };
    fleet.run(&cells, before).map_err(add_hint)
}

/// Runs the remaining cells on this machine. `add_hint` adds to an error that ends the run the
/// command that continues it.
fn conduct(
    ready: ReadyRun,
    runtime: Runtime,
    cancel: Arc<AtomicBool>,
    templates: Option<PathBuf>,
    metrics: Option<Metrics>,
    add_hint: impl FnOnce(ExitError) -> ExitError,
) -> Result<RunTally, ExitError> {
    let ReadyRun { plan, variants, writer, manifest, cells, before, clock, advisory_locks, partial } = ready;
    signals::cancel_at(elsewhere(&variants));
    let dir = writer.dir().to_owned();
    let data_root = data_root(&plan, &dir);
    refuse_links(&data_root)?;
    let server_cpus = host::server_cpus(&plan);
    host::pin_client(&plan)?;
    let mut progress = Progress::new(&forecast::of(&plan), &cells);
    if let Some(metrics) = &metrics {
        metrics.name(&dir.file_name().unwrap_or_default().to_string_lossy(), &plan.name);
    }
    progress.metrics = metrics;
    let clients = plan.clients.as_ref().map(|clients| ClientHosts::start(clients, &dir)).transpose()?;
    let mut conductor = Conductor {
        plan: &plan,
        variants: &variants,
        writer,
        manifest: Some(manifest),
        clock,
        progress,
        cancel,
        runtime,
        data_root: data_root.clone(),
        template_dir: templates.clone().unwrap_or_else(|| data_root.join(TEMPLATES)),
        server_cpus,
        advisory_locks,
        clients,
        partial,
        profiled: profiled(&Run::outline(&dir)?.events),
        stopping: None,
    };
    let parity_check = match plan.parity {
        dbdyno_model::Parity::Refuse => conductor.refuse_unequal(),
        _ => Ok(()),
    };
    let result = parity_check.and_then(|()| conductor.run(&cells, before).map_err(add_hint));
    // A server may still be stopping if the run ended because its record could not be written.
    let stopped = conductor.has_waited_for_stop();
    conductor.progress.finish();
    let Conductor { advisory_locks, runtime, .. } = conductor;
    runtime.block_on(advisory_locks.release());
    if !plan.host.keep_data {
        // A cell's data directory was removed when the cell ended. Templates and snapshots serve
        // several cells, so they are removed only now.
        remove_data_root(&data_root, templates.as_deref());
    }
    result.and_then(|tally| stopped.map(|_| tally))
}

fn metrics(address: &str) -> Result<Metrics, ExitError> {
    let metrics = Metrics::default();
    terminal::note(&format!("metrics: {}", serve_metrics(address, metrics.clone())?));
    Ok(metrics)
}

/// Refuses flags that need `--resume` when a new run begins. clap's `requires` does not apply when
/// a plan is given, because a plan conflicts with `--resume`.
fn refuse_resume_flags(args: &RunArgs) -> Result<(), ExitError> {
    let given = [("--failed", args.failed), ("--anyway", args.anyway)].into_iter().find(|(_, given)| *given);
    match given {
        Some((flag, _)) if args.resume.is_none() => {
            let message =
                format!("{flag} is for a run that goes on: dbdyno run --resume RUN {flag}, without a plan");
            Err(ExitError::usage(message))
        }
        _ => Ok(()),
    }
}

/// Returns the command that continues the run.
fn resume_command(dir: &Path, args: &RunArgs) -> String {
    let on = args.on.as_ref().map_or_else(String::new, |on| format!(" --on {on}"));
    format!("dbdyno run --resume {}{on}", dir.display())
}

/// Adds to the error that ended a run the path of its results and the command that continues it.
fn with_hint(ended: ExitError, dir: &Path, args: &RunArgs) -> ExitError {
    let (results, go_on) = (dir.display(), resume_command(dir, args));
    let more = |why| format!("{why}; results so far: {results}; to continue: {go_on}");
    ExitError { message: ended.message.map(more), ..ended }
}

/// Whether the report was written after the last line of the run's events. A process that was
/// killed in between has left no report, or the report of an earlier session.
fn is_reported(dir: &Path) -> bool {
    let changed = |name: &str| std::fs::metadata(dir.join(name)).and_then(|file| file.modified()).ok();
    changed(REPORT).zip(changed("events.jsonl")).is_some_and(|(report, events)| report >= events)
}

/// Returns the files with which a reader can check the page: what each has, and its address.
fn files_to_check(dir: &Path) -> Vec<(String, String)> {
    let mut files = vec![
        ("plan and order of cells".to_owned(), "manifest.json".to_owned()),
        ("every value (CSV)".to_owned(), VALUES.to_owned()),
    ];
    let configs = std::fs::read_dir(dir.join("configs")).into_iter().flatten().flatten();
    let mut names: Vec<String> = configs.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    files.extend(names.into_iter().map(|name| (format!("options of {name}"), format!("configs/{name}"))));
    files
}

/// Reports the results, however the cells ended, and says how to continue the run.
fn finish(tally: &RunTally, dir: &Path, args: &RunArgs) -> Result<(), ExitError> {
    let run = Run::open(dir)?;
    let findings = dbdyno_analyse::analyse(&run);
    power::remember(&run.manifest, &findings);
    forecast::remember(&run);
    let options =
        TerminalOptions { part: ReportPart::Summary, run: dir.display().to_string(), ..terminal::options() };
    let shown = terminal::out(&run_terminal(&findings, &options)?);
    let report = dir.join(REPORT);
    let write = |path: &Path, text: &str| {
        let advice = format!("the record is whole; when it can be written: dbdyno report {}", dir.display());
        let cannot =
            |error| ExitError::machine(format!("cannot write {}: {error}; {advice}", path.display()));
        files::write_whole(path, text).map_err(cannot)
    };
    if args.metrics.is_some() {
        write(&dir.join(METRICS), &run_openmetrics(&findings))?;
    }
    write(&dir.join(VALUES), &(find("csv")?.render)(&findings))?;
    let files = files_to_check(dir);
    let options = PageOptions { files: &files, ..PageOptions::default() };
    // A plan that follows a published report gets a page in that form.
    let page = if findings.published.is_some() {
        write(&dir.join(DETAILS), &run_html(&findings, options))?;
        published_html(&findings, PageOptions { details: Some(DETAILS), ..options })
    } else {
        run_html(&findings, options)
    };
    // The report is written last. Where it exists, the other files exist too (see `is_reported`).
    write(&report, &page)?;
    let shown = shown.and_then(|()| terminal::out(&format!("\nreport: {}", report.display())));
    if tally.interrupted {
        terminal::note(&format!("stopped early; to continue: {}", resume_command(dir, args)));
    }
    if !tally.interrupted && tally.failed > 0 {
        terminal::note(&format!("to repeat failed cells: {} --failed", resume_command(dir, args)));
    }
    let ended = tally.ended();
    let Err(ExitError { code, message }) = shown else { return ended };
    let message = format!("{}; the report is {}", message.unwrap_or_default(), report.display());
    if ended.is_err() {
        terminal::warning(&message);
        return ended;
    }
    Err(ExitError::new(code, message))
}

fn begin(args: &RunArgs, runtime: &Runtime) -> Result<ReadyRun, ExitError> {
    let overrides = args.changes.overrides();
    let plan = match &args.on {
        None => plan_source::plan(&args.source, &overrides)?,
        // Each machine of the fleet assigns its own CPUs.
        Some(_) => fleet::fitted(plan_source::read(&args.source, &overrides)?)?,
    };
    super::servers::provide(&plan, args.get)?;
    for warning in dbdyno_plan::warnings(&plan) {
        terminal::warning(&warning);
    }
    host::check(&plan, &args.out, 0)?;
    crate::files::report_stale(&args.out, plan.host.data_dir.as_deref());
    let variants = prepare(&plan, runtime)?;
    terminal::note(&format!("the plan takes {}", forecast::in_all(&forecast::of(&plan))));
    let advisory_locks = take_locks(args, &plan, &variants, runtime)?;
    parity::before_a_run(&plan, &variants)?;
    let manifest = manifest(&plan, &variants, &args.out)?;
    warn_of_margins(&manifest);
    let name = if args.on.is_some() { Name::Next } else { Name::NextWithData };
    create(plan, variants, advisory_locks, manifest, (&args.out, name))
}

/// Takes the advisory locks of a run. A fleet's run takes none, because each task takes them on its
/// own machine.
fn take_locks(
    args: &RunArgs,
    plan: &Plan,
    variants: &[PreparedVariant],
    runtime: &Runtime,
) -> Result<AdvisoryLocks, ExitError> {
    match args.on {
        Some(_) => Ok(AdvisoryLocks::default()),
        None => AdvisoryLocks::take(plan, variants, args.alone, runtime),
    }
}

/// Makes the directory of a new run, and records facts about this machine.
fn create(
    plan: Plan,
    variants: Vec<PreparedVariant>,
    advisory_locks: AdvisoryLocks,
    mut manifest: Manifest,
    (out, name): (&Path, Name),
) -> Result<ReadyRun, ExitError> {
    manifest.client_calibration = client_calibration(&plan, &manifest);
    let data_dir = plan.host.data_dir.as_deref().unwrap_or(out);
    let machine = doctor::at_once(data_dir);
    let (facts, calibration) = doctor::facts(&machine, data_dir);
    let client_rates = manifest.client_calibration.iter().flat_map(|found| &found.rates);
    let client = client_rates.map(|rate| rate.statements_per_second).reduce(f64::max);
    manifest.host.facts = facts;
    manifest.host.calibration = Some(HostCalibration { client_statements_per_second: client, ..calibration });
    let mut writer = new_directory(out, name, plan.host.data_dir.as_deref(), &mut manifest)?;
    writer.event(&RunEvent::Started { at: time::now(), resumed: false, tool: tool() })?;
    let clock = RunClock::start();
    if let Some(text) = doctor::doubts(&machine) {
        writer.event(&RunEvent::Warning { at: time::now(), text })?;
    }
    record_warnings(&mut writer, &advisory_locks.doubts)?;
    let cells = manifest.order.clone();
    let (before, partial) = (RunTally::default(), Partial::new());
    Ok(ReadyRun { plan, variants, writer, manifest, cells, before, clock, advisory_locks, partial })
}

/// How a new run gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// The run takes the manifest's name and no other.
    Given,
    /// The run takes the manifest's name or, where another run has it, the next one: `...-2`.
    Next,
    /// The run gets its name as with `Next`, and the folder for its data is made too. Runs with
    /// different output directories therefore never share a folder for data.
    NextWithData,
}

/// Makes the directory of a new run and gives its manifest the name. Runs that start in the same
/// second would have the same name, so a taken name gets a number, except for `Name::Given`.
fn new_directory(
    out: &Path,
    name: Name,
    data_dir: Option<&Path>,
    manifest: &mut Manifest,
) -> Result<RunWriter, ExitError> {
    let first = manifest.run_id.clone();
    let mut number = 1_u32;
    loop {
        let data =
            data_dir.filter(|_| name == Name::NextWithData).map(|folder| folder.join(&manifest.run_id));
        let is_free = data.as_deref().map_or(Ok(true), make_new)?;
        if is_free {
            match RunWriter::create(out, manifest) {
                Err(dbdyno_record::Error::Exists { .. }) if name != Name::Given => {}
                created => return Ok(created?),
            }
            // The folder is empty, because it was made a moment ago.
            data.iter().for_each(|data| drop(std::fs::remove_dir(data)));
        }
        number += 1;
        manifest.run_id = format!("{first}-{number}");
    }
}

/// Makes a folder. The result is `false` where something of that name exists.
fn make_new(folder: &Path) -> Result<bool, ExitError> {
    let parent = folder.parent().unwrap_or(folder);
    match std::fs::create_dir_all(parent).and_then(|()| std::fs::create_dir(folder)) {
        Ok(()) => Ok(true),
        // A file where the parent should be gives the same kind of error, so the parent is checked.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && parent.is_dir() => Ok(false),
        Err(error) => {
            Err(ExitError::machine(format!("cannot make the data folder {}: {error}", folder.display())))
        }
    }
}

/// Prints warnings and records them as events of the run.
pub(super) fn record_warnings(writer: &mut RunWriter, warnings: &[String]) -> Result<(), ExitError> {
    for text in warnings {
        terminal::warning(text);
        writer.event(&RunEvent::Warning { at: time::now(), text: text.clone() })?;
    }
    Ok(())
}

/// Warns of a margin that applies to no step, which is seldom intended.
pub(crate) fn warn_of_margins(manifest: &Manifest) {
    for pattern in margins_without_step(manifest) {
        terminal::warning(&format!("the margin of `{pattern}` is for no step of this plan"));
    }
}

/// Returns the calibration of a client that is used as in this run, if there is one. For a run over
/// the wire without such a calibration, a note says how to get one. A development build gets no
/// note, because its client is not judged.
fn client_calibration(plan: &Plan, manifest: &Manifest) -> Option<ClientCalibration> {
    let is_over_the_wire = |driver: &str| Family::with_servers().any(|family| family.name() == driver);
    // The highest rate of one client says nothing about several clients.
    if plan.clients.is_some() || !manifest.variants.iter().any(|variant| is_over_the_wire(&variant.driver)) {
        return None;
    }
    let host = calibration::calibrated_host(&manifest.host, plan);
    let found = calibration::path().and_then(|path| calibration::find(&path, &manifest.tool, &host));
    if found.is_none() && !cfg!(debug_assertions) {
        let cpus = |key: &str, list: &Option<String>| {
            list.as_ref().map_or_else(String::new, |list| format!(" --{key} {list}"))
        };
        let threads =
            host.client_threads.map_or_else(String::new, |count| format!(" --client-threads {count}"));
        // Without the flag, the calibration chooses the wait from the CPUs as a run does. Only a
        // wait that the plan sets needs the flag.
        let wait =
            plan.host.client_wait.map_or_else(String::new, |wait| format!(" --client-wait {}", wait.name()));
        terminal::note(&format!(
            "note: the client is not calibrated, so overload is not checked; to calibrate: dbdyno \
             doctor --client{}{}{threads}{wait}",
            cpus("client-cpus", &host.client_cpus),
            cpus("server-cpus", &host.server_cpus),
        ));
    }
    found
}

/// Runs one block of a fleet's run. The fleet takes the records from the task's run directory.
pub(crate) fn task(args: &TaskArgs) -> Result<(), ExitError> {
    // Servers are started from this thread, as in `run`.
    let runtime = host::event_loop()?;
    let cancel = signals::watch(signals::RUN_STOPS)?;
    files::remove_stale();
    let templates = host::kept_templates(args.templates.as_deref())?;
    signals::idle(true);
    let ready = begin_task(args, &runtime);
    signals::idle(false);
    conduct(ready?, runtime, cancel, templates, None, |ended| ended)?.ended()
}

/// Prepares the block, and checks that this build of dbdyno and the variants match those of the
/// run.
fn begin_task(args: &TaskArgs, runtime: &Runtime) -> Result<ReadyRun, ExitError> {
    let record = Run::outline(&args.run)?;
    let of_run = &record.manifest;
    let mut plan = dbdyno_workloads::plans::of_record(&of_run.plan)?;
    other_program(&record, &plan, false)?;
    // The fleet spends the budget, so its tasks have none.
    plan.budget = None;
    if let Some(files) = &args.files {
        each_file(&mut plan, |path| *path = files.join(path.strip_prefix("/").unwrap_or(path)));
    }
    give_cpus(&mut plan);
    host::check(&plan, &args.out, 0)?;
    own_option_files(&mut plan, &args.run, of_run)?;
    let variants = prepare(&plan, runtime)?;
    other_variant(&variants, of_run)?;
    let advisory_locks = AdvisoryLocks::take(&plan, &variants, false, runtime)?;
    let order = of_run.order.iter().filter(|cell| cell.block == args.block).cloned().collect();
    let own = manifest(&plan, &variants, &args.out)?;
    let manifest = Manifest { run_id: args.name.clone(), order, ..own };
    let ready = create(plan, variants, advisory_locks, manifest, (&args.out, Name::Given))?;
    Ok(ReadyRun { partial: partial(&record.events), ..ready })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let mut plan = dbdyno_workloads::plans::parse(dbdyno_plan::QUICKSTART, "quickstart").expect("a plan");
        plan.name = "x".to_owned();
        let manifest = crate::plan::prepare::manifest(&plan, &[], Path::new(".")).expect("a manifest");
        Manifest { run_id: "20260101T000000Z-x".to_owned(), ..manifest }
    }

    #[test]
    fn runs_of_the_same_second_get_names_and_folders_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let (out, data) = (folder.path().join("runs"), folder.path().join("data"));
        let named = |out: &Path, name, data: Option<&Path>| {
            let mut manifest = manifest();
            let writer = new_directory(out, name, data, &mut manifest).map_err(|ended| ended.code)?;
            assert!(writer.dir().ends_with(&manifest.run_id));
            assert_eq!(Run::open(writer.dir()).expect("a run").manifest.run_id, manifest.run_id);
            Ok(manifest.run_id)
        };
        let id = |end: &str| Ok(format!("20260101T000000Z-x{end}"));
        assert_eq!([(); 3].map(|()| named(&out, Name::Next, None)), ["", "-2", "-3"].map(id));
        assert_eq!(named(&out, Name::Given, None), Err(crate::exit::MACHINE));
        // This run has another output directory, but the same folder for data.
        let elsewhere = folder.path().join("elsewhere");
        assert_eq!(named(&elsewhere, Name::NextWithData, Some(&data)), id(""));
        assert_eq!(named(&out, Name::NextWithData, Some(&data)), id("-4"));
        let third = folder.path().join("third");
        assert_eq!(named(&third, Name::NextWithData, Some(&data)), id("-2"));
        let mut left: Vec<_> = std::fs::read_dir(&data)
            .expect("the data")
            .flatten()
            .map(|entry| entry.file_name().into_string().expect("a name"))
            .collect();
        left.sort();
        assert_eq!(left, ["", "-2", "-4"].map(|end| format!("20260101T000000Z-x{end}")), "no other is left");
    }
}
