//! Groups of metrics, run by run: the original's row, hardware efficiency, CPU and IO, the device.

use dbdyno_analyse::metrics::{Cost, DeviceLoad, Figures, Metric};
use dbdyno_analyse::{StepFindings, StepRun};

use super::{Head, of_runs, runs};
use crate::document::{Column, Table};
use crate::number::fixed;

/// The original's columns under its names.
pub(super) fn original(step: &StepFindings) -> Table {
    let note =
        "The original's columns under its names. Averages over the window; NA where nothing was measured.";
    let mut grid = grid(step, "Metrics", note, |run| Some(&run.metrics), |_| true);
    grid.columns.push(Column::new("tag", "", "Name of the variant as the original would tag it."));
    for ((_, run), row) in runs(step).zip(&mut grid.rows) {
        row.push(run.metrics.tag.clone().into());
    }
    grid
}

/// As published for microbenchmarks.
pub(super) fn efficiency(step: &StepFindings) -> Table {
    let note = "The figures of published microbenchmarks, for the whole host. An operation is a statement, or a row where the step counts rows.";
    grid(step, "Hardware efficiency", note, |run| Some(&run.efficiency), |_| true)
}

/// CPU charged to who used it, switches, fsyncs and reads, for one unit of a step's headline; then
/// who slept and had to be woken.
pub(super) fn costs(step: &StepFindings) -> [Table; 2] {
    let unit = &step.rate_label;
    let note = format!(
        "CPU time per unit of the rate ({unit}), by process; then context switches, fsyncs and reads."
    );
    let wake_note = format!(
        "Sleeps and wake-ups per unit of the rate ({unit}). The server pays for waking a client that sleeps."
    );
    let of = |title, note, is_last| {
        grid::<Cost>(step, title, note, |run| Some(&run.cost), |metric| metric.is_last == is_last)
    };
    [of("CPU and fsyncs", &note, false), of("Wake-ups", &wake_note, true)]
}

/// The rows of iostat, averaged over the step. No rows where the device was not sampled.
pub(super) fn device(step: &StepFindings) -> Table {
    let note = "The device of the data directory, with the columns of iostat -x, averaged over the window. It includes IO by other processes.";
    grid::<DeviceLoad>(step, "Device", note, |run| run.device.as_ref(), |_| true)
}

fn grid<G: Figures>(
    step: &StepFindings,
    title: &str,
    note: &str,
    group: fn(&StepRun) -> Option<&G>,
    is_shown: impl Fn(&Metric) -> bool,
) -> Table {
    let shown = G::in_tables().filter(|metric| is_shown(metric));
    let heads: Vec<Head<'_>> = shown.map(|metric| (metric.name, metric.unit, metric.meaning)).collect();
    of_runs(step, (title, note), &[], &heads, |run| {
        let row = group(run).map(|group| {
            let shown = group.figures().filter(|(metric, _)| is_shown(metric));
            let text = |(metric, value): (&Metric, Option<f64>)| {
                fixed(value.map(|value| metric.factor * value), metric.decimals)
            };
            shown.map(text).collect()
        });
        row.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::MetricRow;

    use super::*;
    use crate::fixture;

    #[test]
    fn the_columns_have_the_originals_names_in_its_order() {
        let names: Vec<_> = MetricRow::in_tables().map(|metric| metric.name).collect();
        assert_eq!(
            names.join(" "),
            "ips qps rps rmbps wps wmbps rpq rkbpq wpi wkbpi csps cpups cspq cpupq dbgb1 dbgb2 rss maxop p50 p99"
        );
    }

    #[test]
    fn a_row_has_rates_sizes_times_and_percent_and_a_device_out_of_sight_has_none() {
        let mut findings = fixture::findings();
        let step = &mut findings.workloads[0].steps[4];
        let expected = "rollback 12.4 256.0 20.6 0.21 3,210.6 185,385.0 57.7 1.50 NA NA 4.82 83.1";
        assert_eq!(device(step).rows[0].join(" "), expected);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.device = None;
        }
        assert!(device(step).rows.is_empty());
    }
}
