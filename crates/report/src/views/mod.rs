//! The views of a workload's steps: tables for reports, one file each. [`VIEWS`] names them in the
//! order of a report. JSON and every format that shows tables take them from here.

mod before_after_writes;
mod by_machine;
mod cells;
mod colours;
mod control;
mod effects;
mod efficiency;
mod errors;
pub(crate) mod groups;
mod hints;
pub(crate) mod latency;
mod load_with_indexes;
mod missing_values;
mod ratios;
mod side_by_side;
pub(crate) mod sweeps;
mod targets;
mod throughput;

use dbdyno_analyse::{
    Failure, Findings, Notice, RunSummary, SectionFindings, StepFindings, WorkloadFindings,
};
use dbdyno_model::Colours;

pub(crate) use self::cells::{bounded_text, headline_text, placeholder, ratio_or_placeholder};
pub(crate) use self::colours::distance as ratio_tone;
pub(crate) use self::side_by_side::side_by_side;
use crate::document::{Block, Cell, Table, Tone};

#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) run: &'a RunSummary,
    pub(crate) failures: &'a [Failure],
    pub(crate) warnings: &'a [Notice],
    pub(crate) workload: &'a WorkloadFindings,
}

/// The run as a section compares it: with the section's base, and without the control.
pub(crate) fn run_of_section(run: &RunSummary, section: &SectionFindings) -> RunSummary {
    RunSummary { base: section.base.clone(), again: None, ..run.clone() }
}

/// A view: one file with its filter, grouping, pivot, caption and rule for colour.
pub(crate) struct View {
    /// The name by which programs that read JSON know the view.
    pub(crate) id: &'static str,
    pub(crate) part: Part,
    /// The function that makes the tables. It makes none where the workload has nothing for the
    /// view.
    pub(crate) tables: fn(Scope<'_>) -> Vec<Table>,
}

/// The part of a report in which a view stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Rates,
    Latency,
    /// CPU and IO per operation, which a page has folded.
    Efficiency,
}

pub(crate) const VIEWS: [View; 14] = [
    View { id: "throughput", part: Part::Rates, tables: throughput::tables },
    View { id: "ratios", part: Part::Rates, tables: ratios::tables },
    View { id: "by_machine", part: Part::Rates, tables: by_machine::tables },
    View { id: "effects", part: Part::Rates, tables: effects::tables },
    View { id: "load_with_indexes", part: Part::Rates, tables: load_with_indexes::tables },
    View { id: "groups", part: Part::Rates, tables: groups::tables },
    View { id: "hints", part: Part::Rates, tables: hints::tables },
    View { id: "sweeps", part: Part::Rates, tables: sweeps::tables },
    View { id: "before_after_writes", part: Part::Rates, tables: before_after_writes::tables },
    View { id: "targets", part: Part::Rates, tables: targets::tables },
    View { id: "errors", part: Part::Rates, tables: errors::tables },
    View { id: "control", part: Part::Rates, tables: control::tables },
    View { id: "latency", part: Part::Latency, tables: latency::tables },
    View { id: "efficiency", part: Part::Efficiency, tables: efficiency::tables },
];

/// The tables of one part of a report.
pub(crate) fn part(scope: Scope<'_>, part: Part) -> Vec<Block> {
    let views = VIEWS.iter().filter(|view| view.part == part);
    views.flat_map(|view| (view.tables)(scope)).map(Block::Table).collect()
}

/// The text about a workload's rates, and why values are missing.
pub(crate) fn rates(scope: Scope<'_>) -> Vec<Block> {
    let mut blocks = part(scope, Part::Rates);
    let missing = missing_values::lines(scope);
    if !missing.is_empty() {
        blocks.insert(1, Block::List(Tone::Doubt, missing));
    }
    blocks
}

/// The table of the control; empty for a run without one.
pub(crate) fn control(scope: Scope<'_>) -> Vec<Block> {
    control::tables(scope).into_iter().map(Block::Table).collect()
}

impl<'a> Scope<'a> {
    pub(crate) fn of(findings: &'a Findings, workload: &'a WorkloadFindings) -> Self {
        Self { run: &findings.run, failures: &findings.failures, warnings: &findings.warnings, workload }
    }

    /// Steps that are compared.
    pub(crate) fn steps(self) -> impl Iterator<Item = &'a StepFindings> {
        self.workload.judged_steps()
    }

    /// Whether the headlines are times, of which less is better.
    pub(crate) fn are_times(self) -> bool {
        self.steps().next().is_some() && self.steps().all(|step| step.less_is_better)
    }

    /// Names of the variants other than the base.
    pub(crate) fn compared(self) -> Vec<&'a str> {
        self.variants().into_iter().filter(|name| *name != self.run.base).collect()
    }

    /// The variants of the workload's steps, in the order of the plan.
    fn variants(self) -> Vec<&'a str> {
        let first = self.workload.steps.first();
        first.map_or_else(Vec::new, |step| step.variants.iter().map(|of| of.variant.as_str()).collect())
    }

    /// A table with one row per step and the columns in `heads`, because pages and terminals are
    /// higher than wide.
    fn by_step(
        self,
        (title, note): (&str, &str),
        heads: &[&str],
        row: impl Fn(&'a StepFindings) -> Option<Vec<Cell>>,
    ) -> Table {
        let mut table = Table::new(title, note, ["step"], heads.iter().copied());
        for step in self.steps() {
            if let Some(cells) = row(step) {
                table.push(std::iter::once(Cell::from(step.name.as_str())).chain(cells));
            }
        }
        table
    }
}

/// Adds a legend for those signs in the table that `meanings` explains.
fn explained(mut table: Table, meanings: &[(Tone, &'static str)]) -> Table {
    let is_used = |tone: Tone| {
        let mut cells = table.rows.iter().flatten();
        cells.any(|cell| !cell.sign.is_empty() && cell.sign.split(' ').any(|sign| sign == tone.sign()))
    };
    table.legend = meanings.iter().copied().filter(|(tone, _)| is_used(*tone)).collect();
    table
}

/// Signs for ratios that are coloured by threshold.
const BY_THRESHOLD: [(Tone, &str); 2] =
    [(Tone::Highest, "5 % or more faster, or above"), (Tone::Lowest, "5 % or more slower, or below")];

/// Signs for ratios to the base.
fn of_ratios(scope: Scope<'_>) -> Vec<(Tone, &'static str)> {
    match scope.run.colours {
        Colours::Verdict => vec![(Tone::Above, "faster"), (Tone::Below, "slower")],
        Colours::Threshold => BY_THRESHOLD.to_vec(),
    }
}

#[cfg(test)]
mod tests;
