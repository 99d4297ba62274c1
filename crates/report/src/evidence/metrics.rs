//! Groups of metrics, run by run.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{MetricGroup, StepFindings};

use super::{Head, of_runs};
use crate::document::Table;
use crate::number::fixed;

const TAG: Head<'_> = ("tag", "", "Name of the variant as the original would tag it.");

/// Key of a group in JSON, title and note of its table; `{unit}` is the unit of the step's rate.
/// The metrics that are last have a table of their own where there is a second line.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "metrics",
        "Metrics",
        "The original's columns under its names. Averages over the window; NA where nothing was measured.",
    ),
    (
        "efficiency",
        "Hardware efficiency",
        "As in published reports, for the whole host. An operation is a statement, or a row where the step counts rows.",
    ),
    (
        "cost",
        "CPU and fsyncs",
        "CPU time per unit of the rate ({unit}), by process; then context switches, fsyncs and reads.",
    ),
    (
        "cost",
        "Wake-ups",
        "Sleeps and wake-ups per unit of the rate ({unit}). The server pays for waking a client that sleeps.",
    ),
    (
        "device",
        "Device",
        "The device of the data directory, with the columns of iostat -x, averaged over the window. It includes IO by other processes.",
    ),
];

fn words(group: &MetricGroup) -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.iter().filter(|(name, ..)| *name == group.name).map(|(_, title, note)| (*title, *note))
}

pub(super) fn title(group: &MetricGroup) -> &'static str {
    words(group).next().map_or(group.name, |(title, _)| title)
}

/// All metrics of a group. No rows where the group was not sampled.
pub(super) fn tables(step: &StepFindings, group: &MetricGroup) -> Vec<Table> {
    match words(group).collect::<Vec<_>>()[..] {
        [first, last] => vec![
            grid(step, group, first, |metric| !metric.is_last),
            grid(step, group, last, |metric| metric.is_last),
        ],
        [first] => vec![grid(step, group, first, |_| true)],
        _ => vec![grid(step, group, (group.name, ""), |_| true)],
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
    fn every_group_has_a_title_and_a_note() {
        let without: Vec<_> = MetricGroup::ALL.iter().filter(|group| words(group).next().is_none()).collect();
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
