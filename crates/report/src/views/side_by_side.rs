//! Tables with a workload's set-ups next to each other. Each variant has one table of relative
//! rates and one of group figures.

use dbdyno_analyse::statistics::describe::{Group as Figures, GroupFigure as Figure};
use dbdyno_analyse::{Findings, RunSummary, WorkloadFindings, unique, workload_and_setup};
use dbdyno_model::Colours;

use super::cells::{absent, ratio_cell, variant_cell};
use super::groups::{self, Group};
use super::{Scope, explained, of_ratios};
use crate::document::{Column, Table, TableCell};

/// Returns the workloads that ran in several set-ups, in the order of the plan, each with its
/// variants' tables.
pub(crate) fn side_by_side<'a>(
    run: &RunSummary,
    workloads: &'a [WorkloadFindings],
) -> Vec<(&'a str, Vec<Table>)> {
    let of_one = workloads.chunk_by(|one, next| named(one) == named(next)).filter(|all| all.len() > 1);
    of_one.map(|setups| (named(&setups[0]), of_setups(run, setups))).collect()
}

/// Makes the tables of all workloads.
pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    side_by_side(&findings.run, &findings.workloads).into_iter().flat_map(|(_, tables)| tables).collect()
}

/// Returns the workload's name without the set-up.
fn named(findings: &WorkloadFindings) -> &str {
    workload_and_setup(&findings.name).0
}

fn of_setups(run: &RunSummary, setups: &[WorkloadFindings]) -> Vec<Table> {
    let compared =
        scope(run, &setups[0]).compared().into_iter().filter(|name| run.control.as_deref() != Some(name));
    compared
        .flat_map(|variant| {
            std::iter::once(relative(run, setups, variant)).chain(of_groups(run, setups, variant))
        })
        .collect()
}

/// Makes a table with one row per step and one column per set-up. Its ratios are those in the
/// set-ups' own tables.
fn relative(run: &RunSummary, setups: &[WorkloadFindings], variant: &str) -> Table {
    let title = format!("Relative throughput of {variant} in each set-up");
    let are_times = scope(run, &setups[0]).are_times();
    let figure = if are_times { "seconds" } else { "rate" };
    let note = format!(
        "The {figure} of {variant} divided by the {figure} of {} in the same block and set-up.",
        run.base
    );
    let mut table = Table::new(&title, &note, ["step"], heads(setups));
    for name in unique(setups.iter().flat_map(WorkloadFindings::judged_steps).map(|step| step.name.as_str()))
    {
        let cell = |workload: &WorkloadFindings| {
            let step = workload.steps.iter().find(|step| step.name == name)?;
            Some(variant_cell(scope(run, workload), step, step.variant(variant)?))
        };
        let cells = setups.iter().map(|setup| cell(setup).unwrap_or_else(lacking));
        table.push(std::iter::once(TableCell::from(name)).chain(cells));
    }
    explained(table, &of_ratios(scope(run, &setups[0])))
}

fn scope<'a>(run: &'a RunSummary, workload: &'a WorkloadFindings) -> Scope<'a> {
    Scope { run, failures: &[], warnings: &[], why: None, workload }
}

/// Makes one table per grouping and number of connections. Its rows are the figures of each group.
fn of_groups(run: &RunSummary, setups: &[WorkloadFindings], variant: &str) -> Vec<Table> {
    let of_setup = |setup| {
        let mut all = groups::groups(scope(run, setup));
        all.retain(|group| group.variant == variant);
        all
    };
    let by_setup: Vec<Vec<Group<'_>>> = setups.iter().map(of_setup).collect();
    let all = || by_setup.iter().flatten();
    let table = |first: &Group<'_>| {
        let title = format!("{}: {variant} in each set-up", first.table_title());
        let is_here = |group: &&Group<'_>| group.table_key() == first.table_key();
        let are_times = all().filter(is_here).any(Group::are_times);
        let what = if are_times { "Ratios of seconds" } else { "Relative rates" };
        let note = format!(
            "{what} of {variant} to {} over the steps of each group. stddev has n - 1 in its divisor.",
            run.base
        );
        let mut table = Table::new(&title, &note, ["group"], heads(setups));
        for name in unique(all().filter(is_here).map(|group| group.name)) {
            let of_setup = |groups: &Vec<Group<'_>>| {
                groups.iter().filter(is_here).find(|group| group.name == name)?.ratios.figures()
            };
            let figures: Vec<Option<Figures>> = by_setup.iter().map(of_setup).collect();
            for (figure, value) in Figures::PUBLISHED {
                let cells = figures
                    .iter()
                    .map(|group| figure_cell(group.as_ref(), (figure, value), are_times, run.colours));
                table.push(std::iter::once(TableCell::from(format!("{name}: {figure}"))).chain(cells));
            }
        }
        explained(table, &of_ratios(scope(run, &setups[0])))
    };
    let known = unique(all().map(Group::table_key));
    known.into_iter().filter_map(|known| all().find(|group| group.table_key() == known)).map(table).collect()
}

pub(super) fn figure_cell(
    group: Option<&Figures>,
    (figure, value): (&str, Figure),
    is_time: bool,
    colours: Colours,
) -> TableCell {
    let Some(group) = group else { return lacking() };
    match value(group) {
        None => absent("of one step"),
        Some(value) if figure == "stddev" => TableCell::from(format!("{value:.2}")),
        Some(value) => ratio_cell(value, 2, is_time, colours),
    }
}

fn lacking() -> TableCell {
    absent("not in this set-up")
}

fn heads(setups: &[WorkloadFindings]) -> Vec<Column> {
    let name = |setup: &WorkloadFindings| {
        let (workload, name) = workload_and_setup(&setup.name);
        Column::new(name.unwrap_or(workload), "", "")
    };
    setups.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::StepFindings;

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing::rows;

    /// Makes a workload with steps of one group, in a set-up with this name.
    fn of_setup(name: &str, steps: &[(&str, f64, u32)]) -> WorkloadFindings {
        let of = |(step, ratio, connections): &(&str, f64, u32)| StepFindings {
            connections: *connections,
            groups: [("2024".to_owned(), "writes".to_owned())].into(),
            ..pair(step, *ratio, 1)
        };
        let workload = of_steps(steps.iter().map(of).collect()).workloads.remove(0);
        WorkloadFindings { name: format!("insert-benchmark@{name}"), ..workload }
    }

    fn of_run(setups: &[WorkloadFindings]) -> Vec<(&str, Vec<Table>)> {
        side_by_side(&of_steps(Vec::new()).run, setups)
    }

    #[test]
    fn set_ups_are_columns_of_the_ratios_and_of_the_groups() {
        let setups = [("small", 1.0), ("big", 0.5)]
            .map(|(name, ratio)| of_setup(name, &[("l.i0", ratio, 1), ("l.x", 2.0 * ratio, 1)]));
        assert!(of_run(&setups[..1]).is_empty(), "one set-up is none");
        let found = of_run(&setups);
        let [(name, tables)] = found.as_slice() else { panic!("{} workloads", found.len()) };
        let [ratios, groups] = tables.as_slice() else { panic!("{tables:?}") };
        assert_eq!((*name, ratios.columns.len()), ("insert-benchmark", 3));
        assert_eq!(rows(ratios), "l.i0 | 1.00 | 0.50\nl.x | 2.00 | 1.00");
        assert_eq!(groups.title, "Groups of steps (2024): <b>&\" in each set-up");
        insta::assert_snapshot!(rows(groups), @"
        writes: average | 1.50 | 0.75
        writes: median | 1.50 | 0.75
        writes: min | 1.00 | 0.50
        writes: max | 2.00 | 1.00
        writes: stddev | 0.71 | 0.35
        ");
    }

    #[test]
    fn each_number_of_connections_has_a_table_of_groups() {
        let setups = ["small", "big"].map(|name| of_setup(name, &[("ro.c1", 1.0, 1), ("ro.c4", 1.0, 4)]));
        let found = of_run(&setups);
        let tables = found[0].1.iter().filter(|table| table.title.starts_with("Groups"));
        assert_eq!(tables.count(), 2);
    }
}
