//! Columns of the CSV report that a step shares with others: the groups it belongs to, and their figures.

use dbdyno_analyse::{Findings, GroupFindings, StepFindings, VariantStep, WorkloadFindings};

use super::number;
use crate::number::NOT_AVAILABLE;

/// Columns of each grouping, after `group_<grouping>_`.
const COLUMNS: [&str; 9] = [
    "steps",
    "average",
    "median",
    "min",
    "max",
    "stddev",
    "geometric_mean",
    "geometric_mean_low",
    "geometric_mean_high",
];

/// Names of the groupings of the whole run, sorted.
pub(super) fn groupings(findings: &Findings) -> Vec<String> {
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let mut names: Vec<String> = steps.flat_map(|step| step.groups.keys().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

pub(super) fn push_header(names: &mut Vec<String>, groupings: &[String]) {
    for grouping in groupings {
        names.push(format!("group_{grouping}"));
        names.extend(COLUMNS.iter().map(|column| format!("group_{grouping}_{column}")));
    }
}

/// The step's group and its figures: the same in the rows of all of its steps. A step that belongs to the setups of several
/// numbers of connections has no figures of its own.
pub(super) fn push(
    row: &mut Vec<String>,
    workload: &WorkloadFindings,
    step: &StepFindings,
    variant: &VariantStep,
    groupings: &[String],
) {
    for grouping in groupings {
        let name = step.groups.get(grouping);
        row.push(name.cloned().unwrap_or_else(|| NOT_AVAILABLE.to_owned()));
        let is_meant = |group: &&GroupFindings| {
            group.grouping == *grouping
                && Some(&group.group) == name
                && group.variant == variant.variant
                && (group.steps.iter().any(|(member, _)| *member == step.name)
                    || group.without.contains(&step.name))
        };
        let mut meant = workload.groups.iter().filter(is_meant);
        row.extend(match (meant.next(), meant.next()) {
            (Some(group), None) => figures(group),
            _ => COLUMNS.map(|_| NOT_AVAILABLE.to_owned()),
        });
    }
}

fn figures(group: &GroupFindings) -> [String; 9] {
    let figures = group.figures;
    [
        figures.map_or_else(|| "0".to_owned(), |figures| figures.count.to_string()),
        number(figures.map(|figures| figures.average)),
        number(figures.map(|figures| figures.median)),
        number(figures.map(|figures| figures.min)),
        number(figures.map(|figures| figures.max)),
        number(figures.and_then(|figures| figures.deviation)),
        number(figures.and_then(|figures| figures.geometric_mean)),
        number(group.interval.map(|interval| interval.low)),
        number(group.interval.map(|interval| interval.high)),
    ]
}
