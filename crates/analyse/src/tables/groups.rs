//! The summary's tables of groups of steps: a row a group, a column a figure.

use crate::compare::ratio::ratio_text;
use crate::model::{Cell, Colour, GroupFindings, Table, TableRow};
use crate::tables::cells::absent;
use crate::tables::colours;
use crate::words::{listed, numbered};

/// Figures of published tables, then the geometric mean, then which steps are at both ends.
const COLUMNS: [&str; 9] =
    ["steps", "average", "median", "min", "max", "stddev", "geometric mean", "lowest step", "highest step"];

/// One table for each grouping and number of connections; none where steps have no groups.
pub(crate) fn tables(groups: &[GroupFindings], base: &str) -> Vec<Table> {
    let same =
        |a: &GroupFindings, b: &GroupFindings| a.grouping == b.grouping && a.connections == b.connections;
    groups.chunk_by(same).map(|groups| table(groups, base)).collect()
}

fn table(groups: &[GroupFindings], base: &str) -> Table {
    let first = &groups[0];
    let connections =
        first.connections.map_or_else(String::new, |number| format!(", {}", numbered(number, "connection")));
    let several = groups.iter().any(|group| group.variant != first.variant);
    let row = |group: &GroupFindings| TableRow {
        label: if several { format!("{}: {}", group.variant, group.group) } else { group.group.clone() },
        is_target: false,
        cells: cells(group, base),
    };
    let of = if several { "each variant".to_owned() } else { first.variant.clone() };
    let interval = if groups.iter().any(|group| group.interval.is_some()) {
        " The geometric mean has its 95 % interval over the blocks."
    } else {
        ""
    };
    Table {
        title: format!("Groups of steps ({}){connections}", first.grouping),
        caption: format!(
            "Relative rates of {of} to {base}, over the steps of each group of the published reports. stddev has n - 1 in its divisor.\
             {interval}"
        ),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: groups.iter().map(row).collect(),
    }
}

fn cells(group: &GroupFindings, base: &str) -> Vec<Cell> {
    let Some(figures) = group.figures else {
        return COLUMNS.iter().map(|_| absent("n/a", without(group))).collect();
    };
    let text = match group.without.len() {
        0 => figures.count.to_string(),
        missing => format!("{} of {}", figures.count, figures.count + missing),
    };
    let count = Cell { value: Some(figures.count as f64), ..absent(&text, without(group)) };
    let ratio = |value: f64, decimals: usize, note: String| Cell {
        value: Some(value),
        colour: colours::relative(value),
        note,
        ..absent(&ratio_text(value, decimals), String::new())
    };
    let coloured =
        |value: f64, decimals| ratio(value, decimals, colours::relative_note(colours::relative(value), base));
    // The ends are single steps, whose own cells have the colour.
    let end = |value: f64, step: Option<&str>| Cell {
        colour: Colour::None,
        ..ratio(value, 2, step.unwrap_or_default().to_owned())
    };
    let name = |step: Option<&str>| absent(step.unwrap_or("n/a"), String::new());
    let deviation = figures.deviation.map_or_else(
        || absent("n/a", String::new()),
        |value| Cell { value: Some(value), ..absent(&format!("{value:.2}"), String::new()) },
    );
    let geometric = figures.geometric_mean.map_or_else(
        || absent("n/a", String::new()),
        |value| Cell { interval: group.interval, ..coloured(value, 3) },
    );
    vec![
        count,
        coloured(figures.average, 2),
        coloured(figures.median, 2),
        end(figures.min, group.lowest()),
        end(figures.max, group.highest()),
        deviation,
        geometric,
        name(group.lowest()),
        name(group.highest()),
    ]
}

/// Which steps of the group are not in its figures; empty when all are.
fn without(group: &GroupFindings) -> String {
    let names: Vec<&str> = group.without.iter().map(String::as_str).collect();
    if names.is_empty() { String::new() } else { format!("not counted: {}", listed(&names)) }
}
