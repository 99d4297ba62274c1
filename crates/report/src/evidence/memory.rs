//! Memory of a server whose memory is limited: its own, and the page cache of its files.

use dbdyno_analyse::{GroupMemory, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::fixed;

const MIB: f64 = 1024.0 * 1024.0;

/// No rows where no server's memory was limited.
pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Memory of a limited server's control group. The page cache of its files counts \
                against the limit.";
    let figures = [
        ("greatest", "MiB", "The most in any sample of the step, the kernel's own for the group included."),
        ("own", "MiB", "At the end of the window: heaps and buffer pools. PostgreSQL's buffers are shared memory, under page cache."),
        ("page cache", "MiB", "At the end of the window: page cache of files, and shared memory."),
        ("dirty", "MiB", "Of the page cache, what is not on the disk yet."),
        ("limit hits", "1/s", "How often the limit was reached, so that pages had to be taken back first."),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Limited memory", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let Some(memory) = &run.group_memory else { continue };
        let mut row = run_labels(step, variant, run);
        row.extend(figures_of(memory));
        grid.push(row);
    }
    grid
}

#[expect(clippy::cast_precision_loss, reason = "one decimal of a MiB is shown")]
fn figures_of(memory: &GroupMemory) -> [String; 5] {
    let mebibytes = |bytes: Option<i64>| fixed(bytes.map(|bytes| bytes as f64 / MIB), 1);
    [
        mebibytes(memory.greatest_bytes),
        mebibytes(memory.own_bytes),
        mebibytes(memory.page_cache_bytes),
        mebibytes(memory.dirty_bytes),
        fixed(memory.limit_hits_per_second, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn only_runs_with_a_limit_have_a_row() {
        let mut step = fixture::findings().workloads[0].steps[0].clone();
        assert_eq!(grid(&step).rows.len(), 0, "no limit, no table");
        step.variants[1].runs[0].group_memory = Some(GroupMemory {
            greatest_bytes: Some(256 << 20),
            own_bytes: Some(100 << 20),
            page_cache_bytes: Some((150 << 20) + (1 << 19)),
            dirty_bytes: Some(0),
            limit_hits_per_second: None,
        });
        let rows: Vec<String> = grid(&step).rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"<b>&" | 256.0 | 100.0 | 150.5 | 0.0 | NA"#);
    }
}
