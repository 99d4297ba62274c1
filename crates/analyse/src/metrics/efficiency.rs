//! Computes hardware efficiency as published for microbenchmarks: CPU and IO of the host per
//! statement.

use dbdyno_record::Unit;

use super::{MetricRow, group};
use crate::window::WindowSummary;
use crate::window::counters::KIB;

group! {
    /// The published figures under their names, with `/` written as `_`. The operation `o` is a
    /// statement, including those that begin and end a transaction. It is a row where the step's
    /// headline counts rows.
    #[derive(Copy)]
    Efficiency: |c: Statements<'_>| {
        o_s: "o/s", "1/s", 0, More, c.step.in_window(c.step.headline_rate() * c.statements), is_last = true,
            is_published = true,
            "Operations per second: statements, BEGIN and COMMIT included; rows where the step \
             counts rows.";
        cpu_o: "cpu/o", "%·s/op", 6, Less,
            Some(c.of(c.row.cpupq)? / (f64::from(c.step.cpus) * 1e4)).filter(|_| c.step.cpus > 0),
            is_published = true,
            "Percent of the whole machine's CPU, divided by operations per second. × CPUs × 10⁴ \
             = µs per operation.";
        cs_o: "cs/o", "1/op", 3, Less, c.of(c.row.cspq), is_published = true,
            "Context switches of the whole host for one operation.";
        r_o: "r/o", "1/op", 3, Less, c.of(c.row.rpq), is_published = true,
            "Reads of the block device for one operation.";
        rkb_o: "rKB/o", "KiB/op", 3, Less, c.of(c.row.rkbpq), is_published = true,
            "KiB read from the block device for one operation.";
        wkb_o: "wKB/o", "KiB/op", 3, Less, Some(c.of(c.step.per_unit("disk", &["written_bytes"]))? / KIB),
            is_published = true,
            "KiB written to the block device for one operation.";
    }
}

/// What the figures are computed from.
struct Statements<'a> {
    step: &'a WindowSummary<'a>,
    row: &'a MetricRow,
    /// Statements per unit of the headline.
    statements: f64,
}

impl Statements<'_> {
    /// Turns a figure per unit of the headline into one per statement.
    fn of(&self, of_unit: Option<f64>) -> Option<f64> {
        Some(of_unit? / self.statements)
    }
}

/// Computes what the host used between two samples ÷ the operations between the same two samples,
/// as for all figures per unit. The original divides averages of each second by the window's rate.
/// The result is the same where samples lie at the window's edges.
pub(crate) fn efficiency(step: &WindowSummary<'_>, row: &MetricRow) -> Efficiency {
    Efficiency::of(&Statements { step, row, statements: statements(step) })
}

/// Statements per unit of the headline.
fn statements(step: &WindowSummary<'_>) -> f64 {
    match step.headline() {
        Some(kind) if kind.unit == Unit::Operations => f64::from(kind.spec.statements_per_operation),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{completed, load_spec, read_write_step, series, summary, with_counters};
    use crate::metrics::original::metric_row;
    use crate::window::Hosting;
    use crate::window::counters::{Counters, HOST_BUSY};

    /// Figures per query for 500 queries, as `cpupq` and its neighbours have them.
    fn row() -> MetricRow {
        MetricRow {
            cpupq: Some(192_000.0),
            cspq: Some(40.0),
            rpq: Some(2.0),
            rkbpq: Some(10.24),
            ..MetricRow::default()
        }
    }

    fn of_statements(statements_per_operation: u32, row: &MetricRow) -> Efficiency {
        let mut step = read_write_step();
        step.spec.kinds[2].statements_per_operation = statements_per_operation;
        step.counters =
            series("disk", &["written_bytes"], &[(0, vec![0]), (2_500_000, vec![500 * 5 * 1024])]);
        efficiency(&WindowSummary::of(&step, Hosting::Process, 48), row)
    }

    #[test]
    fn the_figures_follow_the_published_formulas() {
        // The rate is 200 queries per second. 0.4 % of 48 CPUs for a second is 192 ms.
        let found = of_statements(1, &row());
        assert_eq!((found.o_s, found.cpu_o, found.cs_o), (Some(200.0), Some(0.4), Some(40.0)));
        assert_eq!((found.r_o, found.rkb_o, found.wkb_o), (Some(2.0), Some(10.24), Some(5.0)));
    }

    #[test]
    fn an_operation_is_a_statement_and_not_a_transaction() {
        let found = of_statements(20, &row());
        assert_eq!((found.o_s, found.cpu_o, found.wkb_o), (Some(4_000.0), Some(0.02), Some(0.25)));
    }

    #[test]
    fn the_published_cpu_example_gives_the_published_figure() {
        // 0.000167 on 48 CPUs was published as 80 µs per operation.
        let found = of_statements(1, &MetricRow { cpupq: Some(80.16), ..row() });
        assert!((found.cpu_o.unwrap() - 0.000_167).abs() < 1e-12);
    }

    #[test]
    fn both_tables_agree_however_far_samples_lie_from_the_windows_edges() {
        // The samples are 0.2 s early and 0.3 s late, and lie around 530 of the load's 550 queries.
        let samples = |last: Vec<i64>| [(-200_000, vec![0; last.len()]), (2_800_000, last)];
        let mut counters = series("disk", &["reads", "written_bytes"], &samples(vec![1_060, 5_300 * 1024]));
        counters.extend(series("host", &HOST_BUSY, &samples(vec![5_300_000, 0, 0, 0, 0])));
        let step = with_counters(&counters);
        let measured = summary(&step);
        let row = metric_row(&measured, "a");
        let found = efficiency(&measured, &row);
        assert_eq!((row.cpupq, found.cpu_o), (Some(10_000.0), Some(0.25)));
        assert_eq!((row.rpq, found.r_o, found.wkb_o), (Some(2.0), Some(2.0), Some(10.0)));
    }

    #[test]
    fn a_figure_is_not_available_where_nothing_was_done_or_sampled() {
        let step = completed(load_spec(), Vec::new(), (0, 2_500_000), Counters::new());
        let idle = efficiency(&summary(&step), &MetricRow { cpupq: None, ..row() });
        assert_eq!((idle.o_s, idle.cpu_o, idle.wkb_o), (Some(0.0), None, None));
    }
}
