//! Columns of the CSV report for look-ups of ids, by what they ask.

use dbdyno_analyse::{Findings, StepRun};

use super::number;
use crate::number::NOT_AVAILABLE;

/// Columns of each name of look-ups, after `lookup_<name>_`.
const COLUMNS: [&str; 4] = ["count", "seconds", "mean_seconds", "max_seconds"];

/// Names of look-ups of the whole run, in the order in which they first appear.
pub(super) fn all(findings: &Findings) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let runs = steps.flat_map(|step| &step.variants).flat_map(|variant| &variant.runs);
    for found in runs.flat_map(|run| &run.lookups) {
        if !names.contains(&found.name) {
            names.push(found.name.clone());
        }
    }
    names
}

pub(super) fn push_header(columns: &mut Vec<String>, names: &[String]) {
    columns.extend(names.iter().flat_map(|name| COLUMNS.map(|column| format!("lookup_{name}_{column}"))));
}

pub(super) fn push(row: &mut Vec<String>, names: &[String], run: &StepRun) {
    for name in names {
        let found = run.lookups.iter().find(|found| found.name == *name);
        row.push(found.map_or_else(|| NOT_AVAILABLE.to_owned(), |found| found.count.to_string()));
        row.push(number(found.map(|found| found.seconds)));
        row.push(number(found.map(|found| found.mean_seconds)));
        row.push(number(found.map(|found| found.max_seconds)));
    }
}
