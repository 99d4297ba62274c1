//! Details of a step as tables of text, which are the same in every format.

mod checks;
mod cost_breakdown;
mod io;
mod latency;
mod metrics;
pub(crate) mod rates;
pub(crate) mod relative;
mod sql;
mod statistics;

use dbdyno_analyse::{MetricGroup, StepFindings, StepRun, Validity, VariantStep, failure_words, unique};

use crate::document::Table;
use crate::notices::reasons_text;
use crate::words;

pub(crate) use cost_breakdown::{cause, explanations, of_operation};

/// The topic of a table of details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Latency,
    /// CPU by who used it, the original's columns, and the client's share.
    Cost,
    /// The device, deferred work and memory.
    Io,
    Sql,
    /// Rates by block, ratios, verdicts and steadiness.
    Statistics,
}

impl Topic {
    pub(crate) const ALL: [Self; 5] = [Self::Latency, Self::Cost, Self::Io, Self::Sql, Self::Statistics];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Latency => "Latency",
            Self::Cost => "CPU and cost",
            Self::Io => "IO, device and memory",
            Self::Sql => "SQL and query plans",
            Self::Statistics => "Statistics",
        }
    }
}

/// The deciding table: the rate of each variant.
pub(crate) fn rate(step: &StepFindings) -> Option<Table> {
    Some(rates::by_variant(step)).filter(|table| !table.rows.is_empty())
}

/// A step's tables on one topic, without the rate of each variant. Tables without a row are left
/// out.
pub(crate) fn tables(step: &StepFindings, topic: Topic) -> Vec<Table> {
    let mut all = match topic {
        Topic::Statistics => {
            let by_block = rates::by_block(step).into_iter();
            let executions = [statistics::composite(step), statistics::executions(step)];
            let of_blocks = [statistics::verdicts(step), statistics::steadiness(step)];
            by_block.chain(executions).chain(of_blocks).collect()
        }
        Topic::Latency => {
            let kinds = kinds(step).into_iter();
            let of_kinds = kinds.flat_map(|kind| [latency::grid(step, kind), latency::buckets(step, kind)]);
            of_kinds.chain([latency::schedule(step)]).collect()
        }
        Topic::Cost => {
            let of_group =
                |group| Some(metrics::tables(step, group).into_iter().chain([relative::grid(step, group)?]));
            let groups = MetricGroup::ALL.iter().filter_map(of_group).flatten();
            let checks = [checks::host(step), checks::client(step)];
            [cost_breakdown::grid(step)].into_iter().chain(groups).chain(checks).collect()
        }
        Topic::Io => {
            let groups = MetricGroup::ALL.iter().filter(|group| group.relative.is_none());
            let tables = groups.flat_map(|group| metrics::tables(step, group));
            tables.chain([io::deferred_work(step), io::memory(step)]).collect()
        }
        Topic::Sql => {
            vec![
                sql::operations(step),
                sql::lookups(step),
                sql::statements(step),
                sql::operators(step),
                sql::query_plans(step),
            ]
        }
    };
    all.retain(|table| !table.rows.is_empty());
    all
}

/// Why runs of a step must not be used or are missing, one line per run.
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
        Validity::Invalid { reasons } => reasons_text(reasons),
        Validity::Failed { message } => failure_words(message),
        Validity::Interrupted => "it was stopped before its end".to_owned(),
    }
}

/// Kinds of operation of a step in the order in which the runs name them.
pub(crate) fn kinds(step: &StepFindings) -> Vec<&str> {
    unique(runs(step).flat_map(|(_, run)| &run.kinds).map(|kind| kind.kind.as_str()))
}

/// Whether there is more than one block, so that rows must say which.
pub(crate) fn has_blocks(step: &StepFindings) -> bool {
    step.variants.iter().flat_map(|variant| &variant.runs).any(|run| run.block > 1)
}

/// A table with the rows that each run of a step has, under the heads of `table`. The first columns
/// say which run a row belongs to. A run that must not be used is marked in every table.
fn of_runs<R: IntoIterator<Item = Vec<String>>>(
    step: &StepFindings,
    table: Table,
    rows: impl Fn(&StepRun) -> R,
) -> Table {
    let has_blocks = has_blocks(step);
    let of_run = words::table("runs").without(if has_blocks { &[] } else { &["block"] });
    let labels = of_run.labels + table.labels;
    let mut grid = Table { labels, columns: [of_run.columns, table.columns].concat(), ..table };
    for (variant, run) in runs(step) {
        let label = match run.validity {
            Validity::Valid => variant.variant.clone(),
            _ => format!("{} ({})", variant.variant, state(&run.validity)),
        };
        for row in rows(run) {
            let block = has_blocks.then(|| run.block.to_string());
            grid.push(std::iter::once(label.clone()).chain(block).chain(row));
        }
    }
    grid
}

/// Every run of a step with its variant, by variant and then by block.
fn runs(step: &StepFindings) -> impl Iterator<Item = (&VariantStep, &StepRun)> {
    step.variants.iter().flat_map(|variant| variant.runs.iter().map(move |run| (variant, run)))
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
        let columns = |step: &StepFindings| of_runs(step, Table::default(), |_| None).labels;
        assert_eq!(columns(&step), 1);
        let mut second = step.variants[0].runs[0].clone();
        second.block = 2;
        step.variants[0].runs.push(second);
        assert_eq!(columns(&step), 2);
    }

    #[test]
    fn every_row_of_every_table_has_a_cell_for_every_column() {
        for step in &fixture::findings().workloads[0].steps {
            for table in Topic::ALL.into_iter().flat_map(|topic| tables(step, topic)).chain(rate(step)) {
                for row in &table.rows {
                    assert_eq!(row.len(), table.columns.len(), "{} of {}", table.title, step.name);
                }
            }
        }
    }
}
