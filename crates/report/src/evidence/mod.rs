//! Evidence of a step as tables of text, the same in every format.

mod account;
mod buckets;
mod client;
mod debt;
mod host_check;
mod latency;
mod lookups;
mod memory;
mod metrics;
mod operations;
mod query_plans;
pub(crate) mod rates;
mod relative;
mod schedule;
mod statements;
mod steadiness;
mod verdicts;

use dbdyno_analyse::{KindResult, StepFindings, StepRun, Validity, VariantStep, failure_words};
use serde::Serialize;

pub(crate) use account::explanations;
pub use host_check::{HOST_CHECK, HostCheckColumn};
pub(crate) use latency::of_all as latency_of_all;

/// A table of text: the first `labels` columns say what a row is, the rest are figures.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Grid {
    pub(crate) title: String,
    /// One sentence: what the figures are.
    pub(crate) note: String,
    pub(crate) topic: Topic,
    pub(crate) labels: usize,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// What a table of the evidence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Topic {
    /// Response times and schedules.
    Latency,
    /// CPU by who used it, the original's columns, and the client's share.
    Cost,
    /// The device, deferred work, memory.
    Io,
    /// Statements, query plans, look-ups.
    Sql,
    /// Rates by block, ratios, verdicts, steadiness.
    Statistics,
}

/// Head of a column.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Empty where the figures carry their unit or need none.
    pub(crate) unit: String,
    /// What the column says, in words; empty where the name does.
    pub(crate) meaning: String,
}

impl Column {
    pub(crate) fn new(name: &str, unit: &str, meaning: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), meaning: meaning.to_owned() }
    }
}

impl Grid {
    fn new(title: &str, note: &str, labels: Vec<Column>, figures: impl IntoIterator<Item = Column>) -> Self {
        let label_count = labels.len();
        let columns = labels.into_iter().chain(figures).collect();
        Self {
            title: title.to_owned(),
            note: note.to_owned(),
            topic: Topic::Statistics,
            labels: label_count,
            columns,
            rows: Vec::new(),
        }
    }
}

/// All tables of a step in the order of a report: what was reached first, then why. Tables without a row are left out.
pub(crate) fn grids(step: &StepFindings) -> Vec<Grid> {
    let [relative_metrics, relative_efficiency, relative_costs] = relative::grids(step);
    let [costs, wake_ups] = metrics::costs(step);
    let latency =
        kinds(step).into_iter().flat_map(|kind| [latency::grid(step, &kind), buckets::grid(step, &kind)]);
    let topics = [
        (
            Topic::Statistics,
            std::iter::once(rates::by_variant(step))
                .chain(rates::by_block(step))
                .chain([verdicts::grid(step), steadiness::grid(step)])
                .collect::<Vec<_>>(),
        ),
        (Topic::Latency, latency.chain([schedule::grid(step)]).collect()),
        (
            Topic::Cost,
            vec![
                account::grid(step),
                metrics::original(step),
                relative_metrics,
                metrics::efficiency(step),
                relative_efficiency,
                costs,
                wake_ups,
                relative_costs,
                host_check::grid(step),
                client::grid(step),
            ],
        ),
        (Topic::Io, vec![metrics::device(step), debt::grid(step), memory::grid(step)]),
        (
            Topic::Sql,
            vec![
                operations::grid(step),
                lookups::grid(step),
                statements::grid(step),
                query_plans::grid(step),
            ],
        ),
    ];
    let all = topics
        .into_iter()
        .flat_map(|(topic, grids)| grids.into_iter().map(move |grid| Grid { topic, ..grid }));
    all.filter(|grid| !grid.rows.is_empty()).collect()
}

/// Why runs of a step must not be used or are missing, one line a run.
pub(crate) fn problems(step: &StepFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for variant in &step.variants {
        if variant.runs.is_empty() {
            lines.push(format!("{}: this step did not run", variant.variant));
        }
        for run in &variant.runs {
            let reason = reason(&run.validity);
            if !reason.is_empty() {
                let state = state(&run.validity);
                lines.push(format!("{}, block {}: {state}: {reason}", variant.variant, run.block));
            }
        }
    }
    lines
}

/// The word for how usable a run of a step is.
pub(crate) fn state(validity: &Validity) -> &'static str {
    match validity {
        Validity::Valid => "valid",
        Validity::Invalid { .. } => "invalid",
        Validity::Failed { .. } => "failed",
        Validity::Interrupted => "interrupted",
    }
}

/// Why a run of a step is not valid; empty when it is.
pub(crate) fn reason(validity: &Validity) -> String {
    match validity {
        Validity::Valid => String::new(),
        Validity::Invalid { reasons } => reasons.join("; "),
        Validity::Failed { message } => failure_words(message),
        Validity::Interrupted => "it was stopped before its end".to_owned(),
    }
}

/// Kinds of operation of a step in the order in which the runs name them.
pub(crate) fn kinds(step: &StepFindings) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in step.variants.iter().flat_map(|variant| &variant.runs).flat_map(|run| &run.kinds) {
        if !names.contains(&kind.kind) {
            names.push(kind.kind.clone());
        }
    }
    names
}

/// More than one block: rows must say which.
pub(crate) fn has_blocks(step: &StepFindings) -> bool {
    step.variants.iter().flat_map(|variant| &variant.runs).any(|run| run.block > 1)
}

/// Heads of the columns that say which run a row is of.
fn run_columns(step: &StepFindings) -> Vec<Column> {
    let mut columns = vec![Column::new("variant", "", "")];
    if has_blocks(step) {
        columns.push(Column::new("block", "", "One block is every cell once, in random order."));
    }
    columns
}

/// The cells under [`run_columns`]. A run that must not be used says so in every table.
fn run_labels(step: &StepFindings, variant: &VariantStep, run: &StepRun) -> Vec<String> {
    let label = match run.validity {
        Validity::Valid => variant.variant.clone(),
        _ => format!("{} ({})", variant.variant, state(&run.validity)),
    };
    let mut labels = vec![label];
    if has_blocks(step) {
        labels.push(run.block.to_string());
    }
    labels
}

/// Every run of a step with its variant, by variant and then by block.
fn runs(step: &StepFindings) -> impl Iterator<Item = (&VariantStep, &StepRun)> {
    step.variants.iter().flat_map(|variant| variant.runs.iter().map(move |run| (variant, run)))
}

/// The result of one kind in a run.
fn kind_of<'a>(run: &'a StepRun, name: &str) -> Option<&'a KindResult> {
    run.kinds.iter().find(|kind| kind.kind == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn step(name: &str) -> StepFindings {
        let findings = fixture::findings();
        findings.workloads[0].steps.iter().find(|step| step.name == name).expect("in the fixture").clone()
    }

    #[test]
    fn problems_name_variant_block_state_and_reason() {
        let lines: Vec<_> = fixture::findings().workloads[0].steps.iter().flat_map(problems).collect();
        assert!(lines.iter().any(|line| line.contains("block 1: invalid: rows of table")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("block 1: failed: server went away")), "{lines:?}");
    }

    #[test]
    fn the_block_column_appears_only_with_a_second_block() {
        let mut step = step("l.i0");
        assert_eq!(run_columns(&step).len(), 1);
        let mut second = step.variants[0].runs[0].clone();
        second.block = 2;
        step.variants[0].runs.push(second);
        assert_eq!(run_columns(&step).len(), 2);
    }

    #[test]
    fn every_row_of_every_table_has_a_cell_for_every_column() {
        for step in &fixture::findings().workloads[0].steps {
            for grid in grids(step) {
                for row in &grid.rows {
                    assert_eq!(row.len(), grid.columns.len(), "{} of {}", grid.title, step.name);
                }
            }
        }
    }
}
