//! How steady each run of a step was: worst second, gaps, warm-up, repetition, two modes.

use dbdyno_analyse::{Steadiness, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{fixed, rate};

pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Whole seconds of the window, within one run: seconds are not independent repetitions.";
    let figures = [
        ("median second", step.rate_label.as_str(), "Rate of the median second."),
        ("worst second", step.rate_label.as_str(), "Rate of the slowest second."),
        ("of median", "%", "The slowest second's rate, as a share of the median second's."),
        ("longest gap", "s", "Most consecutive whole seconds without an operation."),
        ("below half", "% of seconds", "Seconds below half of the median rate."),
        ("warm-up", "s", "Seconds before the rate is steady, by MSER-5; at least 40 seconds are needed."),
        ("period", "s", "Time after which the rate repeats itself, by autocorrelation."),
        (
            "two levels",
            "",
            "The two rates between which the run alternates, and the share of \
                            seconds at the lower one.",
        ),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Steadiness", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        if let Some(found) = &run.steadiness {
            let mut row = run_labels(step, variant, run);
            row.extend(figures_of(found));
            grid.push(row);
        }
    }
    grid
}

fn figures_of(found: &Steadiness) -> [String; 8] {
    let seconds =
        |value: Option<usize>, none: &str| value.map_or_else(|| none.to_owned(), |value| value.to_string());
    [
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_run_that_never_became_steady_and_two_levels_are_said_in_words() {
        let grid = grid(&fixture::findings().workloads[0].steps[4]);
        let rows: Vec<String> = grid.rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        rollback | 9,000 | 2,970 | 33 | 0 | 6.7 | 5 | 13 | no
        <b>&" | 9,360 | 3,089 | 33 | 0 | 6.7 | never steady | none | 4,680 (20 %) and 9,360
        "#);
    }

    #[test]
    fn one_piece_of_work_has_no_row() {
        assert!(grid(&fixture::findings().workloads[0].steps[1]).rows.is_empty());
    }
}
