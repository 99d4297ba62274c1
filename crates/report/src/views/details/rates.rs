//! Tables of a step's headline rate: by variant over all blocks, and block by block.

use dbdyno_analyse::{Bound, StepFindings, Validity, VariantStep};

use super::{has_blocks, runs};
use crate::document::{Cell, Table};
use crate::number::{NOT_AVAILABLE, fixed, interval_text, rate, ratio};
use crate::views::cells::{headline_cell, known, number, sign_of};
use crate::words::table_of;

/// Columns for tables over several blocks.
const OF_BLOCKS: [&str; 4] = ["lowest", "highest", "95 % interval", "verdict"];
/// Columns for a step with a target.
const OF_TARGET: [&str; 3] = ["background", "judged", "on target"];

pub(super) fn by_variant(step: &StepFindings) -> Table {
    let blocks = has_blocks(step);
    let note = if step.less_is_better {
        "Seconds of an execution, or from beginning to end; the median over blocks. Ratio: to the base; below 1 is faster."
    } else if blocks {
        "Rate: median over the valid blocks. Ratio: geometric mean of the ratios to the base within each block."
    } else {
        "Rate over the common window, in which all clients were at work. Ratio: to the base."
    };
    let table = table_of(step, "rate").without(if blocks { &[] } else { &OF_BLOCKS });
    let table = table.without(if step.target.is_some() { &[] } else { &OF_TARGET });
    let mut grid = Table { note: note.to_owned(), ..table };
    for variant in &step.variants {
        grid.push(variant_row(step, variant, blocks));
    }
    grid
}

fn variant_row(step: &StepFindings, variant: &VariantStep, blocks: bool) -> Vec<Cell> {
    let valid = variant.valid_runs().count();
    let mut row = vec![variant.variant.clone().into(), format!("{valid} of {}", variant.runs.len()).into()];
    row.push(figure_cell(step, variant.rate, variant.cut_off));
    if blocks {
        let was_cut_off = |rate: f64| variant.valid_runs().any(|run| run.cut_off && run.rate == rate);
        let end = |rate: Option<f64>| figure_cell(step, rate, rate.is_some_and(was_cut_off));
        row.extend([variant.rate_min, variant.rate_max].map(end));
    }
    let bound = variant.to_base.ratio.as_ref().and_then(|ratio| ratio.bound);
    row.push(ratio_cell(variant.to_base.value(), bound));
    if blocks {
        let interval = variant.to_base.interval();
        row.push(interval.map_or_else(|| NOT_AVAILABLE.to_owned(), interval_text).into());
        row.push(variant.to_base.verdict.map_or("", |verdict| verdict.word()).into());
    }
    row.push(fixed(variant.median(|run| Some(run.window_seconds)), 2).into());
    if step.target.is_some() {
        row.extend([variant.background_rate, variant.judged_background_rate].map(|of| rate(of).into()));
        let on_target = variant.median(|run| run.seconds_on_target);
        row.push(fixed(on_target.map(|share| share * 100.0), 1).into());
    }
    row
}

fn figure_cell(step: &StepFindings, figure: Option<f64>, cut_off: bool) -> Cell {
    figure.map_or_else(|| Cell::from(NOT_AVAILABLE), |figure| headline_cell(step, figure, cut_off))
}

/// Makes the table with the rate of each single run, and none unless there is more than one block.
pub(crate) fn by_block(step: &StepFindings) -> Vec<Table> {
    if !has_blocks(step) {
        return Vec::new();
    }
    let table = table_of(step, "rate-by-block");
    let mut grid = table.without(if step.target.is_some() { &[] } else { &OF_TARGET });
    for (variant, run) in runs(step) {
        let ran = matches!(run.validity, Validity::Valid | Validity::Invalid { .. });
        let block = number(f64::from(run.block), run.block.to_string());
        let mut row = vec![variant.variant.clone().into(), block, run.validity.state().into()];
        row.push(figure_cell(step, ran.then_some(run.rate), run.cut_off));
        let bound = variant.to_base.block_bounds.get(&run.block).copied();
        row.push(ratio_cell(block_ratio(variant, run.block), bound));
        row.push(fixed(ran.then_some(run.window_seconds), 2).into());
        if step.target.is_some() {
            row.push(rate(run.judged_background_rate).into());
            row.push(fixed(run.seconds_on_target.map(|share| share * 100.0), 1).into());
        }
        grid.push(row);
    }
    vec![grid]
}

/// The ratio with three decimals, and on which side of it the true one lies.
fn ratio_cell(value: Option<f64>, bound: Option<Bound>) -> Cell {
    Cell { bound, ..known(value, format!("{}{}", sign_of(bound), ratio(value, 3))) }
}

/// Returns the variant's ratio to the base in one block, when both are valid there.
fn block_ratio(variant: &VariantStep, block: u32) -> Option<f64> {
    variant
        .to_base
        .ratio
        .as_ref()?
        .blocks
        .iter()
        .find(|(number, _)| *number == block)
        .map(|(_, ratio)| *ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pair;

    #[test]
    fn a_time_that_was_cut_off_is_marked_wherever_it_or_its_ratio_stands() {
        let mut step = pair("q1", 2.0, 2);
        step.less_is_better = true;
        let new = &mut step.variants[1];
        new.runs[1].cut_off = true;
        new.rate_max = Some(new.runs[1].rate);
        new.rate_min = Some(new.runs[0].rate / 2.0);
        new.to_base.ratio.as_mut().unwrap().bound = Some(Bound::MoreThan);
        new.to_base.block_bounds = [(new.runs[1].block, Bound::MoreThan)].into();
        let marked = |table: &Table, row: usize| -> Vec<String> {
            let marked =
                |(at, cell): &(usize, &Cell)| cell.bound.is_some() && cell.text.starts_with("> ") && *at > 0;
            let cells = table.rows[row].iter().enumerate().filter(marked);
            cells.map(|(at, _)| table.columns[at].name.to_string()).collect()
        };
        assert_eq!(marked(&by_variant(&step), 1), ["highest", "ratio"]);
        let blocks = by_block(&step).remove(0);
        assert_eq!([0, 1, 2, 3].map(|row| marked(&blocks, row).len()), [0, 0, 0, 2]);
    }

    #[test]
    fn with_two_blocks_each_run_has_its_own_line() {
        let grid = by_block(&pair("l.i0", 1.0, 2)).remove(0);
        assert_eq!(grid.rows.len(), 4);
        assert_eq!(grid.rows[3][..3].join(" "), "<b>&\" 2 valid");
        assert!(by_block(&pair("l.i0", 1.0, 1)).is_empty());
    }
}
