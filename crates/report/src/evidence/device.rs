//! The device of the data directory, run by run: the rows of iostat, averaged over the step.

use dbdyno_analyse::{DeviceLoad, StepFindings};

use super::{Column, Grid, run_columns, run_labels, runs};
use crate::number::fixed;

/// One figure of [`DeviceLoad`].
#[derive(Debug, Clone, Copy)]
pub struct DeviceColumn {
    /// The name that iostat gives it.
    pub name: &'static str,
    /// Name of the same figure in machine-readable formats.
    pub field: &'static str,
    pub unit: &'static str,
    pub decimals: usize,
    /// By which tables multiply it.
    pub factor: f64,
    pub meaning: &'static str,
    pub value: fn(&DeviceLoad) -> Option<f64>,
}

const fn column(
    (name, field): (&'static str, &'static str),
    unit: &'static str,
    decimals: usize,
    value: fn(&DeviceLoad) -> Option<f64>,
    meaning: &'static str,
) -> DeviceColumn {
    DeviceColumn { name, field, unit, decimals, factor: 1.0, meaning, value }
}

/// iostat's figures in their order: reads, writes, flushes, then all together.
pub const DEVICE: &[DeviceColumn] = &[
    column(("r/s", "reads_per_second"), "1/s", 1, |d| d.reads_per_second, "Reads that were completed."),
    column(("rKB/s", "read_kib_per_second"), "KiB/s", 1, |d| d.read_kib_per_second, "Read."),
    column(("rareq-sz", "read_size_kib"), "KiB", 1, |d| d.read_size_kib, "Mean size of a read."),
    column(
        ("r_await", "read_await_ms"),
        "ms",
        2,
        |d| d.read_await_ms,
        "Mean time of a read, in the queue and at the device.",
    ),
    column(("w/s", "writes_per_second"), "1/s", 1, |d| d.writes_per_second, "Writes that were completed."),
    column(("wKB/s", "written_kib_per_second"), "KiB/s", 1, |d| d.written_kib_per_second, "Written."),
    column(("wareq-sz", "write_size_kib"), "KiB", 1, |d| d.write_size_kib, "Mean size of a write."),
    column(
        ("w_await", "write_await_ms"),
        "ms",
        2,
        |d| d.write_await_ms,
        "Mean time of a write, in the queue and at the device.",
    ),
    column(
        ("f/s", "flushes_per_second"),
        "1/s",
        1,
        |d| d.flushes_per_second,
        "Flushes of the device's cache, as fsync asks for; of a partition those of its whole disk.",
    ),
    column(("f_await", "flush_await_ms"), "ms", 2, |d| d.flush_await_ms, "Mean time of a flush."),
    column(
        ("aqu-sz", "queue_depth"),
        "requests",
        2,
        |d| d.queue_depth,
        "Requests under way, on average over time: in the queue and at the device.",
    ),
    DeviceColumn {
        factor: 100.0,
        ..column(
            ("util", "busy_share"),
            "% of time",
            1,
            |d| d.busy_share,
            "Time in which at least one request was under way. A device that works at many at once may do more at 100 %.",
        )
    },
];

/// No rows where the device was not sampled.
pub(super) fn grid(step: &StepFindings) -> Grid {
    let figures = DEVICE.iter().map(|column| Column::new(column.name, column.unit, column.meaning));
    let note = "The device of the data directory, with the columns of iostat -x, averaged over the \
                window. It includes IO by other processes.";
    let mut grid = Grid::new("Device", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let Some(device) = &run.device else { continue };
        let mut row = run_labels(step, variant, run);
        let figure = |column: &DeviceColumn| (column.value)(device).map(|value| column.factor * value);
        row.extend(DEVICE.iter().map(|column| fixed(figure(column), column.decimals)));
        grid.rows.push(row);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_field_has_a_column_that_reads_it() {
        let device = DeviceLoad {
            reads_per_second: Some(1.0),
            read_kib_per_second: Some(2.0),
            read_size_kib: Some(3.0),
            read_await_ms: Some(4.0),
            writes_per_second: Some(5.0),
            written_kib_per_second: Some(6.0),
            write_size_kib: Some(7.0),
            write_await_ms: Some(8.0),
            flushes_per_second: Some(9.0),
            flush_await_ms: Some(10.0),
            queue_depth: Some(11.0),
            busy_share: Some(12.0),
        };
        let json = serde_json::to_value(device).expect("plain data");
        assert_eq!(json.as_object().expect("a struct").len(), DEVICE.len());
        for column in DEVICE {
            assert_eq!((column.value)(&device), json[column.field].as_f64(), "{}", column.field);
        }
    }

    #[test]
    fn a_row_has_rates_sizes_times_and_percent_and_a_device_out_of_sight_has_none() {
        let mut findings = fixture::findings();
        let step = &mut findings.workloads[0].steps[4];
        let expected = "rollback 12.4 256.0 20.6 0.21 3210.6 185385.0 57.7 1.50 NA NA 4.82 83.1";
        assert_eq!(grid(step).rows[0].join(" "), expected);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.device = None;
        }
        assert!(grid(step).rows.is_empty());
    }
}
