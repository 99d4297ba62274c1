//! The original's response-time buckets of one kind of operation.

use dbdyno_analyse::StepFindings;

use super::{kind_of, run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{NOT_AVAILABLE, bucket_percent, fixed};

pub(super) fn grid(step: &StepFindings, kind: &str) -> Table {
    let note = "Percent of operations by service time, in the original's buckets (upper bound \
                included). Blank: none. nonzero: less than 0.0005 %.";
    let bounds = runs(step)
        .filter_map(|(_, run)| kind_of(run, kind))
        .map(|result| result.buckets.iter().map(|bucket| bucket.label.clone()).collect::<Vec<_>>())
        .max_by_key(Vec::len)
        .unwrap_or_default();
    let figures = bounds.iter().map(|bound| Column::new(bound, "%", "")).chain([Column::new(
        "max",
        "s",
        "Longest service time over all clients.",
    )]);
    let mut grid = Table::new(&format!("Response-time buckets: {kind}"), note, run_columns(step), figures);
    if bounds.is_empty() {
        return grid;
    }
    for (variant, run) in runs(step) {
        let Some(result) = kind_of(run, kind) else { continue };
        let mut row = run_labels(step, variant, run);
        row.extend(bounds.iter().map(|bound| {
            let bucket = result.buckets.iter().find(|bucket| bucket.label == *bound);
            bucket
                .map_or_else(|| NOT_AVAILABLE.to_owned(), |found| bucket_percent(found.count, found.percent))
        }));
        row.push(fixed((result.service.count > 0).then_some(seconds(result.service.max_us)), 3));
        grid.push(row);
    }
    grid
}

#[expect(clippy::cast_precision_loss, reason = "three decimals are shown")]
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
