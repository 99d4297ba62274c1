//! Hardware efficiency as published for microbenchmarks: CPU and IO of the host for one statement.

use dbdyno_record::Unit;
use serde::Serialize;

use crate::MetricRow;
use crate::measured::Measured;

/// The published figures under their names, `/` written as `_`. The operation `o` is a statement, those that begin and end a
/// transaction included; a row where the step's headline counts rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Efficiency {
    /// Operations per second.
    pub o_s: Option<f64>,
    /// Percent of the whole machine's CPU ÷ operations per second.
    pub cpu_o: Option<f64>,
    /// Context switches of the whole host.
    pub cs_o: Option<f64>,
    /// Reads of the block device.
    pub r_o: Option<f64>,
    /// KB (1024 bytes) read and written.
    pub rkb_o: Option<f64>,
    pub wkb_o: Option<f64>,
}

/// Averages over the window ÷ operations per second in it, as the original computes them.
pub(crate) fn efficiency(step: &Measured<'_>, row: &MetricRow) -> Efficiency {
    let operations_per_second = step.headline_rate() * statements(step);
    let of = |per_second: Option<f64>| {
        per_second.filter(|_| operations_per_second > 0.0).map(|value| value / operations_per_second)
    };
    let kilobytes = |megabytes: Option<f64>| megabytes.map(|value| value * 1024.0);
    Efficiency {
        o_s: Some(operations_per_second),
        cpu_o: of(row.cpups),
        cs_o: of(row.csps),
        r_o: of(row.rps),
        rkb_o: of(kilobytes(row.rmbps)),
        wkb_o: of(kilobytes(row.wmbps)),
    }
}

/// Statements of one unit of the headline.
fn statements(step: &Measured<'_>) -> f64 {
    let headline = &step.spec.headline;
    let kind = step.spec.kinds.iter().find(|kind| kind.kind == headline.kind);
    match (headline.unit, kind) {
        (Unit::Operations, Some(kind)) => f64::from(kind.statements_per_operation),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::fixtures::{load_spec, read_write_step};
    use crate::measured::Hosting;
    use crate::span::Span;

    fn row() -> MetricRow {
        MetricRow {
            cpups: Some(80.0),
            csps: Some(8_000.0),
            rps: Some(400.0),
            rmbps: Some(2.0),
            wmbps: Some(1.0),
            ..MetricRow::default()
        }
    }

    fn of_statements(statements_per_operation: u32, row: &MetricRow) -> Efficiency {
        let mut step = read_write_step();
        step.spec.kinds[2].statements_per_operation = statements_per_operation;
        let (spec, intervals, counters) = (&step.spec, step.intervals.as_slice(), &Counters::new());
        let window = Span::new(0, 2_500_000);
        efficiency(&Measured { spec, intervals, counters, window, hosting: Hosting::Process, cpus: 48 }, row)
    }

    #[test]
    fn the_published_formulas() {
        // 200 queries a second.
        let found = of_statements(1, &row());
        assert_eq!((found.o_s, found.cpu_o, found.cs_o), (Some(200.0), Some(0.4), Some(40.0)));
        assert_eq!((found.r_o, found.rkb_o, found.wkb_o), (Some(2.0), Some(10.24), Some(5.12)));
    }

    #[test]
    fn an_operation_is_a_statement_and_not_a_transaction() {
        let found = of_statements(20, &row());
        assert_eq!((found.o_s, found.cpu_o), (Some(4_000.0), Some(0.02)));
    }

    #[test]
    fn the_published_example_of_cpu() {
        // 0.000167 on 48 CPUs is published as 80 µs an operation.
        let cpu_o = 0.000_167_f64;
        assert_eq!((cpu_o / 100.0 * 48.0 * 1e6).round(), 80.0);
        let rate = 81.5 / cpu_o;
        let found = of_statements(1, &MetricRow { cpups: Some(81.5 * 200.0 / rate), ..row() });
        assert!((found.cpu_o.unwrap() - cpu_o).abs() < 1e-12);
    }

    #[test]
    fn rows_are_operations_where_the_headline_counts_them_and_nothing_is_made_up() {
        let spec = load_spec();
        let intervals = [crate::fixtures::interval(0, 1_000_000, 1, "insert", 10, 1_000)];
        let (counters, window) = (&Counters::new(), Span::new(0, 1_000_000));
        let step = Measured {
            spec: &spec,
            intervals: &intervals,
            counters,
            window,
            hosting: Hosting::Process,
            cpus: 4,
        };
        let found = efficiency(&step, &MetricRow::default());
        assert_eq!(found, Efficiency { o_s: Some(1_000.0), ..Efficiency::default() });
    }
}
