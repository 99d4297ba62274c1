//! Look-ups of ids, and the INSERT of `l.x`, which belong to no operation.

use dbdyno_analyse::{Lookups, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{count, fixed};

/// No rows where nothing was asked outside the operations.
pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Statements outside operations, of all clients in the whole step. After many \
                deletes, finding the least id scans deleted rows and may take seconds.";
    let mut labels = run_columns(step);
    labels.push(Column::new("what", "", "The look-up."));
    let figures =
        [("number", "", ""), ("total", "s", "Total time."), ("mean", "ms", ""), ("longest", "ms", "")]
            .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Look-ups", note, labels, figures);
    for (variant, run) in runs(step) {
        for found in &run.lookups {
            let mut row = run_labels(step, variant, run);
            row.push(words(&found.name).to_owned());
            row.extend(figures_of(found));
            grid.push(row);
        }
    }
    grid
}

fn words(name: &str) -> &str {
    match name {
        "min_id" => "least id, min()",
        "max_id" => "greatest id, max()",
        "insert" => "INSERT before the indexes",
        other => other,
    }
}

fn figures_of(found: &Lookups) -> [String; 4] {
    let milliseconds = |seconds: f64| fixed(Some(1000.0 * seconds), 3);
    [
        count(found.count),
        fixed(Some(found.seconds), 3),
        milliseconds(found.mean_seconds),
        milliseconds(found.max_seconds),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_kind_of_look_up_has_a_row_of_its_own() {
        let mut step = fixture::findings().workloads[0].steps[4].clone();
        step.variants.truncate(1);
        step.variants[0].runs[0].lookups = vec![
            Lookups::of("min_id", &[99_800_000, 1_000]),
            Lookups::of("max_id", &[150; 2000]),
            Lookups::of("insert", &[2_500]),
        ];
        let rows: Vec<String> = grid(&step).rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        rollback | least id, min() | 2 | 99.801 | 49,900.500 | 99,800.000
        rollback | greatest id, max() | 2,000 | 0.300 | 0.150 | 0.150
        rollback | INSERT before the indexes | 1 | 0.003 | 2.500 | 2.500
        ");
        step.variants[0].runs[0].lookups.clear();
        assert_eq!(grid(&step).rows.len(), 0, "no look-up, no table");
    }
}
