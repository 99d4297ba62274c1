//! Runs the blocks of a plan on several machines. Each block is a task, which is a dbdyno of its
//! own on one machine. When it has ended, its records become those of the run.

mod class;
mod collect;
mod shipment;
mod task;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_model::Design;
use dbdyno_plan::{Plan, each_file};
use dbdyno_products::VariantKind;
use dbdyno_record::{CellId, RunEvent, RunWriter};

use crate::conductor::{AdvisoryLocks, Tally, further_blocks};
use crate::engines::Launcher;
use crate::exit::ExitError;
use crate::progress::Progress;
use crate::time;
use class::Class;
pub(crate) use class::first_measured;
use shipment::Shipment;
use task::Task;

/// A run ends when a block was lost this often, because then no machine is at fault.
const MOST_LOSSES: usize = 3;

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
    pub(crate) first: Option<(String, Class)>,
}

struct Machine {
    name: String,
    task: Option<Task>,
    /// The machine rests until this moment.
    free_at: Instant,
    losses: usize,
    /// Whether the machine lacks files that the run needs, so that they are sent to it.
    lacks_files: bool,
    is_known: bool,
    /// Whether the machine is of another class than the first one and gets no block.
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
    } else {
        return Ok(());
    };
    Err(ExitError::usage(format!("--on runs blocks independently, but {why}; use only one of the two")))
}

/// Returns a plan for a fleet, if the plan is fit for one. Its files get paths without links and
/// `..`, because such paths lead elsewhere on another machine.
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
    /// that have ended earlier. The result is an error when a block was lost too often.
    pub(crate) fn run(mut self, cells: &[CellId], before: Tally) -> Result<Tally, ExitError> {
        let mut tally = before;
        let walked = self.all(cells, &mut tally);
        self.progress.finish();
        self.remove_data();
        walked?;
        tally.interrupted = self.cancelled();
        self.writer.event(&RunEvent::Ended { at: time::now(), outcome: tally.outcome() })?;
        Ok(tally)
    }

    /// Removes what killed tasks have left, because all have ended. Slurm kills the tasks of an
    /// interrupted run.
    fn remove_data(&self) {
        let tasks = std::fs::read_dir(self.writer.dir().join(FOLDER)).into_iter().flatten().flatten();
        for task in tasks.filter(|_| !self.plan.host.keep_data) {
            let _ = std::fs::remove_dir_all(task.path().join("data"));
        }
    }

    /// Runs the blocks of `cells`, then those that a budget adds, as many at once as there are
    /// machines.
    fn all(&mut self, cells: &[CellId], tally: &mut Tally) -> Result<(), ExitError> {
        let mut machines: Vec<Machine> = self.launcher.machines().into_iter().map(Machine::new).collect();
        let shipment = self.shipment(&mut machines)?.map(Arc::new);
        self.walk(&mut machines, shipment.as_ref(), cells, tally)?;
        while !self.cancelled() {
            let most = machines.iter().filter(|machine| !machine.is_refused).count();
            let spent = Duration::from_micros(self.spent_us);
            let next = further_blocks(self.plan, &mut self.writer, &mut self.progress, spent, most)?;
            let Some((cells, _)) = next else { break };
            self.walk(&mut machines, shipment.as_ref(), &cells, tally)?;
        }
        Ok(())
    }

    fn walk(
        &mut self,
        machines: &mut [Machine],
        shipment: Option<&Arc<Shipment>>,
        cells: &[CellId],
        tally: &mut Tally,
    ) -> Result<(), ExitError> {
        let of_block = cells.chunk_by(|one, other| one.block == other.block);
        let waiting = of_block.filter_map(|cells| Some(cells.first()?.block)).collect();
        let mut blocks = Blocks { waiting, lost: BTreeMap::new() };
        let mut end = None;
        let mut is_asked = false;
        loop {
            for machine in &mut *machines {
                machine.task.iter_mut().for_each(Task::look);
                self.look_at(machine)?;
                if let Some(task) = machine.task.take_if(|task| task.has_ended()) {
                    machine.free_at = Instant::now() + self.plan.host.rest.0;
                    end = end.or(self.settle(machine, &task, &mut blocks, tally)?);
                }
            }
            if self.cancelled() && !is_asked {
                is_asked = true;
                machines.iter().filter_map(|machine| machine.task.as_ref()).for_each(Task::stop);
            }
            let goes_on = !is_asked && end.is_none();
            while goes_on && let Some(number) = next(machines) {
                let Some(block) = blocks.waiting.pop_front() else { break };
                let shipment = shipment.filter(|_| machines[number].lacks_files);
                machines[number].task = Some(self.start(number, block, shipment)?);
            }
            let tasks: Vec<&Task> = machines.iter().filter_map(|machine| machine.task.as_ref()).collect();
            let passed = tasks.iter().map(|task| task.started.elapsed()).sum();
            let running: Vec<u32> = tasks.iter().map(|task| task.block).collect();
            if running.is_empty() && (!goes_on || blocks.waiting.is_empty()) {
                return end.map_or(Ok(()), Err);
            }
            if running.is_empty() && machines.iter().all(|machine| machine.is_refused) {
                return Err(class::none_is_left());
            }
            let running: Vec<String> = running.iter().map(u32::to_string).collect();
            self.progress.elsewhere(machines.len(), passed);
            self.progress.busy(&format!("block {}", running.join(", ")));
            sleep(POLL);
        }
    }

    /// Handles a task that has ended. `Some` says that the run ends, because its block was lost too
    /// often.
    fn settle(
        &mut self,
        machine: &mut Machine,
        task: &Task,
        blocks: &mut Blocks,
        tally: &mut Tally,
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
    ) -> Result<Task, ExitError> {
        if let Some(others) = self.advisory_locks.others.new_ones() {
            self.warn(others)?;
        }
        let templates = self.templates.as_deref();
        let run = (self.writer.dir(), self.run_id);
        Task::start(&*self.launcher, machine, run, block, templates, shipment)
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// Returns a free machine. One that has lost blocks gets no further block before all others have
/// lost as many, because it may be broken.
fn next(machines: &[Machine]) -> Option<usize> {
    let taken = machines.iter().filter(|machine| !machine.is_refused);
    let least = taken.map(|machine| machine.losses).min()?;
    let now = Instant::now();
    let is_free = |machine: &Machine| machine.task.is_none() && machine.free_at <= now && !machine.is_refused;
    machines.iter().position(|machine| machine.losses == least && is_free(machine))
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
    fn a_machine_that_loses_blocks_is_passed_over_until_all_have() {
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
