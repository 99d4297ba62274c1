//! Finds blocks that are in no comparison, and why: they are invalid, failed, were interrupted or
//! never ran.

use dbdyno_record::{CellRecord, Outcome};

use crate::model::findings::{end_message, failure_words};
use crate::model::{
    ComparedStep, Comparison, Exclusion, ExclusionKind, Side, StepFindings, StepRun, Validity, Warning,
};

impl ComparedStep {
    /// Whether the new side was invalid or failed in a larger share of its blocks than the base. It
    /// is `false` where the base has no rate. The check is for two runs, whose blocks are not
    /// paired. Blocks that did not run or were stopped do not count.
    fn new_breaks_more(&self) -> bool {
        let of_side = |with_a_rate: usize, left_out: &[Exclusion]| {
            let faults = left_out.iter().filter(|one| one.kind.is_fault()).count();
            let zero = left_out.iter().filter(|one| one.kind == ExclusionKind::ZeroRate).count();
            (faults, with_a_rate + zero + faults)
        };
        let (base_faults, base_total) = of_side(self.base_blocks, &self.base_left_out);
        let (new_faults, new_total) = of_side(self.new_blocks, &self.new_left_out);
        self.base_rate.is_some() && new_faults * base_total > base_faults * new_total
    }
}

impl Comparison {
    /// Steps in which the new side is invalid or failed in a block in which the base is valid, each
    /// with the first such block. For two runs, whose blocks are not paired, these are the steps in
    /// which the new side was invalid or failed in a larger share of its blocks than the base.
    pub fn broken(&self) -> Vec<(&ComparedStep, &Exclusion)> {
        let is_broken = |step: &ComparedStep, one: &Exclusion| {
            let is_worse_than_base = match self.paired {
                true => step.base_left_out.iter().all(|other| other.block != one.block),
                false => step.new_breaks_more(),
            };
            one.kind.is_fault() && is_worse_than_base
        };
        let first = self
            .steps
            .iter()
            .filter_map(|step| Some((step, step.new_left_out.iter().find(|one| is_broken(step, one))?)));
        first.collect()
    }
}

/// The blocks left out for one side and step, in their order; empty when each block can be
/// compared.
pub(crate) fn left_out(side: Side<'_>, workload: &str, step: &StepFindings) -> Vec<Exclusion> {
    let runs = step.runs_of(side.variant);
    let is_own = |id: &dbdyno_record::CellId| id.variant == side.variant && id.workload == workload;
    let cells: Vec<&CellRecord> = side.run.cells.iter().filter(|cell| is_own(&cell.id)).collect();
    let mut blocks: Vec<u32> = cells.iter().map(|cell| cell.id.block).collect();
    blocks.extend(side.run.manifest.order.iter().filter(|id| is_own(id)).map(|id| id.block));
    blocks.sort_unstable();
    blocks.dedup();
    let of_block = |block: u32| {
        let (kind, reasons) = match runs.iter().find(|run| run.block == block) {
            Some(run) => of_run(run)?,
            None => of_cell(cells.iter().find(|cell| cell.id.block == block).copied())?,
        };
        Some(Exclusion { block, kind, reasons })
    };
    blocks.into_iter().filter_map(of_block).collect()
}

fn of_run(run: &StepRun) -> Option<(ExclusionKind, Vec<Warning>)> {
    match &run.validity {
        Validity::Valid if run.rate > 0.0 => None,
        Validity::Valid => Some((ExclusionKind::ZeroRate, Vec::new())),
        Validity::Invalid { reasons } => Some((ExclusionKind::Invalid, reasons.clone())),
        Validity::Failed { message } => {
            Some((ExclusionKind::Failed, vec![Warning::quoted(&failure_words(message))]))
        }
        Validity::Interrupted => Some((ExclusionKind::Interrupted, Vec::new())),
    }
}

/// Returns why a cell has no record of a step. It is `None` for a completed cell, because that cell
/// did not have to run the step. For example, a cell that restores the loaded data from a snapshot
/// has no load steps.
fn of_cell(cell: Option<&CellRecord>) -> Option<(ExclusionKind, Vec<Warning>)> {
    let Some(cell) = cell else { return Some((ExclusionKind::DidNotRun, Vec::new())) };
    match cell.outcome() {
        Some(Outcome::Completed) => None,
        Some(Outcome::Failed) => {
            Some((ExclusionKind::CellFailed, vec![Warning::quoted(&failure_words(&end_message(cell)))]))
        }
        Some(Outcome::Interrupted) | None => Some((ExclusionKind::Interrupted, Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Run, StepEvent};
    use insta::assert_snapshot;

    use super::*;
    use crate::compare::comparison::{CompareChoices, compare};
    use crate::fixtures::{cell, ended, failed_cell, load_step, query_step, run, shown_all};

    fn text(all: &[Exclusion]) -> String {
        let line = |one: &Exclusion| format!("{} {:?} {}", one.block, one.kind, shown_all(&one.reasons));
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn compared(run: &Run) -> Comparison {
        let side = |variant| Side { run, variant };
        compare(side("a"), side("b"), CompareChoices::default()).unwrap()
    }

    #[test]
    fn each_block_without_figures_says_why() {
        let mut invalid = load_step(1_000);
        invalid.events.push(StepEvent::Invalid { reason: "clock jumped".to_owned() });
        let mut cells: Vec<_> =
            (1..=5).map(|block| cell(block, "a", vec![load_step(1_000), query_step(100, 10)])).collect();
        cells.push(cell(1, "b", vec![invalid]));
        cells.push(cell(2, "b", vec![ended(load_step(1_000), Outcome::Failed, "server gone:\n[ERROR] x")]));
        cells.push(failed_cell(3, "b", Vec::new(), "died at start; the end of its log l:\n[ERROR] y"));
        cells.push(cell(4, "b", vec![load_step(1_000)]));
        let found = compared(&run(&["a", "b"], 5, cells));
        assert_snapshot!(text(&found.steps[0].new_left_out), @r"
        1 Invalid quoted text: clock jumped
        2 Failed quoted text: server gone
        3 CellFailed quoted text: died at start: y; its log is l
        5 DidNotRun
        ");
        assert_eq!(text(&found.steps[0].base_left_out), "");
        // `base_blocks` counts pairs, and only block 4 has a rate on both sides.
        assert_eq!(found.steps[0].base_blocks, 1);
        assert_snapshot!(text(&found.steps[1].new_left_out), @r"
        3 CellFailed quoted text: died at start: y; its log is l
        5 DidNotRun
        ");
    }

    #[test]
    fn what_broke_while_the_base_was_sound_is_named_by_step_and_block() {
        let invalid = |rate| {
            let mut step = load_step(rate);
            step.events.push(StepEvent::Invalid { reason: "rows is 2, expected 3".to_owned() });
            step
        };
        let sound = || vec![load_step(1_000)];
        let cells = vec![
            cell(1, "a", vec![invalid(1_000)]),
            cell(1, "b", vec![invalid(1_000)]),
            cell(2, "a", sound()),
            cell(2, "b", vec![invalid(1_000)]),
            cell(3, "a", sound()),
            failed_cell(3, "b", Vec::new(), "server died"),
        ];
        let one_run = run(&["a", "b"], 3, cells);
        let found = compared(&one_run);
        let reported = |found: &Comparison| -> Vec<String> {
            found
                .broken()
                .iter()
                .map(|(step, one)| format!("{} {}", step.step, text(&[(*one).clone()])))
                .collect()
        };
        // Every run of the fixture has the steps `l.i0` and `qr100`, even if no cell ran `qr100`.
        let expected = [
            "l.i0 2 Invalid quoted text: rows is 2, expected 3",
            "qr100 3 CellFailed quoted text: server died",
        ];
        assert_eq!(reported(&found), expected);
        // Now the base and the new side are from two runs, whose blocks are not paired.
        let mut other = run(&["a", "b"], 1, vec![cell(1, "a", sound()), cell(1, "b", sound())]);
        other.manifest.run_id = "other".to_owned();
        let choices = CompareChoices { anyway: true, ..CompareChoices::default() };
        let unpaired =
            |base, new| compare(Side { run: base, variant: "a" }, Side { run: new, variant: "b" }, choices);
        assert_eq!(
            reported(&unpaired(&other, &one_run).unwrap())[0],
            "l.i0 1 Invalid quoted text: rows is 2, expected 3"
        );
        assert!(reported(&unpaired(&one_run, &other).unwrap()).is_empty());
    }

    /// A run of variant `a` whose step `l.i0` is invalid in the first `faults` of the `blocks`.
    fn with_faults(id: &str, faults: u32, blocks: u32) -> Run {
        let of_block = |block| {
            let mut step = load_step(1_000 + u64::from(block));
            if block <= faults {
                step.events.push(StepEvent::Invalid { reason: "rows is 2, expected 3".to_owned() });
            }
            cell(block, "a", vec![step])
        };
        let mut run = run(&["a"], blocks, (1..=blocks).map(of_block).collect());
        run.manifest.run_id = id.to_owned();
        run
    }

    #[test]
    fn a_faulty_block_of_the_base_does_not_excuse_more_faulty_blocks_in_another_run() {
        let broken = |base: (u32, u32), new: (u32, u32)| {
            let (base, new) = (with_faults("x", base.0, base.1), with_faults("y", new.0, new.1));
            let side = |run| Side { run, variant: "a" };
            let choices = CompareChoices { anyway: true, ..CompareChoices::default() };
            compare(side(&base), side(&new), choices).unwrap().broken().len() == 1
        };
        assert!(broken((1, 3), (3, 3)) && broken((1, 3), (2, 3)) && broken((0, 3), (1, 3)));
        assert!(!broken((1, 3), (1, 3)) && !broken((1, 3), (1, 4)) && !broken((2, 3), (1, 3)));
        assert!(broken((1, 6), (1, 3)), "each side's share is of its own blocks");
        assert!(!broken((3, 3), (3, 3)), "a base without a rate is no measure");
    }

    #[test]
    fn rates_of_different_blocks_are_not_shown_next_to_each_other() {
        let invalid = |rate| {
            let mut step = load_step(rate);
            step.events.push(StepEvent::Invalid { reason: "clock jumped".to_owned() });
            step
        };
        let cells = vec![
            cell(1, "a", vec![invalid(1_000)]),
            cell(1, "b", vec![load_step(2_000)]),
            cell(2, "a", vec![load_step(1_000)]),
            cell(2, "b", vec![invalid(2_000)]),
        ];
        let found = compared(&run(&["a", "b"], 2, cells));
        let step = &found.steps[0];
        assert_eq!((step.base_rate, step.new_rate, step.to_base.ratio.is_none()), (None, None, true));
        assert_eq!(text(&step.base_left_out), "1 Invalid quoted text: clock jumped");
        assert_eq!(text(&step.new_left_out), "2 Invalid quoted text: clock jumped");
    }

    #[test]
    fn the_rate_of_the_valid_side_stays() {
        let cells =
            vec![cell(1, "a", vec![load_step(1_000)]), failed_cell(1, "b", Vec::new(), "server died")];
        let found = compared(&run(&["a", "b"], 1, cells));
        let step = &found.steps[0];
        assert_eq!((step.base_rate, step.new_rate, step.to_base.verdict), (Some(1_000.0), None, None));
        assert_eq!(text(&step.new_left_out), "1 CellFailed quoted text: server died");
    }
}
