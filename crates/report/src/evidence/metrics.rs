//! Groups of metrics, run by run.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{MetricGroup, StepFindings};

use super::{Head, of_runs};
use crate::document::Table;
use crate::number::fixed;

const TAG: Head<'_> = ("tag", "", "Name of the variant as the original would tag it.");

/// All metrics of a group; the last ones in a table of their own where the group has one for them.
/// No rows where the group was not sampled.
pub(super) fn tables(step: &StepFindings, group: &MetricGroup) -> Vec<Table> {
    match group.table_of_last {
        None => vec![grid(step, group, (group.title, group.note), |_| true)],
        Some(last) => vec![
            grid(step, group, (group.title, group.note), |metric| !metric.is_last),
            grid(step, group, last, |metric| metric.is_last),
        ],
    }
}

fn grid(
    step: &StepFindings,
    group: &MetricGroup,
    (title, note): (&str, &str),
    is_shown: fn(&Metric) -> bool,
) -> Table {
    let tag = (group.name == "metrics").then_some(TAG);
    let shown = group.in_tables().filter(|metric| is_shown(metric));
    let heads = shown.map(|metric| (metric.name, metric.unit, metric.meaning)).chain(tag);
    let note = note.replace("{unit}", &step.rate_label);
    of_runs(step, (title, &note), &[], &heads.collect::<Vec<_>>(), |run| {
        let row = (group.of)(run).map(|group| {
            let shown = group.figures().into_iter().filter(|(metric, _)| is_shown(metric));
            let text = |(metric, value): (&Metric, Option<f64>)| {
                fixed(value.map(|value| metric.factor * value), metric.decimals)
            };
            shown.map(text).chain(tag.map(|_| run.metrics.tag.clone())).collect()
        });
        row.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

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
        let mut findings = fixture::findings();
        let step = &mut findings.workloads[0].steps[4];
        let device = |step: &StepFindings| tables(step, &MetricGroup::ALL[3]).remove(0);
        let expected = "rollback 12.4 256.0 20.6 0.21 3,210.6 185,385.0 57.7 1.50 NA NA 4.82 83.1";
        assert_eq!(device(step).rows[0].join(" "), expected);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.device = None;
        }
        assert!(device(step).rows.is_empty());
    }
}
