//! Spends a plan's time budget. After the plan's blocks, a look at the results (an interim
//! analysis) finds the comparisons that are still undecided. Further blocks then run these
//! comparisons and the steps that they need, as long as the time that is left suffices.
//!
//! The time that a run has taken is the time that its earlier sessions have recorded, plus the time
//! of this session on a monotonic clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use dbdyno_analyse::{Findings, Verdict, analyse, fixed_blocks, forecast, numbered};
use dbdyno_model::Design;
use dbdyno_plan::{Plan, further_cells, needed_steps};
use dbdyno_record::{CellId, Outcome, Run, RunEvent, RunWriter, StepEvent, StepRecord};

use crate::conductor::Conductor;
use crate::exit::ExitError;
use crate::progress::Progress;
use crate::time;

impl Conductor<'_> {
    /// Returns the cells of the next block in a run with a budget, if there is one.
    pub(super) fn further_block(&mut self) -> Result<Option<Vec<CellId>>, ExitError> {
        if self.cancelled() {
            return Ok(None);
        }
        let elapsed = self.clock.elapsed();
        let next = further_blocks(self.plan, &mut self.writer, &mut self.progress, elapsed, 1)?;
        Ok(next.map(|(cells, partial)| {
            self.partial.extend(partial);
            cells
        }))
    }
}

/// Looks at a run once all its blocks are over, and returns the cells of further blocks. There are
/// as many blocks as the time allows, but at most `max`. The result is `None` without a budget,
/// without time left, or when everything is decided. Every look is recorded.
pub(crate) fn further_blocks(
    plan: &Plan,
    writer: &mut RunWriter,
    progress: &mut Progress,
    elapsed: Duration,
    max: usize,
) -> Result<Option<(Vec<CellId>, Partial)>, ExitError> {
    let Some(budget) = plan.budget else { return Ok(None) };
    let mut run = Run::open(writer.dir())?;
    if is_over(&run.events) {
        return Ok(None);
    }
    let blocks = run.manifest.order.iter().map(|cell| cell.block).max().unwrap_or(0);
    run.events.push(look_event(blocks, elapsed, false, &NextBlock::default()));
    let mut findings = analyse(&run);
    let open = open(&findings, &run, blocks);
    let mut next = next_block(plan, &open, blocks + 1);
    let per_block = next.duration(&run, plan.host.rest.0);
    let left = budget.0.saturating_sub(elapsed);
    // For an undecided comparison, whether this look is the last must depend only on time and on
    // the other comparisons, and never on the comparison's own results. Otherwise the last look
    // could spend more of the error probability than is left for it.
    let last = per_block > left;
    next.shows = shows(&findings, &open, left, per_block);
    if last {
        run.events.pop();
        run.events.push(look_event(blocks, elapsed, true, &NextBlock::default()));
        findings = analyse(&run);
        next = NextBlock::default();
    } else {
        let fit = (left.as_secs_f64() / per_block.as_secs_f64().max(1e-3)) as usize;
        for block in (blocks + 1..).take(max.min(fit)).skip(1) {
            next.cells.extend(next_block(plan, &open, block).cells);
        }
    }
    let look = look_event(blocks, elapsed, last, &next);
    writer.event(&look)?;
    progress.line(&look_line(&findings, blocks, &next, left));
    if next.cells.is_empty() {
        return Ok(None);
    }
    progress.more(&next.cells, &next.left_out);
    Ok(Some((next.cells, partial(&[look]))))
}

/// Makes the event that records a look.
fn look_event(blocks: u32, elapsed: Duration, last: bool, next: &NextBlock) -> RunEvent {
    let NextBlock { cells, steps, .. } = next.clone();
    RunEvent::Look { at: time::now(), blocks, elapsed_us: time::to_us(elapsed), last, order: cells, steps }
}

/// The steps that a block runs, by block and workload. Only blocks that leave steps out are listed.
pub(crate) type Partial = std::collections::BTreeMap<(u32, String), Vec<String>>;

/// Returns the steps of the blocks that earlier sessions added to a run.
pub(crate) fn partial(events: &[RunEvent]) -> Partial {
    let mut all = Partial::new();
    for event in events {
        let (RunEvent::Look { order, steps, .. } | RunEvent::ProfileBlocks { order, steps, .. }) = event else {
            continue;
        };
        for block in order.iter().map(|cell| cell.block) {
            all.extend(steps.iter().map(|(workload, steps)| ((block, workload.clone()), steps.clone())));
        }
    }
    all
}

/// Whether the last look added no further block, which ends the run.
fn is_over(events: &[RunEvent]) -> bool {
    let last = events.iter().rev().find_map(|event| match event {
        RunEvent::Look { order, .. } => Some(order.is_empty()),
        _ => None,
    });
    last == Some(true)
}

/// Returns one line with the result of the look and the blocks that follow.
fn look_line(findings: &Findings, blocks: u32, next: &NextBlock, left: Duration) -> String {
    let control = findings.run.control.as_deref();
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let verdicts: Vec<Verdict> = steps
        .flat_map(|step| &step.variants)
        .filter(|variant| control != Some(variant.variant.as_str()))
        .filter_map(|variant| variant.to_base.verdict)
        .collect();
    let open = verdicts.iter().filter(|verdict| **verdict == Verdict::Undecided).count();
    let found =
        format!("interim analysis after {blocks} blocks: {open} of {} comparisons undecided", verdicts.len());
    let left = format!("{} of the budget left", time::about(left));
    if next.cells.is_empty() {
        let end = if open == 0 { "; done, " } else { "; no further block, " };
        return format!("{found}{end}{left}");
    }
    let blocks: BTreeSet<u32> = next.cells.iter().map(|cell| cell.block).collect();
    let more =
        if blocks.len() == 1 { "one more block".to_owned() } else { format!("{} more blocks", blocks.len()) };
    let names: BTreeSet<&str> = next.cells.iter().map(|cell| cell.variant.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let steps: usize = next.steps.values().map(Vec::len).sum();
    let steps = if steps == 0 { String::new() } else { format!(", {} each", numbered(steps, "step")) };
    let shows = next.shows.map_or_else(String::new, |(min, max)| {
        format!(", which can show {:.1} to {:.1} %", 100.0 * min, 100.0 * max)
    });
    format!("{found}; {more} of {names}{steps} ({left}{shows})")
}

/// Variant, workload and step of each undecided comparison.
pub(super) type OpenComparisons = BTreeSet<(String, String, String)>;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NextBlock {
    pub(super) cells: Vec<CellId>,
    /// Steps that are run, by workload. A workload that runs all its steps is not listed.
    pub(super) steps: BTreeMap<String, Vec<String>>,
    /// Workload and step of the steps that are not run.
    pub(super) left_out: BTreeSet<(String, String)>,
    /// The smallest difference that each undecided comparison can show in the time that is left, as
    /// a fraction. The pair is its lowest and highest value over these comparisons.
    pub(super) shows: Option<(f64, f64)>,
}

/// Returns the undecided comparisons, without those that no further block can decide: those whose
/// base stalled, those with a failed cell in the last block, and the control.
pub(super) fn open(findings: &Findings, run: &Run, blocks: u32) -> OpenComparisons {
    let mut open = OpenComparisons::new();
    for workload in &findings.workloads {
        for step in &workload.steps {
            for variant in &step.variants {
                let is_control = findings.run.control.as_ref() == Some(&variant.variant);
                let is_open = variant.to_base.verdict == Some(Verdict::Undecided)
                    && variant.to_base.zero_rates.base_stalled.is_empty();
                if is_open && !is_control {
                    open.insert((variant.variant.clone(), workload.name.clone(), step.name.clone()));
                }
            }
        }
    }
    without_failed(open, &failed(run, blocks), run.manifest.base())
}

/// Drops the cells that failed in the last block, because they would fail again until the budget is
/// spent. It also drops workloads whose base failed, because their variants then have nothing to be
/// compared with.
fn without_failed(
    mut open: OpenComparisons,
    failed: &BTreeSet<(String, String)>,
    base: &str,
) -> OpenComparisons {
    let completed =
        |variant: &str, workload: &str| !failed.contains(&(variant.to_owned(), workload.to_owned()));
    open.retain(|(variant, workload, _)| completed(variant, workload) && completed(base, workload));
    open
}

/// Returns the variant and workload of each cell of a block that did not complete.
fn failed(run: &Run, block: u32) -> BTreeSet<(String, String)> {
    let of_block = run.cells.iter().filter(|cell| cell.id.block == block);
    of_block
        .filter(|cell| cell.outcome() != Some(Outcome::Completed))
        .map(|cell| (cell.id.variant.clone(), cell.id.workload.clone()))
        .collect()
}

/// Returns a block with the undecided cells and those of the base and, if the plan has one, of the
/// control. All cells of a workload run the same steps, so that each step has the same steps before
/// it on both sides of a comparison.
pub(super) fn next_block(plan: &Plan, open: &OpenComparisons, block: u32) -> NextBlock {
    let (base, control) = (plan.base_name(), plan.control_name());
    let cells = further_cells(plan, block, |cell| {
        let is_base = cell.variant == base || control.as_deref() == Some(cell.variant.as_str());
        open.iter()
            .any(|(variant, workload, _)| *workload == cell.workload && (is_base || *variant == cell.variant))
    });
    let (mut steps, mut left_out) = (BTreeMap::new(), BTreeSet::new());
    for (name, options) in plan.workload.iter() {
        let all = options.steps();
        let is_open =
            |step: &str| open.iter().any(|(_, workload, open_step)| workload == name && open_step == step);
        let needed = needed_steps(&all, options.needs().data, |step| is_open(&step.name));
        if needed.contains(&true) && needed.contains(&false) {
            let (run, not): (Vec<_>, Vec<_>) = all.into_iter().zip(needed).partition(|(_, needed)| *needed);
            steps.insert(name.to_owned(), run.into_iter().map(|(step, _)| step.name).collect());
            left_out.extend(not.into_iter().map(|(step, _)| (name.to_owned(), step.name)));
        }
    }
    let id = |cell: dbdyno_plan::Cell| CellId {
        block: cell.block,
        variant: cell.variant,
        workload: cell.workload,
    };
    NextBlock { cells: cells.into_iter().map(id).collect(), steps, left_out, shows: None }
}

/// Returns the lowest and the highest of the differences that the undecided comparisons can show
/// when the time `left` is filled with blocks like the next one, each of which takes `per_block`.
pub(super) fn shows(
    findings: &Findings,
    open: &OpenComparisons,
    left: Duration,
    per_block: Duration,
) -> Option<(f64, f64)> {
    let further = (left.as_secs_f64() / per_block.as_secs_f64().max(1e-3)) as u32;
    let mut all: Vec<f64> = Vec::new();
    for (variant, workload, step) in open {
        let of_workload = findings.workloads.iter().find(|found| found.name == *workload)?;
        let step = of_workload.steps.iter().find(|found| found.name == *step)?;
        let ratio = step.variant(variant)?.to_base.ratio.as_ref()?;
        let Some(paired) = ratio.inference.as_ref().and_then(|inference| inference.paired.as_ref()) else {
            continue;
        };
        let blocks = fixed_blocks((ratio.blocks.len() as u32).saturating_add(further));
        all.extend(forecast(paired.deviation, blocks, 1, 2.0 * step.margin, step.margin).detects);
    }
    let min = all.iter().copied().reduce(f64::min)?;
    Some((min, all.iter().copied().reduce(f64::max)?))
}

impl NextBlock {
    /// Returns the time that the block would take. It is the time that each of its cells took when
    /// it last ran, plus a rest before each of them. Cells that alternate run at the same time, so
    /// the time counts once.
    pub(super) fn duration(&self, run: &Run, rest: Duration) -> Duration {
        let cell = |id: &CellId| {
            let is_same = |other: &&dbdyno_record::CellRecord| {
                (&other.id.variant, &other.id.workload) == (&id.variant, &id.workload)
            };
            let Some(last) = run.cells.iter().filter(is_same).max_by_key(|cell| cell.id.block) else {
                return rest;
            };
            let is_left_out =
                |step: &&StepRecord| self.left_out.contains(&(id.workload.clone(), step.name.clone()));
            let left_out: Duration = last.steps.iter().filter(is_left_out).filter_map(duration_of_step).sum();
            let (began_us, ended_us) = run.cell_span_us(&last.id).unwrap_or_default();
            let took = Duration::from_micros(ended_us.saturating_sub(began_us));
            took.saturating_sub(left_out).saturating_add(rest)
        };
        let durations = self.cells.iter().map(cell);
        match run.manifest.plan.design {
            // Each cell lasts as long as the block. Only its own left-out steps are subtracted, and
            // not those of the other cells.
            Design::Alternate => durations.max().unwrap_or_default(),
            Design::Blocks => durations.fold(Duration::ZERO, Duration::saturating_add),
        }
    }
}

/// Returns the time from the step's start to its end, by the time of day.
fn duration_of_step(step: &StepRecord) -> Option<Duration> {
    let started = step.events.iter().find_map(|event| match event {
        StepEvent::Started { at, .. } => Some(at),
        _ => None,
    });
    let ended = step.events.iter().rev().find_map(|event| match event {
        StepEvent::Ended { at, .. } => Some(at),
        _ => None,
    });
    time::between(started?, ended?)
}

/// Clock of a run. It does not count the time between a stop and the resumption.
pub(crate) struct RunClock {
    /// Time that earlier sessions took.
    before: Duration,
    began: Instant,
}

impl RunClock {
    pub(crate) fn start() -> Self {
        Self::going_on(&[])
    }

    /// Makes the clock of a run whose earlier sessions have recorded `events`.
    pub(crate) fn going_on(events: &[RunEvent]) -> Self {
        Self { before: recorded(events), began: Instant::now() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    pub(crate) fn elapsed_us(&self) -> u64 {
        time::to_us(self.elapsed())
    }

    /// Returns the time of day and [`Self::elapsed_us`], read at the same moment. A later reading
    /// of both then shows whether the time of day was set.
    pub(crate) fn now(&self) -> (String, u64) {
        /// Two readings at most this far apart show that the thread did not wait between them.
        const AT_ONCE: Duration = Duration::from_millis(1);
        const TRIES: usize = 10;
        let read = || {
            let (before, at, after) = (self.elapsed(), time::now(), self.elapsed());
            (after - before, at, time::to_us(before))
        };
        let mut best = read();
        for _ in 1..TRIES {
            if best.0 <= AT_ONCE {
                break;
            }
            let again = read();
            if again.0 < best.0 {
                best = again;
            }
        }
        (best.1, best.2)
    }
}

/// Returns the time that the run took up to the last event in which its sessions recorded a time.
fn recorded(events: &[RunEvent]) -> Duration {
    events.iter().rev().find_map(elapsed).unwrap_or_default()
}

/// Returns the time that the run had taken at an event, if the event records it.
fn elapsed(event: &RunEvent) -> Option<Duration> {
    match event {
        RunEvent::CellStarted { elapsed_us, .. }
        | RunEvent::CellEnded { elapsed_us, .. }
        | RunEvent::Look { elapsed_us, .. }
        | RunEvent::Rested { elapsed_us, .. } => Some(Duration::from_micros(*elapsed_us)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellId, Outcome, RunEvent, ToolInfo};

    use super::*;

    #[test]
    fn a_look_that_adds_no_block_is_the_last() {
        let look = |cells| look_event(3, Duration::ZERO, false, &NextBlock { cells, ..NextBlock::default() });
        let cell = CellId { block: 4, variant: "a".to_owned(), workload: "oltp".to_owned() };
        let mut events = Vec::new();
        assert!(!is_over(&events));
        events.push(look(vec![cell]));
        assert!(!is_over(&events));
        events.push(look(Vec::new()));
        assert!(is_over(&events));
    }

    fn undecided(variant: &str, workload: &str, step: &str) -> (String, String, String) {
        (variant.to_owned(), workload.to_owned(), step.to_owned())
    }

    #[test]
    fn a_workload_whose_base_failed_gets_no_further_block() {
        let all = OpenComparisons::from([
            undecided("b", "oltp", "s"),
            undecided("c", "oltp", "s"),
            undecided("b", "insert-benchmark", "s"),
        ]);
        let without = |failed: &[(&str, &str)]| {
            let failed = failed.iter().map(|(variant, workload)| ((*variant).into(), (*workload).into()));
            without_failed(all.clone(), &failed.collect(), "a")
        };
        assert_eq!(without(&[]), all);
        let left =
            OpenComparisons::from([undecided("b", "oltp", "s"), undecided("b", "insert-benchmark", "s")]);
        assert_eq!(without(&[("c", "oltp")]), left);
        assert_eq!(
            without(&[("a", "oltp")]),
            OpenComparisons::from([undecided("b", "insert-benchmark", "s")])
        );
    }

    const PLAN: &str = r#"
        name = "p"
        blocks = 3
        budget = "1h"
        variant = [{ name = "a", server = "null" }, { name = "b", server = "null" }, { name = "c", server = "null" }]
        [workload.oltp]
        tests = ["point-select", "read-only", "read-write"]
        [host]
        rest = "10s"
    "#;

    #[test]
    fn a_block_runs_the_base_and_the_undecided_variants_with_the_steps_that_they_need() {
        let plan = dbdyno_workloads::plans::parse(PLAN, "p").unwrap();
        let next = |open: &[(&str, &str)]| {
            let open = open.iter().map(|(variant, step)| undecided(variant, "oltp", step)).collect();
            let next = next_block(&plan, &open, 4);
            let mut variants: Vec<&str> = next.cells.iter().map(|cell| cell.variant.as_str()).collect();
            variants.sort_unstable();
            let steps = next.steps.get("oltp").map_or_else(|| "all".to_owned(), |steps| steps.join(" "));
            format!("{}: {steps}", variants.join(" "))
        };
        insta::assert_snapshot!(next(&[("b", "point-select.c1")]), @"a b: load index point-select.c1");
        insta::assert_snapshot!(next(&[("b", "read-write.c1"), ("c", "read-only.c1")]), @"a b c: load index read-only.c1 read-write.c1");
        insta::assert_snapshot!(next(&[("c", "point-select.c1"), ("c", "read-only.c1"), ("c", "read-write.c1")]), @"a c: all");
        insta::assert_snapshot!(next(&[]), @": all");
    }

    /// Makes a run whose third block took 40 s of `a`, 7 s of them for point-select.
    fn measured() -> Run {
        let id = CellId { block: 3, variant: "a".to_owned(), workload: "oltp".to_owned() };
        let at = |second: u32| format!("2026-11-22T03:00:{second:02}.000Z");
        let mut step = StepRecord::open(std::path::Path::new("point-select.c1"));
        let ended = |at| StepEvent::Ended { at, at_us: 1, outcome: Outcome::Completed, message: None };
        step.events = vec![StepEvent::Started { at: at(5), spec: step.spec.clone() }, ended(at(12))];
        let cell = dbdyno_record::CellRecord { id: id.clone(), events: Vec::new(), steps: vec![step] };
        let plan = dbdyno_workloads::plans::parse(PLAN, "p").unwrap();
        let mut manifest = crate::plan::prepare::manifest(&plan, &[], std::path::Path::new(".")).unwrap();
        manifest.order = vec![id.clone()];
        let events = vec![
            RunEvent::CellStarted { at: at(0), cell: id.clone(), elapsed_us: 1_000_000 },
            RunEvent::CellEnded {
                at: at(40),
                cell: id,
                outcome: Outcome::Completed,
                message: None,
                elapsed_us: 41_000_000,
            },
        ];
        let dir = std::path::PathBuf::new();
        Run { dir, manifest, events, cells: vec![cell], profiled_cells: Vec::new(), is_going_on: true, warnings: Vec::new() }
    }

    #[test]
    fn a_block_takes_the_time_of_its_cells_without_left_out_steps_and_a_rest_before_each_cell() {
        let id =
            |variant: &str| CellId { block: 4, variant: variant.to_owned(), workload: "oltp".to_owned() };
        let seconds = |cells: Vec<CellId>, left_out: &[&str]| {
            let left_out = left_out.iter().map(|step| ("oltp".to_owned(), (*step).to_owned())).collect();
            let next = NextBlock { cells, left_out, ..NextBlock::default() };
            next.duration(&measured(), Duration::from_secs(10)).as_secs()
        };
        assert_eq!(seconds(vec![id("a")], &["read-only"]), 40 + 10);
        assert_eq!(seconds(vec![id("a")], &["point-select.c1"]), 40 - 7 + 10);
        assert_eq!(
            seconds(vec![id("a"), id("b")], &["point-select.c1"]),
            40 - 7 + 10 + 10,
            "b was never measured"
        );
    }

    fn started(resumed: bool) -> RunEvent {
        RunEvent::Started { at: String::new(), resumed, tool: ToolInfo::default() }
    }

    /// Makes the start and end of a cell, in seconds of the run's clock.
    fn cell(variant: &str, from: u64, to: Option<u64>) -> Vec<RunEvent> {
        let (at, cell) =
            (String::new(), CellId { block: 1, variant: variant.to_owned(), workload: "oltp".to_owned() });
        let begun =
            RunEvent::CellStarted { at: at.clone(), cell: cell.clone(), elapsed_us: from * 1_000_000 };
        let ended = to.map(|seconds| RunEvent::CellEnded {
            at,
            cell,
            outcome: Outcome::Completed,
            message: None,
            elapsed_us: seconds * 1_000_000,
        });
        [begun].into_iter().chain(ended).collect()
    }

    #[test]
    fn a_resumed_run_has_taken_the_time_that_its_last_event_records() {
        assert_eq!(recorded(&[]), Duration::ZERO);
        let killed = [vec![started(false)], cell("a", 1, Some(5)), cell("b", 6, None)].concat();
        assert_eq!(recorded(&[&killed[..], &[started(true)]].concat()), Duration::from_secs(6));
        let events = [killed, vec![started(true)], cell("b", 7, Some(10))].concat();
        assert_eq!(recorded(&events), Duration::from_secs(10));
        let clock = RunClock::going_on(&events);
        assert!(clock.elapsed() >= Duration::from_secs(10) && clock.elapsed() < Duration::from_secs(60));
    }
}
