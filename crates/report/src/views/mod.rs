//! The views: tables that are derived from a run. Each file has one view, or a few on one subject,
//! with its filter, grouping, pivot, caption and rule for colour. [`OF_WORKLOAD`], [`OF_STEP`],
//! [`OF_RUN`] and [`OF_HISTORY`] name the views in the order of a report. The tables of a
//! comparison and of a history are in [`crate::comparison`] and [`crate::history`]. JSON and every
//! format that shows tables take them from here.

mod before_after_writes;
pub(crate) mod cells;
mod control;
pub(crate) mod details;
mod effects;
mod efficiency;
mod errors;
pub(crate) mod groups;
mod hints;
pub(crate) mod latency;
mod load_with_indexes;
mod machines;
mod published;
pub(crate) mod published_style;
pub(crate) mod ratios;
mod side_by_side;
pub(crate) mod summary;
pub(crate) mod sweeps;
mod throughput;
pub(crate) mod why;

use dbdyno_analyse::tables::Tables;
use dbdyno_analyse::{
    Failure, Findings, History, RunSummary, SectionFindings, StepFindings, Warning, Why,
    WorkloadFindings,
};
use dbdyno_model::Colours;

use crate::document::{Block, Table, TableCell, Tone};
use crate::words::listed;

pub(crate) use self::cells::{
    bounded_text, distance as ratio_tone, headline_text, placeholder, ratio_or_placeholder,
};
pub(crate) use self::machines::machines;
pub(crate) use self::published::{published, published_counts};
pub(crate) use self::side_by_side::side_by_side;

#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) run: &'a RunSummary,
    pub(crate) failures: &'a [Failure],
    pub(crate) warnings: &'a [Warning],
    pub(crate) why: Option<&'a Why>,
    pub(crate) workload: &'a WorkloadFindings,
}

/// Returns the run as a section compares it: with the section's base, and without the control.
pub(crate) fn run_of_section(run: &RunSummary, section: &SectionFindings) -> RunSummary {
    RunSummary { base: section.base.clone(), control: None, ..run.clone() }
}

/// A view of a run, a history, a workload or a step.
pub(crate) struct View<Part, Tables> {
    /// The name by which programs that read JSON know the view.
    pub(crate) id: &'static str,
    /// The part of a report that the view belongs to.
    pub(crate) part: Part,
    /// The function that makes the tables. It makes none where there is nothing for the view.
    pub(crate) tables: Tables,
}

type OfWorkload = View<ViewPart, fn(Scope<'_>) -> Vec<Table>>;
type OfStep = View<Topic, fn(&StepFindings) -> Vec<Table>>;
type OfRun = View<(), fn(&Findings) -> Vec<Table>>;
type OfHistory = View<(), fn(&History) -> Vec<Table>>;

/// Views of a workload's steps together.
pub(crate) const OF_WORKLOAD: &[OfWorkload] = &[
    View { id: "summary", part: ViewPart::Summary, tables: summary::tables },
    View { id: "throughput", part: ViewPart::Rates, tables: throughput::tables },
    View { id: "ratios", part: ViewPart::Rates, tables: ratios::tables },
    View { id: "by_machine", part: ViewPart::Rates, tables: machines::by_machine },
    View { id: "effects", part: ViewPart::Rates, tables: effects::tables },
    View { id: "load_with_indexes", part: ViewPart::Rates, tables: load_with_indexes::tables },
    View { id: "groups", part: ViewPart::Rates, tables: groups::tables },
    View { id: "hints", part: ViewPart::Rates, tables: hints::tables },
    View { id: "sweeps", part: ViewPart::Rates, tables: sweeps::tables },
    View { id: "before_after_writes", part: ViewPart::Rates, tables: before_after_writes::tables },
    View { id: "targets", part: ViewPart::Rates, tables: throughput::targets },
    View { id: "errors", part: ViewPart::Rates, tables: errors::tables },
    View { id: "control", part: ViewPart::Rates, tables: control::tables },
    View { id: "latency", part: ViewPart::Latency, tables: latency::tables },
    View { id: "efficiency", part: ViewPart::Efficiency, tables: efficiency::tables },
];

/// Views of one step. Views without rows are not shown.
const OF_STEP: &[OfStep] = &[
    View { id: "times", part: Topic::Latency, tables: details::latency::times },
    View { id: "schedule", part: Topic::Latency, tables: |step| vec![details::latency::schedule(step)] },
    View { id: "cost_breakdown", part: Topic::Cost, tables: |step| vec![details::cost::grid(step)] },
    View { id: "by_user", part: Topic::Cost, tables: |step| vec![details::cost::by_user(step)] },
    View { id: "metrics", part: Topic::Cost, tables: details::metrics::per_operation },
    View { id: "host_check", part: Topic::Cost, tables: |step| vec![details::cost::host_check(step)] },
    View {
        id: "client_headroom",
        part: Topic::Cost,
        tables: |step| vec![details::cost::client_headroom(step)],
    },
    View { id: "device", part: Topic::Io, tables: details::metrics::device },
    View { id: "deferred_work", part: Topic::Io, tables: |step| vec![details::metrics::deferred_work(step)] },
    View { id: "limited_memory", part: Topic::Io, tables: |step| vec![details::metrics::memory(step)] },
    View { id: "operations", part: Topic::Sql, tables: |step| vec![details::sql::operations(step)] },
    View { id: "lookups", part: Topic::Sql, tables: |step| vec![details::sql::lookups(step)] },
    View { id: "statements", part: Topic::Sql, tables: |step| vec![details::sql::statements(step)] },
    View { id: "operators", part: Topic::Sql, tables: |step| vec![details::sql::operators(step)] },
    View { id: "query_plans", part: Topic::Sql, tables: |step| vec![details::sql::query_plans(step)] },
    View { id: "rate_by_block", part: Topic::Statistics, tables: details::statistics::by_block },
    View { id: "executions", part: Topic::Statistics, tables: details::statistics::executions },
    View {
        id: "verdicts",
        part: Topic::Statistics,
        tables: |step| vec![details::statistics::verdicts(step)],
    },
    View {
        id: "steadiness",
        part: Topic::Statistics,
        tables: |step| vec![details::statistics::steadiness(step)],
    },
];

/// Views of a run's workloads together.
pub(crate) const OF_RUN: &[OfRun] = &[
    View { id: "machines", part: (), tables: machines::tables },
    View { id: "set_ups", part: (), tables: side_by_side::tables },
    View { id: "published", part: (), tables: published::tables },
];

/// Views of a history of runs.
pub(crate) const OF_HISTORY: &[OfHistory] = &[
    View { id: "series", part: (), tables: crate::history::series_view },
    View { id: "runs", part: (), tables: crate::history::runs_view },
];

/// The part of a report that a view of a workload belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewPart {
    Summary,
    Rates,
    Latency,
    /// CPU and IO per operation, which a page folds away.
    Efficiency,
}

/// The topic of a step's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Latency,
    /// CPU by who used it, the columns of the original Insert Benchmark, and the client's headroom.
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

/// Returns a step's tables on one topic.
pub(crate) fn of_step(step: &StepFindings, topic: Topic) -> Vec<Block> {
    let views = OF_STEP.iter().filter(|view| view.part == topic);
    shown(views.flat_map(|view| (view.tables)(step)))
}

/// Returns the tables with figures, and then a line that names those whose figures are all zero or
/// unknown, because these are left out. Nothing is said where no table has a figure.
fn shown(tables: impl Iterator<Item = Table>) -> Vec<Block> {
    let tables = tables.filter(|table| !table.rows.is_empty());
    let (tables, left_out): (Vec<Table>, Vec<Table>) = tables.partition(Table::has_values);
    let mut titles: Vec<&str> = left_out.iter().map(|table| table.title.as_str()).collect();
    titles.dedup();
    let line = format!("All zero or unknown, and not shown: {}.", listed(&titles));
    let line = (!tables.is_empty() && !titles.is_empty()).then_some(Block::Text(Tone::Muted, line));
    tables.into_iter().map(Block::Table).chain(line).collect()
}

/// Returns the tables of one view of a history.
pub(crate) fn of_history(history: &History, id: &str) -> Vec<Block> {
    let views = OF_HISTORY.iter().filter(|view| view.id == id);
    views.flat_map(|view| (view.tables)(history)).map(Block::Table).collect()
}

/// Returns the tables for one part of a report.
pub(crate) fn part(scope: Scope<'_>, part: ViewPart) -> Vec<Block> {
    let views = OF_WORKLOAD.iter().filter(|view| view.part == part);
    shown(views.flat_map(|view| (view.tables)(scope)))
}

/// Returns the tables of a workload's rates, and the lines that say why values are missing.
pub(crate) fn rates(scope: Scope<'_>) -> Vec<Block> {
    let mut blocks = part(scope, ViewPart::Rates);
    let missing = cells::missing_values(scope);
    if !missing.is_empty() {
        blocks.insert(blocks.len().min(1), Block::List(Tone::Doubt, missing));
    }
    blocks
}

/// Returns the table of the control. There is none for a run without a control.
pub(crate) fn control(scope: Scope<'_>) -> Vec<Block> {
    control::tables(scope).into_iter().map(Block::Table).collect()
}

impl<'a> Scope<'a> {
    pub(crate) fn of(findings: &'a Findings, workload: &'a WorkloadFindings) -> Self {
        let Findings { run, failures, warnings, why, .. } = findings;
        Self { run, failures, warnings, why: why.as_ref(), workload }
    }

    /// Returns the long tables with the values and ratios over all valid blocks.
    fn tables(self) -> Tables<'a> {
        Tables::over_blocks(&self.run.base, self.workload)
    }

    /// Returns the steps that are compared.
    pub(crate) fn steps(self) -> impl Iterator<Item = &'a StepFindings> {
        self.workload.judged_steps()
    }

    /// Returns whether the headlines are times, where less is better.
    pub(crate) fn are_times(self) -> bool {
        self.steps().next().is_some() && self.steps().all(|step| step.less_is_better)
    }

    /// Returns the names of the variants other than the base.
    pub(crate) fn compared(self) -> Vec<&'a str> {
        self.variants().into_iter().filter(|name| *name != self.run.base).collect()
    }

    /// Returns the variants in the workload's steps, in the order of the plan.
    fn variants(self) -> Vec<&'a str> {
        let first = self.workload.steps.first();
        first.map_or_else(Vec::new, |step| step.variants.iter().map(|of| of.variant.as_str()).collect())
    }

    /// Makes a table with one row per step and the columns in `heads`. Steps are rows because pages
    /// and terminals are higher than wide.
    fn by_step(
        self,
        (title, note): (&str, &str),
        heads: &[&str],
        row: impl Fn(&'a StepFindings) -> Option<Vec<TableCell>>,
    ) -> Table {
        let mut table = Table::new(title, note, ["step"], heads.iter().copied());
        for step in self.steps() {
            if let Some(cells) = row(step) {
                table.push(std::iter::once(TableCell::from(step.name.as_str())).chain(cells));
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

/// Returns the signs for ratios to the base.
fn of_ratios(scope: Scope<'_>) -> Vec<(Tone, &'static str)> {
    match scope.run.colours {
        Colours::Verdict => vec![(Tone::Above, "faster"), (Tone::Below, "slower")],
        Colours::Threshold => {
            [&BY_THRESHOLD[..], &[(Tone::Undecided, "undecided, or one block: the ratio may be chance")]]
                .concat()
        }
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
