//! Spends a budget of time: looks at the run after the plan's blocks, and adds blocks of what is still undecided.

use std::collections::BTreeSet;
use std::time::Duration;

use dbdyno_analyse::{Findings, Verdict, analyse};
use dbdyno_plan::further_cells;
use dbdyno_record::{CellId, Outcome, Run, RunEvent};

use crate::conductor::Conductor;
use crate::conductor::clock::{duration_of, to_us};
use crate::exit::Ended;
use crate::time;

impl Conductor<'_> {
    /// Looks at the run, once all its blocks are over, and gives the cells of the next block; `None` when there is none: no
    /// budget, no time, or everything is decided. The look is recorded in any case.
    ///
    /// # Errors
    /// When the record cannot be read or written.
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
        // Whether this look is the last depends on the time that was taken so far, not on what it finds: else it could spend more
        // error than it may.
        let block = another_like(&run.events, &run.manifest.order, blocks, self.plan.host.rest.0);
        let last = elapsed.saturating_add(block) > budget.0;
        let mut look =
            RunEvent::Look { at: time::now(), blocks, elapsed_us: to_us(elapsed), last, order: Vec::new() };
        run.events.push(look.clone());
        let findings = analyse(&run);
        let undecided = undecided(&findings, &failed(&run, blocks), self.plan.base_name());
        let next = if last { Vec::new() } else { self.next_cells(&undecided, blocks + 1) };
        if let RunEvent::Look { order, .. } = &mut look {
            order.clone_from(&next);
        }
        self.writer.event(&look)?;
        self.progress.line(&told(&findings, blocks, &next, budget.0.saturating_sub(elapsed)));
        if next.is_empty() {
            return Ok(None);
        }
        let names: Vec<_> = next.iter().map(|cell| (cell.variant.clone(), cell.workload.clone())).collect();
        self.progress.more(&names);
        Ok(Some(next))
    }

    /// The undecided cells, and with them the base and, with A/A, the base under its second name.
    fn next_cells(&self, undecided: &BTreeSet<(String, String)>, block: u32) -> Vec<CellId> {
        let (base, again) = (self.plan.base_name(), self.plan.again_name());
        let cells = further_cells(self.plan, block, |cell| {
            let is_base = cell.variant == base || again.as_deref() == Some(cell.variant.as_str());
            undecided.iter().any(|(variant, workload)| {
                *workload == cell.workload && (is_base || *variant == cell.variant)
            })
        });
        let id = |cell: dbdyno_plan::Cell| CellId {
            block: cell.block,
            variant: cell.variant,
            workload: cell.workload,
        };
        cells.into_iter().map(id).collect()
    }
}

/// Time that one more block like `block` of `order` would take, with a rest before each of its cells.
fn another_like(events: &[RunEvent], order: &[CellId], block: u32, rest: Duration) -> Duration {
    let cells = order.iter().filter(|cell| cell.block == block).count();
    let rests = rest.saturating_mul(u32::try_from(cells).unwrap_or(u32::MAX));
    duration_of(events, block).saturating_add(rests)
}

/// An earlier look has added nothing more.
fn is_over(events: &[RunEvent]) -> bool {
    let last = events.iter().rev().find_map(|event| match event {
        RunEvent::Look { order, .. } => Some(order.is_empty()),
        _ => None,
    });
    last == Some(true)
}

/// Variant and workload of every comparison that is undecided, without those of `given_up`, and without all of a workload whose
/// base is given up: nothing can be compared with it. The base under its second name is no question of its own.
fn undecided(
    findings: &Findings,
    given_up: &BTreeSet<(String, String)>,
    base: &str,
) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for workload in &findings.workloads {
        for variant in workload.steps.iter().flat_map(|step| &step.variants) {
            let is_again = findings.run.again.as_ref() == Some(&variant.variant);
            // Against a base that stalled in a block no further one decides anything.
            let is_open =
                variant.verdict == Some(Verdict::Undecided) && variant.standstills.base_stalled.is_empty();
            if is_open && !is_again {
                all.insert((variant.variant.clone(), workload.name.clone()));
            }
        }
    }
    worth_a_block(all, given_up, base)
}

fn worth_a_block(
    mut undecided: BTreeSet<(String, String)>,
    given_up: &BTreeSet<(String, String)>,
    base: &str,
) -> BTreeSet<(String, String)> {
    let has_base = |workload: &String| !given_up.contains(&(base.to_owned(), workload.clone()));
    undecided.retain(|cell| !given_up.contains(cell) && has_base(&cell.1));
    undecided
}

/// Cells of a block that did not complete: what fails once would fail until the budget is spent.
fn failed(run: &Run, block: u32) -> BTreeSet<(String, String)> {
    let of_block = run.cells.iter().filter(|cell| cell.id.block == block);
    of_block
        .filter(|cell| cell.outcome() != Some(Outcome::Completed))
        .map(|cell| (cell.id.variant.clone(), cell.id.workload.clone()))
        .collect()
}

/// One line of what the look showed and what comes of it.
fn told(findings: &Findings, blocks: u32, next: &[CellId], left: Duration) -> String {
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
    match next {
        [] if open == 0 => format!("{found}; done, {} of the budget left", time::about(left)),
        [] => format!("{found}; no further block ({} of the budget left)", time::about(left)),
        next => {
            let names: BTreeSet<&str> = next.iter().map(|cell| cell.variant.as_str()).collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            format!("{found}; one more block of {names} ({} of the budget left)", time::about(left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(block: u32, variant: &str) -> CellId {
        CellId { block, variant: variant.to_owned(), workload: "oltp".to_owned() }
    }

    #[test]
    fn a_workload_whose_base_failed_gets_no_further_block() {
        let of = |variant: &str, workload: &str| (variant.to_owned(), workload.to_owned());
        let all = BTreeSet::from([of("b", "oltp"), of("c", "oltp"), of("b", "insert-benchmark")]);
        let without = |failed: &[(&str, &str)]| {
            let given_up = failed.iter().map(|(variant, workload)| of(variant, workload)).collect();
            worth_a_block(all.clone(), &given_up, "a")
        };
        assert_eq!(without(&[]), all);
        assert_eq!(without(&[("c", "oltp")]), BTreeSet::from([of("b", "oltp"), of("b", "insert-benchmark")]));
        assert_eq!(without(&[("a", "oltp")]), BTreeSet::from([of("b", "insert-benchmark")]));
    }

    #[test]
    fn one_more_block_takes_its_cells_and_a_rest_before_each() {
        let order = [cell(2, "a"), cell(3, "a"), cell(3, "b")];
        let at = || String::new();
        let event = |cell: &CellId, from: u64, to: u64| {
            [
                RunEvent::CellStarted { at: at(), cell: cell.clone(), elapsed_us: Some(from * 1_000_000) },
                RunEvent::CellEnded {
                    at: at(),
                    cell: cell.clone(),
                    outcome: Outcome::Completed,
                    message: None,
                    elapsed_us: Some(to * 1_000_000),
                },
            ]
        };
        let events = [event(&order[0], 0, 50), event(&order[1], 60, 63), event(&order[2], 73, 77)].concat();
        let seconds = |rest| another_like(&events, &order, 3, Duration::from_secs(rest)).as_secs();
        assert_eq!((seconds(0), seconds(10)), (3 + 4, 3 + 4 + 2 * 10));
    }

    #[test]
    fn a_look_that_added_nothing_is_the_end() {
        let look = |order| RunEvent::Look { at: String::new(), blocks: 3, elapsed_us: 1, last: false, order };
        let mut events =
            vec![RunEvent::Started { at: "2026-11-22T03:00:00.000Z".to_owned(), resumed: false, tool: None }];
        assert!(!is_over(&events));
        events.push(look(vec![cell(4, "a")]));
        assert!(!is_over(&events));
        events.push(look(Vec::new()));
        assert!(is_over(&events));
    }
}
