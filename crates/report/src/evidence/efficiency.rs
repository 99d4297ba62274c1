//! Hardware efficiency as published for microbenchmarks: its columns, their units, decimals and meaning.

use dbdyno_analyse::{Efficiency, StepFindings};

use super::{Column, Grid, run_columns, run_labels, runs};
use crate::number::fixed;

/// One published figure.
#[derive(Debug, Clone, Copy)]
pub struct EfficiencyColumn {
    /// The published name.
    pub name: &'static str,
    /// Name of the same figure in machine-readable formats.
    pub field: &'static str,
    pub unit: &'static str,
    pub decimals: usize,
    pub meaning: &'static str,
    pub value: fn(&Efficiency) -> Option<f64>,
}

/// The published figures in their order.
pub const EFFICIENCY: &[EfficiencyColumn] = &[
    EfficiencyColumn {
        name: "cpu/o",
        field: "cpu_o",
        unit: "%·s/op",
        decimals: 6,
        meaning: "Percent of the whole machine's CPU, divided by operations per second. × CPUs × 10⁴ = µs an operation.",
        value: |row| row.cpu_o,
    },
    EfficiencyColumn {
        name: "cs/o",
        field: "cs_o",
        unit: "1/op",
        decimals: 3,
        meaning: "Context switches of the whole host for one operation.",
        value: |row| row.cs_o,
    },
    EfficiencyColumn {
        name: "r/o",
        field: "r_o",
        unit: "1/op",
        decimals: 3,
        meaning: "Reads of the block device for one operation.",
        value: |row| row.r_o,
    },
    EfficiencyColumn {
        name: "rKB/o",
        field: "rkb_o",
        unit: "KiB/op",
        decimals: 3,
        meaning: "KiB read from the block device for one operation.",
        value: |row| row.rkb_o,
    },
    EfficiencyColumn {
        name: "wKB/o",
        field: "wkb_o",
        unit: "KiB/op",
        decimals: 3,
        meaning: "KiB written to the block device for one operation.",
        value: |row| row.wkb_o,
    },
    EfficiencyColumn {
        name: "o/s",
        field: "o_s",
        unit: "1/s",
        decimals: 0,
        meaning: "Operations per second: statements, BEGIN and COMMIT included; rows where the step counts rows.",
        value: |row| row.o_s,
    },
];

pub(super) fn grid(step: &StepFindings) -> Grid {
    let figures = EFFICIENCY.iter().map(|column| Column::new(column.name, column.unit, column.meaning));
    let note = "The figures of published microbenchmarks, for the whole host. An operation is a \
                statement, or a row where the step counts rows.";
    let mut grid = Grid::new("Hardware efficiency", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let mut row = run_labels(step, variant, run);
        row.extend(EFFICIENCY.iter().map(|column| fixed((column.value)(&run.efficiency), column.decimals)));
        grid.rows.push(row);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_column_that_reads_it() {
        let row = Efficiency {
            o_s: Some(1.0),
            cpu_o: Some(2.0),
            cs_o: Some(3.0),
            r_o: Some(4.0),
            rkb_o: Some(5.0),
            wkb_o: Some(6.0),
        };
        let json = serde_json::to_value(row).expect("plain data");
        assert_eq!(json.as_object().expect("a struct").len(), EFFICIENCY.len());
        for column in EFFICIENCY {
            assert_eq!((column.value)(&row), json[column.field].as_f64(), "{}", column.field);
        }
    }
}
