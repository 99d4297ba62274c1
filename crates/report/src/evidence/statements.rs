//! Statements within operations, by kind: how many, how many found no row, how long each took.

use dbdyno_analyse::{StatementResult, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{NOT_AVAILABLE, count, duration_us, duration_whole_us, fixed, rate};

pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Statements of the operations answered, over the window. Time: from sending to answered.";
    let mut labels = run_columns(step);
    labels.push(Column::new("statement", "", ""));
    let figures = [
        ("count", "", ""),
        ("rate", "statements/s", ""),
        ("rows", "", "Rows fetched or changed; of a scan, those that it looked at."),
        ("no row", "", "Statements that neither fetched nor changed a row."),
        ("no row", "%", "The same as a share."),
        ("mean", "", ""),
        ("p50", "", ""),
        ("p95", "", ""),
        ("p99", "", ""),
        ("max", "", ""),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Statements", note, labels, figures);
    for (variant, run) in runs(step) {
        for statement in run.kinds.iter().flat_map(|kind| &kind.statements) {
            let mut row = run_labels(step, variant, run);
            row.push(statement.statement.clone());
            row.extend(figures_of(statement));
            grid.push(row);
        }
    }
    grid
}

fn figures_of(found: &StatementResult) -> Vec<String> {
    let mut row = vec![count(found.count), rate(Some(found.per_second))];
    // A statement that begins or ends a transaction looks for nothing.
    if ["begin", "commit"].contains(&found.statement.as_str()) || found.count == 0 {
        row.extend(["", "", ""].map(|_| NOT_AVAILABLE.to_owned()));
    } else {
        let share = 100.0 * found.empty as f64 / found.count as f64;
        row.extend([count(found.rows), count(found.empty), fixed(Some(share), 1)]);
    }
    let service = &found.service;
    if service.count == 0 {
        row.resize(row.len() + 5, NOT_AVAILABLE.to_owned());
        return row;
    }
    row.push(duration_us(service.mean_us));
    row.extend([service.p50_us, service.p95_us, service.p99_us, service.max_us].map(duration_whole_us));
    row
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::Latency;

    use super::*;

    fn row(statement: &str, empty: u64) -> String {
        let service = Latency {
            count: 200,
            mean_us: 104.5,
            p50_us: 90,
            p95_us: 310,
            p99_us: 1_520,
            max_us: 2_310_000,
            ..Latency::default()
        };
        let statement = statement.to_owned();
        figures_of(&StatementResult {
            statement,
            count: 200,
            empty,
            rows: 200 - empty,
            per_second: 20.0,
            service,
        })
        .join(" | ")
    }

    #[test]
    fn misses_are_counted_and_brackets_have_none() {
        insta::assert_snapshot!(row("delete", 50), @"200 | 20.0 | 150 | 50 | 25.0 | 104.5 µs | 90 µs | 310 µs | 1.52 ms | 2.31 s");
        insta::assert_snapshot!(row("commit", 200), @"200 | 20.0 | NA | NA | NA | 104.5 µs | 90 µs | 310 µs | 1.52 ms | 2.31 s");
    }
}
