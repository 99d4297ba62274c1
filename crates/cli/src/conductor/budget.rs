//! Spends a plan's budget of time. After the plan's blocks it looks at the results, and adds blocks
//! of what is still undecided.

use std::collections::BTreeSet;
use std::time::Duration;

use dbdyno_analyse::{Findings, Verdict, analyse, numbered};
use dbdyno_plan::Plan;
use dbdyno_record::{CellId, Run, RunEvent, RunWriter};

use crate::conductor::Conductor;
use crate::conductor::next_block::{NextBlock, next_block, open, shows};
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

/// Looks at a run once all its blocks are over. It returns the cells of as many blocks as there is
/// time for, but of no more than `most`. The result is `None` without a budget, without time, or
/// when everything is decided. Every look is recorded.
pub(crate) fn further_blocks(
    plan: &Plan,
    writer: &mut RunWriter,
    progress: &mut Progress,
    elapsed: Duration,
    most: usize,
) -> Result<Option<(Vec<CellId>, Partial)>, ExitError> {
    let Some(budget) = plan.budget else { return Ok(None) };
    let mut run = Run::open(writer.dir())?;
    if is_over(&run.events) {
        return Ok(None);
    }
    let blocks = run.manifest.order.iter().map(|cell| cell.block).max().unwrap_or(0);
    run.events.push(look(blocks, elapsed, false, &NextBlock::default()));
    let mut findings = analyse(&run);
    let open = open(&findings, &run, blocks);
    let mut next = next_block(plan, &open, blocks + 1);
    let each = next.duration(&run, plan.host.rest.0);
    let left = budget.0.saturating_sub(elapsed);
    // An undecided comparison must depend here on time and on the other comparisons only, not on
    // what it has shown itself. Otherwise the last look could spend more error than it may.
    let last = each > left;
    next.shows = shows(&findings, &open, left, each);
    if last {
        run.events.pop();
        run.events.push(look(blocks, elapsed, true, &NextBlock::default()));
        findings = analyse(&run);
        next = NextBlock::default();
    } else {
        let fit = (left.as_secs_f64() / each.as_secs_f64().max(1e-3)) as usize;
        for block in (blocks + 1..).take(most.min(fit)).skip(1) {
            next.cells.extend(next_block(plan, &open, block).cells);
        }
    }
    let look = look(blocks, elapsed, last, &next);
    writer.event(&look)?;
    progress.line(&reported(&findings, blocks, &next, left));
    if next.cells.is_empty() {
        return Ok(None);
    }
    progress.more(&next.cells, &next.left_out);
    Ok(Some((next.cells, partial(&[look]))))
}

fn look(blocks: u32, elapsed: Duration, last: bool, next: &NextBlock) -> RunEvent {
    let NextBlock { cells, steps, .. } = next.clone();
    RunEvent::Look { at: time::now(), blocks, elapsed_us: time::to_us(elapsed), last, order: cells, steps }
}

/// Steps that the cells of a block run, by block and workload, for blocks that leave steps out.
pub(crate) type Partial = std::collections::BTreeMap<(u32, String), Vec<String>>;

/// Returns the steps of the blocks that earlier sessions added to a run.
pub(crate) fn partial(events: &[RunEvent]) -> Partial {
    let mut all = Partial::new();
    for event in events {
        let RunEvent::Look { order, steps, .. } = event else { continue };
        for block in order.iter().map(|cell| cell.block) {
            all.extend(steps.iter().map(|(workload, steps)| ((block, workload.clone()), steps.clone())));
        }
    }
    all
}

/// Whether an earlier look added no further block.
fn is_over(events: &[RunEvent]) -> bool {
    let last = events.iter().rev().find_map(|event| match event {
        RunEvent::Look { order, .. } => Some(order.is_empty()),
        _ => None,
    });
    last == Some(true)
}

/// Writes one line on what the look showed and what follows.
fn reported(findings: &Findings, blocks: u32, next: &NextBlock, left: Duration) -> String {
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
    let shows = next.shows.map_or_else(String::new, |(least, most)| {
        format!(", which can show {:.1} to {:.1} %", 100.0 * least, 100.0 * most)
    });
    format!("{found}; {more} of {names}{steps} ({left}{shows})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_added_nothing_is_the_end() {
        let look = |cells| look(3, Duration::ZERO, false, &NextBlock { cells, ..NextBlock::default() });
        let cell = CellId { block: 4, variant: "a".to_owned(), workload: "oltp".to_owned() };
        let mut events = Vec::new();
        assert!(!is_over(&events));
        events.push(look(vec![cell]));
        assert!(!is_over(&events));
        events.push(look(Vec::new()));
        assert!(is_over(&events));
    }
}
