//! Profile blocks. Once the plan's blocks and those of a budget are over, the steps in which
//! variants differ, or those that the plan names, run again while perf samples the server. The
//! cells of these blocks are recorded apart, because the sampler slows the server down.

use std::collections::BTreeMap;
use std::time::Instant;

use dbdyno_analyse::{Verdict, analyse, fits, numbered};
use dbdyno_model::CallChains;
use dbdyno_record::{CellId, Outcome, Profiled, Run, RunEvent, StepEvent, StepRecord, StepWriter};
use dbdyno_sample::profile::{Profile, ProfileError, Profiler, ProfilerConfig};

use crate::conductor::Conductor;
use crate::conductor::budget::{OpenComparisons, Partial, next_block, partial};
use crate::conductor::database::Database;
use crate::exit::ExitError;
use crate::time;

/// Returns the steps to profile of the profile blocks that earlier sessions added to a run, by
/// block and workload.
pub(crate) fn profiled(events: &[RunEvent]) -> Partial {
    let mut all = Partial::new();
    for event in events {
        let RunEvent::ProfileBlocks { order, profiled, .. } = event else { continue };
        for cell in order {
            let steps = profiled.get(&cell.workload).cloned().unwrap_or_default();
            all.insert((cell.block, cell.workload.clone()), steps);
        }
    }
    all
}

impl Conductor<'_> {
    /// Returns the cells of the profile blocks, after the last other block of a run that wants them.
    pub(super) fn profile_blocks(&mut self) -> Result<Option<Vec<CellId>>, ExitError> {
        let Some(options) = self.plan.profile.options() else { return Ok(None) };
        if self.cancelled() {
            return Ok(None);
        }
        let run = Run::open(self.writer.dir())?;
        if run.events.iter().any(|event| matches!(event, RunEvent::ProfileBlocks { .. })) {
            return Ok(None);
        }
        let steps = match &options.steps[..] {
            [] => differing(&run),
            patterns => self.matching(patterns),
        };
        if steps.is_empty() {
            let why = match &options.steps[..] {
                [] => "no step is faster or slower than the base's; --profile-steps names steps".to_owned(),
                patterns => format!("no step is called {}", patterns.join(" or ")),
            };
            self.warn_of_run([format!("nothing is profiled: {why}")])?;
            return Ok(None);
        }
        let first = 1 + run.manifest.order.iter().map(|cell| cell.block).max().unwrap_or(0);
        let blocks = (first..first + options.blocks).map(|block| next_block(self.plan, &steps, block));
        let blocks: Vec<_> = blocks.collect();
        let mut profiled = BTreeMap::<String, Vec<String>>::new();
        for (_, workload, step) in &steps {
            let of_workload = profiled.entry(workload.clone()).or_default();
            if !of_workload.contains(step) {
                of_workload.push(step.clone());
            }
        }
        let count: usize = profiled.values().map(Vec::len).sum();
        self.progress.line(&format!(
            "profiling {} in {}",
            numbered(count, "step"),
            numbered(options.blocks as usize, "block")
        ));
        let cells: Vec<CellId> = blocks.iter().flat_map(|block| block.cells.clone()).collect();
        if let Some(block) = blocks.first() {
            self.progress.more(&cells, &block.left_out);
        }
        let event = RunEvent::ProfileBlocks {
            at: time::now(),
            elapsed_us: self.clock.elapsed_us(),
            order: cells.clone(),
            steps: blocks.first().map(|block| block.steps.clone()).unwrap_or_default(),
            profiled,
        };
        self.writer.event(&event)?;
        self.partial.extend(partial(std::slice::from_ref(&event)));
        self.profiled.extend(profiled_of(&event));
        Ok(Some(cells))
    }

    /// Returns whether this step of the cell is one of those to profile.
    pub(super) fn is_profiled(&self, cell: &CellId, step: &str) -> bool {
        let steps = self.profiled.get(&(cell.block, cell.workload.clone()));
        steps.is_some_and(|steps| steps.iter().any(|name| name == step))
    }

    /// Returns every variant's steps whose names fit one of the patterns.
    fn matching(&self, patterns: &[String]) -> OpenComparisons {
        let mut found = OpenComparisons::new();
        for (workload, options) in self.plan.workload.iter() {
            let steps = options.steps().into_iter().filter(|step| !step.loads && !step.is_warm_up);
            for step in steps.filter(|step| patterns.iter().any(|pattern| fits(pattern, &step.name))) {
                let variants = self.plan.variants.iter().map(|variant| variant.name.clone());
                found.extend(variants.map(|variant| (variant, workload.to_owned(), step.name.clone())));
            }
        }
        found
    }
}

fn profiled_of(event: &RunEvent) -> Partial {
    profiled(std::slice::from_ref(event))
}

/// Returns the comparisons that are decided as faster or slower, without the control's.
fn differing(run: &Run) -> OpenComparisons {
    let findings = analyse(run);
    let control = findings.run.control.clone();
    let differs = |verdict| matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Missed));
    let steps = findings.variants_of_steps().filter(|(_, step, _)| !step.is_warm_up);
    steps
        .filter(|(_, _, of)| differs(of.to_base.verdict) && control.as_ref() != Some(&of.variant))
        .map(|(workload, step, of)| (of.variant.clone(), workload.name.clone(), step.name.clone()))
        .collect()
}

/// A profiler at work in a step, or why there is none.
pub(super) enum StepProfiler {
    /// The step is not to be profiled.
    Off,
    At(Profiler),
    Refused(ProfileError),
}

impl StepProfiler {
    /// Starts a profiler where the step is one of those to profile.
    pub(super) fn start(conductor: &Conductor<'_>, cell: &CellId, step: &str, database: &Database) -> Self {
        if !conductor.is_profiled(cell, step) {
            return Self::Off;
        }
        let options = conductor.plan.profile.options().unwrap_or_default();
        let Some(server_pid) = database.pid() else {
            let said = "the server is no process of this machine".to_owned();
            return Self::Refused(ProfileError::Failed { what: "record", said });
        };
        let config = ProfilerConfig {
            server_pid,
            server_tree: database.database_server.address.is_process_tree(),
            samples_per_second: options.samples_per_second,
            call_graph: match options.call_chains {
                CallChains::FramePointer => Some("fp"),
                CallChains::Lbr => Some("lbr"),
                CallChains::Dwarf => Some("dwarf,8192"),
                CallChains::Off => None,
            },
            folder: conductor.data_root.clone(),
        };
        match Profiler::start(&config) {
            Ok(profiler) => Self::At(profiler),
            Err(error) => Self::Refused(error),
        }
    }

    /// Ends the profiler, and writes the stacks of the step's common window into its record. A step
    /// that was not profiled says why, and the run goes on.
    pub(super) fn end(
        self,
        conductor: &Conductor<'_>,
        writer: &mut StepWriter,
        (barrier, outcome): (Option<Instant>, Outcome),
    ) -> Result<(), ExitError> {
        let profiler = match self {
            Self::Off => return Ok(()),
            Self::At(profiler) => profiler,
            Self::Refused(error) => return not_profiled(conductor, writer, &error.to_string()),
        };
        writer.flush()?;
        let window = StepRecord::open(writer.dir()).window();
        let (Some(barrier), Some((from_us, to_us)), Outcome::Completed) = (barrier, window, outcome) else {
            return not_profiled(conductor, writer, "the step did not complete");
        };
        let at = |us| barrier + std::time::Duration::from_micros(us);
        conductor.progress.busy("folding stacks");
        match profiler.stop(at(from_us), at(to_us)) {
            Ok(profile) => {
                writer.stacks(&profile.folded)?;
                Ok(writer.event(&StepEvent::Profiled(recorded(conductor, profile)))?)
            }
            Err(error) => not_profiled(conductor, writer, &error.to_string()),
        }
    }
}

fn recorded(conductor: &Conductor<'_>, profile: Profile) -> Profiled {
    let options = conductor.plan.profile.options().unwrap_or_default();
    Profiled {
        event_sampled: profile.event.to_owned(),
        samples_per_second: options.samples_per_second,
        call_chains: options.call_chains.name().to_owned(),
        profiler: profile.profiler,
        merged: profile.merged,
    }
}

fn not_profiled(conductor: &Conductor<'_>, writer: &mut StepWriter, why: &str) -> Result<(), ExitError> {
    conductor.progress.line(&format!("warning: not profiled: {why}"));
    Ok(writer.event(&StepEvent::NotProfiled { reason: why.to_owned() })?)
}
