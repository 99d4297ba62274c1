//! Tables of figures from repetitions: verdicts with their intervals, steadiness within a run,
//! single executions, and a step's headline rate by variant over all blocks and block by block.

use dbdyno_analyse::{Bound, Inference, Paired, Steadiness, StepFindings, Validity, VariantStep, p_text};

use super::{has_blocks, of_runs, runs};
use crate::document::{Table, TableCell};
use crate::number::{
    NOT_AVAILABLE, count, fixed, interval_text, needed_blocks, percent, rate, ratio, seconds_text,
};
use crate::views::cells::{headline_cell, known, number, sign_of};
use crate::words::{table, table_of};

/// Makes the tables of figures over all executions, and of each execution's seconds.
pub(crate) fn executions(step: &StepFindings) -> Vec<Table> {
    vec![composite(step), one_by_one(step)]
}

/// Makes the table of each execution's seconds. It has no rows where no time counts by itself.
pub(crate) fn one_by_one(step: &StepFindings) -> Table {
    let several = runs(step).any(|(_, run)| run.executions.iter().any(|execution| execution.client > 1));
    let table = table("executions").without(if several { &[] } else { &["stream"] });
    of_runs(step, table, |run| {
        let row = run.executions.iter().map(|execution| {
            let mut row = vec![TableCell::from(execution.name.as_str())];
            row.extend(several.then(|| execution.client.to_string().into()));
            row.push(execution.repetition.to_string().into());
            row.push(headline_cell(step, execution.seconds, execution.cut_off));
            row.push(count(execution.rows).into());
            row
        });
        row.collect::<Vec<_>>()
    })
}

/// Makes the table of figures over all executions. It has no rows for a step with one query.
pub(crate) fn composite(step: &StepFindings) -> Table {
    of_runs(step, table("composite"), |run| {
        run.composite.map(|found| {
            vec![
                found.queries.to_string(),
                seconds_text(found.geometric_mean_seconds),
                fixed(Some(found.queries_per_hour), 0),
                found.cut_off.to_string(),
            ]
        })
    })
}

/// Makes the table of steadiness: worst second, gaps, warm-up, period and two modes.
pub(crate) fn steadiness(step: &StepFindings) -> Table {
    of_runs(step, table_of(step, "steadiness"), |run| run.steadiness.as_ref().map(of_seconds))
}

fn of_seconds(found: &Steadiness) -> Vec<String> {
    let seconds =
        |value: Option<usize>, none: &str| value.map_or_else(|| none.to_owned(), |value| value.to_string());
    vec![
        rate(Some(found.median_rate)),
        rate(Some(found.worst_rate)),
        fixed(found.worst_share.map(|share| 100.0 * share), 0),
        found.longest_gap_seconds.to_string(),
        fixed(Some(100.0 * found.share_below_half_median), 1),
        seconds(found.warm_up_seconds, if found.never_steady { "never steady" } else { "NA" }),
        seconds(found.period_seconds, "none"),
        found.modes.zip(found.low_mode_share).map_or_else(
            || "no".to_owned(),
            |([low, high], share)| {
                format!("{} ({} %) and {}", rate(Some(low)), fixed(Some(100.0 * share), 0), rate(Some(high)))
            },
        ),
    ]
}

/// Makes the table of intervals by three methods, p-values and power.
pub(crate) fn verdicts(step: &StepFindings) -> Table {
    let mut grid = table("verdict");
    for variant in &step.variants {
        let Some((ratio, inference)) = variant.to_base.ratio.as_ref().zip(variant.to_base.inference()) else {
            continue;
        };
        let mut row = vec![variant.variant.clone()];
        row.push(verdict_text(variant));
        row.push(fixed(Some(100.0 * step.margin), 1));
        row.extend([ratio.blocks.len().to_string(), fixed(Some(ratio.value), 4)]);
        row.extend(of_inference(inference));
        grid.push(row);
    }
    grid
}

/// Returns words such as `faster`, or `faster, interim analysis 2 of 4` in a run with a budget.
fn verdict_text(variant: &VariantStep) -> String {
    let word = variant.to_base.verdict.map_or("", |verdict| verdict.word());
    match variant.to_base.decided {
        Some(at) => format!("{word}, interim analysis {} of {}", at.look, at.of),
        None => word.to_owned(),
    }
}

fn of_inference(inference: &Inference) -> Vec<String> {
    let paired = inference.paired.as_ref();
    let of = |text: fn(&Paired) -> String| paired.map_or_else(|| NOT_AVAILABLE.to_owned(), text);
    let mut row = vec![interval_text(inference.interval)];
    row.push(of(|paired| interval_text(paired.bootstrap)));
    row.push(of(|paired| fixed(Some(paired.robust_value), 4)));
    row.push(of(|paired| {
        let confidence = fixed(Some(100.0 * paired.robust_confidence), 1);
        format!("{} ({confidence} %)", interval_text(paired.robust_interval))
    }));
    row.extend(
        [inference.p_difference, inference.q_difference, inference.p_same, inference.q_same].map(p_text),
    );
    row.push(of(|paired| percent(paired.deviation.exp_m1())));
    row.push(of(|paired| percent(paired.detectable_ratio - 1.0)));
    row.push(of(|paired| needed_blocks(paired.blocks_for_twice_margin)));
    row
}

/// Columns that a table has only for several blocks.
const OF_BLOCKS: [&str; 4] = ["lowest", "highest", "95 % interval", "verdict"];
/// Columns that a table has only for a step with a target.
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

fn variant_row(step: &StepFindings, variant: &VariantStep, blocks: bool) -> Vec<TableCell> {
    let valid = variant.valid_runs().count();
    let mut row = vec![variant.variant.clone().into(), format!("{valid} of {}", variant.runs.len()).into()];
    row.push(figure_cell(step, variant.rate, variant.cut_off));
    if blocks {
        // The true time of a block that was cut off may be any longer one.
        let is_over = |rate: f64| variant.valid_runs().any(|run| run.cut_off && run.rate <= rate);
        let end = |rate: Option<f64>| figure_cell(step, rate, rate.is_some_and(is_over));
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

fn figure_cell(step: &StepFindings, figure: Option<f64>, cut_off: bool) -> TableCell {
    figure.map_or_else(|| TableCell::from(NOT_AVAILABLE), |figure| headline_cell(step, figure, cut_off))
}

/// Makes the table with the rate of each single run. There is none for a single block.
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

/// Makes a table cell with the ratio in three decimals. For a bound it says on which side the true
/// ratio lies.
fn ratio_cell(value: Option<f64>, bound: Option<Bound>) -> TableCell {
    let bound = bound.filter(|_| value.is_some());
    TableCell { bound, ..known(value, format!("{}{}", sign_of(bound), ratio(value, 3))) }
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
    use crate::views::testing::rows;

    #[test]
    fn a_run_that_never_became_steady_and_two_levels_are_said_in_words() {
        let mut step = pair("qr100", 1.0, 1);
        let found = step.variants[1].runs[0].steadiness.as_mut().expect("of a step with seconds");
        (found.warm_up_seconds, found.never_steady, found.period_seconds) = (None, true, None);
        (found.modes, found.low_mode_share) = (Some([500.0, 1_000.0]), Some(0.2));
        insta::assert_snapshot!(rows(&steadiness(&step)), @r#"
        rollback | 1,000 | 330 | 33 | 0 | 6.7 | 5 | 13 | no
        <b>&" | 1,000 | 330 | 33 | 0 | 6.7 | never steady | none | 500 (20 %) and 1,000
        "#);
        step.variants.iter_mut().for_each(|variant| variant.runs[0].steadiness = None);
        assert!(steadiness(&step).rows.is_empty(), "one piece of work has none");
    }

    #[test]
    fn the_base_and_a_single_block_have_no_row() {
        let several = verdicts(&pair("l.i0", 1.02, 3));
        assert_eq!(several.rows.len(), 1);
        assert_eq!(several.rows[0][..4].join(" "), "<b>&\" undecided 2.0 3");
        assert!(verdicts(&pair("l.i0", 1.02, 1)).rows.is_empty());
    }

    #[test]
    fn a_time_that_was_cut_off_is_marked_wherever_it_or_its_ratio_is_shown() {
        let mut step = pair("q1", 2.0, 2);
        step.less_is_better = true;
        let new = &mut step.variants[1];
        new.runs[1].cut_off = true;
        new.rate_max = Some(new.runs[1].rate);
        new.rate_min = Some(new.runs[0].rate / 2.0);
        new.to_base.ratio.as_mut().unwrap().bound = Some(Bound::MoreThan);
        new.to_base.block_bounds = [(new.runs[1].block, Bound::MoreThan)].into();
        let marked = |table: &Table, row: usize| -> Vec<String> {
            let marked = |(at, cell): &(usize, &TableCell)| {
                cell.bound.is_some() && cell.text.starts_with("> ") && *at > 0
            };
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
