//! The views of one step's details, run by run and variant by variant.

pub(crate) mod cost;
pub(super) mod latency;
pub(super) mod metrics;
pub(super) mod sql;
pub(crate) mod statistics;

use dbdyno_analyse::{StepFindings, StepRun, Validity, VariantStep, failure_words, unique};

use crate::document::{Table, TableCell};
use crate::warnings::reasons_text;
use crate::words;

pub(crate) use cost::{cause, explanations, of_operation};

/// Returns the table of each variant's headline rate, by which variants are compared. It is `None`
/// for a step without variants.
pub(crate) fn rate(step: &StepFindings) -> Option<Table> {
    Some(statistics::by_variant(step)).filter(|table| !table.rows.is_empty())
}

/// Says why runs of a step must not be used or are missing, in one line per run.
pub(crate) fn problems(step: &StepFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for variant in &step.variants {
        if variant.runs.is_empty() {
            lines.push(format!("{}: this step did not run", variant.variant));
        }
        for run in &variant.runs {
            let reason = reason(&run.validity);
            if !reason.is_empty() {
                let state = run.validity.state();
                lines.push(format!("{}, block {}: {state}: {reason}", variant.variant, run.block));
            }
        }
    }
    lines
}

/// Says why a step's run is not valid. The text is empty when it is valid.
pub(crate) fn reason(validity: &Validity) -> String {
    match validity {
        Validity::Valid => String::new(),
        Validity::Invalid { reasons } => reasons_text(reasons),
        Validity::Failed { message } => failure_words(message),
        Validity::Interrupted => "it was stopped before its end".to_owned(),
    }
}

/// Returns a step's kinds of operation in the order in which the runs name them.
pub(crate) fn kinds(step: &StepFindings) -> Vec<&str> {
    unique(runs(step).flat_map(|(_, run)| &run.kinds).map(|kind| kind.kind.as_str()))
}

/// Returns whether there is more than one block, so that rows must name theirs.
pub(crate) fn has_blocks(step: &StepFindings) -> bool {
    step.variants.iter().flat_map(|variant| &variant.runs).any(|run| run.block > 1)
}

/// Makes a table of all runs of a step. `rows` returns the rows of one run, under the columns of
/// `table`. Further columns in front say which run a row belongs to. A run that must not be used
/// says so in every table.
fn of_runs<C: Into<TableCell>, R: IntoIterator<Item = Vec<C>>>(
    step: &StepFindings,
    table: Table,
    rows: impl Fn(&StepRun) -> R,
) -> Table {
    let has_blocks = has_blocks(step);
    let run_table = words::table("runs").without(if has_blocks { &[] } else { &["block"] });
    let labels = run_table.labels + table.labels;
    let mut grid = Table { labels, columns: [run_table.columns, table.columns].concat(), ..table };
    for (variant, run) in runs(step) {
        let label = match run.validity {
            Validity::Valid => variant.variant.clone(),
            _ => format!("{} ({})", variant.variant, run.validity.state()),
        };
        for row in rows(run) {
            let block = has_blocks.then(|| run.block.to_string());
            let run_cells = std::iter::once(label.clone()).chain(block).map(TableCell::from);
            grid.push(run_cells.chain(row.into_iter().map(Into::into)));
        }
    }
    grid
}

/// Returns every run of a step with its variant, by variant and then by block.
fn runs(step: &StepFindings) -> impl Iterator<Item = (&VariantStep, &StepRun)> {
    step.variants.iter().flat_map(|variant| variant.runs.iter().map(move |run| (variant, run)))
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::Warning;

    use super::*;
    use crate::document::Block;
    use crate::document::tests::tables;
    use crate::fixture::{self, pair};
    use crate::views::{Topic, of_step};

    #[test]
    fn problems_name_variant_block_state_and_reason() {
        let mut step = pair("l.i0", 1.0, 2);
        step.variants[0].runs.clear();
        let [first, second] = &mut step.variants[1].runs[..] else { panic!("two blocks") };
        first.validity = Validity::Invalid { reasons: vec![Warning::quoted("rows of table 1")] };
        second.validity = Validity::Failed { message: "server went away".to_owned() };
        insta::assert_snapshot!(problems(&step).join("\n"), @r#"
        rollback: this step did not run
        <b>&", block 1: invalid: rows of table 1
        <b>&", block 2: failed: server went away
        "#);
    }

    #[test]
    fn the_block_column_appears_only_with_a_second_block() {
        let columns =
            |blocks| of_runs(&pair("l.i0", 1.0, blocks), Table::default(), |_| None::<Vec<TableCell>>).labels;
        assert_eq!([1, 2].map(columns), [1, 2]);
    }

    #[test]
    fn every_row_of_every_table_has_a_cell_for_every_column() {
        for step in &fixture::findings().workloads[0].steps {
            let details = Topic::ALL.into_iter().flat_map(|topic| of_step(step, topic));
            let details: Vec<Block> = details.chain(rate(step).map(Block::Table)).collect();
            for table in tables(&details) {
                for row in &table.rows {
                    assert_eq!(row.len(), table.columns.len(), "{} of {}", table.title, step.name);
                }
            }
        }
    }
}
