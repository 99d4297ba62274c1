//! Spends a budget of time: looks at the run after the plan's blocks, and adds blocks of what is still undecided.

use std::collections::BTreeSet;
use std::time::Duration;

use dbdyno_analyse::{Findings, Verdict, analyse, numbered};
use dbdyno_record::{CellId, Run, RunEvent};

use crate::conductor::Conductor;
use crate::conductor::clock::to_us;
use crate::conductor::next_block::{NextBlock, next_block, open, shows};
use crate::exit::Ended;
use crate::time;

impl Conductor<'_> {
    /// Looks at the run, once all its blocks are over, and gives the cells of the next block; `None` when there is none: no
    /// budget, no time, or everything is decided. The look is recorded in any case.
    pub(super) fn further_block(&mut self) -> Result<Option<Vec<CellId>>, Ended> {
        let Some(budget) = self.plan.budget else { return Ok(None) };
        if self.cancelled() {
            return Ok(None);
        }
        let mut run = Run::open(self.writer.dir())?;
        if is_over(&run.events) {
            return Ok(None);
        }
        let blocks = run.manifest.order.iter().map(|cell| cell.block).max().unwrap_or(0);
        let elapsed = self.clock.elapsed();
        run.events.push(look(blocks, elapsed, false, &NextBlock::default()));
        let mut findings = analyse(&run);
        let open = open(&findings, &run, blocks);
        let mut next = next_block(self.plan, &open, blocks + 1);
        let each = next.duration(&run, self.plan.host.rest.0);
        // For a comparison that is undecided this depends on time and on the others, not on what it has shown itself: else the
        // last look could spend more error than it may.
        let last = elapsed.saturating_add(each) > budget.0;
        next.shows = shows(&findings, &open, budget.0.saturating_sub(elapsed), each);
        if last {
            run.events.pop();
            run.events.push(look(blocks, elapsed, true, &NextBlock::default()));
            findings = analyse(&run);
            next = NextBlock::default();
        }
        self.writer.event(&look(blocks, elapsed, last, &next))?;
        self.progress.line(&reported(&findings, blocks, &next, budget.0.saturating_sub(elapsed)));
        if next.cells.is_empty() {
            return Ok(None);
        }
        let names: Vec<_> =
            next.cells.iter().map(|cell| (cell.variant.clone(), cell.workload.clone())).collect();
        self.progress.more(&names, &next.left_out);
        self.partial.extend(next.steps.into_iter().map(|(workload, steps)| ((blocks + 1, workload), steps)));
        Ok(Some(next.cells))
    }
}

fn look(blocks: u32, elapsed: Duration, last: bool, next: &NextBlock) -> RunEvent {
    let NextBlock { cells, steps, .. } = next.clone();
    RunEvent::Look { at: time::now(), blocks, elapsed_us: to_us(elapsed), last, order: cells, steps }
}

/// Which steps the cells of a block run, by block and workload, of blocks that do not run all.
pub(crate) type Partial = std::collections::BTreeMap<(u32, String), Vec<String>>;

/// Of the blocks that earlier sessions have added to a run.
pub(crate) fn partial(events: &[RunEvent]) -> Partial {
    let mut all = Partial::new();
    for event in events {
        if let RunEvent::Look { blocks, steps, .. } = event {
            all.extend(steps.iter().map(|(workload, steps)| ((blocks + 1, workload.clone()), steps.clone())));
        }
    }
    all
}

/// An earlier look has added nothing more.
fn is_over(events: &[RunEvent]) -> bool {
    let last = events.iter().rev().find_map(|event| match event {
        RunEvent::Look { order, .. } => Some(order.is_empty()),
        _ => None,
    });
    last == Some(true)
}

/// One line of what the look showed and what comes of it.
fn reported(findings: &Findings, blocks: u32, next: &NextBlock, left: Duration) -> String {
    let again = findings.run.again.as_deref();
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let verdicts: Vec<Verdict> = steps
        .flat_map(|step| &step.variants)
        .filter(|variant| again != Some(variant.variant.as_str()))
        .filter_map(|variant| variant.verdict)
        .collect();
    let open = verdicts.iter().filter(|verdict| **verdict == Verdict::Undecided).count();
    let found =
        format!("interim analysis after {blocks} blocks: {open} of {} comparisons undecided", verdicts.len());
    let left = format!("{} of the budget left", time::about(left));
    if next.cells.is_empty() {
        let end = if open == 0 { "; done, " } else { "; no further block, " };
        return format!("{found}{end}{left}");
    }
    let names: BTreeSet<&str> = next.cells.iter().map(|cell| cell.variant.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let steps: usize = next.steps.values().map(Vec::len).sum();
    let steps = if steps == 0 { String::new() } else { format!(", {} each", numbered(steps, "step")) };
    let shows = next.shows.map_or_else(String::new, |(least, most)| {
        format!(", which can show {:.1} to {:.1} %", 100.0 * least, 100.0 * most)
    });
    format!("{found}; one more block of {names}{steps} ({left}{shows})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_added_nothing_is_the_end() {
        let look = |cells| look(3, Duration::ZERO, false, &NextBlock { cells, ..NextBlock::default() });
        let cell = CellId { block: 4, variant: "a".to_owned(), workload: "oltp".to_owned() };
        let mut events =
            vec![RunEvent::Started { at: "2026-11-22T03:00:00.000Z".to_owned(), resumed: false, tool: None }];
        assert!(!is_over(&events));
        events.push(look(vec![cell]));
        assert!(!is_over(&events));
        events.push(look(Vec::new()));
        assert!(is_over(&events));
    }
}
