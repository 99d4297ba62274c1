//! The headline rate of a step: by variant over all blocks, and block by block.

use dbdyno_analyse::statistics::describe::median;
use dbdyno_analyse::{StepFindings, StepRun, Validity, VariantStep, seconds_text};

use super::{BLOCK, Head, has_blocks, runs, state};
use crate::document::Table;
use crate::number::{NOT_AVAILABLE, fixed, interval_text, rate, ratio};

/// What is held against the target.
const JUDGED: &str =
    "Background rate if every client were as slow as the slowest: this is compared with the target.";
const ON_TARGET: Head<'_> = ("on target", "% of seconds", "Seconds in which the background rate was kept.");

/// Rate, ratio and window of each variant.
pub(super) fn by_variant(step: &StepFindings) -> Table {
    let (blocks, rate_label) = (has_blocks(step), step.rate_label.as_str());
    let note = if step.less_is_better {
        "Seconds of an execution, or from beginning to end; the median over blocks. Ratio: to the base; below 1 is faster."
    } else if blocks {
        "Rate: median over the valid blocks. Ratio: geometric mean of the ratios to the base within each block."
    } else {
        "Rate over the common window, in which all clients were at work. Ratio: to the base."
    };
    let mut figures = vec![("valid", "runs", "Valid runs of all runs."), ("rate", rate_label, "")];
    if blocks {
        figures.push(("least", rate_label, "Lowest rate of a valid block."));
        figures.push(("greatest", rate_label, "Highest rate of a valid block."));
    }
    figures.push(("ratio", "", "Rate divided by the base's rate."));
    if blocks {
        figures.push(("95 % interval", "", "Of the ratio, paired by block, by Student's t."));
        figures.push(("verdict", "", "Against the base, with the plan's margin."));
    }
    figures.push(("window", "s", "Length of the common window; median over the valid runs."));
    if step.target.is_some() {
        figures.push(("background", "rows/s", "Rate of the background writers over all clients."));
        figures.push(("judged", "rows/s", JUDGED));
        figures.push(ON_TARGET);
    }
    let mut grid = Table::new("Rate", note, ["variant"], figures);
    for variant in &step.variants {
        grid.push(variant_row(step, variant, blocks));
    }
    grid
}

fn variant_row(step: &StepFindings, variant: &VariantStep, blocks: bool) -> Vec<String> {
    let valid: Vec<&StepRun> = variant.runs.iter().filter(|run| run.validity == Validity::Valid).collect();
    let mut row = vec![variant.variant.clone(), format!("{} of {}", valid.len(), variant.runs.len())];
    row.push(bounded(variant.cut_off, headline(step, variant.rate)));
    if blocks {
        row.extend([variant.rate_min, variant.rate_max].map(|figure| headline(step, figure)));
    }
    row.push(ratio(variant.ratio.as_ref().map(|ratio| ratio.value), 3));
    if blocks {
        let inference = variant.ratio.as_ref().and_then(|ratio| ratio.inference.as_ref());
        row.push(inference.map_or_else(|| NOT_AVAILABLE.to_owned(), |found| interval_text(found.interval)));
        row.push(variant.verdict.map_or("", |verdict| verdict.word()).to_owned());
    }
    let windows: Vec<f64> = valid.iter().map(|run| run.window_seconds).collect();
    row.push(fixed(median(&windows), 2));
    if step.target.is_some() {
        row.extend([variant.background_rate, variant.judged_background_rate].map(rate));
        let on_target: Vec<f64> = valid.iter().filter_map(|run| run.seconds_on_target).collect();
        row.push(fixed(median(&on_target).map(|share| share * 100.0), 1));
    }
    row
}

/// A rate, or seconds.
fn headline(step: &StepFindings, figure: Option<f64>) -> String {
    match figure {
        Some(seconds) if step.less_is_better => seconds_text(seconds),
        figure => rate(figure),
    }
}

fn bounded(is_bound: bool, figure: String) -> String {
    if is_bound { format!("> {figure}") } else { figure }
}

/// Every run by itself; only when there is more than one block.
pub(super) fn by_block(step: &StepFindings) -> Option<Table> {
    if !has_blocks(step) {
        return None;
    }
    let rate_label = step.rate_label.as_str();
    let mut figures = vec![
        ("state", "", ""),
        ("rate", rate_label, ""),
        ("ratio", "", "Rate divided by the base's rate in the same block."),
        ("window", "s", "Length of the common window."),
    ];
    if step.target.is_some() {
        figures.extend([("judged", "rows/s", JUDGED), ON_TARGET]);
    }
    let labels = [("variant", "", ""), BLOCK];
    let mut grid = Table::new("Rate by block", "Each run by itself.", labels, figures);
    for (variant, run) in runs(step) {
        let ran = matches!(run.validity, Validity::Valid | Validity::Invalid { .. });
        let mut row = vec![variant.variant.clone(), run.block.to_string(), state(&run.validity).to_owned()];
        row.push(bounded(run.cut_off, headline(step, ran.then_some(run.rate))));
        row.push(ratio(block_ratio(variant, run.block), 3));
        row.push(fixed(ran.then_some(run.window_seconds), 2));
        if step.target.is_some() {
            row.push(rate(run.judged_background_rate));
            row.push(fixed(run.seconds_on_target.map(|share| share * 100.0), 1));
        }
        grid.push(row);
    }
    Some(grid)
}

/// The variant's ratio to the base in one block, when both are valid there.
pub(crate) fn block_ratio(variant: &VariantStep, block: u32) -> Option<f64> {
    variant.ratio.as_ref()?.blocks.iter().find(|(number, _)| *number == block).map(|(_, ratio)| *ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn with_two_blocks_each_run_has_its_own_line() {
        let findings = fixture::with_blocks(2);
        let grid = by_block(&findings.workloads[0].steps[0]).expect("two blocks");
        assert_eq!(grid.rows.len(), 4);
        assert_eq!(grid.rows[3][..3].join(" "), "<b>&\" 2 valid");
        assert!(by_block(&fixture::findings().workloads[0].steps[0]).is_none());
    }
}
