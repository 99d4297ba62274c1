//! Tables of the groups of metrics, run by run.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{MetricGroup, StepFindings};

use super::{of_runs, relative};
use crate::document::{Column, Table};
use crate::number::fixed;
use crate::words::table_of;

/// Makes the tables of CPU and IO per operation. Each group is followed by its ratios to the base.
pub(in crate::views) fn per_operation(step: &StepFindings) -> Vec<Table> {
    let of_group = |group| Some(tables(step, group).into_iter().chain([relative::grid(step, group)?]));
    MetricGroup::ALL.iter().filter_map(of_group).flatten().collect()
}

/// Makes the tables of the data directory's device.
pub(in crate::views) fn device(step: &StepFindings) -> Vec<Table> {
    let groups = MetricGroup::ALL.iter().filter(|group| !group.is_compared);
    groups.flat_map(|group| tables(step, group)).collect()
}

/// Makes the tables with all metrics in a group. They have no rows where the group was not sampled.
fn tables(step: &StepFindings, group: &MetricGroup) -> Vec<Table> {
    let table = table_of(step, group.name);
    match group.name {
        "cost" => vec![
            grid(step, group, table, |metric| !metric.is_last),
            grid(step, group, table_of(step, "wake-ups"), |metric| metric.is_last),
        ],
        _ => vec![grid(step, group, table, |_| true)],
    }
}

fn grid(step: &StepFindings, group: &MetricGroup, mut table: Table, is_shown: fn(&Metric) -> bool) -> Table {
    let has_tag = !table.columns.is_empty();
    let shown = group.in_tables().filter(|metric| is_shown(metric));
    table.columns.splice(0..0, shown.map(Column::from));
    of_runs(step, table, |run| {
        (group.of)(run).map(|group| {
            let shown = group.figures().into_iter().filter(|(metric, _)| is_shown(metric));
            let text = |(metric, value): (&Metric, Option<f64>)| {
                fixed(value.map(|value| metric.factor * value), metric.decimals)
            };
            shown.map(text).chain(has_tag.then(|| run.metrics.tag.clone())).collect()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pair;

    #[test]
    fn every_group_has_a_title_and_a_note() {
        let words = |group: &&MetricGroup| crate::words::table(group.name);
        let is_without = |group: &&MetricGroup| words(group).title.is_empty() || words(group).note.is_empty();
        let without: Vec<_> = MetricGroup::ALL.iter().filter(is_without).collect();
        assert!(without.is_empty(), "{:?}", without.iter().map(|group| group.name).collect::<Vec<_>>());
    }

    #[test]
    fn the_columns_have_the_originals_names_in_its_order() {
        let names: Vec<_> = MetricGroup::ALL[0].in_tables().map(|metric| metric.name).collect();
        assert_eq!(
            names.join(" "),
            "ips qps rps rmbps wps wmbps rpq rkbpq wpi wkbpi csps cpups cspq cpupq dbgb1 dbgb2 rss maxop p50 p99"
        );
    }

    #[test]
    fn a_row_has_rates_sizes_times_and_percent_and_a_device_out_of_sight_has_none() {
        let mut step = pair("l.i0", 1.0, 1);
        let device = |step: &StepFindings| device(step).remove(0);
        let expected = "rollback 12.4 256.0 20.6 0.21 3,210.6 185,385.0 57.7 1.50 NA NA 4.82 83.1";
        assert_eq!(device(&step).rows[0].join(" "), expected);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.device = None;
        }
        assert!(device(&step).rows.is_empty());
    }
}
