//! Groups of steps: a row a group, a column a figure.

use dbdyno_analyse::{GroupFindings, RunSummary, numbered};
use dbdyno_model::Colours;

use super::cells::{absent, bounded, joined, number, ratio_cell};
use super::{BY_THRESHOLD, Scope, explained};
use crate::document::{Cell, Column, Table, Tone};
use crate::words::listed;

/// Figures of published tables, then the geometric mean, then which steps are at both ends.
const COLUMNS: [&str; 9] =
    ["steps", "average", "median", "min", "max", "stddev", "geometric mean", "lowest step", "highest step"];

/// One table for each grouping and number of connections.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let same =
        |a: &GroupFindings, b: &GroupFindings| a.grouping == b.grouping && a.connections == b.connections;
    scope.workload.groups.chunk_by(same).map(|groups| table(groups, scope.run)).collect()
}

fn table(groups: &[GroupFindings], run: &RunSummary) -> Table {
    let base = &run.base;
    let first = &groups[0];
    let connections =
        first.connections.map_or_else(String::new, |number| format!(", {}", numbered(number, "connection")));
    let several = groups.iter().any(|group| group.variant != first.variant);
    let of = if several { "each variant" } else { &first.variant };
    let interval = if groups.iter().any(|group| group.interval.is_some()) {
        " The geometric mean has its 95 % interval over the blocks."
    } else {
        ""
    };
    let title = format!("Groups of steps ({}){connections}", first.grouping);
    let note = format!(
        "Ratios of {of} to {base}, over the steps of each group of the published reports. stddev \
         has n - 1 in its divisor.{interval}"
    );
    let heads = COLUMNS.map(|head| Column { is_words: head.ends_with(" step"), ..Column::new(head, "", "") });
    let mut table = Table::new(&title, &note, ["group"], heads);
    for group in groups {
        let label = if several { format!("{}: {}", group.variant, group.group) } else { group.group.clone() };
        table.push(std::iter::once(Cell::from(label)).chain(cells(group, run.colours)));
    }
    explained(table, &BY_THRESHOLD)
}

fn cells(group: &GroupFindings, colours: Colours) -> Vec<Cell> {
    let Some(figures) = group.figures else {
        return COLUMNS.iter().map(|_| absent(&without(group))).collect();
    };
    let count = match group.without.len() {
        0 => figures.count.to_string(),
        missing => format!("{} of {}", figures.count, figures.count + missing),
    };
    let is_plain = group.without.is_empty() && group.bounds.is_empty();
    let count = match group.bounds.len() {
        0 => count,
        bounds => format!("{count}, {}", dbdyno_analyse::numbered(bounds, "bound")),
    };
    let is_time = group.less_is_better;
    let of_all = |value: f64, decimals| {
        bounded(ratio_cell(value, decimals, is_time, colours), value, group.bound(None))
    };
    // The ends are single steps, whose own cells have the colour.
    let end = |value: f64, step: Option<&str>| Cell {
        tone: Tone::Plain,
        sign: "",
        note: step.unwrap_or_default().to_owned(),
        ..bounded(
            ratio_cell(value, 2, is_time, colours),
            value,
            step.and_then(|step| group.bound(Some(step))),
        )
    };
    let name = |step: Option<&str>| Cell::from(step.unwrap_or("n/a"));
    let geometric = figures.geometric_mean.map(|value| of_all(value, 3));
    let geometric = geometric.map(|cell| Cell { interval: group.interval, ..cell });
    vec![
        Cell { note: without(group), value: is_plain.then_some(figures.count as f64), ..Cell::from(count) },
        of_all(figures.average, 2),
        of_all(figures.median, 2),
        end(figures.min, group.lowest()),
        end(figures.max, group.highest()),
        figures.deviation.map_or_else(|| absent(""), |value| number(value, format!("{value:.2}"))),
        geometric.unwrap_or_else(|| absent("")),
        name(group.lowest()),
        name(group.highest()),
    ]
}

/// Which steps of the group are not in its figures; empty when all are.
fn without(group: &GroupFindings) -> String {
    let names: Vec<&str> = group.without.iter().map(String::as_str).collect();
    let not = (!names.is_empty()).then(|| format!("not counted: {}", listed(&names)));
    let bounds: Vec<&str> = group.bounds.iter().map(|(name, _)| name.as_str()).collect();
    let cut = (!bounds.is_empty())
        .then(|| format!("counted with a bound, since a time limit cut it off: {}", listed(&bounds)));
    joined([not, cut])
}
