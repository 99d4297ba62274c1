//! Tables of what repetitions show: verdicts with their intervals, steadiness within a run, and
//! single executions.

use dbdyno_analyse::{Inference, Paired, Steadiness, StepFindings, VariantStep, p_text};

use super::{of_runs, runs};
use crate::document::{Cell, Table};
use crate::number::{NOT_AVAILABLE, count, fixed, interval_text, needed_blocks, percent, rate, seconds_text};
use crate::views::cells::headline_cell;
use crate::words::{table, table_of};

/// Makes the tables of figures over all executions, and of each execution's seconds.
pub(in crate::views) fn executions(step: &StepFindings) -> Vec<Table> {
    vec![composite(step), one_by_one(step)]
}

/// Makes the table of each execution's seconds. It has no rows where no time counts by itself.
pub(crate) fn one_by_one(step: &StepFindings) -> Table {
    let several = runs(step).any(|(_, run)| run.executions.iter().any(|execution| execution.client > 1));
    let table = table("executions").without(if several { &[] } else { &["stream"] });
    of_runs(step, table, |run| {
        let row = run.executions.iter().map(|execution| {
            let mut row = vec![Cell::from(execution.name.as_str())];
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

/// Makes the table of worst second, gaps, warm-up, period and two modes.
pub(in crate::views) fn steadiness(step: &StepFindings) -> Table {
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
pub(in crate::views) fn verdicts(step: &StepFindings) -> Table {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pair;
    use crate::views::small::rows;

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
}
