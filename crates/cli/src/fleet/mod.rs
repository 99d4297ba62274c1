//! Runs the blocks of a plan on several machines. Each block is a task, which is a dbdyno of its
//! own on one machine. When it has ended, its records become those of the run. Machines of another
//! class than the first one get no block unless the plan allows that.

mod shipment;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use dbdyno_analyse::host_class;
use dbdyno_model::{Design, Unlike};
use dbdyno_plan::{Plan, each_file};
use dbdyno_products::VariantKind;
use dbdyno_record::{CellId, HostInfo, Outcome, Run, RunEvent, RunWriter};
use dbdyno_report::host_class_words;

use crate::conductor::{AdvisoryLocks, RunTally, further_blocks};
use crate::engines::{Launcher, ask_to_end, this_program};
use crate::exit::ExitError;
use crate::progress::Progress;
use crate::time;
use shipment::Shipment;

/// A run ends when one block was lost this many times, because the cause is then not one machine.
const MOST_LOSSES: usize = 3;

/// Time between two checks of the tasks.
const POLL: Duration = Duration::from_millis(100);

pub(crate) const FOLDER: &str = "fleet";

pub(crate) struct Fleet<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) run_id: &'a str,
    pub(crate) writer: RunWriter,
    pub(crate) launcher: Box<dyn Launcher>,
    /// Folder of templates that tasks share.
    pub(crate) templates: Option<PathBuf>,
    pub(crate) progress: Progress,
    pub(crate) advisory_locks: AdvisoryLocks,
    pub(crate) cancel: Arc<AtomicBool>,
    /// Time that the run has taken on all machines together, in microseconds.
    pub(crate) spent_us: u64,
    /// The first machine that has begun a block, and its class.
    pub(crate) first: Option<(String, MachineClass)>,
}

struct Machine {
    name: String,
    task: Option<BlockTask>,
    /// The machine rests until this moment.
    free_at: Instant,
    losses: usize,
    /// Whether the machine lacks files that the run needs. They are then sent to it.
    lacks_files: bool,
    is_known: bool,
    /// Whether the machine gets no block because its class differs from the first machine's.
    is_refused: bool,
}

impl Machine {
    fn new(name: String) -> Self {
        let (lacks_files, is_known, is_refused) = (false, false, false);
        Self { name, task: None, free_at: Instant::now(), losses: 0, lacks_files, is_known, is_refused }
    }
}

struct Blocks {
    waiting: VecDeque<u32>,
    lost: BTreeMap<u32, usize>,
}

/// Refuses plans whose blocks depend on each other.
pub(crate) fn check(plan: &Plan) -> Result<(), ExitError> {
    let address = plan.variants.iter().find(|variant| VariantKind::of(variant).is_address());
    let why = if let Some(variant) = address {
        format!("variant {} is at an address, and all machines would load that one server", variant.name)
    } else if plan.design == Design::Alternate {
        "with design = \"alternate\" servers stay up from block to block".to_owned()
    } else if !plan.profile.is_off() {
        "profile blocks follow the others on one machine".to_owned()
    } else {
        return Ok(());
    };
    Err(ExitError::usage(format!("--on runs blocks independently, but {why}; use only one of the two")))
}

/// Returns a plan for a fleet, if the plan is fit for one. Its files get paths without links and
/// `..`, because these may lead elsewhere on another machine.
pub(crate) fn fitted(mut plan: Plan) -> Result<Plan, ExitError> {
    check(&plan)?;
    each_file(&mut plan, |path| {
        if let Ok(real) = path.canonicalize() {
            *path = real;
        }
    });
    Ok(plan)
}

impl Fleet<'_> {
    /// Runs the blocks of `cells`, which are all cells of these blocks. `before` counts the cells
    /// that have ended earlier. It fails when a block was lost too often.
    pub(crate) fn run(mut self, cells: &[CellId], before: RunTally) -> Result<RunTally, ExitError> {
        let mut tally = before;
        let walked = self.all(cells, &mut tally);
        self.progress.finish();
        self.remove_data();
        walked?;
        tally.interrupted = self.cancelled();
        self.writer.event(&RunEvent::Ended { at: time::now(), outcome: tally.outcome() })?;
        Ok(tally)
    }

    /// Removes data that killed tasks have left behind. Slurm kills the tasks of an interrupted
    /// run. All tasks have ended when this is called.
    fn remove_data(&self) {
        let tasks = std::fs::read_dir(self.writer.dir().join(FOLDER)).into_iter().flatten().flatten();
        for task in tasks.filter(|_| !self.plan.host.keep_data) {
            let _ = std::fs::remove_dir_all(task.path().join("data"));
        }
    }

    /// Runs the blocks of `cells`, then those that a budget adds, as many at once as there are
    /// machines.
    fn all(&mut self, cells: &[CellId], tally: &mut RunTally) -> Result<(), ExitError> {
        let mut machines: Vec<Machine> = self.launcher.machines().into_iter().map(Machine::new).collect();
        let shipment = self.shipment(&mut machines)?.map(Arc::new);
        self.run_blocks(&mut machines, shipment.as_ref(), cells, tally)?;
        while !self.cancelled() {
            let max = machines.iter().filter(|machine| !machine.is_refused).count();
            let spent = Duration::from_micros(self.spent_us);
            let next = further_blocks(self.plan, &mut self.writer, &mut self.progress, spent, max)?;
            let Some((cells, _)) = next else { break };
            self.run_blocks(&mut machines, shipment.as_ref(), &cells, tally)?;
        }
        Ok(())
    }

    /// Runs the blocks of `cells` on free machines until all have ended. Lost blocks run again.
    fn run_blocks(
        &mut self,
        machines: &mut [Machine],
        shipment: Option<&Arc<Shipment>>,
        cells: &[CellId],
        tally: &mut RunTally,
    ) -> Result<(), ExitError> {
        let of_block = cells.chunk_by(|one, other| one.block == other.block);
        let waiting = of_block.filter_map(|cells| Some(cells.first()?.block)).collect();
        let mut blocks = Blocks { waiting, lost: BTreeMap::new() };
        let mut end = None;
        let mut is_asked = false;
        loop {
            for machine in &mut *machines {
                machine.task.iter_mut().for_each(BlockTask::look);
                self.look_at(machine)?;
                if let Some(task) = machine.task.take_if(|task| task.has_ended()) {
                    machine.free_at = Instant::now() + self.plan.host.rest.0;
                    end = end.or(self.settle(machine, &task, &mut blocks, tally)?);
                }
            }
            if self.cancelled() && !is_asked {
                is_asked = true;
                machines.iter().filter_map(|machine| machine.task.as_ref()).for_each(BlockTask::stop);
            }
            let goes_on = !is_asked && end.is_none();
            while goes_on && let Some(number) = next(machines) {
                let Some(block) = blocks.waiting.pop_front() else { break };
                let shipment = shipment.filter(|_| machines[number].lacks_files);
                machines[number].task = Some(self.start(number, block, shipment)?);
            }
            let tasks: Vec<&BlockTask> =
                machines.iter().filter_map(|machine| machine.task.as_ref()).collect();
            let passed = tasks.iter().map(|task| task.started.elapsed()).sum();
            let running: Vec<u32> = tasks.iter().map(|task| task.block).collect();
            if running.is_empty() && (!goes_on || blocks.waiting.is_empty()) {
                return end.map_or(Ok(()), Err);
            }
            if running.is_empty() && machines.iter().all(|machine| machine.is_refused) {
                return Err(none_is_left());
            }
            let running: Vec<String> = running.iter().map(u32::to_string).collect();
            self.progress.elsewhere(machines.len(), passed);
            self.progress.busy(&format!("block {}", running.join(", ")));
            sleep(POLL);
        }
    }

    /// Handles a task that has ended. `Some` says that the run ends, because the task's block was
    /// lost too often.
    fn settle(
        &mut self,
        machine: &mut Machine,
        task: &BlockTask,
        blocks: &mut Blocks,
        tally: &mut RunTally,
    ) -> Result<Option<ExitError>, ExitError> {
        if !machine.is_refused && self.collect(&machine.name, task, tally)? || self.cancelled() {
            return Ok(None);
        }
        if !self.plan.host.keep_data {
            // These data belong to servers that have ended with their task.
            let _ = std::fs::remove_dir_all(task.dir.join("data"));
        }
        if machine.is_refused {
            blocks.waiting.push_front(task.block);
            return Ok(None);
        }
        machine.losses += 1;
        let lost = blocks.lost.entry(task.block).or_insert(0);
        *lost += 1;
        let text = format!("block {} was lost on {}: {}", task.block, machine.name, task.why());
        if *lost == MOST_LOSSES {
            let log = task.log.display();
            let text = format!("{text}; it was lost {MOST_LOSSES} times, so the run ends; see {log}");
            return Ok(Some(ExitError::machine(text)));
        }
        blocks.waiting.push_front(task.block);
        let text = format!("{text}; it is run again from its start; records so far: {FOLDER}/{}", task.name);
        self.warn(text)?;
        Ok(None)
    }

    fn warn(&mut self, text: String) -> Result<(), ExitError> {
        self.progress.line(&format!("warning: {text}"));
        self.writer.event(&RunEvent::Warning { at: time::now(), text })?;
        Ok(())
    }

    fn start(
        &mut self,
        machine: usize,
        block: u32,
        shipment: Option<&Arc<Shipment>>,
    ) -> Result<BlockTask, ExitError> {
        if let Some(others) = self.advisory_locks.others.new_ones() {
            self.warn(others)?;
        }
        let templates = self.templates.as_deref();
        let run = (self.writer.dir(), self.run_id);
        BlockTask::start(&*self.launcher, machine, run, block, templates, shipment)
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// Returns a free machine. One that has lost blocks gets no further block before all others have
/// lost as many, because it may be broken.
fn next(machines: &[Machine]) -> Option<usize> {
    let taken = machines.iter().filter(|machine| !machine.is_refused);
    let min = taken.map(|machine| machine.losses).min()?;
    let now = Instant::now();
    let is_free = |machine: &Machine| machine.task.is_none() && machine.free_at <= now && !machine.is_refused;
    machines.iter().position(|machine| machine.losses == min && is_free(machine))
}

/// The values that make up a machine's class, by name.
pub(crate) type MachineClass = BTreeMap<String, String>;

const HOW_TO_ALLOW: &str = "unlike_machines = \"warn\" in [host], or --set host.unlike_machines=warn";

/// Returns the machine that measured the first block of a resumed run, and its class.
pub(crate) fn first_measured(dir: &Path) -> Option<(String, MachineClass)> {
    let measured = |event| match event {
        RunEvent::BlockMeasured { machine, host, .. } => Some((machine, class(&host))),
        _ => None,
    };
    Run::outline(dir).ok()?.events.into_iter().find_map(measured)
}

/// Returns the error of a run that ends before all of its blocks are measured, because no machine
/// is left for them.
fn none_is_left() -> ExitError {
    let what = "no machine has the class of the first block's machine";
    let advice = format!("go on with such machines, or start a new run with {HOW_TO_ALLOW}");
    ExitError::machine(format!("{what}; {advice}"))
}

impl Fleet<'_> {
    /// Reads the class of a machine once, as soon as its task has recorded it. A machine of another
    /// class is reported, and its task ends unless the plan allows such machines.
    fn look_at(&mut self, machine: &mut Machine) -> Result<(), ExitError> {
        let Some(task) = machine.task.as_ref().filter(|_| !machine.is_known) else { return Ok(()) };
        let Ok(begun) = Run::outline(&task.dir) else { return Ok(()) };
        machine.is_known = true;
        let Some(text) = self.unlike(&machine.name, &begun.manifest.host) else { return Ok(()) };
        if self.plan.host.unlike_machines == Unlike::Warn {
            return self.warn(format!("{text}; rates of its blocks differ by that, and ratios may"));
        }
        machine.is_refused = true;
        task.stop();
        self.warn(format!("{text}; it gets no block; to measure on both: {HOW_TO_ALLOW}"))
    }

    /// Returns how a machine's class differs from the first one's.
    fn unlike(&mut self, machine: &str, host: &HostInfo) -> Option<String> {
        let class = class(host);
        let (first, of_first) = self.first.get_or_insert_with(|| (machine.to_owned(), class.clone()));
        let differs = |(what, value): (&String, &String)| {
            let there = of_first.get(what).filter(|there| *there != value)?;
            Some(format!("{what} {value}, not {there}"))
        };
        let all: Vec<String> = class.iter().filter_map(differs).collect();
        let what = format!("{machine} is a machine of another class than {first}");
        (!all.is_empty()).then(|| format!("{what}: {}", all.join(", ")))
    }
}

/// Returns the class without the CPUs in use, because machines on one host share its CPUs.
fn class(host: &HostInfo) -> MachineClass {
    host_class_words(host_class(&HostInfo { server_cpus: None, client_cpus: None, ..host.clone() }))
}

struct BlockTask {
    block: u32,
    name: String,
    /// The task's run directory, once the task has made it.
    dir: PathBuf,
    log: PathBuf,
    child: Child,
    /// The thread that sends files to the task's machine, and brings its records back.
    courier: Option<JoinHandle<io::Result<()>>>,
    lost: Option<io::Error>,
    started: Instant,
    status: Option<ExitStatus>,
}

impl BlockTask {
    /// Starts the task for one block on a machine. The run is given by its directory and its id.
    fn start(
        launcher: &dyn Launcher,
        machine: usize,
        (run, run_id): (&Path, &str),
        block: u32,
        templates: Option<&Path>,
        shipment: Option<&Arc<Shipment>>,
    ) -> Result<Self, ExitError> {
        let run = std::path::absolute(run).unwrap_or(run.to_owned());
        let folder = run.join(FOLDER);
        let mut attempt = 1;
        let (name, log) = loop {
            // Data outside the run directory are in folders of this name.
            let name = format!("{run_id}-{block}.{attempt}");
            let log = folder.join(format!("{name}.log"));
            if !log.exists() {
                break (name, log);
            }
            attempt += 1;
        };
        let templates = templates.map(|folder| format!("--templates={}", folder.display()));
        let words = match shipment {
            Some(shipment) => shipment.words(block, &name, templates),
            None => {
                let text = |path: &Path| path.display().to_string();
                let mut words = vec![text(&this_program()?), "task".to_owned()];
                words.extend(templates);
                words.extend([text(&run), block.to_string(), text(&folder), name.clone()]);
                words
            }
        };
        let mut child = launcher.start(machine, &words, &log, shipment.is_some())?;
        let courier = shipment.map(|shipment| shipment.attend(&mut child, &run, &name));
        let (dir, started) = (folder.join(&name), Instant::now());
        Ok(Self { block, dir, name, log, child, courier, lost: None, started, status: None })
    }

    /// Checks whether the task has ended. A process that cannot be checked counts as running, and
    /// its end shows at the next check.
    fn look(&mut self) {
        let has_records = self.courier.as_ref().is_none_or(JoinHandle::is_finished);
        self.status = has_records.then(|| self.child.try_wait().ok().flatten()).flatten();
        if let Some(courier) = self.courier.take_if(|courier| courier.is_finished()) {
            self.lost = courier.join().ok().and_then(Result::err);
        }
    }

    fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    fn stop(&self) {
        if self.status.is_none() {
            ask_to_end(&self.child);
        }
    }

    /// Returns the reason for the task's end, if the task has reported one.
    fn why(&self) -> String {
        let status = self.status.map_or_else(String::new, |status| status.to_string());
        let lost = self.lost.as_ref().map(|error| format!("{error} ({status})"));
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        match log.lines().rfind(|line| line.contains("error: ")) {
            Some(last) => format!("{} ({status})", last.trim()),
            None => lost.unwrap_or(status),
        }
    }
}

impl Drop for BlockTask {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Fleet<'_> {
    /// Takes the records of an ended task into the run. It is `false` when the task did not
    /// complete its block.
    fn collect(&mut self, machine: &str, task: &BlockTask, tally: &mut RunTally) -> Result<bool, ExitError> {
        let Ok(measured) = Run::outline(&task.dir) else { return Ok(false) };
        let (host, cells) = (measured.manifest.host, measured.manifest.order);
        if !is_whole(&measured.events) {
            return Ok(false);
        }
        let before_us = self.spent_us;
        for mut event in measured.events {
            if matches!(event, RunEvent::Started { .. } | RunEvent::Ended { .. }) {
                continue;
            }
            if let Some(elapsed_us) = elapsed_us(&mut event) {
                *elapsed_us += before_us;
                self.spent_us = *elapsed_us;
            }
            if let RunEvent::CellEnded { cell, outcome, message, .. } = &event {
                match outcome {
                    Outcome::Completed => tally.completed += 1,
                    _ => {
                        tally.failed += 1;
                        let why = message.as_deref().unwrap_or("no reason was given");
                        self.progress.line(&format!("error: {cell} failed on {machine}: {why}"));
                    }
                }
            }
            self.writer.event(&event)?;
        }
        let (at, machine) = (time::now(), machine.to_owned());
        let took = time::about(std::time::Duration::from_micros(self.spent_us - before_us));
        self.progress.line(&format!("block {} on {machine}: {took}", task.block));
        // This event comes before the cells' records, so that a block in the record always has its
        // machine.
        self.writer.event(&RunEvent::BlockMeasured {
            at,
            block: task.block,
            machine,
            host: Box::new(host),
        })?;
        for cell in &cells {
            self.writer.take_over(&task.dir, cell)?;
            self.progress.cell_elsewhere(cell);
        }
        Ok(true)
    }
}

/// Whether a task has run to its end. A task that was interrupted lacks cells.
fn is_whole(events: &[RunEvent]) -> bool {
    let Some(RunEvent::Ended { outcome, .. }) = events.last() else { return false };
    *outcome != Outcome::Interrupted
}

/// Returns the time since the run began.
fn elapsed_us(event: &mut RunEvent) -> Option<&mut u64> {
    match event {
        RunEvent::CellStarted { elapsed_us, .. }
        | RunEvent::CellEnded { elapsed_us, .. }
        | RunEvent::Rested { elapsed_us, .. } => Some(elapsed_us),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::USAGE;

    fn plan(more: &str) -> Plan {
        let text = format!(
            "name = \"p\"\nblocks = 3\n{more}\n[[variant]]\nname = \"a\"\nserver = \"null\"\n[workload.oltp]\n\
             tests = [\"point-select\"]\n"
        );
        dbdyno_workloads::plans::parse(&text, "p").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn plans_whose_blocks_depend_on_each_other_are_refused() {
        assert!(check(&plan("")).is_ok());
        assert!(check(&plan("budget = \"1h\"")).is_ok());
        assert_eq!(check(&plan("design = \"alternate\"")).map_err(|ended| ended.code), Err(USAGE));
    }

    #[test]
    fn files_of_a_plan_are_named_without_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("plans")).unwrap();
        std::fs::write(root.join("my.cnf"), "").unwrap();
        std::os::unix::fs::symlink("my.cnf", root.join("link")).unwrap();
        let mut plan = plan("");
        plan.variants[0].own_config = Some(root.join("plans/../link"));
        plan.variants[0].basedir = Some(root.join("none/../none"));
        let plan = fitted(plan).unwrap();
        let variant = &plan.variants[0];
        assert_eq!(variant.own_config, Some(root.join("my.cnf")));
        assert_eq!(variant.basedir, Some(root.join("none/../none")));
    }

    #[test]
    fn a_machine_that_loses_blocks_is_passed_over_until_all_have_lost_as_many() {
        let machine = |losses| Machine { losses, ..Machine::new(String::new()) };
        let next = |losses: &[usize]| next(&losses.iter().map(|losses| machine(*losses)).collect::<Vec<_>>());
        assert_eq!([next(&[0, 0]), next(&[1, 0]), next(&[1, 1])], [Some(0), Some(1), Some(0)]);
        let mut rests = [machine(0), machine(1)];
        rests[0].free_at += Duration::from_secs(3600);
        assert_eq!(super::next(&rests), None);
        let refused = |losses| Machine { is_refused: true, ..machine(losses) };
        assert_eq!(super::next(&[refused(0), machine(1)]), Some(1));
        assert_eq!(super::next(&[refused(0)]), None);
    }
}
