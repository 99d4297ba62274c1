//! What the server had put off before and after each run of a step.

use dbdyno_analyse::{Debt, DebtLevel, StepFindings, grouped};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::fixed;

/// No rows where it was not recorded.
pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Deferred work of the server before and after the step, outside of the measured \
                window: what it still has to write, purge, compact or vacuum. An increase is work \
                that later steps pay for.";
    let mut labels = run_columns(step);
    labels.push(Column::new("what", "", "Kind of work."));
    let figures = [
        ("before", "MB or number", "Bytes are shown in MB (10^6), all else as a number."),
        ("after", "MB or number", ""),
        ("more", "MB or number", "After minus before; negative where the step worked off more than it made."),
        ("of written", "%", "What was added, as a share of the bytes that the server wrote in the step."),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Deferred work", note, labels, figures);
    for (variant, run) in runs(step) {
        let Some(debt) = &run.debt else { continue };
        // What is zero before and after is left out.
        for level in debt.levels.iter().filter(|level| (level.before, level.after) != (0, 0)) {
            let mut row = run_labels(step, variant, run);
            row.push(level.words.clone());
            row.extend(figures_of(debt, level));
            grid.push(row);
        }
    }
    grid
}

fn figures_of(debt: &Debt, level: &DebtLevel) -> [String; 4] {
    let figure = |value: i64| if level.is_bytes() { megabytes(value) } else { grouped(&value.to_string()) };
    let share = debt.share_of_written(level).filter(|_| level.more() > 0);
    [
        figure(level.before),
        figure(level.after),
        figure(level.more()),
        fixed(share.map(|share| 100.0 * share), 0),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "one decimal of a million is shown")]
fn megabytes(bytes: i64) -> String {
    fixed(Some(bytes as f64 / 1e6), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_was_owed_stands_before_and_after_and_work_that_never_was_is_left_out() {
        let mut step = fixture::findings().workloads[0].steps[0].clone();
        assert_eq!(grid(&step).rows.len(), 0, "not recorded, no table");
        let level = |name: &str, words: &str, before, after| DebtLevel {
            name: name.to_owned(),
            words: words.to_owned(),
            before,
            after,
        };
        step.variants[0].runs[0].debt = Some(Debt {
            levels: vec![
                level("dirty_bytes", "dirty pages", 1_000_000, 513_000_000),
                level("history_list_length", "transactions to purge", 40, 12),
                level("change_buffer_pages", "change buffer pages to merge", 0, 0),
            ],
            written_bytes: Some(1_024_000_000),
        });
        let rows: Vec<String> = grid(&step).rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        rollback | dirty pages | 1.0 | 513.0 | 512.0 | 50
        rollback | transactions to purge | 40 | 12 | -28 | NA
        ");
    }
}
